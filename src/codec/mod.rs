//! Between a line of an export and an item.

pub mod ddb_json;
