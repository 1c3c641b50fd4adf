//! One form for all spellings of an item: numbers by value, attributes and members of sets in any order.
//!
//! Two items have the same canonical bytes just where `DynamoDB` stores the same item. The bytes are for comparing only; nothing reads
//! them back.

use sha2::{Digest as _, Sha256};

use crate::model::number::{self, Decimal};
use crate::model::{Attribute, Item, Value};

/// Appends the canonical bytes of an item.
pub fn write_item(item: &Item<'_>, out: &mut Vec<u8>) {
    write_attributes(item.attributes(), out);
}

/// The first 128 bits of the SHA-256 of an item's canonical bytes. `scratch` is emptied and used, so that many items need no memory of
/// their own.
#[must_use]
pub fn hash_item(item: &Item<'_>, scratch: &mut Vec<u8>) -> u128 {
    scratch.clear();
    write_item(item, scratch);
    Sha256::digest(&*scratch)[..16].iter().fold(0, |hash, byte| hash << 8 | u128::from(*byte))
}

fn write_attributes(attributes: &[Attribute<'_>], out: &mut Vec<u8>) {
    write_length(attributes.len(), out);
    let mut sorted: Vec<&Attribute<'_>> = attributes.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    for (name, value) in sorted {
        write_bytes(name.as_bytes(), out);
        write_value(value, out);
    }
}

/// Recurses as deep as the value goes, which the decoder bounds.
fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(value.kind().descriptor().as_bytes());
    out.push(b':');
    match value {
        Value::S(text) => write_bytes(text.as_bytes(), out),
        Value::N(text) => write_number(text, out),
        Value::B(bytes) => write_bytes(bytes, out),
        Value::Bool(yes) => out.push(u8::from(*yes)),
        Value::Null => {}
        Value::M(members) => write_attributes(members, out),
        Value::L(elements) => {
            write_length(elements.len(), out);
            elements.iter().for_each(|element| write_value(element, out));
        }
        Value::Ss(members) => write_set(members.iter().map(|member| member.as_bytes().to_vec()).collect(), out),
        Value::Bs(members) => write_set(members.iter().map(|member| member.to_vec()).collect(), out),
        Value::Ns(members) => {
            let canonical = |member: &&str| {
                let mut bytes = Vec::new();
                write_number(member, &mut bytes);
                bytes
            };
            write_set(members.iter().map(canonical).collect(), out);
        }
    }
}

fn write_set(mut members: Vec<Vec<u8>>, out: &mut Vec<u8>) {
    members.sort_unstable();
    write_length(members.len(), out);
    for member in members {
        write_bytes(&member, out);
    }
}

fn write_number(text: &str, out: &mut Vec<u8>) {
    if number::is_plain(text) {
        return write_bytes(text.as_bytes(), out);
    }
    // What is out of range has no spelling of reasonable length; no table holds it, so its text will do.
    match Decimal::parse(text).filter(|decimal| decimal.check().is_ok()) {
        Some(decimal) => write_bytes(decimal.plain().as_bytes(), out),
        None => write_bytes(text.as_bytes(), out),
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn write_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u64).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ddb_json::decode_line;
    use crate::codec::{Decoded, Record};
    use crate::model::Arena;

    fn hash(attributes: &str) -> u128 {
        let (arena, line) = (Arena::new(), format!("{{\"Item\":{{{attributes}}}}}"));
        let Ok(Decoded { record: Record::Item(item), .. }) = decode_line(&line, &arena) else { panic!("{line}") };
        hash_item(&item, &mut vec![1, 2, 3])
    }

    #[test]
    fn spellings_of_one_item_are_equal() {
        for (one, other) in [
            (r#""a":{"S":"x"},"b":{"N":"1"}"#, r#""b":{"N":"1.0"},"a":{"S":"x"}"#),
            (r#""a":{"N":"0.00"}"#, r#""a":{"N":"-0"}"#),
            (r#""a":{"N":"1E2"}"#, r#""a":{"N":"100"}"#),
            (r#""a":{"SS":["x","y"]}"#, r#""a":{"SS":["y","x"]}"#),
            (r#""a":{"NS":["10","2"]}"#, r#""a":{"NS":["2.0","1e1"]}"#),
            (r#""a":{"BS":["AA==","AQ=="]}"#, r#""a":{"BS":["AQ==","AA=="]}"#),
            (r#""a":{"M":{"p":{"NULL":true},"q":{"L":[{"N":"5.0"}]}}}"#, r#""a":{"M":{"q":{"L":[{"N":"5"}]},"p":{"NULL":true}}}"#),
        ] {
            assert_eq!(hash(one), hash(other), "{one} {other}");
        }
    }

    #[test]
    fn different_items_are_not() {
        let items = [
            "",
            r#""a":{"S":"x"}"#,
            r#""a":{"S":"y"}"#,
            r#""a":{"S":""}"#,
            r#""b":{"S":"x"}"#,
            r#""a":{"S":"1"}"#,
            r#""a":{"N":"1"}"#,
            r#""a":{"B":"MQ=="}"#,
            r#""a":{"BOOL":true}"#,
            r#""a":{"BOOL":false}"#,
            r#""a":{"NULL":true}"#,
            r#""a":{"L":[]}"#,
            r#""a":{"M":{}}"#,
            r#""a":{"L":[{"S":"x"},{"S":"y"}]}"#,
            r#""a":{"L":[{"S":"y"},{"S":"x"}]}"#,
            r#""a":{"SS":["x","y"]}"#,
            r#""a":{"SS":["xy"]}"#,
            r#""a":{"S":"x"},"b":{"S":""}"#,
        ];
        let mut hashes: Vec<_> = items.iter().map(|item| hash(item)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), items.len());
    }
}
