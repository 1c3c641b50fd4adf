//! What a pipeline declares of the columns of a dataset: types, names, order and what shares one, and which values fit a type.
//!
//! A value that does not fit is not lost: where it goes is the sink's business.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::model::item::{Arena, Item};
use crate::model::number::{Decimal, is_plain, unscaled};
use crate::model::time::{Moment, Unit};
use crate::model::value::{Type, Value};

/// The types in words, for messages.
pub const COLUMN_TYPES: &str =
    "timestamp, timestamp(epoch_s), timestamp(epoch_ms), timestamp(epoch_us), double, decimal(DIGITS, AFTER_THE_POINT), text or json";

/// The most leaf columns that a dataset may have. Each costs settings and statistics for every row group of a file, and engines refuse far
/// wider tables.
pub const COLUMNS: usize = 2048;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `timestamp`: S, a date and time in ISO 8601 with `Z` or offset, exact to the microsecond.
    Timestamp,
    /// `timestamp(epoch_s)` and the like: N, so many units since 1970, exact to the microsecond.
    Epoch(Unit),
    /// `double`: N, the nearest double.
    Double,
    /// `decimal(digits, scale)`: N, exactly.
    Decimal {
        /// Digits in all, at most 38.
        digits: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// `text`: S, and N as its digits.
    Text,
    /// `json`: any value, as `DynamoDB` JSON.
    Json,
}

impl ColumnType {
    /// Reads a type as it is written in a pipeline file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text: String = text.chars().filter(|letter| *letter != ' ').collect();
        let inside = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
        Some(match text.as_str() {
            "timestamp" => ColumnType::Timestamp,
            "double" => ColumnType::Double,
            "text" => ColumnType::Text,
            "json" => ColumnType::Json,
            _ => match (inside("timestamp"), inside("decimal")) {
                (Some(unit), _) => ColumnType::Epoch(Unit::from_name(unit.strip_prefix("epoch_")?)?),
                (_, Some(numbers)) => {
                    let (digits, scale) = numbers.split_once(',').unwrap_or((numbers, "0"));
                    let (digits, scale) = (digits.parse().ok()?, scale.parse().ok()?);
                    if !(1..=38).contains(&digits) || scale > digits {
                        return None;
                    }
                    ColumnType::Decimal { digits, scale }
                }
                _ => return None,
            },
        })
    }

    /// The type of the values that the column is for; `None` where it takes several.
    #[must_use]
    pub fn kind(self) -> Option<Type> {
        match self {
            ColumnType::Timestamp => Some(Type::S),
            ColumnType::Epoch(_) | ColumnType::Double | ColumnType::Decimal { .. } => Some(Type::N),
            ColumnType::Text | ColumnType::Json => None,
        }
    }

    /// Whether the value has a place in the column, and what becomes of it there. Null has one in every column.
    #[must_use]
    pub fn fit(self, value: &Value<'_>) -> Fit {
        let exact = match (self, value) {
            (ColumnType::Json, _) | (_, Value::Null) | (ColumnType::Text, Value::S(_) | Value::N(_)) => true,
            (ColumnType::Timestamp, Value::S(text)) => iso_micros(text).is_some(),
            (ColumnType::Epoch(unit), Value::N(text)) => epoch_micros(text, unit).is_some(),
            (ColumnType::Decimal { digits, scale }, Value::N(text)) => decimal(text, digits, scale).is_some(),
            (ColumnType::Double, Value::N(text)) => match double(text) {
                None => false,
                Some(double) if Decimal::parse(&double.to_string()) != Decimal::parse(text) => return Fit::Rounded,
                Some(_) => true,
            },
            _ => false,
        };
        if exact { Fit::Exact } else { Fit::Not }
    }

    /// The value as the column gives it back, where it fits and that is not what it was: a moment in UTC, to the microsecond; a double.
    fn given_back<'a>(self, value: Value<'a>, arena: &'a Arena) -> Value<'a> {
        match (self, value) {
            (ColumnType::Timestamp, Value::S(text)) => iso_micros(text).map_or(value, |micros| Value::S(arena.alloc_str(&iso(micros)))),
            (ColumnType::Double, Value::N(text)) => double(text).map_or(value, |double| Value::N(arena.alloc_str(&double.to_string()))),
            _ => value,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnType::Timestamp => f.write_str("timestamp"),
            ColumnType::Epoch(unit) => write!(f, "timestamp(epoch_{})", unit.name()),
            ColumnType::Double => f.write_str("double"),
            ColumnType::Decimal { digits, scale } => write!(f, "decimal({digits},{scale})"),
            ColumnType::Text => f.write_str("text"),
            ColumnType::Json => f.write_str("json"),
        }
    }
}

