//! The lists of a snapshot: its data files, and the lists of all data files that it has.

use apache_avro::types::Value;
use serde_json::{Value as Json, json};

use super::avro::{self, Marker, field, map_by_id, optional, optional_field, record};
use super::stats::Stats;
use crate::error::{Error, Kind, Result};
use crate::store::Location;

/// Status of a data file that the snapshot adds.
const ADDED: i32 = 1;

/// A data file.
#[derive(Debug)]
pub(super) struct DataFile {
    /// Where it lies, from the root.
    pub(super) address: String,
    pub(super) items: u64,
    pub(super) bytes: u64,
    pub(super) stats: Stats,
}

/// One line of the list of lists.
#[derive(Debug)]
pub(super) struct ManifestLine(Value);

/// What is the same for both lists of a snapshot.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) id: i64,
    pub(super) parent: Option<i64>,
    pub(super) sequence: i64,
    pub(super) marker: Marker,
}

/// The list of these data files, for a table of this schema.
pub(super) fn manifest(snapshot: &Snapshot, schema: &Json, files: &[DataFile]) -> Result<Vec<u8>> {
    let metadata = [
        ("schema", schema.to_string()),
        ("schema-id", schema["schema-id"].to_string()),
        ("partition-spec", "[]".to_owned()),
        ("partition-spec-id", "0".to_owned()),
        ("format-version", "2".to_owned()),
        ("content", "data".to_owned()),
    ];
    let entry = |file: &DataFile| {
        let DataFile { address, items, bytes, stats } = file;
        let by_id = |pairs: &[(i32, i64)]| map(pairs.iter().map(|(id, count)| (*id, Value::Long(*count))));
        let bounds = |pairs: &[(i32, Vec<u8>)]| map(pairs.iter().map(|(id, bound)| (*id, Value::Bytes(bound.clone()))));
        let offsets = stats.split_offsets.iter().map(|offset| Value::Long(*offset)).collect::<Vec<_>>();
        record([
            ("status", Value::Int(ADDED)),
            ("snapshot_id", optional(Some(Value::Long(snapshot.id)))),
            // Both numbers are those of the list of lists.
            ("sequence_number", optional(None)),
            ("file_sequence_number", optional(None)),
            (
                "data_file",
                record([
                    ("content", Value::Int(0)),
                    ("file_path", Value::String(address.clone())),
                    ("file_format", Value::String("PARQUET".to_owned())),
                    ("partition", Value::Record(Vec::new())),
                    ("record_count", long(*items)),
                    ("file_size_in_bytes", long(*bytes)),
                    ("column_sizes", by_id(&stats.sizes)),
                    ("value_counts", by_id(&stats.values)),
                    ("null_value_counts", by_id(&stats.nulls)),
                    ("nan_value_counts", optional(None)),
                    ("lower_bounds", bounds(&stats.lower)),
                    ("upper_bounds", bounds(&stats.upper)),
                    ("key_metadata", optional(None)),
                    ("split_offsets", optional((!offsets.is_empty()).then_some(Value::Array(offsets)))),
                    ("equality_ids", optional(None)),
                    ("sort_order_id", optional(Some(Value::Int(0)))),
                ]),
            ),
        ])
    };
    avro::file(&manifest_schema(), &metadata, snapshot.marker, files.iter().map(entry).collect())
}

/// A map by field id; absent where it is empty.
fn map(pairs: impl Iterator<Item = (i32, Value)>) -> Value {
    let pairs: Vec<_> = pairs.map(|(id, value)| record([("key", Value::Int(id)), ("value", value)])).collect();
    optional((!pairs.is_empty()).then_some(Value::Array(pairs)))
}

fn long(number: u64) -> Value {
    Value::Long(i64::try_from(number).unwrap_or(i64::MAX))
}

impl ManifestLine {
    /// The line of a manifest with these files, which has so many bytes.
    pub(super) fn of(snapshot: &Snapshot, address: String, bytes: usize, files: &[DataFile]) -> Self {
        let rows = files.iter().map(|file| file.items).sum();
        Self(record([
            ("manifest_path", Value::String(address)),
            ("manifest_length", long(bytes as u64)),
            ("partition_spec_id", Value::Int(0)),
            ("content", Value::Int(0)),
            ("sequence_number", Value::Long(snapshot.sequence)),
            ("min_sequence_number", Value::Long(snapshot.sequence)),
            ("added_snapshot_id", Value::Long(snapshot.id)),
            ("added_files_count", Value::Int(i32::try_from(files.len()).unwrap_or(i32::MAX))),
            ("existing_files_count", Value::Int(0)),
            ("deleted_files_count", Value::Int(0)),
            ("added_rows_count", long(rows)),
            ("existing_rows_count", Value::Long(0)),
            ("deleted_rows_count", Value::Long(0)),
            ("partitions", optional(None)),
            ("key_metadata", optional(None)),
        ]))
    }

