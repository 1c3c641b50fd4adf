//! From a chunk of lines to rows that leave: decode, classify, carry. Pure, and run in the pool.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use crate::codec::{self, Decoded, Record, ddb_json};
use crate::error::{Error, Kind, Reason, Reject, Stage};
use crate::exec::ledger::Ledger;
use crate::exec::record::{self, Holds, Kinds, place};
use crate::exec::rejects;
use crate::exec::units::RunFile;
use crate::limits;
use crate::model::{Arena, Batch, Change, ColumnType, EntityId, Fate, Item, Op, Origin, Row, Table, Type, Value};
use crate::plan::transform::Classifier;
use crate::plan::{Entity, Plan, Source, Unclassified};
use crate::proof::collisions::Collisions;
use crate::sink::Outgoing;
use crate::source::Chunk;

/// What a chunk gives.
#[derive(Debug)]
pub(crate) struct Routed<'a> {
    /// Rows that leave, by entity and output, in the order they were read.
    pub(crate) outgoing: Vec<Outgoing<'a>>,
    /// Items that do not, in the order they were read.
    pub(crate) rejects: Vec<Reject>,
    /// The counts.
    pub(crate) ledger: Ledger,
    /// Set where an unclassified item ends the run, as the pipeline says, or a line after which nothing can be trusted.
    pub(crate) fatal: Option<Error>,
}

/// Sends items on their way through the plan.
#[derive(Debug)]
pub(crate) struct Router<'p> {
    plan: &'p Plan,
    classifier: Classifier<'p>,
    files: &'p [RunFile],
    /// Only these entities are carried; the others are dropped and counted. Empty: all.
    only: &'p [EntityId],
    collisions: Arc<Collisions>,
    /// Whether change records may leave; else they are rejects.
    takes_changes: bool,
}

/// A chunk has about so many rows of each entity, where it has any.
const ROWS: usize = 256;

thread_local! {
    /// The worker's arena between two chunks, so that its pages stay mapped.
    static ARENA: Cell<Option<Arena>> = const { Cell::new(None) };
}

/// Lends the worker's arena; it is emptied afterwards.
pub(crate) fn with_arena<T>(work: impl FnOnce(&Arena) -> T) -> T {
    let mut arena = ARENA.take().unwrap_or_default();
    let result = work(&arena);
    arena.reset();
    ARENA.set(Some(arena));
    result
}

impl<'p> Router<'p> {
    pub(crate) fn new(
        plan: &'p Plan,
        files: &'p [RunFile],
        only: &'p [EntityId],
        collisions: Arc<Collisions>,
        takes_changes: bool,
    ) -> Self {
        Self { plan, classifier: Classifier::new(plan), files, only, collisions, takes_changes }
    }

    /// Routes the lines of a chunk. What it gives borrows from the chunk and the arena.
    pub(crate) fn route<'a>(&self, chunk: &'a Chunk, arena: &'a Arena) -> Routed<'a> {
        let mut routed = Routed { outgoing: Vec::new(), rejects: Vec::new(), ledger: Ledger::new(self.plan), fatal: None };
        let file = &self.files[chunk.first.file.index()];
        let source = &self.plan.sources[file.source.index()];
        let mut rows: Vec<Vec<Row<'a>>> = self.plan.entities.iter().map(|_| Vec::new()).collect();
        let mut unclaimed = Vec::new();
        let mut records = 0;
        let mut kinds = Kinds::default();
        for (origin, line) in lines(chunk, arena) {
            records += 1;
            let decoded = line
                .map_err(|bytes| (bytes, not_utf8(bytes)))
                .and_then(|text| record::decode(text, chunk, file.holds, arena).map_err(|reason| (text.as_bytes(), reason)));
            let Decoded { record, source: raw, bare: _ } = match decoded {
                Ok(decoded) => decoded,
                Err((line, reason)) => {
                    routed.fatal = routed.fatal.or_else(|| record::breaks_off(line, chunk, origin, &file.file.location, &reason.message));
                    routed.ledger.unreadable += 1;
                    routed.reject(Reject { origin, entity: None, key: String::new(), reason, source: line.to_vec() });
                    continue;
                }
            };
            let (mut item, change) = match record {
                Record::Item(item) => {
                    kinds.item.get_or_insert(origin);
                    (item, None)
                }
                Record::Change(record) => {
                    kinds.change.get_or_insert(origin);
                    let (change, image) = record.into_image();
                    routed.ledger.changed(change.op.name(), 1);
                    (image, Some(change))
                }
            };
            if self.plan.drop_replication {
                routed.ledger.replication_attributes += drop_replication(&mut item);
            }
            let claim = self.classifier.claim(source, &item);
            let captures = claim.map_or(&[][..], |claim| claim.captures);
            let row = Row { origin, item, captures, source: raw, change, size: 0 };
            match claim {
                Some(claim) => {
                    routed.ledger.entities[claim.entity.index()].tell(&claim);
                    let rows = &mut rows[claim.entity.index()];
                    if rows.is_empty() {
                        rows.reserve(ROWS);
                    }
                    rows.push(row);
                }
                None => unclaimed.push(row),
            }
        }
        routed.ledger.lines.insert(chunk.first.file.0, records);
        if records > 0 {
            file.seen.get_or_init(|| (chunk.format, chunk.lines));
        }
        if file.holds == Holds::Either {
            routed.ledger.kinds.insert(None, kinds);
        }
        for ((id, entity), rows) in (0..).map(EntityId).zip(&self.plan.entities).zip(rows) {
            if !rows.is_empty() {
                self.carry(id, entity, source, rows, &mut routed);
            }
        }
        self.unclassified(source, unclaimed, &mut routed);
        routed.rejects.sort_by_key(|reject| reject.origin);
        routed
    }

