//! Hive partitions: rows with equal values of some attributes lie in folders that are named after them, `status=ACTIVE/year=2026`.
//!
//! Their columns are not in the files, since engines take them from the folders. A folder's name does not tell a number from a text, nor an
//! empty text or a NULL from no attribute; so each file says in its metadata what the values were.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::naming::Names;
use crate::codec::ddb_json::{decode_item, write_item};
use crate::error::{Error, Kind, Result};
use crate::model::declared::{as_text, is_escaped_in_folders, plain_number};
use crate::model::{Arena, Declared, Item, Row, Type, Value};
use crate::shape::ValueShape;

/// The metadata key of a file for the values of its partition: `DynamoDB` JSON.
pub(super) const PARTITION: &str = "dynamorph.partition";

/// The value of a folder where there is none, or an empty text, as Hive names it.
pub(super) const NOTHING: &str = "__HIVE_DEFAULT_PARTITION__";

/// The most partitions that a dataset may have in one unit.
pub(super) const MOST: usize = 10_000;

/// The most bytes that file systems take for the name of a folder.
const LONGEST: usize = 255;

/// The values that the rows of a file share.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Partition {
    /// With their types, as `DynamoDB` JSON: the inside of an item.
    pub(super) json: String,
    /// The folders, with `/` between them.
    pub(super) folders: String,
}

/// An attribute by which a dataset is in partitions, and its column's name in the folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct By {
    pub(super) attribute: String,
    pub(super) column: String,
}

impl By {
    /// The columns of the partitions. Their names are free, and taken then.
    pub(super) fn of(declared: &Declared, names: &mut Names) -> Vec<Self> {
        let by = |attribute: &String| {
            let column = names.reserve(declared.names.get(attribute).unwrap_or(attribute));
            Self { attribute: attribute.clone(), column }
        };
        declared.partition.iter().map(by).collect()
    }
}

/// Whether a value can be that of a folder.
fn has_folder(kind: Type) -> bool {
    matches!(kind, Type::S | Type::N | Type::Bool | Type::Null)
}

/// The types of values that no folder can have, where there are such.
pub(super) fn without_folder(values: &ValueShape) -> bool {
    !values.kinds().all(has_folder)
}

pub(super) fn no_folder(attribute: &str) -> Error {
    Error::new(Kind::Input, "an attribute is declared to name folders, and has a value that cannot name one")
        .with("attribute", attribute)
        .with("expected", "S, N, BOOL, NULL or no such attribute")
        .with("hint", "take it out of `partition` in the entity's [parquet], or bring its values to one of these types with steps")
}

/// The rows of a dataset by their partitions, in the order of these; rows of one keep theirs.
///
/// # Errors
/// Kind `Input`, with the line, where a value cannot name a folder.
pub(super) fn group<'r, 'a>(by: &[By], rows: Vec<&'r Row<'a>>) -> Result<Vec<(Arc<Partition>, Vec<&'r Row<'a>>)>> {
    let mut groups: BTreeMap<Vec<u8>, Vec<&'r Row<'a>>> = BTreeMap::new();
    let mut json = Vec::new();
    for row in rows {
        json.clear();
        write_item(&shared(by, &row.item).map_err(|error| error.with("line", row.origin.line))?, &mut json);
        match groups.get_mut(&json) {
            Some(group) => group.push(row),
            None => drop(groups.insert(json.clone(), vec![row])),
        }
    }
    let partition = |(json, rows): (Vec<u8>, Vec<&'r Row<'a>>)| {
        let first = rows[0];
        let folders = folders(by, &first.item).map_err(|error| error.with("line", first.origin.line))?;
        let json = String::from_utf8(json).map_err(|cause| Error::new(Kind::Bug, "JSON that is no text").caused_by(cause))?;
        Ok((Arc::new(Partition { json, folders }), rows))
    };
    groups.into_iter().map(partition).collect()
}

