//! The table of the module docs, read back from real files; and what the writer promises.

mod ahead;
#[cfg(feature = "iceberg")]
mod appended;
mod drifted;
mod laid_out;
mod pieces;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Field, TimeUnit, TimestampMicrosecondType};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use proptest::prelude::*;

use super::*;
use crate::codec::canonical::write_item;
use crate::codec::generate::{self, items};
use crate::model::{Arena, ByAttribute, ColumnType, Declared, EntityId, FileId, Item, Mixed, Nulls, Origin, Raw, Row, Value};
use crate::sink::{Outgoing, Payload as AnyPayload, Seen, WrittenFile};
use crate::store::Location;

type Attributes<'a> = &'a [(&'a str, Value<'a>)];

/// The chunks of a run; each holds, for each dataset, items.
type Chunks<'a> = Vec<Vec<(u32, Vec<Item<'a>>)>>;

fn item<'a>(arena: &'a Arena, attributes: Attributes<'a>) -> Item<'a> {
    let mut item = Item::new_in(arena);
    for (name, value) in attributes {
        item.push(name, *value);
    }
    item
}

fn targets(datasets: &[(&str, &[&str])]) -> Arc<Targets> {
    let datasets = datasets.iter().map(|(name, leading)| Dataset {
        name: (*name).to_owned(),
        leading: leading.iter().map(|name| (*name).to_owned()).collect(),
        ..Dataset::default()
    });
    Arc::new(Targets { tables: Vec::new(), datasets: datasets.collect() })
}

type Job = Box<dyn FnOnce() + Send>;

/// Runs a job at once.
fn at_once() -> Spawn {
    Arc::new(|job| job())
}

fn shapes_of(datasets: usize, chunks: &Chunks<'_>) -> Vec<Shape> {
    let mut shapes = vec![Shape::new::<&str>(&[]); datasets];
    for (dataset, items) in chunks.iter().flatten() {
        for item in items {
            shapes[*dataset as usize].observe(item);
        }
    }
    shapes
}

fn outgoing<'a>(chunk: &[(u32, Vec<Item<'a>>)]) -> Vec<Outgoing<'a>> {
    let row = |item: &Item<'a>| Row {
        origin: Origin { file: FileId(0), line: 7 },
        item: item.clone(),
        captures: &[],
        source: Raw::json(b""),
        change: None,
        size: 1,
    };
    chunk
        .iter()
        .map(|(dataset, items)| Outgoing {
            entity: EntityId(*dataset),
            dataset: DatasetId(*dataset),
            table: None,
            rows: items.iter().map(row).collect(),
        })
        .collect()
}

/// Writes everything as unit 1 and publishes it.
fn run(dir: &Path, targets: &Arc<Targets>, chunks: &Chunks<'_>, limits: Limits, spawn: Spawn) -> Written {
    let sink = ParquetSink::new(dir.to_owned(), false, targets.clone(), spawn).with_limits(limits);
    sink.prepare(Begin::Anew).unwrap();
    sink.set_shapes(&shapes_of(targets.datasets.len(), chunks)).unwrap();
    let encoder = sink.encoder();
    let mut writer = sink.writer(1).unwrap();
    for chunk in chunks {
        writer.write(encoder.encode(&outgoing(chunk)).unwrap(), &mut Vec::new()).unwrap();
    }
    let written = writer.finish(&mut Vec::new()).unwrap();
    sink.commit(std::slice::from_ref(&written)).unwrap();
    written
}

fn read(path: &Path) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(|batch| batch.unwrap()).collect()
}

fn type_of(field: &Field) -> String {
    let inside = match field.data_type() {
        DataType::List(element) => format!("[{}]", type_of(element)),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| format!("{}: {}", field.name(), type_of(field))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entry) => format!("{{{} -> {}}}", entry[0].data_type(), type_of(&entry[1])),
            other => panic!("a map of {other}"),
        },
        other => other.to_string(),
    };
    let json = field.metadata().get("dynamodb.json").map(|inside| format!(" {inside}")).unwrap_or_default();
    format!("{} {}{json}", inside, field.metadata()["dynamodb.type"])
}

/// A line a column: its name, its type, its `DynamoDB` type, and the value of each row.
fn columns_of(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let fields = batches[0].schema().fields().clone();
    let column = |(at, field): (usize, &Arc<Field>)| {
        let values = batches.iter().flat_map(|batch| {
            // The formatter knows no names of time zones.
            let array: ArrayRef = match batch.column(at).as_primitive_opt::<TimestampMicrosecondType>() {
                Some(moments) => Arc::new(moments.clone().with_timezone_opt::<Arc<str>>(None)),
                None => batch.column(at).clone(),
            };
            let formatter = ArrayFormatter::try_new(&array, &options).unwrap();
            (0..batch.num_rows()).map(|row| formatter.value(row).to_string()).collect::<Vec<_>>()
        });
        format!("{}: {} = {}", field.name(), type_of(field), values.collect::<Vec<_>>().join(" | "))
    };
    fields.iter().enumerate().map(column).collect()
}