    /// The lines of a list that anybody wrote.
    ///
    /// # Errors
    /// Kind `Input` when it cannot be read or understood.
    pub(super) fn read(place: &Location) -> Result<Vec<Self>> {
        let wrong = || Error::new(Kind::Input, "the list of the table's files cannot be read").with("file", place);
        let bytes = place.read_whole()?.ok_or_else(|| wrong().with("found", "no such file"))?;
        let records = avro::read(bytes.as_slice()).map_err(|cause| wrong().caused_by(cause))?;
        let line = |record: Vec<(String, Value)>| {
            let line = Self::from_record(&record);
            line.map_err(|missing| wrong().with("found", format_args!("a line without {missing}")))
        };
        records.into_iter().map(line).collect()
    }

    fn from_record(record: &[(String, Value)]) -> std::result::Result<Self, &'static str> {
        let get = |name: &str| {
            record.iter().find(|(known, _)| known == name).map(|(_, value)| match value {
                Value::Union(_, value) => value.as_ref(),
                value => value,
            })
        };
        let int = |name: &'static str| match get(name) {
            Some(Value::Int(number)) => Ok(*number),
            _ => Err(name),
        };
        // Before version 2 of the format the numbers of files had other names.
        let count = |name: &'static str, old: &'static str| int(name).or_else(|_| int(old)).map(Value::Int);
        let long = |name: &'static str| match get(name) {
            Some(Value::Long(number)) => Ok(Value::Long(*number)),
            _ => Err(name),
        };
        if int("partition_spec_id")? != 0
            || get("partitions").is_some_and(|parts| matches!(parts, Value::Array(parts) if !parts.is_empty()))
        {
            return Err("plain, unpartitioned files");
        }
        let path = match get("manifest_path") {
            Some(Value::String(path)) => path.clone(),
            _ => return Err("manifest_path"),
        };
        let key = match get("key_metadata") {
            Some(Value::Bytes(key)) => Some(Value::Bytes(key.clone())),
            _ => None,
        };
        Ok(Self(self::record([
            ("manifest_path", Value::String(path)),
            ("manifest_length", long("manifest_length")?),
            ("partition_spec_id", Value::Int(0)),
            ("content", Value::Int(int("content").unwrap_or(0))),
            ("sequence_number", long("sequence_number")?),
            ("min_sequence_number", long("min_sequence_number")?),
            ("added_snapshot_id", long("added_snapshot_id")?),
            ("added_files_count", count("added_files_count", "added_data_files_count")?),
            ("existing_files_count", count("existing_files_count", "existing_data_files_count")?),
            ("deleted_files_count", count("deleted_files_count", "deleted_data_files_count")?),
            ("added_rows_count", long("added_rows_count")?),
            ("existing_rows_count", long("existing_rows_count")?),
            ("deleted_rows_count", long("deleted_rows_count")?),
            ("partitions", optional(None)),
            ("key_metadata", optional(key)),
        ])))
    }
}

/// The list of all lists of a snapshot.
pub(super) fn manifest_list(snapshot: &Snapshot, lines: Vec<ManifestLine>) -> Result<Vec<u8>> {
    let metadata = [
        ("snapshot-id", snapshot.id.to_string()),
        ("parent-snapshot-id", snapshot.parent.map_or("null".to_owned(), |parent| parent.to_string())),
        ("sequence-number", snapshot.sequence.to_string()),
        ("format-version", "2".to_owned()),
    ];
    avro::file(&manifest_list_schema(), &metadata, snapshot.marker, lines.into_iter().map(|ManifestLine(line)| line).collect())
}

fn manifest_schema() -> Json {
    let data_file = json!({
        "type": "record",
        "name": "r2",
        "fields": [
            field(134, "content", "int"),
            field(100, "file_path", "string"),
            field(101, "file_format", "string"),
            field(102, "partition", json!({ "type": "record", "name": "r102", "fields": [] })),
            field(103, "record_count", "long"),
            field(104, "file_size_in_bytes", "long"),
            optional_field(108, "column_sizes", map_by_id(117, 118, "long")),
            optional_field(109, "value_counts", map_by_id(119, 120, "long")),
            optional_field(110, "null_value_counts", map_by_id(121, 122, "long")),
            optional_field(137, "nan_value_counts", map_by_id(138, 139, "long")),
            optional_field(125, "lower_bounds", map_by_id(126, 127, "bytes")),
            optional_field(128, "upper_bounds", map_by_id(129, 130, "bytes")),
            optional_field(131, "key_metadata", "bytes"),
            optional_field(132, "split_offsets", json!({ "type": "array", "items": "long", "element-id": 133 })),
            optional_field(135, "equality_ids", json!({ "type": "array", "items": "int", "element-id": 136 })),
            optional_field(140, "sort_order_id", "int"),
        ],
    });
    json!({
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            field(0, "status", "int"),
            optional_field(1, "snapshot_id", "long"),
            optional_field(3, "sequence_number", "long"),
            optional_field(4, "file_sequence_number", "long"),
            field(2, "data_file", data_file),
        ],
    })
}