/// What the rows of a partition have in common. Equal numbers are spelled alike.
fn shared<'a>(by: &[By], item: &Item<'a>) -> Result<Item<'a>> {
    let arena = item.arena();
    let mut shared = Item::new_in(arena);
    for By { attribute, .. } in by {
        let Some((name, value)) = item.attributes().iter().find(|(name, _)| name == attribute) else { continue };
        if !has_folder(value.kind()) {
            return Err(no_folder(attribute).with("type", value.kind()));
        }
        shared.push(
            name,
            match value {
                Value::N(number) => Value::N(arena.alloc_str(&plain_number(number))),
                other => *other,
            },
        );
    }
    Ok(shared)
}

fn folders(by: &[By], item: &Item<'_>) -> Result<String> {
    let mut folders = String::new();
    for By { attribute, column } in by {
        let value = item.get(attribute);
        let text = value.as_ref().and_then(as_text).filter(|text| !text.is_empty());
        let folder = format!("{}={}", escaped(column), text.map_or_else(|| NOTHING.to_owned(), |text| escaped(&text)));
        if folder.len() > LONGEST {
            return Err(Error::new(Kind::Input, "the value of an attribute is too long for the name of a folder")
                .with("attribute", attribute)
                .with("found", format_args!("{} bytes with the column's name", folder.len()))
                .with("expected", format_args!("at most {LONGEST}"))
                .with("hint", "take it out of `partition` in the entity's [parquet], or shorten it with a step"));
        }
        if !folders.is_empty() {
            folders.push('/');
        }
        folders.push_str(&folder);
    }
    Ok(folders)
}

/// A text as Hive writes it in the name of a folder.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped_in_folders(character) {
            let _ = write!(escaped, "%{:02X}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// What [`escaped`] made of a text.
fn unescaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let code = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(u8::is_ascii);
        match code {
            Some(code) => text.push(char::from(code)),
            None => text.push('%'),
        }
        rest = &after[if code.is_some() { 2 } else { 0 }..];
    }
    text + rest
}

/// The values that the name of a folder says, by column; `None` where it is that for nothing.
pub(super) fn of_folder(folder: &str) -> Option<(String, Option<String>)> {
    let (column, value) = folder.split_once('=')?;
    Some((unescaped(column), (value != NOTHING).then(|| unescaped(value))))
}

/// A value that all rows of a file share.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shared {
    Text(String),
    Number(String),
    Truth(bool),
    Null,
}

impl Shared {
    /// What a file's metadata says of its partition; `None` where that cannot be understood.
    pub(super) fn parse(json: &str) -> Option<Vec<(String, Self)>> {
        let arena = Arena::new();
        let item = decode_item(arena.alloc_str(&format!("{{\"Item\":{json}}}")), &arena).ok()?;
        let shared = |value: &Value<'_>| {
            Some(match value {
                Value::S(text) => Self::Text((*text).to_owned()),
                Value::N(number) => Self::Number((*number).to_owned()),
                Value::Bool(truth) => Self::Truth(*truth),
                Value::Null => Self::Null,
                _ => return None,
            })
        };
        item.attributes().iter().map(|(name, value)| Some(((*name).to_owned(), shared(value)?))).collect()
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::S(text),
            Self::Number(number) => Value::N(number),
            Self::Truth(truth) => Value::Bool(*truth),
            Self::Null => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_for_a_folder_is_read_back() {
        for text in ["", "a b", "ä/ö", "50%", "%41", "a=b", "\"#%'*/:=?\\{[]^", "\u{7f}\n\0", ".", "..", "é%"] {
            let escaped = escaped(text);
            assert!(!escaped.contains(['/', '=']), "{escaped}");
            assert_eq!(unescaped(&escaped), text);
        }
        assert_eq!(escaped("12:30 {x}"), "12%3A30 %7Bx}");
        assert_eq!(of_folder("day=2026-11-30"), Some(("day".to_owned(), Some("2026-11-30".to_owned()))));
        assert_eq!(of_folder("day=__HIVE_DEFAULT_PARTITION__"), Some(("day".to_owned(), None)));
        assert_eq!(of_folder("part-u00001-0000.parquet"), None);
        assert_eq!(unescaped("100%é"), "100%é");
    }
}