/// The columns of one dataset with these items, after a way through a file.
fn written_as(items: &[Attributes<'_>]) -> Vec<String> {
    written_with_leading(&[], items)
}

fn written_with_leading(leading: &[&str], items: &[Attributes<'_>]) -> Vec<String> {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("Doc", leading)]);
    let chunks = vec![vec![(0, items.iter().map(|attributes| item(&arena, attributes)).collect())]];
    let written = run(dir.path(), &targets, &chunks, Limits::default(), at_once());
    assert_eq!(written.items, BTreeMap::from([(0, items.len() as u64)]));
    let path = dir.path().join("Doc/part-u00001-0000.parquet");
    let items: Vec<Item<'_>> = items.iter().map(|attributes| item(&arena, attributes)).collect();
    is_read_back(&path, &items);
    let columns = columns_of(&read(&path));
    ahead::is_settled_as(None, &targets, &items, &columns);
    columns
}

fn canonical(item: &Item<'_>, declared: &Declared) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_item(&comparable(item, declared), &mut bytes);
    bytes
}

/// The file holds these items, but for NULL in place of no attribute.
fn is_read_back(path: &Path, items: &[Item<'_>]) {
    is_given_back(path, items, &Declared::default());
}

/// The file holds these items, but for NULL in place of no attribute, and for how declared types write a value.
fn is_given_back(path: &Path, items: &[Item<'_>], declared: &Declared) {
    let canonical = |item: &Item<'_>| canonical(item, declared);
    let file = ParquetFile::open(path).unwrap();
    assert_eq!(file.entity(), "Doc");
    let mut found = Vec::new();
    for group in 0..file.row_groups().len() {
        file.read(group, &mut |row, item| {
            found.push((row, canonical(item)));
            Ok(())
        })
        .unwrap();
    }
    let expected: Vec<_> = (1..).zip(items.iter().map(canonical)).collect();
    assert_eq!(found, expected);
    let (last, bytes) = expected.last().unwrap();
    file.read_row(*last, &mut |item| {
        assert_eq!(canonical(item), *bytes);
        Ok(())
    })
    .unwrap();
}

proptest! {
    // Each case writes a file.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_items_are_written_are_read_back(attributes in proptest::collection::vec(items(), 1..12)) {
        let arena = Arena::new();
        let dir = tempfile::tempdir().unwrap();
        let items: Vec<Item<'_>> = attributes.iter().map(|attributes| generate::item(attributes, &arena)).collect();
        let chunks = vec![vec![(0, items.clone())]];
        run(dir.path(), &targets(&[("Doc", &["PK"])]), &chunks, Limits::default(), at_once());
        is_read_back(&dir.path().join("Doc/part-u00001-0000.parquet"), &items);
    }
}

#[test]
fn a_file_of_others_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let told = || ParquetFile::open(&path).unwrap_err().to_string();
    std::fs::write(&path, "no Parquet").unwrap();
    assert!(told().contains("cannot read the Parquet file") && told().contains("x.parquet"), "{}", told());
    let schema = Arc::new(arrow::datatypes::Schema::new(vec![Field::new("a", DataType::Float64, true)]));
    let write = |schema| {
        let file = std::fs::File::create(&path).unwrap();
        parquet::arrow::ArrowWriter::try_new(file, schema, None).unwrap().close().unwrap();
    };
    write(schema.clone());
    assert!(told().contains("no `dynamorph.entity` in its metadata"), "{}", told());
    write(Arc::new(schema.as_ref().clone().with_metadata([("dynamorph.entity", "Doc")])));
    assert!(told().contains("column `a` of type Float64"), "{}", told());
}

use Value::{B, Bool, Bs, L, M, N, Ns, Null, S, Ss};

#[test]
fn scalars_have_their_own_types_and_what_is_missing_or_null_is_null() {
    assert_eq!(
        written_as(&[&[("s", S("a")), ("b", B(b"\x01\xff")), ("t", Bool(true)), ("z", Null)], &[("s", S("")), ("b", Null)], &[],]),
        ["b: Binary B = 01ff | - | -", "s: Utf8 S = a |  | -", "t: Boolean BOOL = true | - | -", "z: Utf8 NULL = - | - | -"]
    );
}

#[test]
fn numbers_get_the_narrowest_exact_type_and_never_a_double() {
    let nines = "9".repeat(38);
    for (numbers, expected) in [
        (["1", "-9223372036854775808"], "n: Int64 N = 1 | -9223372036854775808".to_owned()),
        (["1E3", "2.0"], "n: Int64 N = 1000 | 2".to_owned()),
        (["9223372036854775808", "1"], "n: Decimal128(19, 0) N = 9223372036854775808 | 1".to_owned()),
        (["12.5", "-0.005"], "n: Decimal128(5, 3) N = 12.500 | -0.005".to_owned()),
        (["0.5", "0.25"], "n: Decimal128(2, 2) N = 0.50 | 0.25".to_owned()),
        ([&nines, "0"], format!("n: Decimal128(38, 0) N = {nines} | 0")),
        (["1E37", "0.1"], format!("n: Utf8 N = 1{} | 0.1", "0".repeat(37))),
        (["1E36", "0.1"], format!("n: Decimal128(38, 1) N = 1{}.0 | 0.1", "0".repeat(36))),
        (["1E-130", "1.50"], format!("n: Utf8 N = 0.{}1 | 1.5", "0".repeat(129))),
    ] {
        assert_eq!(written_as(&[&[("n", N(numbers[0]))], &[("n", N(numbers[1]))]]), [expected], "{numbers:?}");
    }
}

#[test]
fn sets_are_lists_that_remember_what_they_were() {
    assert_eq!(
        written_as(&[&[("bs", Bs(&[b"a"])), ("ns", Ns(&["1", "2.50"])), ("ss", Ss(&["x", "y"]))], &[("ns", Ns(&["3"])), ("ss", Null)],]),
        ["bs: [Binary B] BS = [61] | -", "ns: [Decimal128(2, 1) N] NS = [1.0, 2.5] | [3.0]", "ss: [Utf8 S] SS = [x, y] | -"]
    );
}

#[test]
fn a_list_of_one_type_is_a_list_and_a_mixed_one_is_json_in_which_1_and_text_1_differ() {
    assert_eq!(written_as(&[&[("l", L(&[N("1"), Null, N("2")]))], &[("l", L(&[]))], &[]]), ["l: [Int64 N] L = [1, -, 2] | [] | -"]);
    assert_eq!(
        written_as(&[&[("l", L(&[N("1"), S("1"), Null]))], &[("l", L(&[]))]]),
        [r#"l: Utf8 json L = [{"N":"1"},{"S":"1"},{"NULL":true}] | []"#]
    );
    assert_eq!(written_as(&[&[("l", L(&[]))], &[("l", L(&[Null]))]]), [r#"l: Utf8 json L = [] | [{"NULL":true}]"#]);
    assert_eq!(written_as(&[&[("l", L(&[L(&[N("1")]), L(&[])]))], &[("l", L(&[Null]))]]), ["l: [[Int64 N] L] L = [[1], []] | [-]"]);
    assert_eq!(written_as(&[&[("l", L(&[L(&[N("1")]), L(&[S("1")])]))]]), [r#"l: Utf8 json L = [{"L":[{"N":"1"}]},{"L":[{"S":"1"}]}]"#]);
    assert_eq!(
        written_as(&[&[("l", L(&[M(&[("a", N("1"))]), M(&[("b", S("x"))])]))]]),
        ["l: [{a: Int64 N, b: Utf8 S} M] L = [{a: 1, b: -}, {a: -, b: x}]"]
    );
}

#[test]
fn a_map_with_few_keys_is_a_struct_whose_mixed_fields_are_json() {
    assert_eq!(
        written_as(&[
            &[("m", M(&[("z", S("x")), ("a", M(&[("k", Ss(&["p"]))])), ("n", N("1"))]))],
            &[("m", M(&[("n", S("one"))]))],
            &[("m", M(&[]))],
            &[],
            &[("m", M(&[("n", Null), ("a", Null)]))],
        ]),
        [concat!(
            "m: {a: {k: [Utf8 S] SS} M, n: Utf8 json any, z: Utf8 S} M = ",
            r#"{a: {k: [p]}, n: {"N":"1"}, z: x} | {a: -, n: {"S":"one"}, z: -} | {a: -, n: -, z: -} | - | {a: -, n: -, z: -}"#
        )]
    );
    assert_eq!(written_as(&[&[("m", M(&[]))], &[]]), ["m: Utf8 json M = {} | -"]);
}

#[test]
fn a_map_whose_keys_are_data_is_a_map_or_json() {
    let keys: Vec<String> = (0..70).map(|n| format!("k{n:02}")).collect();
    let numbers: Vec<_> = keys.iter().map(|key| (key.as_str(), N("1.5"))).collect();
    let text = keys.iter().map(|key| format!("{key}: 1.5")).collect::<Vec<_>>().join(", ");
    assert_eq!(
        written_as(&[&[("m", M(&numbers))], &[("m", M(&[]))], &[("m", M(&[("x", Null)]))], &[]]),
        [format!("m: {{Utf8 -> Decimal128(2, 1) N}} M = {{{text}}} | {{}} | {{x: -}} | -")]
    );
    assert_eq!(
        written_as(&[&[("m", M(&numbers[..64]))], &[("m", M(&[("a", S("x")), ("b", L(&[]))]))]])[0]
            .split(" = ")
            .nth(1)
            .unwrap()
            .split(" | ")
            .nth(1),
        Some(r#"{"a":{"S":"x"},"b":{"L":[]}}"#)
    );
}

#[test]
fn an_attribute_of_several_types_becomes_a_column_a_type_and_the_most_frequent_keeps_the_name() {
    assert_eq!(
        written_as(&[&[("a", S("x"))], &[("a", N("1"))], &[("a", N("2"))], &[("a", Null)], &[("a", M(&[("k", Bool(true))]))]]),
        ["a: Int64 N = - | 1 | 2 | - | -", "a__s: Utf8 S = x | - | - | - | -", "a__m: {k: Boolean BOOL} M = - | - | - | - | {k: true}"]
    );
    // Equally frequent: the first in the order of the types.
    assert_eq!(written_as(&[&[("a", N("1"))], &[("a", S("x"))]]), ["a: Utf8 S = - | x", "a__n: Int64 N = 1 | -"]);
}

#[test]
fn a_made_up_name_gives_way_to_a_real_one() {
    let columns = written_as(&[&[("a", S("x")), ("a__n", S("real")), ("a__n_", S("too"))], &[("a", N("1"))], &[("a", S("y"))]]);
    assert_eq!(
        columns,
        ["a: Utf8 S = x | - | y", "a__n__: Int64 N = - | 1 | -", "a__n: Utf8 S = real | - | -", "a__n_: Utf8 S = too | - | -"]
    );
}

#[test]
fn keys_lead_the_columns_and_names_are_kept_as_they_are() {
    assert_eq!(
        written_with_leading(
            &["SK", "absent", "PK"],
            &[&[("b.c", S("1")), ("a b", S("2")), ("PK", S("p")), ("SK", S("s")), ("B", S("3"))]]
        ),
        ["SK: Utf8 S = s", "PK: Utf8 S = p", "B: Utf8 S = 3", "a b: Utf8 S = 2", "b.c: Utf8 S = 1"]
    );
}

#[test]
fn what_is_too_deep_or_too_wide_is_json() {
    let arena = Arena::new();
    let mut deep = S("bottom");
    for _ in 0..12 {
        deep = M(arena.alloc_slice_copy(&[("k", deep)]));
    }
    let columns = written_as(&[&[("deep", deep)]]);
    assert_eq!(columns[0].matches("k: {").count(), 7 + 8, "{columns:?}");
    assert!(columns[0].contains(r#"k: {"k":{"M":{"k":{"M":{"k":{"M":{"k":{"S":"bottom"}}}}}}}}"#), "{columns:?}");

    let names: Vec<String> = (0..30).map(|n| format!("f{n}")).collect();
    let inner: Vec<_> = names.iter().map(|name| (name.as_str(), N("1"))).collect();
    let outer: Vec<_> = names.iter().map(|name| (name.as_str(), M(&inner))).collect();
    assert!(written_as(&[&[("wide", M(&outer))]])[0].starts_with("wide: Utf8 json M = {\"f0\":{\"M\":{\"f0\":{\"N\":\"1\"}"));
    // With even more keys below it, the keys of a map are data.
    let outer: Vec<_> = names.iter().map(|name| (name.as_str(), M(arena.alloc_slice_copy(&[("m", M(&outer))])))).collect();
    assert!(written_as(&[&[("wide", M(&outer))]])[0].starts_with("wide: {Utf8 -> {m: {Utf8 -> {f0: Int64 N, f1"));
}

#[test]
fn two_thousand_attributes_are_two_thousand_columns_and_above_the_limit_the_rarest_share_one() {
    let names: Vec<String> = (0..5000).map(|n| format!("a{n:04}")).collect();
    let few: Vec<Vec<_>> = names[..2000].chunks(100).map(|names| names.iter().map(|name| (name.as_str(), S("x"))).collect()).collect();
    let items: Vec<Attributes<'_>> = few.iter().map(Vec::as_slice).collect();
    let columns = written_as(&items);
    assert_eq!(columns.len(), 2000);
    assert_eq!(columns[150], "a0150: Utf8 S = - | x | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | - | -");

    let all: Vec<_> = names.iter().map(|name| (name.as_str(), N("1"))).collect();
    let columns = written_as(&[&all, &all[2952..], &all[2952..], &[("a0000", N("2")), ("a0001", Null)]]);
    assert_eq!(columns.len(), 2049);
    assert_eq!(columns[0], "a2952: Int64 N = 1 | 1 | 1 | -");
    let rest = columns.last().unwrap();
    assert!(rest.starts_with(r#"__rest: Utf8 json M = {"a0000":{"N":"1"},"a0001":"#), "{}", &rest[..100]);
    assert!(rest.ends_with(r#" | - | - | {"a0000":{"N":"2"},"a0001":{"NULL":true}}"#), "{}", &rest[rest.len() - 100..]);
}

#[test]
fn names_that_are_too_many_or_too_long_share_a_column_and_keys_never_do() {
    let names: Vec<String> = (0..10_000).map(|n| format!("a{n:05}")).collect();
    let key = "the-name-of-a-key-that-is-longer-than-all-the-others";
    let long = "x".repeat(1025);
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("Doc", &[key])]);
    let mut shape = Shape::new(&[key]);
    let items: Vec<Item<'_>> = names.iter().map(|name| item(&arena, arena.alloc([(name.as_str(), N("1")), (key, S("k"))]))).collect();
    let last = item(&arena, arena.alloc([(long.as_str(), N("1")), ("a", Null), (key, S("k"))]));
    items.iter().chain([&last]).for_each(|item| shape.observe(item));
    let sink = ParquetSink::new(dir.path().to_owned(), false, targets, at_once());
    sink.prepare(Begin::Anew).unwrap();
    sink.set_shapes(&[shape]).unwrap();
    let mut writer = sink.writer(1).unwrap();
    for items in [items, vec![last]] {
        writer.write(sink.encoder().encode(&outgoing(&[(0, items)])).unwrap(), &mut Vec::new()).unwrap();
    }
    let written = writer.finish(&mut Vec::new()).unwrap();
    sink.commit(std::slice::from_ref(&written)).unwrap();

    let (mut rows, mut values) = (0, 0);
    for batch in read(&dir.path().join("Doc/part-u00001-0000.parquet")) {
        assert_eq!((batch.num_columns(), batch.schema().field(0).name().as_str(), batch.column(0).null_count()), (2049, key, 0));
        rows += batch.num_rows();
        values += batch.columns()[1..].iter().map(|column| column.len() - column.null_count()).sum::<usize>();
        let rest = batch.column_by_name("__rest").unwrap().as_any().downcast_ref::<arrow::array::StringArray>().unwrap();
        if rows == 10_001 {
            assert_eq!(rest.value(batch.num_rows() - 1), format!(r#"{{"{long}":{{"N":"1"}}}}"#));
            assert_eq!(rest.value(batch.num_rows() - 2), r#"{"a09999":{"N":"1"}}"#);
        }
    }
    assert_eq!((rows, values), (10_001, 10_001));
}

#[test]
fn rows_that_share_few_of_many_columns_wait_in_little_memory() {
    let names: Vec<String> = (0..2000).map(|n| format!("a{n:04}")).collect();
    let arena = Arena::new();
    let rows: Vec<_> = (0..4000).map(|n| item(&arena, arena.alloc([(names[n % 2000].as_str(), N("1"))]))).collect();
    let chunks = vec![vec![(0, rows)]];
    let sink = ParquetSink::new(PathBuf::from("unused"), false, targets(&[("Doc", &[])]), at_once());
    sink.set_shapes(&shapes_of(1, &chunks)).unwrap();
    let AnyPayload::Parquet(payload) = sink.encoder().encode(&outgoing(&chunks[0])).unwrap() else { panic!("a payload of another sink") };
    assert_eq!(payload.batches.iter().map(|batch| batch.rows).sum::<usize>(), 4000);
    let bytes: usize = payload.batches.iter().map(|batch| batch.bytes).sum();
    assert!(bytes < 4000 * 2000, "{bytes}");
}

#[test]
fn an_error_of_the_file_is_told_as_it_is_and_others_name_the_dataset() {
    struct Failing(fn() -> io::Error);
    impl io::Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0())
        }
    }
    let layout = Layout::of(&targets(&[("Doc", &["PK"])]).datasets[0], &Shape::new(&["PK"]), None);
    let failure = |error| {
        let mut file =
            SerializedFileWriter::new(Failing(error), layout.file().unwrap().schema.clone(), layout.file().unwrap().properties.clone())
                .unwrap();
        write::cannot_write(&layout, file.finish().err().unwrap())
    };
    let error = failure(|| io::Error::other(Error::new(Kind::Service, "S3 denies access")));
    assert_eq!((error.kind(), error.message()), (Kind::Service, "S3 denies access"));
    let error = failure(|| io::Error::from(io::ErrorKind::StorageFull));
    assert_eq!((error.kind(), error.message()), (Kind::Output, "cannot write the Parquet file"));
    assert!(error.to_string().contains("dataset: Doc"), "{error}");
}

#[test]
fn items_without_attributes_are_rows_all_the_same() {
    assert_eq!(written_as(&[&[], &[]]), ["__rest: Utf8 json M = - | -"]);
}

#[test]
fn the_file_names_its_entity_and_every_column_its_attribute() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("Dok/ä", &[])]);
    let chunks = vec![vec![(0, vec![item(&arena, &[("a", S("x"))]), item(&arena, &[("a", N("1"))])])]];
    let written = run(dir.path(), &targets, &chunks, Limits::default(), at_once());
    let path = Path::new("Dok%2F%C3%A4/part-u00001-0000.parquet");
    let bytes = std::fs::metadata(dir.path().join(path)).unwrap().len();
    assert!(
        matches!(written.files.as_slice(), [WrittenFile { path: known, items: 2, bytes: size, schema: Some(_), sha256: Some(_) }] if known == path && *size == bytes)
    );
    assert_eq!(written.bytes, bytes);

    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(dir.path().join(path)).unwrap()).unwrap();
    assert_eq!(reader.schema().metadata()["dynamorph.entity"], "Dok/ä");
    for field in reader.schema().fields() {
        assert_eq!(field.metadata()["dynamodb.attribute"], "a");
    }
    let metadata = reader.metadata().file_metadata();
    assert_eq!(metadata.created_by(), Some("dynamorph"));
    assert!(
        metadata.key_value_metadata().unwrap().iter().any(|pair| pair.key == "dynamorph.entity" && pair.value.as_deref() == Some("Dok/ä"))
    );
}

/// Three datasets of unequal size in 60 chunks, the last dataset empty.
#[test]
fn the_manifest_says_what_every_column_and_file_is() {
    let arena = Arena::new();
    let mixed = [Value::S("x"), Value::N("1")];
    let inner = [("x", Value::Ns(&["1.5"]))];
    let attributes: Attributes<'_> = &[
        ("PK", Value::S("a")),
        ("n", Value::N("1")),
        ("d", Value::N("0.25")),
        ("b", Value::B(b"x")),
        ("yes", Value::Bool(true)),
        ("m", Value::M(&inner)),
        ("l", Value::L(&mixed)),
    ];
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("A b", &["PK"]), ("Empty", &[])]);
    let written = run(dir.path(), &targets, &vec![vec![(0, vec![item(&arena, attributes)])]], Limits::default(), at_once());

    let manifest = Manifest::read(&Location::Local(dir.path().to_owned())).unwrap();
    let [dataset] = manifest.datasets.as_slice() else { panic!("{manifest:?}") };
    assert_eq!((dataset.name.as_str(), dataset.folder.as_str(), dataset.items), ("A b", "A%20b", 1));
    let file = &written.files[0];
    assert_eq!(
        dataset.files,
        [DataFile {
            path: file.path.to_str().unwrap().to_owned(),
            items: 1,
            bytes: file.bytes,
            partition: BTreeMap::new(),
            sha256: file.sha256.clone()
        }]
    );
    let text = |column: &Column| serde_json::to_string(column).unwrap();
    assert_eq!(
        dataset.columns.iter().map(text).collect::<Vec<_>>(),
        [
            r#"{"name":"PK","type":"text","dynamodb":"S","attribute":"PK"}"#,
            r#"{"name":"b","type":"binary","dynamodb":"B","attribute":"b"}"#,
            r#"{"name":"d","type":{"decimal":{"precision":2,"scale":2}},"dynamodb":"N","attribute":"d"}"#,
            r#"{"name":"l","type":"text","dynamodb":"json","json":"L","attribute":"l"}"#,
            r#"{"name":"m","type":{"struct":[{"name":"x","type":{"list":{"name":"element","type":{"decimal":{"precision":2,"scale":1}},"dynamodb":"N"}},"dynamodb":"NS"}]},"dynamodb":"M","attribute":"m"}"#,
            r#"{"name":"n","type":"int64","dynamodb":"N","attribute":"n"}"#,
            r#"{"name":"yes","type":"boolean","dynamodb":"BOOL","attribute":"yes"}"#,
        ]
    );
    let path = dir.path().join(MANIFEST);
    let later = std::fs::read_to_string(&path).unwrap().replacen("\"version\": 1", "\"version\": 2", 1);
    std::fs::write(&path, later).unwrap();
    let error = Manifest::read(&Location::Local(dir.path().to_owned())).unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
}

#[test]
fn an_entity_that_is_called_like_the_manifest_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let sink = ParquetSink::new(dir.path().to_owned(), false, targets(&[(MANIFEST, &[])]), at_once());
    assert_eq!(sink.prepare(Begin::Anew).unwrap_err().kind(), Kind::Usage);
}

fn three_datasets(arena: &Arena) -> (Arc<Targets>, Chunks<'_>) {
    let chunk = |n: usize| {
        let text = |row: usize| S(arena.alloc_str(&format!("{n}-{row}-{}", "x".repeat(n * 7 % 50))));
        let big =
            (0..50).map(|row| item(arena, arena.alloc([("s", text(row)), ("n", N(arena.alloc_str(&(n * row).to_string())))]))).collect();
        let small = (0..n % 4).map(|row| item(arena, arena.alloc([("s", text(row))]))).collect();
        vec![(0, big), (1, small)]
    };
    (targets(&[("Big", &[]), ("Small", &[]), ("Empty", &[])]), (0..60).map(chunk).collect())
}

const SMALL: Limits =
    Limits { row_group: 40_000, buffered: 50_000, piece: 10_000, encoder: 100, file: 4_000, in_flight: 40_000, job: 1000 };

fn files_below(dir: &Path, written: &Written) -> BTreeMap<String, Vec<u8>> {
    written.files.iter().map(|file| (file.path.display().to_string(), std::fs::read(dir.join(&file.path)).unwrap())).collect()
}

#[test]
fn the_bytes_do_not_depend_on_when_jobs_run() {
    let arena = Arena::new();
    let (targets, chunks) = three_datasets(&arena);
    let written_by = |spawn: Spawn| {
        let dir = tempfile::tempdir().unwrap();
        let written = run(dir.path(), &targets, &chunks, SMALL, spawn);
        let mut files = files_below(dir.path(), &written);
        files.insert(MANIFEST.to_owned(), std::fs::read(dir.path().join(MANIFEST)).unwrap());
        (files, written)
    };
    let at_once = written_by(at_once());
    let threads = written_by(Arc::new(|job| drop(std::thread::spawn(job))));
    // Late and in reverse: jobs gather until three wait.
    let waiting: Arc<Mutex<Vec<Job>>> = Arc::default();
    let reverse = written_by(Arc::new(move |job| {
        let waiting = waiting.clone();
        std::thread::spawn(move || {
            waiting.lock().unwrap().push(job);
            std::thread::sleep(std::time::Duration::from_millis(3));
            let jobs: Vec<_> = waiting.lock().unwrap().drain(..).rev().collect();
            for job in jobs {
                job();
            }
        });
    }));
    assert_eq!(at_once, threads);
    assert_eq!(at_once, reverse);

    let (files, written) = at_once;
    assert_eq!(written.items, BTreeMap::from([(0, 3000), (1, 90)]));
    assert!(files.contains_key("Big/part-u00001-0001.parquet"), "{:?}", files.keys());
    assert!(files.keys().all(|name| !name.starts_with("Empty")));
    assert_eq!(written.files.iter().map(|file| file.items).sum::<u64>(), 3090);
}

#[test]
fn rows_keep_their_order_over_row_groups_and_files() {
    let arena = Arena::new();
    let (targets, chunks) = three_datasets(&arena);
    let dir = tempfile::tempdir().unwrap();
    let written = run(dir.path(), &targets, &chunks, SMALL, at_once());
    let mut found = Vec::new();
    let mut row_groups = 0;
    for file in written.files.iter().filter(|file| file.path.starts_with("Big")) {
        let path = dir.path().join(&file.path);
        row_groups += SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap().num_row_groups();
        for batch in read(&path) {
            let column = batch.column_by_name("s").unwrap();
            let texts = column.as_any().downcast_ref::<arrow::array::StringArray>().unwrap();
            found.extend(texts.iter().map(|text| text.unwrap().rsplit_once('-').unwrap().0.to_owned()));
        }
    }
    let expected: Vec<_> = (0..60).flat_map(|n| (0..50).map(move |row| format!("{n}-{row}"))).collect();
    assert_eq!(found, expected);
    assert!(row_groups > 2, "{row_groups}");
}

#[test]
fn what_waits_in_memory_stays_below_the_limit_and_few_row_groups_are_in_flight() {
    let arena = Arena::new();
    let (targets, chunks) = three_datasets(&arena);
    let dir = tempfile::tempdir().unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let spawn: Spawn = {
        let (running, most) = (running.clone(), most.clone());
        Arc::new(move |job| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let running = running.clone();
            drop(std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(1));
                // Counted before the result is sent, since the lane goes on as soon as it has it.
                running.fetch_sub(1, Ordering::SeqCst);
                job();
            }));
        })
    };
    let limits = Limits { row_group: 1_000_000, buffered: 50_000, in_flight: 25_000, job: usize::MAX, ..SMALL };
    let sink = ParquetSink::new(dir.path().to_owned(), false, targets.clone(), at_once());
    sink.prepare(Begin::Anew).unwrap();
    sink.set_shapes(&shapes_of(3, &chunks)).unwrap();
    let staging = OutputFolder::Local(dir.path().to_owned()).staging().unwrap();
    let mut writer = Box::new(write::ParquetWriter::new(staging, 1, sink.layouts.clone(), limits, spawn));
    for chunk in &chunks {
        let payload = sink.encoder().encode(&outgoing(chunk)).unwrap();
        writer.write(payload, &mut Vec::new()).unwrap();
        assert!(writer.waiting_bytes() <= limits.buffered);
    }
    assert_eq!(writer.finish(&mut Vec::new()).unwrap().items[&0], 3000);
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

#[test]
fn parts_of_one_dataset_in_a_chunk_become_one_batch() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("A", &[]), ("B", &[])]);
    let one = |text| vec![item(&arena, arena.alloc([("s", S(text))]))];
    let chunks = vec![vec![(1, one("1")), (0, one("2")), (1, one("3")), (1, Vec::new())]];
    let written = run(dir.path(), &targets, &chunks, Limits::default(), at_once());
    assert_eq!(written.items, BTreeMap::from([(0, 1), (1, 2)]));
    assert_eq!(columns_of(&read(&dir.path().join("B/part-u00001-0000.parquet"))), ["s: Utf8 S = 1 | 3"]);
}

