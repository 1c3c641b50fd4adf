//! What is different between two items, attribute by attribute, in words for people.
//!
//! Knows what is the same to `DynamoDB`: numbers by value, sets and maps in any order.

use crate::codec::ddb_json;
use crate::model::{Attribute, Item, Place, Value};

/// A value that stands in one of two items only, or is another one there.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// The path to it: `owner.id`, `tags[0]`.
    pub path: String,
    /// The value that was expected: its type and its text; `None` where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The value that was found; `None` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// All changes from one item to another, in the order of the attributes' names. Maps and lists are looked into, where both items have
/// one at the same path. None: the items are the same.
#[must_use]
pub fn changes(expected: &Item<'_>, found: &Item<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    members(expected.attributes(), found.attributes(), &Place::Item, &mut changes);
    changes
}

/// The value's type and its text: `S "pro"`, `N 5`, `NULL`, `SS ["a","b"]`, `M {"id":{"S":"1"}}`.
#[must_use]
pub fn in_words(value: &Value<'_>) -> String {
    let kind = value.kind().descriptor();
    match value {
        Value::Null => kind.to_owned(),
        Value::N(text) => format!("{kind} {text}"),
        Value::Bool(yes) => format!("{kind} {yes}"),
        other => {
            let mut json = Vec::new();
            ddb_json::write_value(other, &mut json);
            // What stands between `{"S":` and the closing brace.
            let inside = json.get(kind.len() + 4..json.len().saturating_sub(1)).unwrap_or_default();
            format!("{kind} {}", String::from_utf8_lossy(inside))
        }
    }
}

fn members(expected: &[Attribute<'_>], found: &[Attribute<'_>], place: &Place<'_>, changes: &mut Vec<Change>) {
    let sorted = |attributes: &'_ [Attribute<'_>]| {
        let mut places: Vec<usize> = (0..attributes.len()).collect();
        places.sort_unstable_by_key(|at| attributes[*at].0);
        places
    };
    let mut others = sorted(found).into_iter().map(|at| &found[at]).peekable();
    for (name, value) in sorted(expected).into_iter().map(|at| &expected[at]) {
        while let Some((other, value)) = others.next_if(|(other, _)| other < name) {
            differ(None, Some(value), &Place::Name(place, other), changes);
        }
        let other = others.next_if(|(other, _)| other == name);
        differ(Some(value), other.map(|(_, value)| value), &Place::Name(place, name), changes);
    }
    for (other, value) in others {
        differ(None, Some(value), &Place::Name(place, other), changes);
    }
}

/// Recurses as deep as the values go, which the decoder bounds.
fn differ(expected: Option<&Value<'_>>, found: Option<&Value<'_>>, place: &Place<'_>, changes: &mut Vec<Change>) {
    match (expected, found) {
        (Some(expected), Some(found)) if expected.same_as(found) => {}
        (Some(Value::M(expected)), Some(Value::M(found))) => members(expected, found, place, changes),
        (Some(Value::L(expected)), Some(Value::L(found))) => {
            for at in 0..expected.len().max(found.len()) {
                differ(expected.get(at), found.get(at), &Place::Index(place, at), changes);
            }
        }
        _ => changes.push(Change { path: place.to_string(), expected: expected.map(in_words), found: found.map(in_words) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Arena;

    fn told(expected: &str, found: &str) -> Vec<String> {
        let arena = Arena::new();
        let lines = [expected, found].map(|item| format!("{{\"Item\":{item}}}"));
        let [expected, found] = lines.each_ref().map(|line| ddb_json::decode_item(line, &arena).unwrap());
        let text = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
        changes(&expected, &found)
            .into_iter()
            .map(|change| format!("{}: {} | {}", change.path, text(change.expected), text(change.found)))
            .collect()
    }

    #[test]
    fn attributes_that_are_added_removed_or_changed_are_told_in_the_order_of_their_names() {
        let expected = r#"{"plan":{"S":"free"},"n":{"N":"1.0"},"gone":{"NULL":true},"t":{"SS":["a","b"]},"x":{"B":"AAE="}}"#;
        let found = r#"{"t":{"SS":["b","a"]},"added":{"BOOL":true},"n":{"N":"1"},"plan":{"S":"pro"},"x":{"SS":["c"]}}"#;
        assert_eq!(
            told(expected, found),
            [r"added: - | BOOL true", "gone: NULL | -", r#"plan: S "free" | S "pro""#, r#"x: B "AAE=" | SS ["c"]"#]
        );
        assert_eq!(told(expected, expected), Vec::<String>::new());
    }

    #[test]
    fn maps_and_lists_are_looked_into() {
        let expected = r#"{"m":{"M":{"a.b":{"L":[{"N":"1"},{"N":"2"}]},"same":{"S":"s"}}},"l":{"L":[]}}"#;
        let found = r#"{"m":{"M":{"a.b":{"L":[{"N":"1"},{"S":"2"},{"M":{}}]},"same":{"S":"s"}}},"l":{"M":{}}}"#;
        assert_eq!(told(expected, found), ["l: L [] | M {}", r#"m."a.b"[1]: N 2 | S "2""#, r#"m."a.b"[2]: - | M {}"#]);
    }
}