/// How a value fits the type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Nothing of it is lost.
    Exact,
    /// It does, and digits are lost.
    Rounded,
    /// It does not.
    Not,
}

/// What an attribute becomes whose values have several types, NULL aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mixed {
    /// A column a type.
    #[default]
    Split,
    /// One column of `DynamoDB` JSON as text.
    Json,
    /// One column of text, for S, N and BOOL alone: which it was is lost.
    Text,
    /// One column for the most frequent type; items with a value of another are rejects.
    RejectMinority,
}

impl Mixed {
    /// All, with their names in a pipeline file.
    pub const NAMES: [(&'static str, Mixed); 4] =
        [("split", Mixed::Split), ("json", Mixed::Json), ("text", Mixed::Text), ("reject-minority", Mixed::RejectMinority)];

    /// The name in a pipeline file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, mixed)| *mixed == self).map_or("", |(name, _)| name)
    }
}

/// The attributes whose NULL is kept apart from their absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// All.
    All,
    /// These.
    Of(BTreeSet<String>),
}

impl Default for Nulls {
    fn default() -> Self {
        Nulls::Of(BTreeSet::new())
    }
}

/// What is declared of the columns of a dataset, by top-level attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Types.
    pub types: BTreeMap<String, ColumnType>,
    /// Names of columns, each once.
    pub names: BTreeMap<String, String>,
    /// Whether an item with a value that does not fit its type is rejected.
    pub strict: bool,
    /// What values of several types become, where nothing else is said of the attribute.
    pub mixed: Mixed,
    /// What they become, by attribute.
    pub mixed_of: BTreeMap<String, Mixed>,
    /// Whose NULL has a column of its own.
    pub nulls: Nulls,
    /// The most leaf columns; [`COLUMNS`] where nothing is said.
    pub columns: Option<usize>,
    /// Attributes without a column of their own: names, and `prefix*` for all names that begin so.
    pub rest: BTreeSet<String>,
    /// The attributes whose columns come first, in this order.
    pub order: Vec<String>,
    /// The attributes by which the rows of each row group are sorted.
    pub sort: Vec<String>,
    /// The attributes whose values name the folders of the files, in this order. They have no columns in the files.
    pub partition: Vec<String>,
}

impl Declared {
    /// The attributes that something is declared of, some more than once.
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        let nulls = match &self.nulls {
            Nulls::All => None,
            Nulls::Of(names) => Some(names),
        };
        let names = self.types.keys().chain(self.names.keys()).chain(self.mixed_of.keys());
        names.chain(nulls.into_iter().flatten()).chain(&self.order).chain(&self.sort).chain(&self.partition).map(String::as_str)
    }

    /// Whether the attribute's values name folders.
    #[must_use]
    pub fn names_folders(&self, attribute: &str) -> bool {
        self.partition.iter().any(|name| name == attribute)
    }

    /// What values of several types of this attribute become. What does not fit a declared type has columns of its own.
    #[must_use]
    pub fn mixed(&self, attribute: &str) -> Mixed {
        if self.types.contains_key(attribute) { Mixed::Split } else { self.mixed_of.get(attribute).copied().unwrap_or(self.mixed) }
    }

    /// Whether an item may be rejected since a value is not of its attribute's most frequent type.
    #[must_use]
    pub fn refuses_minorities(&self) -> bool {
        self.becomes(Mixed::RejectMinority)
    }

    /// Whether values of several types of some attribute become this.
    fn becomes(&self, mixed: Mixed) -> bool {
        self.mixed == mixed || self.mixed_of.values().any(|of| *of == mixed)
    }

    /// Whether NULL in this attribute is kept apart from its absence.
    #[must_use]
    pub fn tells_null(&self, attribute: &str) -> bool {
        match &self.nulls {
            Nulls::All => true,
            Nulls::Of(names) => names.contains(attribute),
        }
    }

    /// What sends an attribute to those without a column of their own: its name, or the beginning of it, as it is declared.
    #[must_use]
    pub fn in_rest(&self, attribute: &str) -> Option<&str> {
        if let Some(name) = self.rest.get(attribute) {
            return Some(name);
        }
        let begins = |pattern: &&String| pattern.strip_suffix('*').is_some_and(|prefix| attribute.starts_with(prefix));
        self.rest.iter().find(begins).map(String::as_str)
    }

    /// The first attribute whose value does not fit its type, with the type.
    #[must_use]
    pub fn misfit<'d>(&'d self, item: &Item<'_>) -> Option<(&'d str, ColumnType, Type)> {
        self.types.iter().find_map(|(name, column)| {
            let value = item.get(name)?;
            (column.fit(&value) == Fit::Not).then(|| (name.as_str(), *column, value.kind()))
        })
    }

    /// The item with its values as their columns give them back.
    pub fn give_back(&self, item: &mut Item<'_>) {
        let arena = item.arena();
        for (name, column) in &self.types {
            if let Some(value) = item.get(name) {
                let given = column.given_back(value, arena);
                if given != value {
                    item.set(arena.alloc_str(name), given);
                }
            }
        }
        if !self.becomes(Mixed::Text) {
            return;
        }
        let texts = item.attributes().iter().filter(|(name, _)| self.mixed(name) == Mixed::Text);
        let texts: Vec<_> = texts.filter_map(|(name, value)| Some((*name, Value::S(arena.alloc_str(&as_text(value)?))))).collect();
        for (name, text) in texts {
            item.set(name, text);
        }
    }
}

