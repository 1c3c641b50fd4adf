//! Items as the AWS SDK gives them.

use std::collections::HashMap;
use std::hash::BuildHasher;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::model::{Arena, Item, Value};

/// The item, borrowing from `attributes`. `None` where it holds a type that this version of the SDK does not know.
#[must_use]
pub fn item_of<'a, S: BuildHasher>(attributes: &'a HashMap<String, AttributeValue, S>, arena: &'a Arena) -> Option<Item<'a>> {
    let mut item = Item::new_in(arena);
    for (name, value) in attributes {
        item.push(name, value_of(value, arena)?);
    }
    Some(item)
}

/// Recurses as deep as the value goes, which the service bounds.
fn value_of<'a>(value: &'a AttributeValue, arena: &'a Arena) -> Option<Value<'a>> {
    let texts = |members: &'a [String]| &*arena.alloc_slice_fill_iter(members.iter().map(String::as_str));
    Some(match value {
        AttributeValue::S(text) => Value::S(text),
        AttributeValue::N(text) => Value::N(text),
        AttributeValue::B(bytes) => Value::B(bytes.as_ref()),
        AttributeValue::Bool(yes) => Value::Bool(*yes),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::Ss(members) => Value::Ss(texts(members)),
        AttributeValue::Ns(members) => Value::Ns(texts(members)),
        AttributeValue::Bs(members) => Value::Bs(arena.alloc_slice_fill_iter(members.iter().map(AsRef::as_ref))),
        AttributeValue::L(elements) => {
            let elements = elements.iter().map(|element| value_of(element, arena)).collect::<Option<Vec<_>>>()?;
            Value::L(arena.alloc_slice_copy(&elements))
        }
        AttributeValue::M(members) => {
            let member = |(name, value): (&'a String, &'a AttributeValue)| Some((name.as_str(), value_of(value, arena)?));
            let members = members.iter().map(member).collect::<Option<Vec<_>>>()?;
            Value::M(arena.alloc_slice_copy(&members))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::primitives::Blob;

    use super::*;
    use crate::codec::ddb_json::{decode_item, write_item};

    #[test]
    fn every_type_comes_through() {
        let value = AttributeValue::M(HashMap::from([(
            "all".to_owned(),
            AttributeValue::L(vec![
                AttributeValue::S("é".to_owned()),
                AttributeValue::N("1.50".to_owned()),
                AttributeValue::B(Blob::new([0, 255])),
                AttributeValue::Bool(true),
                AttributeValue::Null(true),
                AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()]),
                AttributeValue::Ns(vec!["1".to_owned()]),
                AttributeValue::Bs(vec![Blob::new([1])]),
            ]),
        )]));
        let attributes = HashMap::from([("m".to_owned(), value)]);
        let arena = Arena::new();
        let expected = r#"{"m":{"M":{"all":{"L":[{"S":"é"},{"N":"1.50"},{"B":"AP8="},{"BOOL":true},{"NULL":true},{"SS":["a","b"]},{"NS":["1"]},{"BS":["AQ=="]}]}}}}"#;
        let mut json = Vec::new();
        write_item(&item_of(&attributes, &arena).unwrap(), &mut json);
        assert_eq!(std::str::from_utf8(&json).unwrap(), expected);
        assert_eq!(item_of(&attributes, &arena).unwrap().attributes(), decode_item(expected, &arena).unwrap().attributes());
    }
}