#[test]
fn an_item_that_was_not_observed_is_a_bug_that_names_dataset_and_attribute_but_no_value() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("Doc", &[]), ("Other", &[])]);
    let sink = ParquetSink::new(dir.path().to_owned(), false, targets, at_once());
    let encode = |dataset, attributes| sink.encoder().encode(&outgoing(&[(dataset, vec![item(&arena, attributes)])])).unwrap_err();
    assert!(encode(0, &[("n", N("1"))]).to_string().contains("no Parquet schema yet"));

    let seen: Attributes<'_> = &[("n", N("1")), ("m", M(&[("k", S("x"))]))];
    sink.set_shapes(&shapes_of(2, &vec![vec![(0, vec![item(&arena, seen)])]])).unwrap();
    assert_eq!(sink.set_shapes(&[Shape::new::<&str>(&[]), Shape::new::<&str>(&[])]).unwrap_err().kind(), Kind::Bug);
    for (attributes, attribute) in [
        (&[("n", N("1.5"))] as Attributes<'_>, "n"),
        (&[("n", S("secret"))], "n"),
        (&[("secretly", S("secret"))], "secretly"),
        (&[("m", M(&[("other", S("secret"))]))], "m.other"),
        (&[("m", M(&[("k", S("secret")), ("k", S("secret"))]))], "m"),
    ] {
        let error = encode(0, attributes);
        assert_eq!(error.kind(), Kind::Bug);
        let text = error.to_string();
        assert!(text.contains("dataset: Doc") && text.contains(&format!("attribute: {attribute}\n")) && text.contains("line: 7"), "{text}");
        assert!(!text.contains("1.5") && !text.contains(" secret\n"), "{text}");
    }
    assert!(encode(1, &[("n", N("1"))]).to_string().contains("dataset: Other"));
}