    fn carry<'a>(&self, id: EntityId, entity: &Entity, source: &Source, rows: Vec<Row<'a>>, routed: &mut Routed<'a>) {
        let started = Instant::now();
        let read = rows.len() as u64;
        if !self.only.is_empty() && !self.only.contains(&id) {
            routed.ledger.entities[id.index()].dropped += read;
            return;
        }
        let mut batches = Vec::with_capacity(entity.outputs.len());
        for _ in 1..entity.outputs.len() {
            batches.push(Batch { rows: rows.clone(), ..Batch::default() });
        }
        batches.push(Batch { rows, ..Batch::default() });
        for (output, batch) in entity.outputs.iter().zip(&mut batches) {
            let changes = output.carry(self.plan, source, batch);
            routed.ledger.entities[id.index()].change(changes);
            routed.ledger.dropped(&batch.dropped);
            let table = output.table.map(|table| self.plan.targets.table(table));
            self.mark_changes(source, (!output.key.is_empty()).then_some(table).flatten(), batch);
            let declared = &self.plan.targets.dataset(output.dataset).declared;
            if declared.strict {
                batch.each(|row| declared.misfit(&row.item).map_or(Ok(Fate::Keep), |misfit| Err(undeclared(misfit))));
            }
            if output.table.is_some() && !self.collisions.is_empty() {
                batch.each(|row| self.collide(row.origin));
            }
        }
        routed.settle(id, entity, source, read, batches);
        routed.ledger.entities[id.index()].nanos += u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }

    /// Says on the items of change records what happened to them. Of a deleted one only its key is left, that of `table` or else of the
    /// source, and what it was.
    fn mark_changes(&self, source: &Source, table: Option<&Table>, batch: &mut Batch<'_>) {
        if batch.rows.iter().all(|row| row.change.is_none()) {
            return;
        }
        let kept = |name: &str| match table {
            Some(table) => table.key.attributes().any(|key| key.name == name) || table.type_attribute.as_deref() == Some(name),
            None => source.partition == name || source.sort.as_deref() == Some(name) || source.type_attribute.as_deref() == Some(name),
        };
        batch.each(|row| {
            let Some(change) = row.change else { return Ok(Fate::Keep) };
            if !self.takes_changes {
                let message = "a change record of an incremental export; changes go to parquet: alone".to_owned();
                return Err(Reason::new(Stage::Write, "change-record", message));
            }
            if let Some(name) = Change::COLUMNS.into_iter().find(|name| row.item.get(name).is_some()) {
                let message = format!("the item has an attribute `{name}`, which a change record needs for itself; rename it with a step");
                return Err(Reason::new(Stage::Write, "reserved-name", message));
            }
            if change.op == Op::Delete {
                row.item.retain(|name, _| kept(name));
            }
            let [op, written_at] = Change::COLUMNS;
            row.item.set(op, Value::S(change.op.name()));
            row.item.set(written_at, Value::N(row.item.arena().alloc_str(&change.written_at.to_string())));
            Ok(Fate::Keep)
        });
    }

    fn collide(&self, origin: Origin) -> Result<Fate, Reason> {
        let Some((other, table)) = self.collisions.of(origin) else { return Ok(Fate::Keep) };
        let table = &self.plan.targets.table(table).name;
        let whose = if other == origin {
            "another output of the same item".to_owned()
        } else {
            // Whether that file counts elements is not known where a run goes on behind it.
            format!("{}:{}", self.files[other.file.index()].file.name, other.line)
        };
        Err(Reason::new(
            Stage::Collision,
            "equal-keys",
            format!("its key in table `{table}` equals that of {whose}; neither was written, since one would replace the other"),
        ))
    }

    fn unclassified<'a>(&self, source: &Source, rows: Vec<Row<'a>>, routed: &mut Routed<'a>) {
        if rows.is_empty() {
            return;
        }
        let id = EntityId(u32::try_from(self.plan.entities.len()).expect("a plan has fewer than 2^32 entities"));
        let counts = &mut routed.ledger.entities[id.index()];
        counts.read += rows.len() as u64;
        // Only some entities are wanted, and this is none of them.
        if !self.only.is_empty() {
            counts.dropped += rows.len() as u64;
            return;
        }
        match self.plan.unclassified {
            Unclassified::Drop => {
                counts.dropped += rows.len() as u64;
                routed.ledger.dropped(&rows);
            }
            Unclassified::Fail => {
                let at = place(rows[0].origin, self.files);
                routed.fatal = routed.fatal.take().or_else(|| {
                    let hint = "add an entity, an alias or a `classify` condition for it, or choose another [unclassified] policy";
                    let error = Error::new(Kind::Input, format!("no entity claims the item at {at}"));
                    Some(error.with("key", key_names(source)).with("hint", hint))
                });
            }
            Unclassified::Reject => {
                counts.rejected += rows.len() as u64;
                for row in rows {
                    let reason = no_claim(source, &row.item);
                    routed.reject(refuse(source, None, &row, reason));
                }
            }
            Unclassified::Keep { dataset, table } => {
                let mut batch = Batch { rows, ..Batch::default() };
                batch.each(|row| {
                    row.size = limits::check_item(&row.item, table.map(|table| self.plan.targets.table(table)))?;
                    if table.is_some() { self.collide(row.origin) } else { Ok(Fate::Keep) }
                });
                self.mark_changes(source, None, &mut batch);
                counts.written += batch.rows.len() as u64;
                counts.rejected += batch.refused.len() as u64;
                counts.bytes += batch.rows.iter().map(|row| u64::from(row.size)).sum::<u64>();
                for (row, reason) in batch.refused {
                    routed.reject(refuse(source, None, &row, reason));
                }
                routed.leave(Outgoing { entity: id, dataset, table, rows: batch.rows });
            }
        }
    }
}

