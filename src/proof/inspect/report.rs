//! The findings, as stable fields for programs and as tables for readers.

use std::fmt;

use serde::Serialize;

use crate::limits::{counted, thousands};
use crate::model::{FileId, Origin};

/// What is in an export. Field names are stable; sizes are bytes, `DynamoDB`'s own count unless a name says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Items seen.
    pub items: u64,
    /// Bytes of the lines they were read from.
    pub line_bytes: u64,
    /// Sizes of all items.
    pub item_bytes: ItemBytes,
    /// The key's attributes, where they are known or could be guessed.
    pub key: Option<Key>,
    /// Attributes that every item has and that could be keys: always S, always N or always B.
    pub always_present: Vec<String>,
    /// The attribute that names the entity, where one is known or could be guessed.
    pub type_attribute: Option<TypeAttribute>,
    /// Every attribute that was looked at as the type attribute and that occurred.
    pub type_candidates: Vec<TypeAttribute>,
    /// The most frequent first; items without a type are the entity `(none)` and stand last.
    pub entities: Vec<Entity>,
    /// Entity names that may be spellings of one.
    pub drift: Vec<Drift>,
    /// The partition keys with the most items and bytes, where the key is known.
    pub hot_partitions: Option<HotPartitions>,
}

/// Sizes of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ItemBytes {
    /// Their sum.
    pub total: u64,
    /// Half of the items are not larger than this; rounded up to a power of two.
    pub p50: u64,
    /// 99 of 100 items are not larger than this; rounded up to a power of two.
    pub p99: u64,
    /// The largest.
    pub largest: u64,
    /// Where the largest stands.
    pub largest_at: Option<Spot>,
}

/// A place in the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spot {
    /// The data file, by its place in the list of data files, from 1.
    pub file: u32,
    /// The line, from 1.
    pub line: u64,
}

impl From<Origin> for Spot {
    fn from(Origin { file: FileId(file), line }: Origin) -> Self {
        Self { file: file.saturating_add(1), line }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} line {}", self.file, self.line)
    }
}

/// The key's attributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// The partition key.
    pub partition: String,
    /// The sort key, if there is one.
    pub sort: Option<String>,
    /// Whether they were guessed.
    pub guessed: bool,
    /// Items that lack one of them, or hold it in a type that no key has.
    pub items_without: u64,
}

/// An attribute that names the entity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeAttribute {
    /// Its name.
    pub name: String,
    /// Whether it was guessed.
    pub guessed: bool,
    /// Items that have it, as a string.
    pub items: u64,
    /// The same in percent of all items, rounded down to hundredths.
    pub percent: f64,
    /// Its distinct values; absent where there are too many for names of entities.
    pub values: Option<usize>,
}

/// One kind of record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entity {
    /// The value of the type attribute; absent for the items that have none.
    pub name: Option<String>,
    /// Its items.
    pub items: u64,
    /// The same in percent of all items, rounded down to hundredths.
    pub percent: f64,
    /// The sizes of its items.
    pub item_bytes: ItemBytes,
    /// Where it occurs first.
    pub first: Option<Spot>,
    /// It occurs once only, which may be a typing mistake.
    pub seen_once: bool,
    /// The shapes of its keys, the most frequent first.
    pub key_shapes: Vec<KeyShape>,
    /// Its attributes, the most frequent first.
    pub attributes: Vec<Attribute>,
    /// Values under further attribute names, beyond those that are kept apart.
    pub values_of_other_attributes: u64,
}

impl Entity {
    /// The name, or `(none)`. In quotes where blanks at its ends or its emptiness would not be seen.
    #[must_use]
    pub fn label(&self) -> String {
        self.name.as_deref().map_or_else(|| "(none)".to_owned(), visible)
    }
}

/// A shape of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyShape {
    /// Such as `PK=WS#{} SK=DOC#{}`.
    pub shape: String,
    /// Items whose key has it.
    pub items: u64,
    /// Where it occurs first.
    pub first: Spot,
    /// For items without a type: the entity whose keys look the same.
    pub probably: Option<String>,
}

/// An attribute of an entity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Items of the entity that have it.
    pub items: u64,
    /// The same in percent of the entity's items, rounded down to hundredths.
    pub percent: f64,
    /// Its types, the most frequent first.
    pub types: Vec<TypeCount>,
    /// The size of its largest value, without the name.
    pub largest: u64,
}

/// How often an attribute has a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TypeCount {
    /// `S`, `N`, `BOOL` …
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Items.
    pub items: u64,
}

/// Spellings that may mean one entity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The most frequent spelling.
    pub name: String,
    /// Its items.
    pub items: u64,
    /// The others.
    pub variants: Vec<Variant>,
}

/// A rarer spelling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// The spelling.
    pub name: String,
    /// Its items.
    pub items: u64,
    /// In which way it differs: `letter case`, `plural` …
    pub differs_by: &'static str,
    /// Where it occurs first.
    pub first: Option<Spot>,
}

