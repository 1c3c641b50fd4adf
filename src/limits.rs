//! `DynamoDB`'s own arithmetic: sizes, limits, write units, keys as bytes; and what the service would refuse an item for.
//!
//! Pure, and without any opinion on what should become of an item that breaks a limit.

use std::fmt;

use crate::error::{Reason, Stage};
use crate::model::number::{self, DIGITS, Decimal, NumberError};
use crate::model::{Item, KeyAttribute, KeySchema, KeyType, Place, Table, Value};

/// The most bytes an item may have, names and values together (AWS, "Quotas": 400 KB).
pub const ITEM_BYTES: u64 = 409_600;

/// The most levels of values; a value of an item is on level 1.
pub const LEVELS: usize = 32;

/// The most bytes an attribute's name may have.
pub const NAME_BYTES: usize = 65_535;

/// The most bytes a partition key may have.
pub const PARTITION_KEY_BYTES: usize = 2_048;

/// The most bytes a sort key may have.
pub const SORT_KEY_BYTES: usize = 1_024;

/// Sets with up to this many members are compared each with each; larger ones are sorted first.
const SMALL_SET: usize = 16;

/// The item's size in bytes, as the service counts it against its 400 KB and for write units.
///
/// Exact but for numbers: of the two known forms the larger one counts, so that the result may be a byte too high
/// for some numbers and is never too low.
#[must_use]
pub fn item_size(item: &Item<'_>) -> u64 {
    item.attributes().iter().map(|(name, value)| length(name.len()) + value_size(value)).sum()
}

/// The size in bytes of a value without its name. A number that is none counts as its text.
#[must_use]
pub fn value_size(value: &Value<'_>) -> u64 {
    match value {
        Value::S(text) => length(text.len()),
        Value::N(text) => number_size(text).unwrap_or(length(text.len())),
        Value::B(bytes) => length(bytes.len()),
        Value::Bool(_) | Value::Null => 1,
        Value::M(entries) => 3 + entries.iter().map(|(name, value)| 1 + length(name.len()) + value_size(value)).sum::<u64>(),
        Value::L(elements) => 3 + elements.iter().map(|element| 1 + value_size(element)).sum::<u64>(),
        Value::Ss(members) => members.iter().map(|text| length(text.len())).sum(),
        Value::Ns(members) => members.iter().map(|text| number_size(text).unwrap_or(length(text.len()))).sum(),
        Value::Bs(members) => members.iter().map(|bytes| length(bytes.len())).sum(),
    }
}

