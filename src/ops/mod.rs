//! Steps: one change to an item each, one file each.
//!
//! A step is a patch: what it does not name survives, byte for byte. It does no IO and knows no threads.

use std::fmt;

use crate::model::Batch;

/// A bound step. `Display` is its line in `explain`.
pub trait Op: fmt::Debug + fmt::Display + Send + Sync {
    /// Applies the step to every row of the batch; rows may be dropped or refused.
    fn apply(&self, batch: &mut Batch<'_>);
}
