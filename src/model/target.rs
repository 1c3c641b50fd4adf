//! What is written to: tables with their keys and indexes, and datasets.
//!
//! Sinks know these and nothing else of the plan.

use crate::model::declared::Declared;
use crate::model::row::{DatasetId, TableId};

/// The types a key attribute may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeyType {
    /// String.
    #[default]
    S,
    /// Number.
    N,
    /// Binary.
    B,
}

impl KeyType {
    /// `S`, `N` or `B`.
    #[must_use]
    pub fn descriptor(self) -> &'static str {
        match self {
            KeyType::S => "S",
            KeyType::N => "N",
            KeyType::B => "B",
        }
    }
}

/// A key attribute: its name and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAttribute {
    /// The attribute's name.
    pub name: String,
    /// The attribute's type.
    pub kind: KeyType,
}

/// The key of a table or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySchema {
    /// The partition key.
    pub partition: KeyAttribute,
    /// The sort key, if there is one.
    pub sort: Option<KeyAttribute>,
}

impl KeySchema {
    /// The partition key, then the sort key where there is one.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        std::iter::once(&self.partition).chain(self.sort.as_ref())
    }
}

/// A global secondary index of a target table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The index's name.
    pub name: String,
    /// Its key.
    pub key: KeySchema,
}

/// What is said of a table's making; a table that is there is not changed by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Creation {
    /// How it is paid for.
    pub billing: Billing,
    /// Its tags, names and values.
    pub tags: Vec<(String, String)>,
}

/// How a table and its indexes are paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Billing {
    /// By request.
    #[default]
    OnDemand,
    /// By capacity, the same for the table and for each of its indexes.
    Provisioned {
        /// Read units a second.
        read: u32,
        /// Write units a second.
        write: u32,
    },
}

/// A target table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name in the pipeline file; `--table` may rename it for the service.
    pub name: String,
    /// Its key.
    pub key: KeySchema,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// The attribute that every item written here carries with its entity's name.
    pub type_attribute: Option<String>,
    /// How it is made where it does not exist.
    pub creation: Creation,
}

impl Table {
    /// The key attributes of the table and of its indexes, each once: what is declared when the table is made.
    #[must_use]
    pub fn key_attributes(&self) -> Vec<&KeyAttribute> {
        let mut attributes: Vec<&KeyAttribute> = Vec::new();
        for attribute in self.key.attributes().chain(self.indexes.iter().flat_map(|index| index.key.attributes())) {
            if attributes.iter().all(|known| known.name != attribute.name) {
                attributes.push(attribute);
            }
        }
        attributes
    }
}

/// Items that leave under one entity name: a Parquet dataset, or lines in a table's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataset {
    /// The entity's name.
    pub name: String,
    /// The tables its items go to, in order of first use; several where an entity is emitted to more
    /// than one, none where its items go to Parquet only.
    pub tables: Vec<TableId>,
    /// Attributes that lead the columns: what change records add, table keys, index keys, the type attribute.
    pub leading: Vec<String>,
    /// What the pipeline says of its columns.
    pub declared: Declared,
}

/// Everything a sink may know of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// By [`TableId`].
    pub tables: Vec<Table>,
    /// By [`DatasetId`].
    pub datasets: Vec<Dataset>,
}

impl Targets {
    /// The table with this id.
    #[must_use]
    pub fn table(&self, id: TableId) -> &Table {
        &self.tables[id.index()]
    }

    /// The dataset with this id.
    #[must_use]
    pub fn dataset(&self, id: DatasetId) -> &Dataset {
        &self.datasets[id.index()]
    }
}