#[test]
fn a_job_that_vanishes_is_an_error_and_no_hang() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("Doc", &[])]);
    let chunks = vec![vec![(0, vec![item(&arena, &[("a", S("x"))])])]];
    let sink = ParquetSink::new(dir.path().to_owned(), false, targets, Arc::new(drop));
    sink.set_shapes(&shapes_of(1, &chunks)).unwrap();
    let mut writer = sink.writer(1).unwrap();
    writer.write(sink.encoder().encode(&outgoing(&chunks[0])).unwrap(), &mut Vec::new()).unwrap();
    let error = writer.finish(&mut Vec::new()).unwrap_err();
    assert!(error.message().contains("ended without a result"), "{error}");
}

#[test]
fn an_entity_name_cannot_leave_the_folder() {
    for (entity, folder) in [("Doc", "Doc"), ("a_b-c.d", "a_b-c.d"), ("..", "%2E."), ("a/../b", "a%2F..%2Fb"), ("Ünit 1", "%C3%9Cnit%201")]
    {
        assert_eq!(write::folder(entity), folder);
    }
}

#[test]
fn the_schema_does_not_depend_on_how_items_were_shared_among_workers() {
    let arena = Arena::new();
    let all: Vec<Item<'_>> = (0..40)
        .map(|n: usize| {
            let key = &*arena.alloc_str(&format!("k{}", n * 2));
            let value = match n % 4 {
                0 => N(["1", "2.5", "9223372036854775808"][n % 3]),
                1 => S("x"),
                2 => L(arena.alloc_slice_copy(&[N("1")])),
                _ => M(arena.alloc_slice_copy(&[(key, Bool(true)), ("k1", Null)])),
            };
            item(&arena, arena.alloc([("a", value), (key, value)]))
        })
        .collect();
    let schema = |parts: Vec<Vec<usize>>| {
        let mut whole = Shape::new::<&str>(&[]);
        for part in parts {
            let mut shape = Shape::new::<&str>(&[]);
            for at in part {
                shape.observe(&all[at]);
            }
            whole.merge(&shape);
        }
        Layout::of(&targets(&[("Doc", &["k4"])]).datasets[0], &whole, None).schema
    };
    let one = schema(vec![(0..40).collect()]);
    assert_eq!(one, schema((0..40).rev().map(|at| vec![at]).collect()));
    assert_eq!(one, schema(vec![(20..40).collect(), vec![], (0..20).rev().collect()]));
    assert_eq!(one.field(0).name(), "k4");
}