impl<'a> Routed<'a> {
    /// Counts what became of an entity's items. An item is carried whole or rejected whole: where one of its outputs was
    /// refused, the others are taken back, so that a replay of the reject writes each of them once. An item is dropped when
    /// none of its outputs is taken; one that is taken by some of them only has not lost anything.
    fn settle(&mut self, id: EntityId, entity: &Entity, source: &Source, read: u64, batches: Vec<Batch<'a>>) {
        let mut refused: Vec<u64> = batches.iter().flat_map(|batch| &batch.refused).map(|(row, _)| row.origin.line).collect();
        refused.sort_unstable();
        refused.dedup();
        let several = entity.outputs.len() > 1;
        let mut told = Vec::new();
        let mut taken = Vec::new();
        let (mut written, mut bytes) = (0, 0);
        for (output, mut batch) in entity.outputs.iter().zip(batches) {
            for (row, reason) in batch.refused {
                // With one output nothing can be told twice.
                if several {
                    if told.contains(&row.origin) {
                        continue;
                    }
                    told.push(row.origin);
                }
                self.reject(refuse(source, Some(id), &row, reason));
            }
            if several {
                batch.rows.retain(|row| refused.binary_search(&row.origin.line).is_err());
                taken.extend(batch.rows.iter().map(|row| row.origin.line));
            }
            written += batch.rows.len() as u64;
            bytes += batch.rows.iter().map(|row| u64::from(row.size)).sum::<u64>();
            if !batch.rows.is_empty() {
                self.leave(Outgoing { entity: id, dataset: output.dataset, table: output.table, rows: batch.rows });
            }
        }
        taken.sort_unstable();
        taken.dedup();
        let items = if several { taken.len() as u64 } else { written };
        let counts = &mut self.ledger.entities[id.index()];
        counts.fanned_out += written - items;
        counts.written += written;
        counts.bytes += bytes;
        counts.rejected += refused.len() as u64;
        counts.dropped += read - items - refused.len() as u64;
    }

    fn reject(&mut self, reject: Reject) {
        self.ledger.rejected(&reject.reason);
        self.rejects.push(reject);
    }

    /// Hands rows to the sinks. What comes from change records is a row of a history, which no table takes.
    fn leave(&mut self, mut outgoing: Outgoing<'a>) {
        let first = |changed: bool| outgoing.rows.iter().find(|row| row.change.is_some() == changed).map(|row| row.origin);
        let kinds = Kinds { item: first(false), change: first(true) };
        self.ledger.kinds.entry(Some(outgoing.dataset.0)).or_default().add(kinds);
        if outgoing.table.is_some() && kinds.change.is_some() {
            let (rows, items) = outgoing.rows.into_iter().partition::<Vec<_>, _>(|row| row.change.is_some());
            self.leave(Outgoing { rows, table: None, ..outgoing });
            if items.is_empty() {
                return;
            }
            outgoing.rows = items;
        }
        let outgone = self.ledger.outgoing.entry(outgoing.dataset.0).or_default();
        let count = outgoing.rows.len() as u64;
        match outgoing.table {
            Some(_) => outgone.placed += count,
            None => outgone.unplaced += count,
        }
        self.outgoing.push(outgoing);
    }
}