/// A value of type S, N or BOOL as a text: numbers in their one plain spelling.
#[must_use]
pub fn as_text<'v>(value: &Value<'v>) -> Option<Cow<'v, str>> {
    Some(match value {
        Value::S(text) => Cow::Borrowed(text),
        Value::N(text) => plain_number(text),
        Value::Bool(true) => Cow::Borrowed("true"),
        Value::Bool(false) => Cow::Borrowed("false"),
        _ => return None,
    })
}

/// A number in its one plain spelling, so that equal numbers have equal texts; what the service would refuse stays as it stands.
#[must_use]
pub fn plain_number(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    match Decimal::parse(text).filter(|number| number.check().is_ok()) {
        Some(number) => Cow::Owned(number.plain()),
        None => Cow::Borrowed(text),
    }
}

/// Whether a name stands in the names of folders as it is, for every engine.
#[must_use]
pub fn is_folder_name(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(is_escaped_in_folders)
}

/// Whether Hive writes a character otherwise in the names of folders.
#[must_use]
pub fn is_escaped_in_folders(character: char) -> bool {
    character.is_ascii_control() || "\"#%'*/:=?\\{[]^".contains(character)
}

/// The first microsecond of the year 0000, and the last of the year 9999.
const MICROS: std::ops::RangeInclusive<i64> = -62_167_219_200_000_000..=253_402_300_799_999_999;

/// The microseconds since 1970 that a date and time in ISO 8601 says exactly.
#[must_use]
pub fn iso_micros(text: &str) -> Option<i64> {
    Moment::from_iso(text).and_then(|moment| moment.epoch(Unit::Micros)).ok()
}

/// The date and time of microseconds since 1970, in UTC.
#[must_use]
pub fn iso(micros: i64) -> String {
    Moment::from_epoch(&micros.to_string(), Unit::Micros).map_or_else(|_| micros.to_string(), |moment| moment.iso(Unit::Micros).to_string())
}

/// The microseconds since 1970 that an epoch number says exactly, in the years 0000 to 9999.
#[must_use]
pub fn epoch_micros(text: &str, unit: Unit) -> Option<i64> {
    let micros = unscaled(&Decimal::parse(text)?, digits_below(unit))?;
    i64::try_from(micros).ok().filter(|micros| MICROS.contains(micros))
}

/// The digits of a microsecond behind the point of an epoch number.
#[must_use]
pub fn digits_below(unit: Unit) -> u32 {
    match unit {
        Unit::Seconds => 6,
        Unit::Millis => 3,
        Unit::Micros => 0,
    }
}

/// The double that is nearest to a number.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    Decimal::parse(text)?;
    // Zero has one sign.
    text.parse::<f64>().ok().filter(|double| double.is_finite()).map(|double| double + 0.0)
}

