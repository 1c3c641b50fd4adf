//! Puts that depend on what is in the table: each is a `PutItem` of its own, since `BatchWriteItem` takes no condition.
//!
//! When a request is sent, and when it is sent again, is decided elsewhere.

use std::collections::HashMap;
use std::ops::Range;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::codec::attributes::item_of;
use crate::codec::{canonical, ddb_json};
use crate::error::{Reason, Stage};
use crate::model::{Arena, Row, Value};
use crate::sink::batch_write::request::ServiceTable;

/// What a put may replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Whatever has its key.
    #[default]
    None,
    /// Nothing: an item is written where none has its key.
    IfAbsent,
    /// An item whose attribute of this name is less, or which has none. Values of two types cannot be compared, so an item whose
    /// attribute has another type than the new one's stays.
    IfNewer(String),
}

impl Condition {
    /// Why an item cannot be put under this condition, whatever is in the table.
    pub(super) fn refuse(&self, row: &Row<'_>) -> Option<Reason> {
        let Condition::IfNewer(name) = self else { return None };
        let message = match row.item.get(name) {
            Some(Value::S(_) | Value::N(_) | Value::B(_)) => return None,
            Some(other) => {
                format!("attribute `{name}` is {}; --if-newer compares S, N and B", other.kind().descriptor())
            }
            None => format!("no attribute `{name}`, which --if-newer compares"),
        };
        Some(Reason::new(Stage::Write, "if-newer", message))
    }

    /// The body of the request. `value` is what the attribute of `--if-newer` has in the new item, as JSON.
    pub(super) fn body(&self, table: &ServiceTable, item: &[u8], value: &[u8]) -> Vec<u8> {
        let mut body = b"{\"TableName\":".to_vec();
        ddb_json::write_string(&table.name, &mut body);
        body.extend_from_slice(b",\"Item\":");
        body.extend_from_slice(item);
        match self {
            Condition::None => {}
            Condition::IfAbsent => {
                body.extend_from_slice(b",\"ConditionExpression\":\"attribute_not_exists(#a)\",\"ExpressionAttributeNames\":{\"#a\":");
                ddb_json::write_string(&table.key.partition.name, &mut body);
                body.push(b'}');
            }
            Condition::IfNewer(name) => {
                body.extend_from_slice(
                    b",\"ConditionExpression\":\"attribute_not_exists(#a) OR #a < :new\",\"ExpressionAttributeNames\":{\"#a\":",
                );
                ddb_json::write_string(name, &mut body);
                body.extend_from_slice(b"},\"ExpressionAttributeValues\":{\":new\":");
                body.extend_from_slice(value);
                body.push(b'}');
            }
        }
        body.extend_from_slice(b",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\",\"ReturnConsumedCapacity\":\"INDEXES\"}");
        body
    }
}

/// What a condition needs to know of the items of a chunk, each by its place among the puts. Empty where there is no condition.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Canonical hashes of the items.
    hashes: Vec<u128>,
    /// What the attribute of `--if-newer` has in each item, as JSON, one after the other.
    values: Vec<u8>,
    value: Vec<Range<usize>>,
}