/// Why an item has no place in a dataset whose types are strict.
fn undeclared((name, column, kind): (&str, ColumnType, Type)) -> Reason {
    Reason::new(Stage::Write, "declared-type", format!("`{name}` is declared as {column}, and its value, of type {kind}, does not fit"))
}

/// Why no entity claims an item.
fn no_claim(source: &Source, item: &Item<'_>) -> Reason {
    let found = match source.type_attribute.as_deref().map(|name| (name, item.get(name))) {
        None => "the source has no type attribute".to_owned(),
        Some((name, None)) => format!("it has no `{name}`"),
        Some((name, Some(Value::S(_)))) => format!("its `{name}` is no entity's name or alias"),
        Some((name, Some(other))) => format!("its `{name}` is of type {}, not S", other.kind()),
    };
    Reason::new(Stage::Classify, "unclassified", format!("no entity claims it: {found}, and no key template or condition matches"))
}

/// The lines of a chunk that hold something, each as text or, where it is not UTF-8, as bytes. What a rejects file holds is
/// unwrapped.
pub(crate) fn lines<'a>(chunk: &'a Chunk, arena: &'a Arena) -> impl Iterator<Item = (Origin, Result<&'a str, &'a [u8]>)> {
    // One check of the whole chunk is several times quicker than one for each line.
    let text = simdutf8::basic::from_utf8(&chunk.bytes).ok();
    let mut start = 0;
    let mut next = chunk.first.line;
    std::iter::from_fn(move || {
        while start < chunk.bytes.len() {
            let end = memchr::memchr(b'\n', &chunk.bytes[start..]).map_or(chunk.bytes.len(), |at| start + at);
            let (from, line) = (start, next);
            start = end + 1;
            next += 1;
            if chunk.bytes[from..end].trim_ascii().is_empty() {
                continue;
            }
            let bytes = &chunk.bytes[from..end];
            let content = match text {
                Some(text) if !text[from..].starts_with("{\"Raw") => Ok(&text[from..end]),
                _ => {
                    let bytes = rejects::unwrap(bytes, arena);
                    std::str::from_utf8(bytes).map_err(|_| bytes)
                }
            };
            return Some((Origin { file: chunk.first.file, line }, content));
        }
        None
    })
}

fn not_utf8(line: &[u8]) -> Reason {
    let at = std::str::from_utf8(line).map_or_else(|error| error.valid_up_to(), str::len);
    Reason::new(Stage::Decode, "utf-8", format!("the line is not UTF-8 from byte {}", at + 1))
}

/// Takes off what old global tables put on every item; gives how many attributes that were.
fn drop_replication(item: &mut Item<'_>) -> u64 {
    let before = item.attributes().len();
    if item.attributes().iter().any(|(name, _)| name.starts_with("aws:rep:")) {
        item.retain(|name, _| !name.starts_with("aws:rep:"));
    }
    (before - item.attributes().len()) as u64
}

fn key_names(source: &Source) -> String {
    match &source.sort {
        Some(sort) => format!("{}, {sort}", source.partition),
        None => source.partition.clone(),
    }
}

/// The source key for the rejects file: `PK=WS#acme, SK=META`. The item may have been changed since, so it is read again from `line`.
pub(crate) fn key_text(source: &Source, line: &[u8]) -> String {
    let Ok(line) = std::str::from_utf8(line) else { return String::new() };
    let arena = Arena::new();
    let keys = match ddb_json::decode_line(line, &arena) {
        Ok(Decoded { record: Record::Item(item), .. }) => item,
        Ok(Decoded { record: Record::Change(change), .. }) => change.keys,
        Err(_) => return String::new(),
    };
    let part = |name: &str| match keys.get(name) {
        Some(Value::S(text) | Value::N(text)) => Some(format!("{name}={text}")),
        Some(other) => Some(format!("{name}=({})", other.kind())),
        None => None,
    };
    [Some(&source.partition), source.sort.as_ref()].into_iter().flatten().filter_map(|name| part(name)).collect::<Vec<_>>().join(", ")
}

/// A row that cannot be carried.
fn refuse(source: &Source, entity: Option<EntityId>, row: &Row<'_>, reason: Reason) -> Reject {
    let line = codec::json_line(row.source);
    Reject { origin: row.origin, entity, key: key_text(source, &line), reason, source: line }
}