fn manifest_list_schema() -> Json {
    let partition = json!({
        "type": "record",
        "name": "r508",
        "fields": [
            field(509, "contains_null", "boolean"),
            optional_field(518, "contains_nan", "boolean"),
            optional_field(510, "lower_bound", "bytes"),
            optional_field(511, "upper_bound", "bytes"),
        ],
    });
    json!({
        "type": "record",
        "name": "manifest_file",
        "fields": [
            field(500, "manifest_path", "string"),
            field(501, "manifest_length", "long"),
            field(502, "partition_spec_id", "int"),
            field(517, "content", "int"),
            field(515, "sequence_number", "long"),
            field(516, "min_sequence_number", "long"),
            field(503, "added_snapshot_id", "long"),
            field(504, "added_files_count", "int"),
            field(505, "existing_files_count", "int"),
            field(506, "deleted_files_count", "int"),
            field(512, "added_rows_count", "long"),
            field(513, "existing_rows_count", "long"),
            field(514, "deleted_rows_count", "long"),
            optional_field(507, "partitions", json!({ "type": "array", "items": partition, "element-id": 508 })),
            optional_field(519, "key_metadata", "bytes"),
        ],
    })
}

#[cfg(test)]
mod tests {
    use apache_avro::{Codec, DeflateSettings, Schema, Writer};

    use super::*;

    /// A list as another program writes it: compressed, fields in another order, one more, one of an older name.
    fn foreign(partitions: &str) -> Vec<u8> {
        let schema = json!({ "type": "record", "name": "manifest_file", "fields": [
            field(502, "partition_spec_id", "int"),
            field(500, "manifest_path", "string"),
            field(501, "manifest_length", "long"),
            field(517, "content", "int"),
            field(515, "sequence_number", "long"),
            field(516, "min_sequence_number", "long"),
            field(503, "added_snapshot_id", "long"),
            field(504, "added_data_files_count", "int"),
            field(505, "existing_files_count", "int"),
            field(506, "deleted_files_count", "int"),
            field(512, "added_rows_count", "long"),
            field(513, "existing_rows_count", "long"),
            field(514, "deleted_rows_count", "long"),
            optional_field(507, "partitions", json!({ "type": "array", "items": "string" })),
            optional_field(520, "first_row_id", "long"),
        ] });
        let schema = Schema::parse(&schema).unwrap();
        let partitions = if partitions.is_empty() { Vec::new() } else { vec![Value::String(partitions.to_owned())] };
        let line = record([
            ("partition_spec_id", Value::Int(0)),
            ("manifest_path", Value::String("/lake/m.avro".to_owned())),
            ("manifest_length", Value::Long(100)),
            ("content", Value::Int(1)),
            ("sequence_number", Value::Long(3)),
            ("min_sequence_number", Value::Long(2)),
            ("added_snapshot_id", Value::Long(77)),
            ("added_data_files_count", Value::Int(4)),
            ("existing_files_count", Value::Int(5)),
            ("deleted_files_count", Value::Int(6)),
            ("added_rows_count", Value::Long(7)),
            ("existing_rows_count", Value::Long(8)),
            ("deleted_rows_count", Value::Long(9)),
            ("partitions", optional(Some(Value::Array(partitions)))),
            ("first_row_id", optional(None)),
        ]);
        let mut writer = Writer::with_codec(&schema, Vec::new(), Codec::Deflate(DeflateSettings::default())).unwrap();
        writer.append_value(line).unwrap();
        writer.into_inner().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<ManifestLine>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snap.avro");
        std::fs::write(&path, bytes).unwrap();
        ManifestLine::read(&Location::Local(path))
    }

    #[test]
    fn a_list_that_another_program_wrote_is_carried_over_line_by_line() {
        let lines = read(&foreign("")).unwrap();
        let snapshot = Snapshot { id: 1, parent: Some(77), sequence: 4, marker: [0; 16] };
        let ours = manifest_list(&snapshot, lines).unwrap();
        let again = avro::read(ours.as_slice()).unwrap();
        let get = |name: &str| again[0].iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(get("manifest_path"), Value::String("/lake/m.avro".to_owned()));
        assert_eq!((get("content"), get("sequence_number"), get("added_files_count")), (Value::Int(1), Value::Long(3), Value::Int(4)));
        assert_eq!((get("added_snapshot_id"), get("deleted_rows_count")), (Value::Long(77), Value::Long(9)));
    }

    #[test]
    fn lists_of_partitioned_files_are_refused() {
        assert!(read(&foreign("year=2026")).unwrap_err().to_string().contains("unpartitioned"));
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_name() {
        assert!(read(b"nonsense").unwrap_err().to_string().contains("snap.avro"));
    }
}
