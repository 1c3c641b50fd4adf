//! What flows through a run: values, items, paths, origins, rows and batches.
//!
//! Nothing here does IO, and nothing here knows where an item comes from or goes to.

pub mod by_attribute;
pub mod declared;
pub mod edit;
pub mod item;
pub mod number;
pub mod path;
pub mod row;
pub(crate) mod short;
pub mod target;
pub mod time;
pub mod value;

pub use by_attribute::ByAttribute;
pub use declared::{ColumnType, Declared, Mixed, Nulls};
pub use edit::PathError;
pub use item::{Arena, Item};
pub use path::{Path, Place};
pub use row::{Batch, Change, DatasetId, EntityId, Fate, FileId, Format, Op, Origin, Part, Raw, Row, SourceId, TableId};
pub use target::{Billing, Creation, Dataset, Index, KeyAttribute, KeySchema, KeyType, Table, Targets};
pub use value::{Attribute, Type, Value};
