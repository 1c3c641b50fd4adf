//! Reading a table: what it is, all its items segment by segment, one item by its key. Reads are consistent.
//!
//! Items come as lines of `DynamoDB` JSON, so that whoever reads files reads them alike.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ConsumedCapacity, KeyType, ReturnConsumedCapacity, TableStatus};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::aws::dynamodb::DynamoDb;
use crate::aws::dynamodb::read_rate::ReadRate;
use crate::error::{Error, Kind, Result};

/// Bytes that a consistent read takes a unit for.
const UNIT_BYTES: f64 = 4096.0;

/// Units that a whole page of a scan, 1 MB, takes.
const PAGE_UNITS: f64 = 256.0;

/// What is known of a table before it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// The key in words: `PK (S, partition), SK (S, sort)`.
    pub key: String,
    /// Bytes of its items, up to six hours old.
    pub bytes: u64,
    /// Items, up to six hours old.
    pub items: u64,
}

/// One of the parts that a table is scanned in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// Items that came in one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// `{"Item":{…}}` a line.
    pub lines: Vec<u8>,
    /// How many items they are.
    pub items: u64,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// A string.
    S(String),
    /// A number as decimal text.
    N(String),
    /// Binary.
    B(Vec<u8>),
}

/// What readers of one table share: the cap, and how many they are.
#[derive(Clone, Copy, Debug)]
pub struct Pace<'r> {
    /// The cap.
    pub rate: &'r ReadRate,
    /// Readers that share it.
    pub readers: u32,
}

impl DynamoDb {
    /// Looks at a table; `None`: there is none.
    ///
    /// # Errors
    /// Kind `Service` when the service refuses, or the table cannot be read yet or any more.
    pub fn look(&self, table: &str) -> Result<Option<TableFacts>> {
        let send = async |client: &aws_sdk_dynamodb::Client| client.describe_table().table_name(table).send().await;
        let Some(answer) = self.ask("dynamodb:DescribeTable", table, &["ResourceNotFoundException"], &send)? else { return Ok(None) };
        let about = |error: Error| error.with("table", table).with("at", self.place());
        let Some(found) = answer.table() else {
            return Err(about(Error::new(Kind::Service, "an answer to DescribeTable without a table")));
        };
        if !matches!(found.table_status(), None | Some(TableStatus::Active | TableStatus::Updating)) {
            let status = found.table_status().map_or("unknown", TableStatus::as_str);
            return Err(about(Error::new(Kind::Service, "the table is not active")).with("found", status));
        }
        let kind = |name: &str| {
            let definition = found.attribute_definitions().iter().find(|definition| definition.attribute_name() == name);
            definition.map_or("?", |definition| definition.attribute_type().as_str())
        };
        let part = |element: &aws_sdk_dynamodb::types::KeySchemaElement| {
            let role = if *element.key_type() == KeyType::Hash { "partition" } else { "sort" };
            format!("{} ({}, {role})", element.attribute_name(), kind(element.attribute_name()))
        };
        let key: Vec<_> = found.key_schema().iter().map(part).collect();
        let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        Ok(Some(TableFacts { key: key.join(", "), bytes: count(found.table_size_bytes()), items: count(found.item_count()) }))
    }

