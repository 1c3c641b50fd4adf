//! What is compared with the pipeline: opened, read, and looked into again where something differs.

use std::collections::BTreeSet;
#[cfg(feature = "dynamodb")]
use std::num::NonZeroU32;

#[cfg(feature = "dynamodb")]
use crate::aws;
use crate::error::{Error, Kind, Result};
use crate::exec::event::{Event, Observer, Pass};
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
    content: Box<dyn Content>,
}

/// What a target holds.
pub(super) trait Content: Sync {
    /// What its items are compared within.
    fn view(&self) -> View {
        View::Tables
    }

    /// The tables that it holds; `None`: all places.
    fn places(&self) -> Option<BTreeSet<u32>> {
        None
    }

    /// Items that it holds, where it says so.
    fn items(&self) -> Option<u64> {
        None
    }

    /// A place in words: `docs/data/part-u00001-0000.json.gz:12`; `None` where items have none.
    fn place(&self, origin: Origin) -> Option<String> {
        let _ = origin;
        None
    }

    /// Reads all of it.
    fn read(&self, setting: &Setting<'_>, take: &mut dyn FnMut(Part) -> Result<()>) -> Result<()>;

    /// Reads items again: for each asked one, the item as `DynamoDB` JSON, `None` where it is gone.
    fn again(&self, setting: &Setting<'_>, asked: &[Asked<'_>]) -> Result<Vec<Option<Vec<u8>>>>;
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
        let (name, content): (String, Box<dyn Content>) = match self {
            #[cfg(feature = "dynamodb")]
            Target::DynamoDb { service, max_read_units } => {
                ("dynamodb".to_owned(), Box::new(Live::open(setting, service, *max_read_units)?))
            }
            Target::Import(folder) => (format!("import:{folder}"), Box::new(Files::in_folders(setting, folder, Some("data"), observer)?)),
            Target::Batch(folder) => (format!("batch:{folder}"), Box::new(Files::in_folders(setting, folder, None, observer)?)),
            Target::Export { table, location } => {
                let name = table.as_ref().map_or_else(|| format!("export:{location}"), |table| format!("export:{table}={location}"));
                (name, Box::new(Files::of_export(setting, table.as_deref(), location, observer)?))
            }
            #[cfg(feature = "parquet")]
            Target::Parquet(folder) => (format!("parquet:{folder}"), Box::new(Rows::open(setting, folder)?)),
        };
        Ok(Open { name, content })
    }
}

impl Open {
    pub(super) fn content(&self) -> &dyn Content {
        self.content.as_ref()
    }

    pub(super) fn view(&self) -> View {
        self.content.view()
    }

    /// Reads all of it, and counts what is no item.
    pub(super) fn read(
        &self,
        setting: &Setting<'_>,
        observer: &mut dyn Observer,
        take: &mut dyn FnMut(Part) -> Result<()>,
    ) -> Result<Unreadable> {
        observer.event(Event::Started { pass: Pass::Target, items: self.content.items() });
        let mut unreadable = Unreadable::default();
        self.content.read(setting, &mut |mut part| {
            setting.options.stop.check()?;
            observer.event(Event::Read { items: part.items, bytes: part.bytes });
            unreadable.count += part.unreadable.len() as u64;
            if unreadable.first.is_none() {
                unreadable.first = part.unreadable.drain(..).next().map(|(origin, why)| match self.content.place(origin) {
                    Some(place) => format!("{place}: {why}"),
                    None => why,
                });
            }
            take(part)
        })?;
        observer.event(Event::Finished(Pass::Target));
        Ok(unreadable)
    }
}

/// An item that is read again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'d> {
    pub(super) origin: Origin,
    /// Where a live item is, or the dataset of a row.
    #[cfg_attr(not(any(feature = "dynamodb", feature = "parquet")), expect(dead_code, reason = "files are read again by origin"))]
    pub(super) place: u32,
    #[cfg_attr(not(feature = "dynamodb"), expect(dead_code, reason = "files are read again by place and line"))]
    pub(super) key: &'d [u8],
}
