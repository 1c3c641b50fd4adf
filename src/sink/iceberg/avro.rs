//! Avro files with the schemas of Iceberg: the list of data files, and the list of such lists.
//!
//! Records are encoded and read by the Avro library; its writer of whole files is not used, since it draws their markers by lot. Equal
//! content has equal bytes here.

use std::io::Read;

use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use apache_avro::{Reader, Schema};
use serde_json::{Value as Json, json};

use crate::error::{Error, Kind, Result};

/// What stands at the start of each file.
const MAGIC: &[u8; 4] = b"Obj\x01";

/// The bytes between the blocks of a file.
pub(super) type Marker = [u8; 16];

/// A file with these records in one block.
pub(super) fn file(schema: &Json, metadata: &[(&str, String)], marker: Marker, records: Vec<Value>) -> Result<Vec<u8>> {
    let refused = |cause: apache_avro::Error| Error::new(Kind::Bug, "a record cannot be written as Avro").caused_by(cause);
    let parsed = Schema::parse(schema).map_err(refused)?;
    let writer = GenericDatumWriter::builder(&parsed).build().map_err(refused)?;
    let count = records.len();
    let mut block = Vec::new();
    for record in records {
        block.append(&mut writer.write_value_to_vec(record).map_err(refused)?);
    }

    let mut file = MAGIC.to_vec();
    let own = [("avro.codec", "null".to_owned()), ("avro.schema", schema.to_string())];
    put_long(own.len() + metadata.len(), &mut file);
    for (key, value) in own.iter().chain(metadata) {
        put_bytes(key.as_bytes(), &mut file);
        put_bytes(value.as_bytes(), &mut file);
    }
    put_long(0, &mut file);
    file.extend(marker);
    if count > 0 {
        put_long(count, &mut file);
        put_bytes(&block, &mut file);
        file.extend(marker);
    }
    Ok(file)
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_long(bytes.len(), out);
    out.extend(bytes);
}

/// A length in Avro's form: its sign in the lowest bit, seven bits a byte.
fn put_long(length: usize, out: &mut Vec<u8>) {
    let mut rest = (length as u64) << 1;
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// The records of a file that anybody wrote, each with the names of its fields.
pub(super) fn read(file: impl Read) -> std::result::Result<Vec<Vec<(String, Value)>>, apache_avro::Error> {
    let mut records = Vec::new();
    for record in Reader::new(file)? {
        if let Value::Record(fields) = record? {
            records.push(fields);
        }
    }
    Ok(records)
}

/// A value that may be absent, for a field whose schema says so.
pub(super) fn optional(value: Option<Value>) -> Value {
    match value {
        None => Value::Union(0, Box::new(Value::Null)),
        Some(value) => Value::Union(1, Box::new(value)),
    }
}

/// A record of these fields.
pub(super) fn record<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A field that must be there.
pub(super) fn field(id: i32, name: &str, kind: impl Into<Json>) -> Json {
    json!({ "name": name, "type": kind.into(), "field-id": id })
}

/// A field that may be null.
pub(super) fn optional_field(id: i32, name: &str, kind: impl Into<Json>) -> Json {
    json!({ "name": name, "type": ["null", kind.into()], "default": null, "field-id": id })
}

/// A map from field ids, which Avro has as an array of records.
pub(super) fn map_by_id(key: i32, value: i32, kind: &str) -> Json {
    json!({
        "type": "array",
        "logicalType": "map",
        "items": { "type": "record", "name": format!("k{key}_v{value}"), "fields": [field(key, "key", "int"), field(value, "value", kind)] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back_by_the_library_and_has_the_same_bytes_each_time() {
        let schema = json!({ "type": "record", "name": "one", "fields": [field(1, "name", "string"), optional_field(2, "count", "long")] });
        let make = || {
            let records = (0..300).map(|at| {
                record([("name", Value::String(format!("row {at}"))), ("count", optional((at % 2 == 0).then_some(Value::Long(at))))])
            });
            file(&schema, &[("format-version", "2".to_owned())], [7; 16], records.collect()).unwrap()
        };
        assert_eq!(make(), make());
        let bytes = make();
        let reader = Reader::new(bytes.as_slice()).unwrap();
        assert_eq!(reader.user_metadata()["format-version"], b"2");
        let records = read(bytes.as_slice()).unwrap();
        assert_eq!(records.len(), 300);
        assert_eq!(records[2], [("name".to_owned(), Value::String("row 2".into())), ("count".to_owned(), optional(Some(Value::Long(2))))]);
        assert_eq!(records[3][1].1, optional(None));
    }

    #[test]
    fn a_file_without_records_is_a_file() {
        let schema = json!({ "type": "record", "name": "one", "fields": [field(1, "name", "string")] });
        assert!(read(file(&schema, &[], [1; 16], Vec::new()).unwrap().as_slice()).unwrap().is_empty());
    }
}
