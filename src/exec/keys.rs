//! The keys of items that leave for tables, from a pass over the exports to the items that collide.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use crate::error::Result;
use crate::exec::work;
use crate::exec::workers::Workers;
use crate::limits;
use crate::model::Targets;
use crate::proof::collisions::{self, Collisions};
use crate::proof::log::{Block, Log};
use crate::sink::Outgoing;

/// Adds the keys of the rows that go to tables.
pub(super) fn add(outgoing: &[Outgoing<'_>], targets: &Targets, block: &mut Block) {
    let mut key = Vec::new();
    for group in outgoing {
        let Some(table) = group.table else { continue };
        let schema = &targets.table(table).key;
        for row in &group.rows {
            key.clear();
            limits::canonical_key(&row.item, schema, &mut key);
            collisions::push(block, table, &key, row.origin);
        }
    }
}

/// Searches all keys of a log for equal ones, by the workers. The log stays.
pub(super) fn search(log: Log, workers: &Workers) -> Result<Collisions> {
    let partitions = log.finish()?;
    let found = workers.pool().install(|| partitions.par_iter().map(|path| collisions::search(path)).collect::<Result<Vec<_>>>())?;
    collisions::collect(found)
}

/// Takes away the folder of a log that was searched.
pub(super) fn forget(folder: &Path) -> Result<()> {
    work::absent_is_fine(fs::remove_dir_all(folder)).map_err(|error| work::failed(folder, error))
}