#[test]
fn the_time_of_a_change_is_a_timestamp_and_an_attribute_of_that_name_is_not() {
    let arena = Arena::new();
    let schema = |attributes: &[&[(&'static str, Value<'static>)]]| {
        let targets = targets(&[("Doc", &["_op", "_written_at", "PK"])]);
        let mut shape = Shape::new(&targets.datasets[0].leading);
        for attributes in attributes {
            let mut item = Item::new_in(&arena);
            attributes.iter().for_each(|(name, value)| item.push(name, *value));
            shape.observe(&item);
        }
        Layout::of(&targets.datasets[0], &shape, None).schema
    };
    let change: &[_] = &[("PK", Value::S("a")), ("_written_at", Value::N("1768386096366933")), ("_op", Value::S("put"))];
    let changes = schema(&[change, change]);
    assert_eq!(changes.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["_op", "_written_at", "PK"]);
    assert_eq!(changes.field(1).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    let items = schema(&[change, &[("PK", Value::S("a"))]]);
    assert_eq!(items.field(1).data_type(), &DataType::Int64);
}

fn declared(types: &[(&str, &str)], names: &[(&str, &str)]) -> Declared {
    Declared {
        types: types.iter().map(|(name, column)| ((*name).to_owned(), ColumnType::parse(column).unwrap())).collect(),
        names: names.iter().map(|(name, column)| ((*name).to_owned(), (*column).to_owned())).collect(),
        ..Declared::default()
    }
}

fn sink_for(dialect: Option<Dialect>, dir: &Path, targets: &Arc<Targets>) -> ParquetSink {
    let sink = ParquetSink::new(dir.to_owned(), false, targets.clone(), at_once());
    match dialect {
        Some(dialect) => sink.with_dialect(dialect),
        None => sink,
    }
}

/// The columns of one dataset of which this was declared, after a way through a file; and what is told of them.
fn written_as_declared(declared: Declared, items: &[Attributes<'_>]) -> (Vec<String>, Vec<String>) {
    let (columns, findings, _) = written_for(None, declared, items);
    (columns, findings)
}

/// The same with the names of an engine; and the manifest.
fn written_for(dialect: Option<Dialect>, declared: Declared, items: &[Attributes<'_>]) -> (Vec<String>, Vec<String>, Manifest) {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let dataset = Dataset { name: "Doc".to_owned(), declared, ..Dataset::default() };
    let items: Vec<Item<'_>> = items.iter().map(|attributes| item(&arena, attributes)).collect();
    // What two workers see is joined.
    let mut shape = Shape::of_dataset(&dataset);
    for item in &items {
        let mut one = Shape::of_dataset(&dataset);
        one.observe(item);
        one.compare(item, &dataset.declared);
        shape.merge(&one);
    }
    let targets = Arc::new(Targets { datasets: vec![dataset], ..Targets::default() });
    let sink = sink_for(dialect, dir.path(), &targets);
    sink.prepare(Begin::Anew).unwrap();
    let findings = sink.learn(&[shape]).unwrap();
    let encoder = sink.encoder();
    let mut writer = sink.writer(1).unwrap();
    writer.write(encoder.encode(&outgoing(&[(0, items.clone())])).unwrap(), &mut Vec::new()).unwrap();
    let written = writer.finish(&mut Vec::new()).unwrap();
    sink.commit(std::slice::from_ref(&written)).unwrap();
    let path = dir.path().join("Doc/part-u00001-0000.parquet");
    is_given_back(&path, &items, &targets.datasets[0].declared);
    let manifest = Manifest::read(&Location::Local(dir.path().to_owned())).unwrap();
    let columns = columns_of(&read(&path));
    ahead::is_settled_as(dialect, &targets, &items, &columns);
    (columns, findings, manifest)
}

fn mixed_of(mixed: &[(&str, Mixed)]) -> Declared {
    Declared { mixed_of: mixed.iter().map(|(name, mixed)| ((*name).to_owned(), *mixed)).collect(), ..Declared::default() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The names of these columns.
fn names_of(columns: &[String]) -> Vec<&str> {
    columns.iter().filter_map(|column| column.split_once(": ")).map(|(name, _)| name).collect()
}

#[test]
fn mixed_types_become_what_is_declared_of_them() {
    let items: [Attributes<'_>; 4] = [
        &[("j", N("1")), ("t", S("7")), ("s", N("1")), ("one", N("1E2"))],
        &[("j", S("1")), ("t", N("7.50")), ("s", N("2"))],
        &[("j", L(&[Null])), ("t", Bool(true)), ("s", S("x"))],
        &[("j", Null), ("t", N("1E3"))],
    ];
    let declared = Declared { mixed: Mixed::Json, ..mixed_of(&[("t", Mixed::Text), ("s", Mixed::Split)]) };
    let (columns, findings) = written_as_declared(declared, &items);
    assert_eq!(
        columns,
        [
            r#"j: Utf8 json any = {"N":"1"} | {"S":"1"} | {"L":[{"NULL":true}]} | -"#,
            "one: Int64 N = 100 | - | - | -",
            "s: Int64 N = 1 | 2 | - | -",
            "s__s: Utf8 S = - | - | x | -",
            "t: Utf8 text = 7 | 7.5 | true | 1000",
        ]
    );
    assert_eq!(findings, ["Doc: values of `t` are text in `t`, which does not say what they were: 2 N, 1 S, 1 BOOL"]);
}

#[test]
fn what_has_no_text_cannot_become_text() {
    let dataset = Dataset { name: "Doc".to_owned(), declared: mixed_of(&[("t", Mixed::Text)]), ..Dataset::default() };
    let arena = Arena::new();
    let mut shape = Shape::of_dataset(&dataset);
    for value in [S("x"), L(&[]), S("y")] {
        shape.observe(&item(&arena, &[("t", value)]));
    }
    let error = Layout::check(&dataset, &shape).unwrap_err();
    let told = error.to_string();
    assert!(error.kind() == Kind::Input && told.contains("found: 2 S, 1 L") && told.contains("attribute: t"), "{told}");
}

#[test]
fn a_null_is_told_from_no_attribute_where_that_is_declared() {
    let items: [Attributes<'_>; 3] = [
        &[("a", N("1")), ("a__null", S("x")), ("b", Null), ("c", Null), ("d", S("y"))],
        &[("a", Null), ("m", M(&[("x", Null)]))],
        &[("b", S("z"))],
    ];
    let some = Declared { nulls: Nulls::Of(["a", "d", "e"].map(str::to_owned).into()), ..Declared::default() };
    let (columns, findings) = written_as_declared(some, &items);
    assert_eq!(
        columns,
        [
            "a: Int64 N = 1 | - | -",
            "a__null_: Boolean NULL = - | true | -",
            "a__null: Utf8 S = x | - | -",
            "b: Utf8 S = - | - | z",
            "c: Utf8 NULL = - | - | -",
            "d: Utf8 S = y | - | -",
            "d__null: Boolean NULL = - | - | -",
            "m: {x: Utf8 NULL} M = - | {x: -} | -",
        ]
    );
    assert_eq!(findings, ["Doc: no item has `e`, of which something is declared"]);
    let all = Declared { nulls: Nulls::All, ..Declared::default() };
    let (columns, _) = written_as_declared(all.clone(), &items);
    assert_eq!(names_of(&columns), ["a", "a__null_", "a__null", "b", "b__null", "c", "c__null", "d", "m"]);
    // It is a difference then.
    let arena = Arena::new();
    let (null, absent) = (item(&arena, &[("a", S("k")), ("b", Null)]), item(&arena, &[("a", S("k"))]));
    assert_ne!(canonical(&null, &all), canonical(&absent, &all));
    assert_eq!(canonical(&null, &Declared::default()), canonical(&absent, &Declared::default()));
}

#[test]
fn a_null_that_a_pinned_schema_cannot_tell_does_not_fit_it() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let sink = |nulls: Nulls| {
        let dataset = Dataset { name: "Doc".to_owned(), declared: Declared { nulls, ..Declared::default() }, ..Dataset::default() };
        ParquetSink::new(dir.path().to_owned(), false, Arc::new(Targets { datasets: vec![dataset], ..Targets::default() }), at_once())
    };
    let chunks = vec![vec![(0, vec![item(&arena, &[("a", S("x"))]), item(&arena, &[("a", Null)])])]];
    let schema_of = |nulls: Nulls| {
        let first = sink(nulls);
        first.set_shapes(&shapes_of(1, &chunks)).unwrap();
        SchemaFile::parse(&first.schema().unwrap().unwrap()).unwrap()
    };
    let check = |schema: &SchemaFile, nulls: Nulls| {
        sink(nulls).with_schema(schema).unwrap().checker().unwrap().encode(&outgoing(&chunks[0])).map(drop)
    };
    let (with, without) = (schema_of(Nulls::All), schema_of(Nulls::default()));
    check(&with, Nulls::All).unwrap();
    check(&with, Nulls::default()).unwrap();
    check(&without, Nulls::default()).unwrap();
    let error = check(&without, Nulls::All).unwrap_err();
    assert!(error.kind() == Kind::Input && error.to_string().contains("found: NULL"), "{error}");
}

#[test]
fn declared_attributes_come_first_and_others_share_a_column() {
    let items: [Attributes<'_>; 2] = [
        &[("debug", Bool(true)), ("tmp_a", N("1")), ("tmp_b", Null), ("z", S("z")), ("y", S("y")), ("tmp_c", S("c")), ("tmp", S("t"))],
        &[("y", S("y")), ("k", S("k"))],
    ];
    let declared = Declared {
        order: names(&["z", "none", "k"]),
        rest: names(&["debug", "tmp_*", "debgu", "tpm_*"]).into_iter().collect(),
        names: BTreeMap::from([("tmp_c".to_owned(), "c".to_owned())]),
        nulls: Nulls::Of(["y".to_owned()].into()),
        ..Declared::default()
    };
    let (columns, findings) = written_as_declared(declared, &items);
    assert_eq!(names_of(&columns), ["z", "k", "tmp", "c", "y", "y__null", "__rest"]);
    assert!(columns[6].contains(r#"= {"debug":{"BOOL":true},"tmp_a":{"N":"1"},"tmp_b":{"NULL":true}} | -"#), "{columns:?}");
    let told = [
        "Doc: no item has `none`, of which something is declared",
        "Doc: no item has `debgu`, which is declared as `rest`; did you mean `debug`?",
        "Doc: no item has an attribute whose name begins with `tpm_`, which is declared as `rest`",
    ];
    assert_eq!(findings, told);
}

#[test]
fn with_fewer_columns_the_attributes_of_the_fewest_items_share_one() {
    let items: [Attributes<'_>; 2] =
        [&[("a", S("a")), ("b", M(&[("x", N("1")), ("y", N("2"))])), ("c", S("c"))], &[("b", M(&[("x", N("1"))])), ("c", S("d"))]];
    let with = |columns| written_as_declared(Declared { columns: Some(columns), ..Declared::default() }, &items).0;
    assert_eq!(names_of(&with(4)), ["a", "b", "c"]);
    assert_eq!(names_of(&with(3)), ["b", "c", "__rest"]);
    assert_eq!(names_of(&with(2)), ["b", "__rest"]);
    let asked = Declared { columns: Some(1), order: names(&["a"]), ..Declared::default() };
    assert_eq!(names_of(&written_as_declared(asked, &items).0), ["a", "__rest"]);
}

const DIALECTS: [Dialect; 7] =
    [Dialect::DuckDb, Dialect::Spark, Dialect::Athena, Dialect::Redshift, Dialect::Snowflake, Dialect::BigQuery, Dialect::ClickHouse];

/// Names that one or the other engine does not take, or takes for one.
const ODD: [&str; 12] =
    ["createdAt", "createdat", "GSI1-PK", "Status#Date", "2nd", "a b", "a,b", "Größe", "_PARTITIONTIME", "tab\there", "select", "a.b"];

#[test]
fn names_are_as_each_engine_takes_them_in_structs_too_and_are_found_again() {
    let long = "x".repeat(310);
    let attributes: Vec<&str> = ODD.into_iter().chain([long.as_str()]).collect();
    let inner: Vec<_> = attributes.iter().map(|name| (*name, N("1"))).collect();
    let nested = [M(&inner)];
    let item: Vec<_> = attributes.iter().map(|name| (*name, S("v"))).chain([("m", M(&inner)), ("l", L(&nested))]).collect();
    let mixed: Vec<_> = attributes.iter().map(|name| (*name, N("1"))).collect();
    let location = |dialect| if dialect == Dialect::BigQuery { "gs://lake" } else { "s3://lake" };
    for dialect in DIALECTS {
        let (columns, _, manifest) = written_for(Some(dialect), Declared::default(), &[&item, &mixed, &item]);
        assert_eq!(columns.len(), 2 * attributes.len() + 2, "{dialect:?}");
        assert_eq!(manifest.dialect, Some(dialect));
        let statements = ddl(&manifest, dialect, location(dialect)).unwrap();
        assert!(statements.notes.is_empty() && statements.refused == 0, "{dialect:?}: {:?}", statements.notes);
        assert!(!statements.sql.contains("LOAD DATA") && !statements.sql.contains("caseSensitive"), "{dialect:?}");
        let known: BTreeMap<&str, &str> = manifest.datasets[0]
            .columns
            .iter()
            .filter(|column| column.attribute.is_some() && column.dynamodb.as_deref() == Some("S"))
            .map(|column| (column.attribute.as_deref().unwrap(), column.name.as_str()))
            .collect();
        let expected = match dialect {
            Dialect::DuckDb => ["createdAt", "createdat_", "GSI1-PK", "Status#Date", "2nd", "a b", "_PARTITIONTIME"],
            Dialect::Spark => ["createdAt", "createdat_", "GSI1-PK", "Status#Date", "2nd", "a_b", "_PARTITIONTIME"],
            Dialect::Athena | Dialect::Redshift => ["createdat_", "createdat", "gsi1_pk", "status_date", "2nd", "a_b", "_partitiontime"],
            Dialect::Snowflake => ["createdAt", "createdat_", "GSI1_PK", "Status_Date", "_2nd", "a_b", "_PARTITIONTIME"],
            Dialect::BigQuery => ["createdAt", "createdat_", "GSI1_PK", "Status_Date", "_2nd", "a_b", "__PARTITIONTIME"],
            Dialect::ClickHouse => ["createdAt", "createdat", "GSI1-PK", "Status#Date", "2nd", "a b", "_PARTITIONTIME"],
        };
        let found = ["createdAt", "createdat", "GSI1-PK", "Status#Date", "2nd", "a b", "_PARTITIONTIME"].map(|name| known[name]);
        assert_eq!(found, expected, "{dialect:?}");
        let manifest::ColumnType::List(element) = &manifest.datasets[0].columns.iter().find(|column| column.name == "l").unwrap().kind
        else {
            panic!("a list")
        };
        let manifest::ColumnType::Struct(fields) = &element.kind else { panic!("of structs") };
        let field = fields.iter().find(|field| field.attribute.as_deref().unwrap_or(&field.name) == "GSI1-PK").unwrap();
        assert_eq!(field.name, expected[2], "{dialect:?}");
    }
}

#[test]
fn declared_times_are_timestamps_and_what_does_not_fit_has_a_column_behind_them() {
    let types = [("at", "timestamp"), ("ms", "timestamp(epoch_ms)"), ("s", "timestamp(epoch_s)"), ("us", "timestamp(epoch_us)")];
    assert_eq!(
        written_as_declared(
            declared(&types, &[]),
            &[
                &[("at", S("2026-11-30T10:00:00+01:00")), ("ms", N("1796032800007")), ("s", N("1796032800.5")), ("us", N("-1"))],
                &[("at", S("yesterday")), ("ms", S("1796032800007")), ("s", N("1796032800000"))],
                &[("at", Null), ("ms", N("1E3"))],
                &[("at", N("7"))],
            ]
        ),
        (
            vec![
                "at: Timestamp(µs, \"UTC\") S = 2026-11-30T09:00:00 | - | - | -".to_owned(),
                "at__s: Utf8 S = - | yesterday | - | -".to_owned(),
                "at__n: Int64 N = - | - | - | 7".to_owned(),
                "ms: Timestamp(µs, \"UTC\") N = 2026-11-30T10:00:00.007 | - | 1970-01-01T00:00:01 | -".to_owned(),
                "ms__s: Utf8 S = - | 1796032800007 | - | -".to_owned(),
                "s: Timestamp(µs, \"UTC\") N = 2026-11-30T10:00:00.500 | - | - | -".to_owned(),
                "s__n: Decimal128(14, 1) N = - | 1796032800000.0 | - | -".to_owned(),
                "us: Timestamp(µs, \"UTC\") N = 1969-12-31T23:59:59.999999 | - | - | -".to_owned(),
            ],
            vec![
                "Doc: 2 of 3 values of `at` do not fit timestamp; they are in `at__s`, `at__n`".to_owned(),
                "Doc: 1 of 3 values of `ms` do not fit timestamp(epoch_ms); they are in `ms__s`".to_owned(),
                "Doc: 1 of 2 values of `s` do not fit timestamp(epoch_s); they are in `s__n`".to_owned(),
            ]
        )
    );
}

#[test]
fn a_double_is_only_where_it_is_declared_and_lost_digits_are_counted() {
    assert_eq!(
        written_as_declared(
            declared(&[("d", "double"), ("x", "double")], &[]),
            &[&[("d", N("0.1"))], &[("d", N("9007199254740993"))], &[("d", N("1E-130"))], &[("d", N("-0"))], &[("d", Bool(true))]]
        ),
        (
            vec![
                "d: Float64 N = 0.1 | 9007199254740992.0 | 1e-130 | 0.0 | -".to_owned(),
                "d__bool: Boolean BOOL = - | - | - | - | true".to_owned()
            ],
            vec![
                "Doc: 1 of 4 values of `d` lost digits as a double".to_owned(),
                "Doc: 1 of 5 values of `d` do not fit double; they are in `d__bool`".to_owned(),
                "Doc: no item has `x`, which is declared as double".to_owned(),
            ]
        )
    );
}

#[test]
fn a_declared_column_keeps_its_type_whatever_the_values_are() {
    let types = [("d", "decimal(6,2)"), ("j", "json"), ("t", "text"), ("u", "text"), ("v", "timestamp"), ("w", "text")];
    let (columns, findings) = written_as_declared(
        declared(&types, &[]),
        &[
            &[("d", N("1")), ("j", N("1")), ("t", N("1.50")), ("u", S("x")), ("v", N("1")), ("w", Null)],
            &[("d", N("0.005")), ("j", S("1")), ("t", N("7")), ("u", N("1E3")), ("v", Null)],
            &[("d", N("9999.99")), ("j", L(&[]))],
        ],
    );
    assert_eq!(
        columns,
        [
            "d: Decimal128(6, 2) N = 1.00 | - | 9999.99",
            "d__n: Decimal128(7, 3) N = - | 0.005 | -",
            r#"j: Utf8 json any = {"N":"1"} | {"S":"1"} | {"L":[]}"#,
            "t: Utf8 N = 1.5 | 7 | -",
            "u: Utf8 S = x | - | -",
            "u__n: Utf8 N = - | 1000 | -",
            "v: Timestamp(µs, \"UTC\") S = - | - | -",
            "v__n: Int64 N = 1 | - | -",
            "w: Utf8 S = - | - | -",
        ]
    );
    assert_eq!(
        findings,
        [
            "Doc: 1 of 3 values of `d` do not fit decimal(6,2); they are in `d__n`",
            "Doc: 1 of 1 values of `v` do not fit timestamp; they are in `v__n`"
        ]
    );
}

#[test]
fn a_declared_name_is_the_columns_and_another_attribute_of_this_name_gives_way() {
    let (columns, _) = written_as_declared(
        declared(&[("createdAt", "timestamp")], &[("createdAt", "created_at"), ("a", "b"), ("b", "a")]),
        &[
            &[("createdAt", S("1970-01-01T00:00:00Z")), ("created_at", N("1")), ("a", S("x")), ("b", S("y"))],
            &[("createdAt", S("never")), ("created_at__s", S("z"))],
        ],
    );
    assert_eq!(
        columns,
        [
            "b: Utf8 S = x | -",
            "a: Utf8 S = y | -",
            "created_at: Timestamp(µs, \"UTC\") S = 1970-01-01T00:00:00 | -",
            "created_at__s_: Utf8 S = - | never",
            "created_at_: Int64 N = 1 | -",
            "created_at__s: Utf8 S = - | z",
        ]
    );
}

proptest! {
    // Each case writes two files.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_a_schema_was_made_from_fits_it_when_it_is_pinned(attributes in proptest::collection::vec(items(), 1..12)) {
        let arena = Arena::new();
        let dir = tempfile::tempdir().unwrap();
        let targets = targets(&[("Doc", &["PK"])]);
        let items: Vec<Item<'_>> = attributes.iter().map(|attributes| generate::item(attributes, &arena)).collect();
        let chunks = vec![vec![(0, items.clone())]];
        let first = ParquetSink::new(dir.path().join("first"), false, targets.clone(), at_once());
        first.set_shapes(&shapes_of(1, &chunks)).unwrap();
        let text = first.schema().unwrap().unwrap();
        let pinned = ParquetSink::new(dir.path().join("lake"), false, targets, at_once());
        let pinned = pinned.with_schema(&SchemaFile::parse(&text).unwrap()).unwrap();
        prop_assert_eq!(&pinned.schema().unwrap().unwrap(), &text);
        prop_assert_eq!(&pinned.layouts.get(DatasetId(0)).unwrap().schema, &first.layouts.get(DatasetId(0)).unwrap().schema);
        pinned.checker().unwrap().encode(&outgoing(&chunks[0])).unwrap();
    }
}
