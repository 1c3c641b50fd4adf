//! Live tables as a target: scanned segment by segment, side by side.

use std::num::NonZeroU32;

use crate::aws::dynamodb::DynamoDb;
use crate::aws::dynamodb::read_rate::ReadRate;
use crate::aws::dynamodb::scan::{KeyPart, Pace, Segment, TableFacts};
use crate::aws::{self, Aws};
use crate::codec::{Record, ddb_json};
use crate::error::{Error, Kind, Result};
use crate::exec::route::with_arena;
use crate::exec::verify::Setting;
use crate::exec::verify::files::record;
use crate::exec::verify::form::{Part, Recorder, View};
use crate::exec::verify::gather::gather;
use crate::exec::verify::target::{Asked, Content};
use crate::model::{FileId, Format, KeySchema, Origin, TableId};
use crate::source::{Chunk, Lines};

/// Readers side by side; each waits for the service most of the time.
const READERS: u32 = 16;

/// A reader for each so many read units a second of a cap, so that few readers share a small one.
const UNITS_A_READER: u32 = 64;

/// Bytes of a table for each of its segments, about.
const SEGMENT_BYTES: u64 = 64 << 20;

/// The most segments of a table.
const SEGMENTS: u64 = 4096;

/// Tables that are there, with the pipeline's keys.
pub(super) struct Live {
    service: DynamoDb,
    tables: Vec<LiveTable>,
    rate: Option<ReadRate>,
}

struct LiveTable {
    id: TableId,
    /// Its name in the service.
    name: String,
    facts: TableFacts,
}

impl Live {
    pub(super) fn open(setting: &Setting<'_>, service: &aws::Options, max_read_units: Option<NonZeroU32>) -> Result<Self> {
        let service = DynamoDb::connect(Aws::connect(service)?)?;
        let mut tables = Vec::new();
        for (id, table) in (0..).map(TableId).zip(&setting.plan.targets.tables) {
            let name = setting.options.table_names.get(&table.name).unwrap_or(&table.name);
            let about = |error: Error| error.with("table", name).with("at", service.place());
            let Some(facts) = service.look(name)? else {
                return Err(about(Error::new(Kind::Usage, "the target table does not exist"))
                    .with("hint", format_args!("give the name it has there: --table {}=NAME", table.name)));
            };
            let expected = in_words(&table.key);
            if facts.key != expected {
                return Err(about(Error::new(Kind::Usage, "the table has another key than the pipeline says"))
                    .with("expected", expected)
                    .with("found", facts.key)
                    .with("hint", "it is not the table that this pipeline writes, or the pipeline's `key` and `types` are wrong"));
            }
            tables.push(LiveTable { id, name: name.clone(), facts });
        }
        Ok(Self { service, tables, rate: max_read_units.map(ReadRate::new) })
    }
}

impl Content for Live {
    fn read(&self, setting: &Setting<'_>, take: &mut dyn FnMut(Part) -> Result<()>) -> Result<()> {
        let readers = self.rate.as_ref().map_or(READERS, |rate| (rate.units() / UNITS_A_READER).clamp(1, READERS));
        let pace = self.rate.as_ref().map(|rate| Pace { rate, readers });
        let segments = |table: &LiveTable| {
            let of = (table.facts.bytes / SEGMENT_BYTES).clamp(u64::from(readers), SEGMENTS);
            u32::try_from(of).unwrap_or(readers)
        };
        let tasks: Vec<_> = self
            .tables
            .iter()
            .flat_map(|table| {
                let of = segments(table);
                (0..of).map(move |number| (table, Segment { number, of }))
            })
            .collect();
        let scan = |(table, segment): &(&LiveTable, Segment), send: &mut dyn FnMut(Part) -> bool| {
            self.service.scan(&table.name, &table.facts, *segment, pace, &mut |page| {
                let mut recorder = Recorder::new(&setting.forms, setting.how(View::Tables));
                let first = Origin { file: FileId(0), line: 0 };
                record(&Chunk { first, format: Format::Json, lines: Lines::Elements, bytes: page.lines }, table.id, &mut recorder);
                let mut part = recorder.part;
                if let Some((_, why)) = part.unreadable.pop() {
                    return Err(Error::new(Kind::Service, "the service gave an item that cannot be read")
                        .with("table", &table.name)
                        .with("found", why));
                }
                Ok(send(part))
            })
        };
        gather(readers as usize, &tasks, scan, take)
    }

    fn again(&self, setting: &Setting<'_>, asked: &[Asked<'_>]) -> Result<Vec<Option<Vec<u8>>>> {
        let get = |asked: &Asked<'_>| {
            let table = self.tables.iter().find(|table| table.id.0 == asked.place);
            let parts = setting.forms.key_parts(View::Tables, asked.place, asked.key);
            let (Some(table), Some(parts)) = (table, parts) else { return Ok(None) };
            let part = |(name, kind, bytes): (&str, u8, &[u8])| {
                let text = || String::from_utf8_lossy(bytes).into_owned();
                let part = match kind {
                    b'B' => KeyPart::B(bytes.to_vec()),
                    b'N' => KeyPart::N(text()),
                    _ => KeyPart::S(text()),
                };
                (name.to_owned(), part)
            };
            let key: Vec<_> = parts.into_iter().map(part).collect();
            let Some(line) = self.service.get(&table.name, &key)? else { return Ok(None) };
            Ok(std::str::from_utf8(&line).ok().and_then(|line| {
                with_arena(|arena| {
                    let Record::Item(item) = ddb_json::decode_line(line.trim_end(), arena).ok()?.record else { return None };
                    let mut json = Vec::new();
                    ddb_json::write_item(&item, &mut json);
                    Some(json)
                })
            }))
        };
        asked.iter().map(get).collect()
    }
}

/// The key in the words of [`TableFacts`].
fn in_words(key: &KeySchema) -> String {
    let words = key.attributes().zip(["partition", "sort"]);
    let words: Vec<_> = words.map(|(attribute, role)| format!("{} ({}, {role})", attribute.name, attribute.kind.descriptor())).collect();
    words.join(", ")
}