/// How deep a value goes: 1 for a scalar, a set, an empty list or map, and one more for each list or map around it.
#[must_use]
pub fn depth(value: &Value<'_>) -> usize {
    1 + match value {
        Value::M(entries) => entries.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        Value::L(elements) => elements.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Write units of one item of this size in bytes: one for each begun KiB, and at least one.
#[must_use]
pub fn write_units(size: u64) -> u64 {
    size.div_ceil(1_024).max(1)
}

/// Checks the item against everything the service would refuse it for, with the keys and indexes of `table`
/// where it goes to one; gives its size in bytes as [`item_size`] does. One pass over the item.
///
/// # Errors
/// The first rule that is broken, with the attribute, the value's size or type, and the limit; stage `limits`.
pub fn check_item(item: &Item<'_>, table: Option<&Table>) -> Result<u32, Reason> {
    let mut size = 0;
    for (name, value) in item.attributes() {
        size += match plain_size(value) {
            Some(bytes) if (1..=NAME_BYTES).contains(&name.len()) => length(name.len()) + bytes,
            _ => checked_attribute(name, value)?,
        };
    }
    if let Some(table) = table {
        check_keys(item, table)?;
    }
    match u32::try_from(size) {
        Ok(size) if u64::from(size) <= ITEM_BYTES => Ok(size),
        _ => Err(broken("item-size", &format!("the item has {} bytes, limit {}", thousands(size), thousands(ITEM_BYTES))).into()),
    }
}

/// Appends the item's key as bytes, partition key then sort key: each a type byte, the length and the value's bytes.
///
/// Two items of one table have equal bytes just where the service sees one key: a number counts by its value, so
/// that `1`, `1.0` and `1E0` are equal. Gives `false`, and appends nothing of use, where a key attribute is missing or
/// of a type that no key can have.
pub fn canonical_key(item: &Item<'_>, key: &KeySchema, out: &mut Vec<u8>) -> bool {
    key.attributes().all(|attribute| match item.get(&attribute.name) {
        Some(Value::S(text)) => append_key(b'S', text.as_bytes(), out),
        Some(Value::B(bytes)) => append_key(b'B', bytes, out),
        Some(Value::N(text)) if number::is_plain(text) => append_key(b'N', text.as_bytes(), out),
        // What is out of range has no spelling of reasonable length; the service would refuse it, so its text will do.
        Some(Value::N(text)) => match Decimal::parse(text).filter(|decimal| decimal.check().is_ok()) {
            Some(decimal) => append_key(b'N', decimal.plain().as_bytes(), out),
            None => append_key(b'n', text.as_bytes(), out),
        },
        _ => false,
    })
}

/// The partition key's part of what [`canonical_key`] appended for one item.
#[must_use]
pub fn partition_part(key: &[u8]) -> &[u8] {
    let length = key.get(1..9).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
    let end = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(9);
    key.get(..end).unwrap_or(key)
}

fn append_key(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> bool {
    out.push(kind);
    out.extend_from_slice(&length(bytes.len()).to_be_bytes());
    out.extend_from_slice(bytes);
    true
}

/// Whether the service takes it as the name of a table: 3 to 255 letters, digits, `_`, `.` and `-` (AWS, *Supported data types and naming
/// rules in Amazon `DynamoDB`*).
#[must_use]
pub fn is_table_name(name: &str) -> bool {
    (3..=255).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// A number with a comma at every thousand, for messages: `409,601`.
#[must_use]
pub fn thousands(number: impl fmt::Display) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count of something whose plural ends in `s`, for messages: `1 item`, `1,200 items`.
#[must_use]
pub fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// A reason on its way up; boxed, so that the results of the hot path stay small.
struct Broken(Box<Reason>);

impl From<Broken> for Reason {
    fn from(Broken(reason): Broken) -> Self {
        *reason
    }
}

#[cold]
fn broken(rule: &'static str, message: &str) -> Broken {
    Broken(Box::new(Reason::new(Stage::Limits, rule, message)))
}

#[cold]
fn broken_at(rule: &'static str, place: &Place<'_>, message: &str) -> Broken {
    let path = place.to_string();
    // Names may have 64 KB each; a message shows where they start.
    match path.char_indices().nth(200) {
        Some((end, _)) => broken(rule, &format!("attribute {}…: {message}", &path[..end])),
        None => broken(rule, &format!("attribute {path}: {message}")),
    }
}

/// The size of a value that breaks no rule wherever it stands, seen without a closer look: of nearly all values on the top level.
#[inline]
fn plain_size(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::S(text) => Some(length(text.len())),
        Value::N(text) => small_integer_size(text),
        Value::Bool(_) | Value::Null => Some(1),
        _ => None,
    }
}

/// The size of an attribute on the top level, name and value, that breaks no rule.
fn checked_attribute(name: &str, value: &Value<'_>) -> Result<u64, Broken> {
    if name.is_empty() {
        let message = format!("an attribute has an empty name; expected 1 to {} bytes", thousands(NAME_BYTES));
        return Err(broken("attribute-name", &message));
    }
    Ok(checked_name(name, &Place::Item)? + checked_value(value, 1, &Place::Name(&Place::Item, name))?)
}

/// The bytes of a name that is not too long.
///
/// An empty name is refused on the top level only. Whether the service refuses it inside a map is not known to us,
/// and an item out of an export has been taken by the service once.
fn checked_name(name: &str, place: &Place<'_>) -> Result<u64, Broken> {
    if name.len() > NAME_BYTES {
        let message = format!("its name has {} bytes, limit {}", thousands(name.len()), thousands(NAME_BYTES));
        return Err(broken_at("attribute-name", &Place::Name(place, name), &message));
    }
    Ok(length(name.len()))
}

/// The size of a value on `level` that breaks no rule.
fn checked_value(value: &Value<'_>, level: usize, place: &Place<'_>) -> Result<u64, Broken> {
    if level > LEVELS {
        let found = level - 1 + depth(value);
        return Err(broken_at("depth", place, &format!("values nested {found} levels deep, limit {LEVELS}")));
    }
    match value {
        Value::N(text) => checked_number(text, place),
        Value::M(entries) => entries.iter().try_fold(3, |size, (name, value)| {
            let here = Place::Name(place, name);
            Ok(size + 1 + checked_name(name, place)? + checked_value(value, level + 1, &here)?)
        }),
        Value::L(elements) => elements
            .iter()
            .enumerate()
            .try_fold(3, |size, (at, element)| Ok(size + 1 + checked_value(element, level + 1, &Place::Index(place, at))?)),
        Value::Ss(members) => {
            check_set(members.len(), || has_twice(members), "string", place)?;
            Ok(value_size(value))
        }
        Value::Bs(members) => {
            check_set(members.len(), || has_twice(members), "binary", place)?;
            Ok(value_size(value))
        }
        Value::Ns(members) => {
            let mut size = 0;
            for (at, text) in members.iter().enumerate() {
                size += checked_number(text, &Place::Index(place, at))?;
            }
            check_set(members.len(), || has_number_twice(members), "number", place)?;
            Ok(size)
        }
        Value::S(_) | Value::B(_) | Value::Bool(_) | Value::Null => Ok(value_size(value)),
    }
}

fn check_set(members: usize, twice: impl FnOnce() -> bool, kind: &str, place: &Place<'_>) -> Result<(), Broken> {
    if members == 0 {
        return Err(broken_at("empty-set", place, &format!("an empty {kind} set; DynamoDB wants at least one member")));
    }
    if members > 1 && twice() {
        return Err(broken_at("duplicate-in-set", place, &format!("a {kind} set of {members} members holds one of them twice")));
    }
    Ok(())
}

/// Whether two members are equal as bytes.
fn has_twice<T: Ord + Copy>(members: &[T]) -> bool {
    if members.len() <= SMALL_SET {
        return (1..members.len()).any(|at| members[..at].contains(&members[at]));
    }
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether two members are equal as numbers; all are numbers.
fn has_number_twice(members: &[&str]) -> bool {
    // A plain text is its value's one spelling.
    if members.iter().all(|text| number::is_plain(text)) {
        return has_twice(members);
    }
    let mut sorted: Vec<_> = members.iter().filter_map(|text| Decimal::parse(text)).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The size of a number that the service takes.
fn checked_number(text: &str, place: &Place<'_>) -> Result<u64, Broken> {
    if let Some(size) = small_integer_size(text) {
        return Ok(size);
    }
    let error = match Decimal::parse(text) {
        None => NumberError::NotANumber,
        Some(decimal) => match decimal.check() {
            Ok(()) => return Ok(decimal_size(&decimal)),
            Err(error) => error,
        },
    };
    let hint = match error {
        NumberError::TooManyDigits(_) => "; keep it as a string",
        NumberError::NotANumber => "; expected digits such as -12.5 or 1E3",
        NumberError::Overflow | NumberError::Underflow => "",
    };
    Err(broken_at("number", place, &format!("{error}{hint}")))
}

/// The size of a number, or `None` where the text is none.
fn number_size(text: &str) -> Option<u64> {
    small_integer_size(text).or_else(|| Some(decimal_size(&Decimal::parse(text)?)))
}

/// The size of a plain integer of up to 38 digits without a sign: nearly all numbers, without parsing.
#[inline]
fn small_integer_size(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    match bytes {
        [b'0'] => return Some(1),
        [b'1'..=b'9', ..] if bytes.len() <= DIGITS && bytes.iter().all(u8::is_ascii_digit) => {}
        _ => return None,
    }
    let zeros = bytes.iter().rev().take_while(|digit| **digit == b'0').count();
    let digits = bytes.len() - zeros;
    // The same as below with all digits before the point.
    Some(1 + length(digits).div_ceil(2) + u64::from(digits.is_multiple_of(2) && bytes.len() % 2 == 1))
}

/// Two closed forms are known; both agree with every size that was measured at the service, and they differ by one
/// byte for some numbers that nobody measured, such as 120. The larger one is on the safe side of a limit.
fn decimal_size(decimal: &Decimal<'_>) -> u64 {
    if decimal.significant() == 0 {
        return 1;
    }
    let digits = length(decimal.significant());
    let before = u64::try_from(decimal.magnitude()).unwrap_or(0).min(digits);
    let by_point = before.div_ceil(2) + (digits - before).div_ceil(2);
    // The exponent of the first digit is the magnitude less one.
    let by_exponent = digits.div_ceil(2) + u64::from(digits.is_multiple_of(2) && decimal.magnitude() % 2 != 0);
    1 + by_point.max(by_exponent) + u64::from(decimal.is_negative())
}

fn check_keys(item: &Item<'_>, table: &Table) -> Result<(), Broken> {
    let of_table = Keys { kind: "key-type", empty: "key-empty", size: "key-size", what: "table", name: &table.name, of: None };
    for (role, attribute) in roles(&table.key) {
        let Some(value) = item.get(&attribute.name) else {
            let (name, expected) = (&attribute.name, attribute.kind.descriptor());
            return Err(broken("key-missing", &format!("{role} `{name}` of table {} is missing; expected {expected}", table.name)));
        };
        of_table.check(role, attribute, &value)?;
    }
    for index in &table.indexes {
        let (kind, empty, size) = ("index-key-type", "index-key-empty", "index-key-size");
        let of_index = Keys { kind, empty, size, what: "index", name: &index.name, of: Some(&table.name) };
        for (role, attribute) in roles(&index.key) {
            // An item without the key attribute is not in the index, which is no mistake.
            if let Some(value) = item.get(&attribute.name) {
                of_index.check(role, attribute, &value)?;
            }
        }
    }
    Ok(())
}

/// A key's attributes, each with its role and the most bytes it may have.
fn roles(key: &KeySchema) -> impl Iterator<Item = (Role, &KeyAttribute)> {
    [Role::Partition, Role::Sort].into_iter().zip(key.attributes())
}

#[derive(Clone, Copy)]
enum Role {
    Partition,
    Sort,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Partition => "partition key",
            Role::Sort => "sort key",
        })
    }
}

/// The rules of the keys of one table or index.
struct Keys<'t> {
    kind: &'static str,
    empty: &'static str,
    size: &'static str,
    what: &'static str,
    name: &'t str,
    /// The table of an index.
    of: Option<&'t str>,
}

impl Keys<'_> {
    /// What to write where the value is right, and nobody declared its type. S needs no declaration.
    fn how_to_declare(&self, attribute: &str, value: &Value<'_>) -> String {
        let (Value::N(_) | Value::B(_)) = value else { return String::new() };
        let toml = |name: &str| {
            let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            if bare { name.to_owned() } else { format!("{name:?}") }
        };
        let of = match self.of {
            None => format!("[table.{}]", toml(self.name)),
            Some(table) => format!("[table.{}.index.{}]", toml(table), toml(self.name)),
        };
        format!("; for keys of that type write types = {{ {} = \"{}\" }} under {of}", toml(attribute), value.kind())
    }

    fn check(&self, role: Role, attribute: &KeyAttribute, value: &Value<'_>) -> Result<(), Broken> {
        let (what, owner, name) = (self.what, self.name, &attribute.name);
        let length = match (attribute.kind, value) {
            (KeyType::S, Value::S(text)) => text.len(),
            (KeyType::B, Value::B(bytes)) => bytes.len(),
            (KeyType::N, Value::N(_)) => return Ok(()),
            (expected, found) => {
                let message = format!("{role} `{name}` of {what} {owner} is {}, expected {}", found.kind(), expected.descriptor());
                let hint = if expected == KeyType::S { self.how_to_declare(name, found) } else { String::new() };
                return Err(broken(self.kind, &(message + &hint)));
            }
        };
        let limit = match role {
            Role::Partition => PARTITION_KEY_BYTES,
            Role::Sort => SORT_KEY_BYTES,
        };
        if length == 0 {
            let message = format!("{role} `{name}` of {what} {owner} is empty; expected 1 to {} bytes", thousands(limit));
            return Err(broken(self.empty, &message));
        }
        if length > limit {
            let message = format!("{role} `{name}` of {what} {owner} has {} bytes, limit {}", thousands(length), thousands(limit));
            return Err(broken(self.size, &message));
        }
        Ok(())
    }
}

