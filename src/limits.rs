//! `DynamoDB`'s own arithmetic: sizes, limits, what it would refuse. Pure.

use crate::error::Reason;
use crate::model::{Item, Table};

/// The most bytes an item may have, names and values together (AWS, "Quotas": 400 KB).
pub const ITEM_BYTES: u64 = 409_600;

/// The item's size in bytes.
#[must_use]
pub fn item_size(item: &Item<'_>) -> u64 {
    let _ = item;
    unimplemented!()
}

/// Checks the item against everything the service would refuse it for, with the keys and indexes of `table`
/// where it goes to one; gives its size in bytes.
///
/// # Errors
/// The first rule that is broken, with the value's size and the limit.
pub fn check_item(item: &Item<'_>, table: Option<&Table>) -> Result<u32, Reason> {
    let _ = (item, table);
    unimplemented!()
}