/// A number times ten to the power `scale`, where that is exactly an integer of at most so many digits.
#[must_use]
pub fn decimal(text: &str, digits: u8, scale: u8) -> Option<i128> {
    unscaled(&Decimal::parse(text)?, u32::from(scale)).filter(|value| value.unsigned_abs() < 10_u128.pow(u32::from(digits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_written_as_it_is_read() {
        for text in
            ["timestamp", "timestamp(epoch_s)", "timestamp(epoch_ms)", "timestamp(epoch_us)", "double", "text", "json", "decimal(38,2)"]
        {
            assert_eq!(ColumnType::parse(text).map(|column| column.to_string()).as_deref(), Some(text));
        }
        assert_eq!(ColumnType::parse("decimal( 5, 5 )"), Some(ColumnType::Decimal { digits: 5, scale: 5 }));
        assert_eq!(ColumnType::parse("decimal(7)"), Some(ColumnType::Decimal { digits: 7, scale: 0 }));
        for text in [
            "",
            "Timestamp",
            "timestamp()",
            "timestamp(s)",
            "timestamp(epoch_ns)",
            "decimal",
            "decimal(39,0)",
            "decimal(0,0)",
            "decimal(2,3)",
        ] {
            assert_eq!(ColumnType::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_fits_where_nothing_of_it_is_lost_and_a_double_says_when_it_rounds() {
        use Value::{Bool, N, Null, S};
        let nines = "9".repeat(38);
        for (column, value, fit) in [
            ("timestamp", S("2026-11-30T10:00:00Z"), Fit::Exact),
            ("timestamp", S("2026-11-30T10:00:00.123456+01:00"), Fit::Exact),
            ("timestamp", S("2026-11-30T10:00:00.1234567Z"), Fit::Not),
            ("timestamp", S("2026-11-30T10:00:00"), Fit::Not),
            ("timestamp", S("2026-11-30"), Fit::Not),
            ("timestamp", N("1796032800"), Fit::Not),
            ("timestamp", Null, Fit::Exact),
            ("timestamp(epoch_s)", N("1796032800"), Fit::Exact),
            ("timestamp(epoch_s)", N("1.7960328E9"), Fit::Exact),
            ("timestamp(epoch_s)", N("-0.000001"), Fit::Exact),
            ("timestamp(epoch_s)", N("0.0000001"), Fit::Not),
            ("timestamp(epoch_s)", N("1796032800000"), Fit::Not),
            ("timestamp(epoch_ms)", N("1796032800000"), Fit::Exact),
            ("timestamp(epoch_us)", N("0.5"), Fit::Not),
            ("timestamp(epoch_us)", S("1"), Fit::Not),
            ("double", N("0.1"), Fit::Exact),
            ("double", N("1E125"), Fit::Exact),
            ("double", N("-0"), Fit::Exact),
            ("double", N("9007199254740993"), Fit::Rounded),
            ("double", N("0.12345678901234567890"), Fit::Rounded),
            ("double", S("0.1"), Fit::Not),
            ("decimal(4,2)", N("12.50"), Fit::Exact),
            ("decimal(4,2)", N("-99.99"), Fit::Exact),
            ("decimal(4,2)", N("100"), Fit::Not),
            ("decimal(4,2)", N("1.005"), Fit::Not),
            ("decimal(38,0)", N(&nines), Fit::Exact),
            ("decimal(38,1)", N(&nines), Fit::Not),
            ("text", S("x"), Fit::Exact),
            ("text", N("1"), Fit::Exact),
            ("text", Bool(true), Fit::Not),
            ("json", Bool(true), Fit::Exact),
        ] {
            assert_eq!(ColumnType::parse(column).unwrap().fit(&value), fit, "{column} {value:?}");
        }
    }

    #[test]
    fn a_moment_is_given_back_in_utc() {
        let arena = Arena::new();
        let given = ColumnType::Timestamp.given_back(Value::S("1970-01-01T01:00:00+01:00"), &arena);
        assert_eq!(given, Value::S("1970-01-01T00:00:00.000000Z"));
        assert_eq!(ColumnType::Double.given_back(Value::N("9007199254740993"), &arena), Value::N("9007199254740992"));
        assert_eq!(ColumnType::Timestamp.given_back(Value::S("soon"), &arena), Value::S("soon"));
    }
}
