//! The requests that take a put back, each on the condition that the item is still the one that was just read.

use crate::codec::ddb_json::{write_string, write_value};
use crate::model::{Attribute, Item};

/// The most attributes that a condition compares. An expression has at most 300 operators, one for each comparison and one between two, and
/// at most 4 KB; so many comparisons take 279 and some 2.2 KB (AWS, *Quotas in Amazon `DynamoDB`*, expressions).
const COMPARED: usize = 140;

/// A `PutItem` of `old`, an item as JSON, over `current`.
pub(super) fn put(table: &str, old: &[u8], key: &Item<'_>, current: &Item<'_>) -> Vec<u8> {
    request(table, b"\"Item\":", old, key, current)
}

/// A `DeleteItem` of `current`. `key_json` is the key as JSON.
pub(super) fn delete(table: &str, key_json: &[u8], key: &Item<'_>, current: &Item<'_>) -> Vec<u8> {
    request(table, b"\"Key\":", key_json, key, current)
}

fn request(table: &str, name: &[u8], value: &[u8], key: &Item<'_>, current: &Item<'_>) -> Vec<u8> {
    let mut body = b"{\"TableName\":".to_vec();
    write_string(table, &mut body);
    body.push(b',');
    body.extend_from_slice(name);
    body.extend_from_slice(value);
    body.push(b',');
    write_condition(key, current, &mut body);
    body.extend_from_slice(b",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
    body
}

/// That there is an item with the attributes of `current`. The key is given by the request already.
fn write_condition(key: &Item<'_>, current: &Item<'_>, body: &mut Vec<u8>) {
    let is_key = |name: &str| key.get(name).is_some();
    let compared: Vec<&Attribute<'_>> = current.attributes().iter().filter(|(name, _)| !is_key(name)).take(COMPARED).collect();
    if compared.is_empty() {
        body.extend_from_slice(b"\"ConditionExpression\":\"attribute_exists(#0)\",\"ExpressionAttributeNames\":{\"#0\":");
        write_string(key.attributes().first().map_or("", |(name, _)| name), body);
        body.push(b'}');
        return;
    }
    let terms: Vec<_> = (0..compared.len()).map(|at| format!("#{at} = :{at}")).collect();
    body.extend_from_slice(format!("\"ConditionExpression\":\"{}\",\"ExpressionAttributeNames\":{{", terms.join(" AND ")).as_bytes());
    for (at, (name, _)) in compared.iter().enumerate() {
        body.extend_from_slice(format!("{}\"#{at}\":", if at > 0 { "," } else { "" }).as_bytes());
        write_string(name, body);
    }
    body.extend_from_slice(b"},\"ExpressionAttributeValues\":{");
    for (at, (_, value)) in compared.iter().enumerate() {
        body.extend_from_slice(format!("{}\":{at}\":", if at > 0 { "," } else { "" }).as_bytes());
        write_value(value, body);
    }
    body.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ddb_json::decode_item;
    use crate::model::{Arena, Value};

    #[test]
    fn a_condition_compares_all_attributes_but_the_key() {
        let arena = Arena::new();
        let item = |text: &'static str| decode_item(text, &arena).unwrap();
        let key = item(r#"{"PK":{"S":"a"}}"#);
        let current = item(r#"{"PK":{"S":"a"},"n":{"N":"1.0"},"say \"x\"":{"SS":["p","q"]}}"#);
        let body = String::from_utf8(delete("docs", br#"{"PK":{"S":"a"}}"#, &key, &current)).unwrap();
        let expected = r##"{"TableName":"docs","Key":{"PK":{"S":"a"}},"ConditionExpression":"#0 = :0 AND #1 = :1","ExpressionAttributeNames":{"#0":"n","#1":"say \"x\""},"ExpressionAttributeValues":{":0":{"N":"1.0"},":1":{"SS":["p","q"]}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}"##;
        assert_eq!(body, expected);
        let body = String::from_utf8(put("docs", b"{}", &key, &key)).unwrap();
        let expected = r##"{"TableName":"docs","Item":{},"ConditionExpression":"attribute_exists(#0)","ExpressionAttributeNames":{"#0":"PK"},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}"##;
        assert_eq!(body, expected);
    }

    #[test]
    fn a_condition_stays_within_what_an_expression_may_have() {
        let arena = Arena::new();
        let mut current = Item::new_in(&arena);
        for at in 0..500 {
            current.push(arena.alloc_str(&format!("attribute{at}")), Value::Bool(true));
        }
        let key = Item::new_in(&arena);
        let body: serde_json::Value = serde_json::from_slice(&put("docs", b"{}", &key, &current)).unwrap();
        let expression = body["ConditionExpression"].as_str().unwrap();
        let operators = expression.matches('=').count() + expression.matches("AND").count();
        assert!(operators <= 300 && expression.len() <= 4096, "{operators} operators, {} bytes", expression.len());
    }
}