    /// Reads a segment to its end, page by page, until `take` says that no more is wanted. Each page waits for the cap, where there is one.
    ///
    /// # Errors
    /// Kind `Service` when the service refuses, and what `take` says.
    pub fn scan(
        &self,
        table: &str,
        facts: &TableFacts,
        segment: Segment,
        pace: Option<Pace<'_>>,
        take: &mut dyn FnMut(Page) -> Result<bool>,
    ) -> Result<()> {
        let mut start: Option<HashMap<String, AttributeValue>> = None;
        let mut expectation = Expectation::of(facts, segment);
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        loop {
            let limit = pace.and_then(|pace| expectation.limit(pace));
            let expected = expectation.units(limit);
            if let Some(pace) = pace {
                pace.rate.wait_for(expected)?;
            }
            let send = async |client: &aws_sdk_dynamodb::Client| {
                client
                    .scan()
                    .table_name(table)
                    .consistent_read(true)
                    .segment(number(segment.number))
                    .total_segments(number(segment.of))
                    .return_consumed_capacity(ReturnConsumedCapacity::Total)
                    .set_limit(limit)
                    .set_exclusive_start_key(start.clone())
                    .send()
                    .await
            };
            let Some(mut answer) = self.ask("dynamodb:Scan", table, &[], &send)? else { return Ok(()) };
            // The service always gives a list, so an answer without one was cut on its way.
            let broken = |what: &str| {
                Error::new(Kind::Unavailable, what).with("action", "dynamodb:Scan").with("table", table).with("at", self.place())
            };
            if answer.items.is_none() {
                return Err(broken("an answer without items"));
            }
            let mut read = Page::default();
            for item in answer.items() {
                write_line(item, &mut read.lines).map_err(|error| error.with("table", table).with("at", self.place()))?;
                read.items += 1;
            }
            // Every answer was asked to say what it took; of a server that does not, the expectation must do.
            let units = answer.consumed_capacity().and_then(ConsumedCapacity::capacity_units).unwrap_or(expected);
            if let Some(pace) = pace {
                pace.rate.took(expected, units)?;
            }
            expectation.learn(units, read.items);
            let next = answer.last_evaluated_key.take().filter(|key| !key.is_empty());
            if next.is_some() && next == start {
                return Err(broken("an answer that leads to the same page again"));
            }
            start = next;
            if !take(read)? || start.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads one item, as a line; `None`: there is none under this key.
    ///
    /// # Errors
    /// Kind `Service` when the service refuses.
    pub fn get(&self, table: &str, key: &[(String, KeyPart)]) -> Result<Option<Vec<u8>>> {
        let value = |part: &KeyPart| match part {
            KeyPart::S(text) => AttributeValue::S(text.clone()),
            KeyPart::N(text) => AttributeValue::N(text.clone()),
            KeyPart::B(bytes) => AttributeValue::B(Blob::new(bytes.clone())),
        };
        let key: HashMap<_, _> = key.iter().map(|(name, part)| (name.clone(), value(part))).collect();
        let send = async |client: &aws_sdk_dynamodb::Client| {
            client.get_item().table_name(table).consistent_read(true).set_key(Some(key.clone())).send().await
        };
        let Some(answer) = self.ask("dynamodb:GetItem", table, &[], &send)? else { return Ok(None) };
        let Some(item) = answer.item() else { return Ok(None) };
        let mut line = Vec::new();
        write_line(item, &mut line)?;
        Ok(Some(line))
    }
}

/// What the next page of a segment is likely to take.
struct Expectation {
    units: f64,
    /// Bytes of an item, on average.
    average: f64,
}

impl Expectation {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn of(facts: &TableFacts, segment: Segment) -> Self {
        let units = facts.bytes as f64 / f64::from(segment.of.max(1)) / UNIT_BYTES;
        // A new table says that it is empty; then items are taken for large ones.
        let average = if facts.items == 0 { UNIT_BYTES } else { (facts.bytes as f64 / facts.items as f64).max(1.0) };
        Self { units: units.clamp(1.0, PAGE_UNITS), average }
    }

    /// How many items to ask for, so that a reader takes no more than half a second of its share of the cap at once; `None` where a
    /// whole page takes less.
    fn limit(&self, pace: Pace<'_>) -> Option<i32> {
        let share = f64::from(pace.rate.units()) / f64::from(pace.readers.max(1)) / 2.0;
        #[expect(clippy::cast_possible_truncation, reason = "it is between 1 and 256 times 4,096")]
        (share < PAGE_UNITS).then(|| (share * UNIT_BYTES / self.average).clamp(1.0, PAGE_UNITS * UNIT_BYTES) as i32)
    }

    fn units(&self, limit: Option<i32>) -> f64 {
        match limit {
            Some(limit) => self.units.min(f64::from(limit) * self.average / UNIT_BYTES).max(1.0),
            None => self.units,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn learn(&mut self, units: f64, items: u64) {
        self.units = units.clamp(1.0, PAGE_UNITS);
        if items > 0 {
            self.average = (units * UNIT_BYTES / items as f64).max(1.0);
        }
    }
}

fn write_line(item: &HashMap<String, AttributeValue>, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(b"{\"Item\":");
    write_members(item, out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn write_members(members: &HashMap<String, AttributeValue>, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(name, out);
        out.push(b':');
        write_value(value, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Recurses as deep as the value goes, which is as deep as the service lets it.
fn write_value(value: &AttributeValue, out: &mut Vec<u8>) -> Result<()> {
    let open = |kind: &str, out: &mut Vec<u8>| out.extend_from_slice(format!("{{\"{kind}\":").as_bytes());
    match value {
        AttributeValue::S(text) => {
            open("S", out);
            write_text(text, out);
        }
        AttributeValue::N(text) => {
            open("N", out);
            write_text(text, out);
        }
        AttributeValue::B(bytes) => {
            open("B", out);
            write_text(&STANDARD.encode(bytes), out);
        }
        AttributeValue::Bool(yes) => {
            open("BOOL", out);
            out.extend_from_slice(if *yes { b"true" } else { b"false" });
        }
        AttributeValue::Null(_) => {
            open("NULL", out);
            out.extend_from_slice(b"true");
        }
        AttributeValue::M(members) => {
            open("M", out);
            write_members(members, out)?;
        }
        AttributeValue::L(elements) => {
            open("L", out);
            write_elements(elements, out, write_value)?;
        }
        AttributeValue::Ss(texts) => {
            open("SS", out);
            write_elements(texts, out, infallible(|text: &String, out| write_text(text, out)))?;
        }
        AttributeValue::Ns(texts) => {
            open("NS", out);
            write_elements(texts, out, infallible(|text: &String, out| write_text(text, out)))?;
        }
        AttributeValue::Bs(members) => {
            open("BS", out);
            write_elements(members, out, infallible(|bytes: &Blob, out| write_text(&STANDARD.encode(bytes), out)))?;
        }
        _ => return Err(Error::new(Kind::Service, "the service gave a value of a type that is not known")),
    }
    out.push(b'}');
    Ok(())
}

fn infallible<T>(write: impl Fn(&T, &mut Vec<u8>)) -> impl Fn(&T, &mut Vec<u8>) -> Result<()> {
    move |value, out| {
        write(value, out);
        Ok(())
    }
}

fn write_elements<T>(elements: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>) -> Result<()>) -> Result<()> {
    out.push(b'[');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(element, out)?;
    }
    out.push(b']');
    Ok(())
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a text can always be written to memory");
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn an_item_of_all_types_is_a_line() {
        let members = HashMap::from([("a\"b".to_owned(), AttributeValue::Null(true))]);
        for (value, json) in [
            (AttributeValue::S("ü\n".to_owned()), r#"{"S":"ü\n"}"#),
            (AttributeValue::N("1.50".to_owned()), r#"{"N":"1.50"}"#),
            (AttributeValue::B(Blob::new(*b"\0\x01")), r#"{"B":"AAE="}"#),
            (AttributeValue::Bool(false), r#"{"BOOL":false}"#),
            (AttributeValue::M(members), r#"{"M":{"a\"b":{"NULL":true}}}"#),
            (AttributeValue::L(vec![AttributeValue::N("1".to_owned()), AttributeValue::L(vec![])]), r#"{"L":[{"N":"1"},{"L":[]}]}"#),
            (AttributeValue::Ss(vec!["a".to_owned(), String::new()]), r#"{"SS":["a",""]}"#),
            (AttributeValue::Ns(vec!["1".to_owned()]), r#"{"NS":["1"]}"#),
            (AttributeValue::Bs(vec![Blob::new(*b"\0\x01")]), r#"{"BS":["AAE="]}"#),
        ] {
            let mut line = Vec::new();
            write_line(&HashMap::from([("v".to_owned(), value)]), &mut line).unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), format!("{{\"Item\":{{\"v\":{json}}}}}\n"));
        }
    }

    #[test]
    fn a_reader_asks_for_no_more_than_half_a_second_of_its_share() {
        let facts = |bytes, items| TableFacts { key: String::new(), bytes, items };
        let rate = |units| ReadRate::new(NonZeroU32::new(units).unwrap());
        let segment = Segment { number: 0, of: 4 };
        for (table, units, readers, limit, expected) in [
            // Items of 1 KB: a share of 50 units is half a second of 100, and 200 items.
            (facts(100 << 20, 100 << 10), 100, 1, Some(200), 50.0),
            (facts(100 << 20, 100 << 10), 10_000, 2, None, 256.0),
            (facts(0, 0), 100, 1, Some(50), 1.0),
            (facts(8 << 10, 2), 1, 1, Some(1), 1.0),
        ] {
            let expectation = Expectation::of(&table, segment);
            let rate = rate(units);
            let found = expectation.limit(Pace { rate: &rate, readers });
            assert_eq!((found, expectation.units(found)), (limit, expected), "{table:?} {units}");
        }
        let mut expectation = Expectation::of(&facts(0, 0), segment);
        expectation.learn(100.0, 1);
        let rate = rate(100);
        assert_eq!(expectation.limit(Pace { rate: &rate, readers: 1 }), Some(1));
    }
}
