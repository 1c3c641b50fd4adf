//! What is compared with the pipeline: opened, read, and looked into again where something differs.

use std::collections::BTreeSet;
#[cfg(feature = "dynamodb")]
use std::num::NonZeroU32;

#[cfg(feature = "dynamodb")]
use crate::aws;
use crate::error::{Error, Kind, Result};
use crate::exec::event::Observer;
use crate::exec::verify::Setting;
use crate::exec::verify::files::Files;
use crate::exec::verify::form::{Part, View};
#[cfg(feature = "dynamodb")]
use crate::exec::verify::live::Live;
#[cfg(feature = "parquet")]
use crate::exec::verify::parquet::Rows;
use crate::model::Origin;
use crate::store::Location;

/// What is compared with the pipeline.
#[derive(Clone, Debug)]
pub enum Target {
    /// `dynamodb`: live tables.
    #[cfg(feature = "dynamodb")]
    DynamoDb {
        /// Where they are.
        service: aws::Options,
        /// At most so many read units a second.
        max_read_units: Option<NonZeroU32>,
    },
    /// `import:DIR`: files for `ImportTable`.
    Import(Location),
    /// `batch:DIR`: request files.
    Batch(Location),
    /// `export:LOCATION`: a full export of a target table.
    Export {
        /// The table's name in the pipeline; `None` where that has one only.
        table: Option<String>,
        /// Where the export is.
        location: Location,
    },
    /// `parquet:DIR`: datasets.
    #[cfg(feature = "parquet")]
    Parquet(Location),
}

/// Lines of a target that hold no item.
#[derive(Clone, Debug, Default)]
pub(super) struct Unreadable {
    pub(super) count: u64,
    /// The place of the first of them, and what is wrong with it.
    pub(super) first: Option<String>,
}

/// A target that is there.
pub(super) struct Open {
    /// As it was named.
    pub(super) name: String,
    kind: Kinds,
}

enum Kinds {
    Files(Files),
    #[cfg(feature = "dynamodb")]
    Live(Live),
    #[cfg(feature = "parquet")]
    Rows(Rows),
}

impl Target {
    /// Looks at the target before anything is read.
    pub(super) fn open(&self, setting: &Setting<'_>, observer: &mut dyn Observer) -> Result<Open> {
        let tables = &setting.plan.targets.tables;
        let is_dataset = match self {
            #[cfg(feature = "parquet")]
            Target::Parquet(_) => true,
            _ => false,
        };
        if tables.is_empty() && !is_dataset {
            return Err(
                Error::new(Kind::Usage, "the pipeline has no table that could be compared").with("hint", "compare with parquet:DIR")
            );
        }
        let (name, kind) = match self {
            #[cfg(feature = "dynamodb")]
            Target::DynamoDb { service, max_read_units } => {
                let live = Live::open(setting, service, *max_read_units)?;
                ("dynamodb".to_owned(), Kinds::Live(live))
            }
            Target::Import(folder) => {
                (format!("import:{folder}"), Kinds::Files(Files::in_folders(setting, folder, Some("data"), observer)?))
            }
            Target::Batch(folder) => (format!("batch:{folder}"), Kinds::Files(Files::in_folders(setting, folder, None, observer)?)),
            Target::Export { table, location } => {
                let name = table.as_ref().map_or_else(|| format!("export:{location}"), |table| format!("export:{table}={location}"));
                (name, Kinds::Files(Files::of_export(setting, table.as_deref(), location, observer)?))
            }
            #[cfg(feature = "parquet")]
            Target::Parquet(folder) => (format!("parquet:{folder}"), Kinds::Rows(Rows::open(setting, folder)?)),
        };
        Ok(Open { name, kind })
    }
}

impl Open {
    pub(super) fn view(&self) -> View {
        match &self.kind {
            Kinds::Files(_) => View::Tables,
            #[cfg(feature = "dynamodb")]
            Kinds::Live(_) => View::Tables,
            #[cfg(feature = "parquet")]
            Kinds::Rows(_) => View::Datasets,
        }
    }

    /// The tables that it holds; `None`: all places.
    pub(super) fn places(&self) -> Option<BTreeSet<u32>> {
        match &self.kind {
            Kinds::Files(files) => files.only_table().map(|table| BTreeSet::from([table.0])),
            #[cfg(feature = "dynamodb")]
            Kinds::Live(_) => None,
            #[cfg(feature = "parquet")]
            Kinds::Rows(_) => None,
        }
    }

    /// Items that it holds, where it says so.
    pub(super) fn items(&self) -> Option<u64> {
        match &self.kind {
            Kinds::Files(files) => files.items(),
            #[cfg(feature = "dynamodb")]
            Kinds::Live(_) => None,
            #[cfg(feature = "parquet")]
            Kinds::Rows(rows) => rows.items(),
        }
    }

    /// Reads all of it.
    pub(super) fn read(
        &self,
        setting: &Setting<'_>,
        observer: &mut dyn Observer,
        take: &mut dyn FnMut(Part) -> Result<()>,
    ) -> Result<Unreadable> {
        let mut unreadable = Unreadable::default();
        let mut count = |mut part: Part| {
            observer.event(crate::exec::event::Event::Read { items: part.items, bytes: part.bytes });
            unreadable.count += part.unreadable.len() as u64;
            if unreadable.first.is_none() {
                unreadable.first = part.unreadable.drain(..).next().map(|(origin, why)| match self.place(origin) {
                    Some(place) => format!("{place}: {why}"),
                    None => why,
                });
            }
            take(part)
        };
        match &self.kind {
            Kinds::Files(files) => files.read(setting, &mut count)?,
            #[cfg(feature = "dynamodb")]
            Kinds::Live(live) => live.read(setting, &mut count)?,
            #[cfg(feature = "parquet")]
            Kinds::Rows(rows) => rows.read(setting, &mut count)?,
        }
        Ok(unreadable)
    }

    /// A place in words: `docs/data/part-u00001-0000.json.gz:12`; `None` where items have none.
    pub(super) fn place(&self, origin: Origin) -> Option<String> {
        match &self.kind {
            Kinds::Files(files) => files.place(origin),
            #[cfg(feature = "dynamodb")]
            Kinds::Live(_) => None,
            #[cfg(feature = "parquet")]
            Kinds::Rows(rows) => rows.place(origin),
        }
    }

    /// Reads items again: for each asked one, the item as `DynamoDB` JSON, `None` where it is gone.
    pub(super) fn again(&self, setting: &Setting<'_>, asked: &[Asked<'_>]) -> Result<Vec<Option<Vec<u8>>>> {
        match &self.kind {
            Kinds::Files(files) => files.again(setting, asked),
            #[cfg(feature = "dynamodb")]
            Kinds::Live(live) => live.again(setting, asked),
            #[cfg(feature = "parquet")]
            Kinds::Rows(rows) => rows.again(setting, asked),
        }
    }
}

/// An item that is read again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'d> {
    pub(super) origin: Origin,
    /// Where a live item is.
    #[cfg_attr(not(feature = "dynamodb"), expect(dead_code, reason = "files are read again by place and line"))]
    pub(super) place: u32,
    #[cfg_attr(not(feature = "dynamodb"), expect(dead_code, reason = "files are read again by place and line"))]
    pub(super) key: &'d [u8],
}