/// A length as the service counts it.
fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).expect("no text in memory is longer than 64 bits can count")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arena, Creation, Index};

    fn item<'a>(arena: &'a Arena, attributes: &[(&'a str, Value<'a>)]) -> Item<'a> {
        let mut item = Item::new_in(arena);
        for (name, value) in attributes {
            item.push(name, *value);
        }
        item
    }

    /// What `check_item` says of these attributes: the size, or rule and message.
    fn check(attributes: &[(&str, Value<'_>)], table: Option<&Table>) -> Result<u32, String> {
        let arena = Arena::new();
        let item = item(&arena, attributes);
        let checked = check_item(&item, table);
        if let Ok(size) = checked {
            assert_eq!(u64::from(size), item_size(&item), "{attributes:?}");
        }
        checked.map_err(|reason| {
            assert_eq!(reason.stage, Stage::Limits);
            format!("{}: {}", reason.rule, reason.message)
        })
    }

    fn key(name: &str, kind: KeyType) -> KeyAttribute {
        KeyAttribute { name: name.to_owned(), kind }
    }

    fn table(kind: KeyType) -> Table {
        Table {
            name: "docs".to_owned(),
            key: KeySchema { partition: key("PK", kind), sort: Some(key("SK", kind)) },
            indexes: vec![Index {
                name: "recent".to_owned(),
                key: KeySchema { partition: key("GPK", KeyType::S), sort: Some(key("GSK", KeyType::N)) },
            }],
            type_attribute: None,
            creation: Creation::default(),
        }
    }

    #[test]
    fn numbers_have_the_sizes_that_were_measured_at_the_service() {
        for (text, expected) in [
            ("0", 1),
            ("1", 2),
            ("12", 2),
            ("123", 3),
            ("1234", 3),
            ("12345", 4),
            ("1234567890123456789", 11),
            ("12345678901234567890123456789012345678", 20),
            ("100", 2),
            ("1010", 3),
            ("1.5", 3),
            ("1.234", 4),
            ("3.14159", 5),
            ("100.5", 4),
            ("0.15", 2),
            ("0.0000001", 2),
            ("1E125", 2),
            ("-42", 3),
            ("-0.15", 3),
            ("-0", 1),
        ] {
            assert_eq!(value_size(&Value::N(text)), expected, "{text}");
            assert_eq!(check(&[("n", Value::N(text))], None), Ok(1 + u32::try_from(expected).unwrap()), "{text}");
        }
        // Not measured; the two forms give 2 and 3.
        assert_eq!(value_size(&Value::N("120")), 3);
        assert_eq!(value_size(&Value::N("0.012")), 3);
    }

    #[test]
    fn an_integer_has_one_size_in_every_spelling() {
        for number in (0..2_000).chain([10_000, 123_400, 99_999_999, 1_000_000_001]) {
            let plain = value_size(&Value::N(&number.to_string()));
            for text in [format!("{number}.0"), format!("00{number}"), format!("{number}e0"), format!("+{number}")] {
                assert_eq!(value_size(&Value::N(&text)), plain, "{text}");
            }
        }
    }

    #[test]
    fn sizes_are_names_and_values_and_the_overhead_of_lists_and_maps() {
        // The example of the service's own documentation.
        assert_eq!(check(&[("shirt-color", Value::S("R")), ("shirt-size", Value::S("M"))], None), Ok(23));
        for (value, expected) in [
            (Value::S("é東😀"), 2 + 3 + 4),
            (Value::S(""), 0),
            (Value::B(&[0; 7]), 7),
            (Value::Bool(false), 1),
            (Value::Null, 1),
            (Value::L(&[]), 3),
            (Value::M(&[]), 3),
            (Value::L(&[Value::Null, Value::S("ab")]), 3 + 2 + 3),
            (Value::M(&[("ab", Value::Null), ("", Value::L(&[]))]), 3 + (1 + 2 + 1) + (1 + 3)),
            (Value::Ss(&["a", "bc"]), 3),
            (Value::Ns(&["1", "12345"]), 6),
            (Value::Bs(&[&[1, 2], &[]]), 2),
        ] {
            assert_eq!(value_size(&value), expected, "{value:?}");
            assert_eq!(check(&[("x", value)], None).map(u64::from), Ok(1 + expected), "{value:?}");
        }
        assert_eq!(value_size(&Value::N("no number")), 9);
    }

    #[test]
    fn an_item_of_400_kb_is_taken_and_one_byte_more_is_not() {
        let text = "x".repeat(409_600);
        assert_eq!(check(&[("a", Value::S(&text[1..]))], None), Ok(409_600));
        assert_eq!(check(&[("a", Value::S(&text))], None), Err("item-size: the item has 409,601 bytes, limit 409,600".to_owned()));
    }

    #[test]
    fn numbers_of_38_digits_within_the_range_are_taken() {
        for (text, expected) in [
            ("9".repeat(38).as_str(), Ok(())),
            (&format!("-{}e88", "9".repeat(38)), Ok(())),
            ("1E-130", Ok(())),
            (&"9".repeat(39), Err("39 significant digits, limit 38; keep it as a string")),
            ("1E126", Err("magnitude above 9.99…E+125")),
            ("-1E-131", Err("magnitude below 1E-130")),
            ("NaN", Err("not a decimal number; expected digits such as -12.5 or 1E3")),
            ("", Err("not a decimal number; expected digits such as -12.5 or 1E3")),
        ] {
            let found = check(&[("a", Value::M(&[("b.c", Value::Ns(&["1", text]))]))], None);
            assert_eq!(found.map(|_| ()), expected.map_err(|message| format!("number: attribute a.\"b.c\"[1]: {message}")), "{text}");
        }
    }

    #[test]
    fn values_on_32_levels_are_taken_and_one_level_more_is_not() {
        let arena = Arena::new();
        let nested = |levels: usize| {
            (1..levels).fold(Value::Ss(&["x"]), |inner, level| {
                if level % 2 == 0 { Value::L(arena.alloc_slice_copy(&[inner])) } else { Value::M(arena.alloc_slice_copy(&[("m", inner)])) }
            })
        };
        assert_eq!(depth(&nested(32)), 32);
        assert!(check(&[("a", nested(32))], None).is_ok());
        let message = check(&[("a", nested(33))], None).unwrap_err();
        assert!(
            message.starts_with("depth: attribute a[0].m[0].m") && message.ends_with(": values nested 33 levels deep, limit 32"),
            "{message}"
        );
        assert!(check(&[("a", nested(60))], None).unwrap_err().ends_with("values nested 60 levels deep, limit 32"));
    }

    #[test]
    fn sets_are_not_empty_and_hold_nothing_twice() {
        for (value, expected) in [
            (Value::Ss(&[]), Err("empty-set: attribute a[1]: an empty string set; DynamoDB wants at least one member")),
            (Value::Ns(&[]), Err("empty-set: attribute a[1]: an empty number set; DynamoDB wants at least one member")),
            (Value::Bs(&[]), Err("empty-set: attribute a[1]: an empty binary set; DynamoDB wants at least one member")),
            (Value::Ss(&["x", "y", "x"]), Err("duplicate-in-set: attribute a[1]: a string set of 3 members holds one of them twice")),
            (Value::Bs(&[&[1], &[1]]), Err("duplicate-in-set: attribute a[1]: a binary set of 2 members holds one of them twice")),
            (Value::Ns(&["1", "2", "1"]), Err("duplicate-in-set: attribute a[1]: a number set of 3 members holds one of them twice")),
            (Value::Ns(&["10", "1E1"]), Err("duplicate-in-set: attribute a[1]: a number set of 2 members holds one of them twice")),
            (Value::Ns(&["10", "1E2", "-10"]), Ok(())),
            (Value::Ss(&["x", "X", ""]), Ok(())),
        ] {
            let found = check(&[("a", Value::L(&[Value::Null, value]))], None).map(|_| ());
            assert_eq!(found, expected.map_err(str::to_owned), "{value:?}");
        }
    }

    #[test]
    fn a_large_set_is_searched_like_a_small_one() {
        for count in [SMALL_SET, SMALL_SET + 1, 2_000] {
            let mut texts: Vec<String> = (0..count).map(|n| format!("{n}.5")).collect();
            let verdict = |texts: &[String]| {
                let members: Vec<&str> = texts.iter().map(String::as_str).collect();
                [Value::Ss(&members), Value::Ns(&members)].map(|set| check(&[("a", set)], None).is_ok())
            };
            assert_eq!(verdict(&texts), [true, true]);
            texts[count - 1] = "03.50".to_owned();
            assert_eq!(verdict(&texts), [true, false]);
            texts[count - 1] = "3.5".to_owned();
            assert_eq!(verdict(&texts), [false, false]);
        }
    }

    #[test]
    fn names_are_neither_empty_nor_too_long() {
        let long = "n".repeat(65_536);
        assert_eq!(
            check(&[("", Value::Null)], None),
            Err("attribute-name: an attribute has an empty name; expected 1 to 65,535 bytes".to_owned())
        );
        assert!(check(&[(&long[1..], Value::Null)], None).is_ok());
        for attribute in [(long.as_str(), Value::Null), ("a", Value::M(&[(&long, Value::Null)]))] {
            let message = check(&[attribute], None).unwrap_err();
            assert!(message.ends_with("n…: its name has 65,536 bytes, limit 65,535") && message.len() < 400, "{message}");
        }
    }

    #[test]
    fn table_keys_are_there_and_have_their_type_and_size() {
        let long = "k".repeat(2_049);
        for (kind, attributes, expected) in [
            (KeyType::S, [("PK", Value::S(&long[1..])), ("SK", Value::S(&long[1_025..]))], Ok(2 + 2_048 + 2 + 1_024)),
            (
                KeyType::S,
                [("PK", Value::S(&long)), ("SK", Value::S("s"))],
                Err("key-size: partition key `PK` of table docs has 2,049 bytes, limit 2,048"),
            ),
            (
                KeyType::S,
                [("PK", Value::S("p")), ("SK", Value::S(&long[1_024..]))],
                Err("key-size: sort key `SK` of table docs has 1,025 bytes, limit 1,024"),
            ),
            (
                KeyType::S,
                [("PK", Value::S("")), ("SK", Value::S("s"))],
                Err("key-empty: partition key `PK` of table docs is empty; expected 1 to 2,048 bytes"),
            ),
            (
                KeyType::S,
                [("PK", Value::S("p")), ("SK", Value::N("1"))],
                Err(
                    "key-type: sort key `SK` of table docs is N, expected S; for keys of that type write types = { SK = \"N\" } under [table.docs]",
                ),
            ),
            (
                KeyType::S,
                [("PK", Value::Null), ("SK", Value::S("s"))],
                Err("key-type: partition key `PK` of table docs is NULL, expected S"),
            ),
            (
                KeyType::S,
                [("PK", Value::S("p")), ("sk", Value::S("s"))],
                Err("key-missing: sort key `SK` of table docs is missing; expected S"),
            ),
            (
                KeyType::B,
                [("PK", Value::B(b"p")), ("SK", Value::B(b""))],
                Err("key-empty: sort key `SK` of table docs is empty; expected 1 to 1,024 bytes"),
            ),
            (KeyType::N, [("PK", Value::N("0")), ("SK", Value::N("-1.5"))], Ok(2 + 1 + 2 + 4)),
            (
                KeyType::N,
                [("PK", Value::M(&[])), ("SK", Value::N("1"))],
                Err("key-type: partition key `PK` of table docs is M, expected N"),
            ),
        ] {
            assert_eq!(check(&attributes, Some(&table(kind))), expected.map_err(str::to_owned), "{expected:?}");
        }
    }

    #[test]
    fn index_keys_may_be_absent_but_not_wrong() {
        let long = "k".repeat(2_049);
        for (attributes, expected) in [
            ([("GPK", Value::S("g")), ("GSK", Value::N("1"))], Ok(())),
            ([("other", Value::Null), ("GSK", Value::N("1"))], Ok(())),
            (
                [("GPK", Value::Null), ("GSK", Value::N("1"))],
                Err("index-key-type: partition key `GPK` of index recent is NULL, expected S"),
            ),
            (
                [("GPK", Value::B(b"g")), ("GSK", Value::N("1"))],
                Err(
                    "index-key-type: partition key `GPK` of index recent is B, expected S; for keys of that type write types = { GPK = \"B\" } under [table.docs.index.recent]",
                ),
            ),
            ([("GPK", Value::S("g")), ("GSK", Value::S("1"))], Err("index-key-type: sort key `GSK` of index recent is S, expected N")),
            (
                [("GPK", Value::S("")), ("other", Value::Null)],
                Err("index-key-empty: partition key `GPK` of index recent is empty; expected 1 to 2,048 bytes"),
            ),
            (
                [("GPK", Value::S(&long)), ("other", Value::Null)],
                Err("index-key-size: partition key `GPK` of index recent has 2,049 bytes, limit 2,048"),
            ),
        ] {
            let all: Vec<_> = [("PK", Value::S("p")), ("SK", Value::S("s"))].into_iter().chain(attributes).collect();
            assert_eq!(check(&all, Some(&table(KeyType::S))).map(|_| ()), expected.map_err(str::to_owned), "{expected:?}");
        }
    }

    #[test]
    fn equal_keys_have_equal_bytes_and_different_keys_have_not() {
        let arena = Arena::new();
        let bytes = |partition, sort| {
            let mut out = Vec::new();
            let item = item(&arena, &[("SK", sort), ("PK", partition)]);
            assert!(canonical_key(&item, &table(KeyType::S).key, &mut out));
            out
        };
        let one = bytes(Value::S("a"), Value::N("1"));
        for same in ["1.0", "1E0", "+1", "0.1e1", "01"] {
            assert_eq!(bytes(Value::S("a"), Value::N(same)), one, "{same}");
        }
        let mut all: Vec<Vec<u8>> = [
            (Value::S("a"), Value::N("1")),
            (Value::S("a"), Value::S("1")),
            (Value::S("a"), Value::B(b"1")),
            (Value::S("a"), Value::N("-1")),
            (Value::S("a"), Value::N("1E999999999")),
            (Value::S("ab"), Value::S("c")),
            (Value::S("a"), Value::S("bc")),
            (Value::S(""), Value::S("abc")),
        ]
        .into_iter()
        .map(|(partition, sort)| bytes(partition, sort))
        .collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(!canonical_key(&item(&arena, &[("PK", Value::S("a"))]), &table(KeyType::S).key, &mut Vec::new()));
        assert!(!canonical_key(&item(&arena, &[("PK", Value::S("a")), ("SK", Value::Null)]), &table(KeyType::S).key, &mut Vec::new()));
    }

    #[test]
    fn write_units_are_begun_kib_and_at_least_one() {
        for (size, expected) in [(0, 1), (1, 1), (1_024, 1), (1_025, 2), (409_600, 400)] {
            assert_eq!(write_units(size), expected, "{size}");
        }
    }
}