/// The partition keys with the most items and bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotPartitions {
    /// Whether all partition keys could be counted; else the counts are lower bounds.
    pub exact: bool,
    /// How many partition keys there are, where all could be counted.
    pub distinct: Option<usize>,
    /// The most items first.
    pub by_items: Vec<HotPartition>,
    /// The most bytes first.
    pub by_bytes: Vec<HotPartition>,
}

/// One partition key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotPartition {
    /// Its value; a binary as hexadecimal digits.
    pub value: String,
    /// Its items.
    pub items: u64,
    /// Its items in percent of all items, rounded down to hundredths.
    pub items_percent: f64,
    /// Its bytes.
    pub bytes: u64,
    /// Its bytes in percent of all bytes, rounded down to hundredths.
    pub bytes_percent: f64,
}

/// A name whose blanks can be seen.
fn visible(name: &str) -> String {
    if name.is_empty() || name.trim() != name { format!("\"{name}\"") } else { name.to_owned() }
}

/// `part` of `whole` in percent, rounded down to hundredths, so that only all is 100.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    let hundredths = (u128::from(part) * 10_000).checked_div(u128::from(whole)).unwrap_or(0);
    f64::from(u32::try_from(hundredths).unwrap_or(u32::MAX)) / 100.0
}

/// Attributes and shapes of one entity that the text shows; the fields have all.
const ROWS: usize = 40;

impl fmt::Display for Report {
    /// Aligned tables for a terminal of 100 columns or more, without colours.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary(f)?;
        self.entities(f)?;
        self.shapes(f)?;
        self.drifts(f)?;
        self.attributes(f)?;
        self.hot(f)
    }
}