impl Known {
    /// Looks at the items of the puts, in order.
    pub(super) fn of(condition: &Condition, rows: &[&Row<'_>]) -> Self {
        let mut known = Self::default();
        if *condition == Condition::None {
            return known;
        }
        let mut scratch = Vec::new();
        for row in rows {
            known.hashes.push(canonical::hash_item(&row.item, &mut scratch));
            let start = known.values.len();
            if let Condition::IfNewer(name) = condition
                && let Some(value) = row.item.get(name)
            {
                ddb_json::write_value(&value, &mut known.values);
            }
            known.value.push(start..known.values.len());
        }
        known
    }

    pub(super) fn hash(&self, at: usize) -> u128 {
        self.hashes[at]
    }

    pub(super) fn value(&self, at: usize) -> &[u8] {
        &self.values[self.value[at].clone()]
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.len() + self.hashes.len() * size_of::<u128>()
    }
}

/// The canonical hash of an item as the SDK gives it. `None` where it holds a type that this version of the SDK does not know.
pub(super) fn hash(attributes: &HashMap<String, AttributeValue>) -> Option<u128> {
    let arena = Arena::new();
    Some(canonical::hash_item(&item_of(attributes, &arena)?, &mut Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ddb_json::decode_line;
    use crate::codec::{Decoded, Record};
    use crate::model::{FileId, Item, KeyAttribute, KeySchema, KeyType, Origin, Raw, Value};

    fn table() -> ServiceTable {
        let partition = KeyAttribute { name: "P\"K".to_owned(), kind: KeyType::S };
        ServiceTable { name: "docs".to_owned(), key: KeySchema { partition, sort: None } }
    }

    #[test]
    fn a_body_says_under_which_condition_the_item_is_put() {
        let body = |condition: &Condition| {
            serde_json::from_slice::<serde_json::Value>(&condition.body(&table(), br#"{"v":{"N":"7"}}"#, br#"{"N":"7"}"#)).unwrap()
        };
        let absent = body(&Condition::IfAbsent);
        assert_eq!([&absent["TableName"], &absent["Item"]["v"]["N"]], ["docs", "7"]);
        assert_eq!(absent["ConditionExpression"], "attribute_not_exists(#a)");
        assert_eq!(absent["ExpressionAttributeNames"]["#a"], "P\"K");
        let newer = body(&Condition::IfNewer("updated at".to_owned()));
        assert_eq!(newer["ConditionExpression"], "attribute_not_exists(#a) OR #a < :new");
        assert_eq!([&newer["ExpressionAttributeNames"]["#a"], &newer["ExpressionAttributeValues"][":new"]["N"]], ["updated at", "7"]);
    }

    #[test]
    fn an_item_that_cannot_be_compared_is_refused() {
        let arena = Arena::new();
        let reason = |name: &'static str, value| {
            let mut item = Item::new_in(&arena);
            item.push(name, value);
            let origin = Origin { file: FileId(0), line: 1 };
            let row = Row { origin, item, captures: &[], source: Raw::json(b"{}"), change: None, size: 0 };
            Condition::IfNewer("v".to_owned()).refuse(&row).map(|reason| reason.to_string())
        };
        assert_eq!(reason("v", Value::N("1")), None);
        assert_eq!(reason("v", Value::S("")), None);
        assert_eq!(reason("v", Value::B(b"x")), None);
        assert_eq!(reason("v", Value::Null).unwrap(), "write/if-newer: attribute `v` is NULL; --if-newer compares S, N and B");
        assert_eq!(reason("V", Value::N("1")).unwrap(), "write/if-newer: no attribute `v`, which --if-newer compares");
    }

    #[test]
    fn an_item_from_the_service_has_the_hash_of_the_one_that_was_written() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let number = |text: &str| AttributeValue::N(text.to_owned());
        let attributes = HashMap::from([
            ("s".to_owned(), text("x")),
            ("n".to_owned(), number("1")),
            ("l".to_owned(), AttributeValue::L(vec![AttributeValue::Null(true), AttributeValue::Bool(true)])),
            ("m".to_owned(), AttributeValue::M(HashMap::from([("b".to_owned(), AttributeValue::B(vec![0].into()))]))),
            ("ns".to_owned(), AttributeValue::Ns(vec!["2".to_owned(), "1".to_owned()])),
            ("ss".to_owned(), AttributeValue::Ss(vec!["b".to_owned(), "a".to_owned()])),
            ("bs".to_owned(), AttributeValue::Bs(vec![vec![1].into(), vec![0].into()])),
        ]);
        let line = r#"{"Item":{"bs":{"BS":["AA==","AQ=="]},"l":{"L":[{"NULL":true},{"BOOL":true}]},"m":{"M":{"b":{"B":"AA=="}}},"n":{"N":"1.0"},"ns":{"NS":["1","2"]},"s":{"S":"x"},"ss":{"SS":["a","b"]}}}"#;
        let arena = Arena::new();
        let Ok(Decoded { record: Record::Item(item), .. }) = decode_line(line, &arena) else { panic!("{line}") };
        assert_eq!(hash(&attributes), Some(canonical::hash_item(&item, &mut Vec::new())));
    }
}