impl Report {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[Side::Left, Side::Left]);
        let sizes = &self.item_bytes;
        table.row([
            "items".to_owned(),
            format!("{}, {} bytes (lines: {} bytes)", thousands(self.items), thousands(sizes.total), thousands(self.line_bytes)),
        ]);
        if let Some(spot) = sizes.largest_at {
            let (half, most, largest) = (thousands(sizes.p50), thousands(sizes.p99), thousands(sizes.largest));
            table.row(["item size".to_owned(), format!("half up to {half}, 99 % up to {most}, largest {largest} bytes ({spot})")]);
        }
        table.row(["key".to_owned(), self.key_line()]);
        table.row(["type attribute".to_owned(), self.type_line()]);
        table.write(f)
    }

    fn key_line(&self) -> String {
        let Some(key) = &self.key else {
            let present = if self.always_present.is_empty() { "none".to_owned() } else { self.always_present.join(", ") };
            return format!("not recognised; name it. In every item: {present}");
        };
        let mut line = key.partition.clone();
        if let Some(sort) = &key.sort {
            line = format!("{line}, {sort}");
        }
        if key.guessed {
            line.push_str(" (guessed)");
        }
        if key.items_without > 0 {
            let lack = if key.items_without == 1 { "lacks" } else { "lack" };
            line = format!("{line}; {} {lack} it", counted(key.items_without, "item"));
        }
        line
    }

    fn type_line(&self) -> String {
        if let Some(chosen) = &self.type_attribute {
            let guessed = if chosen.guessed { " (guessed)" } else { "" };
            let values = thousands(chosen.values.unwrap_or(0));
            return format!("{}{guessed}: in {:.2} % of the items, {values} values", chosen.name, chosen.percent);
        }
        let seen: Vec<_> = self
            .type_candidates
            .iter()
            .map(|candidate| {
                let values = if candidate.values.is_none() { ", too many values" } else { "" };
                format!("{} ({:.2} %{values})", candidate.name, candidate.percent)
            })
            .collect();
        if seen.is_empty() { "none found".to_owned() } else { format!("none found; looked at: {}", seen.join(", ")) }
    }

    fn entities(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[Side::Left, Side::Right, Side::Right, Side::Right, Side::Right, Side::Right, Side::Left]);
        table.row(["entity", "items", "%", "bytes", "99 % up to", "largest", ""].map(str::to_owned));
        for entity in &self.entities {
            table.row([
                entity.label(),
                thousands(entity.items),
                format!("{:.2}", entity.percent),
                thousands(entity.item_bytes.total),
                thousands(entity.item_bytes.p99),
                thousands(entity.item_bytes.largest),
                match entity.first {
                    Some(first) if entity.seen_once => format!("seen once, {first}"),
                    _ => String::new(),
                },
            ]);
        }
        writeln!(f)?;
        table.write(f)
    }

    fn shapes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_none() {
            return Ok(());
        }
        let mut table = Table::new(&[Side::Left, Side::Right, Side::Left, Side::Left]);
        table.row(["key shapes", "items", "shape", "first"].map(str::to_owned));
        for entity in &self.entities {
            for (at, shape) in entity.key_shapes.iter().take(ROWS).enumerate() {
                let probably = shape.probably.as_ref().map_or(String::new(), |entity| format!("; probably {entity}"));
                let label = if at == 0 { entity.label() } else { String::new() };
                table.row([label, thousands(shape.items), shape.shape.clone(), format!("{}{probably}", shape.first)]);
            }
            if let Some(more) = entity.key_shapes.len().checked_sub(ROWS).filter(|more| *more > 0) {
                table.row([String::new(), String::new(), format!("… and {} more", thousands(more)), String::new()]);
            }
        }
        writeln!(f)?;
        table.write(f)
    }

    fn drifts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.drift.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(&[Side::Left, Side::Left, Side::Right, Side::Left, Side::Left]);
        table.row(["drift", "may be", "items", "differs by", "first"].map(str::to_owned));
        for drift in &self.drift {
            for variant in &drift.variants {
                table.row([
                    visible(&variant.name),
                    format!("{} ({})", visible(&drift.name), thousands(drift.items)),
                    thousands(variant.items),
                    variant.differs_by.to_owned(),
                    variant.first.map_or(String::new(), |first| first.to_string()),
                ]);
            }
        }
        writeln!(f)?;
        table.write(f)
    }

    fn attributes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drifted = |entity: &Entity| {
            let variants = self.drift.iter().flat_map(|drift| &drift.variants);
            entity.name.is_some() && variants.map(|variant| Some(&variant.name)).any(|name| name == entity.name.as_ref())
        };
        // A drifted spelling has the attributes of the right one; its own are in the fields.
        for entity in self.entities.iter().filter(|entity| !drifted(entity)) {
            let mut table = Table::new(&[Side::Left, Side::Right, Side::Right, Side::Left]);
            table.row([format!("attributes of {}", entity.label()), "%".to_owned(), "largest".to_owned(), "types".to_owned()]);
            for attribute in entity.attributes.iter().take(ROWS) {
                let types: Vec<String> = match &attribute.types[..] {
                    [only] => vec![only.kind.to_owned()],
                    several => several.iter().map(|count| format!("{} {}", count.kind, thousands(count.items))).collect(),
                };
                table.row([attribute.name.clone(), format!("{:.2}", attribute.percent), thousands(attribute.largest), types.join(", ")]);
            }
            if let Some(more) = entity.attributes.len().checked_sub(ROWS).filter(|more| *more > 0) {
                table.row([format!("… and {} more", thousands(more)), String::new(), String::new(), String::new()]);
            }
            if entity.values_of_other_attributes > 0 {
                let values = thousands(entity.values_of_other_attributes);
                table.row([format!("… and {values} values of further attributes"), String::new(), String::new(), String::new()]);
            }
            writeln!(f)?;
            table.write(f)?;
        }
        Ok(())
    }

    fn hot(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(hot) = &self.hot_partitions else { return Ok(()) };
        let known = match hot.distinct {
            Some(distinct) => format!("of {}", thousands(distinct)),
            None => "approximate: lower bounds".to_owned(),
        };
        for (what, partitions) in [("items", &hot.by_items), ("bytes", &hot.by_bytes)] {
            let mut table = Table::new(&[Side::Left, Side::Right, Side::Right, Side::Right, Side::Right]);
            table.row([
                format!("partition keys by {what} ({known})"),
                "items".to_owned(),
                "%".to_owned(),
                "bytes".to_owned(),
                "%".to_owned(),
            ]);
            for partition in partitions {
                table.row([
                    partition.value.clone(),
                    thousands(partition.items),
                    format!("{:.2}", partition.items_percent),
                    thousands(partition.bytes),
                    format!("{:.2}", partition.bytes_percent),
                ]);
            }
            writeln!(f)?;
            table.write(f)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// Rows whose columns line up.
struct Table<const COLUMNS: usize> {
    sides: [Side; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// The most characters of a cell; longer names are cut, the fields of the report have them whole.
    const CELL: usize = 80;

    fn new(sides: &[Side; COLUMNS]) -> Self {
        Self { sides: *sides, rows: Vec::new() }
    }

    fn row(&mut self, cells: [String; COLUMNS]) {
        // Names and keys are the user's own and may hold anything; a table has one line a row.
        self.rows.push(cells.map(|cell| {
            let mut shown = String::new();
            for character in cell.chars().take(Self::CELL) {
                if character.is_control() { shown.extend(character.escape_default()) } else { shown.push(character) }
            }
            if cell.chars().nth(Self::CELL).is_some() {
                shown.push('…');
            }
            shown
        }));
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), side) in row.iter().zip(widths).zip(self.sides) {
                let blanks = " ".repeat(width - cell.chars().count());
                match side {
                    Side::Left => line.extend([cell, &blanks, "  "]),
                    Side::Right => line.extend([&blanks, cell, "  "]),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
