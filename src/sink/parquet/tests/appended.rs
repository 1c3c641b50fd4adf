//! Items that come to a table whose columns are typed already.

use super::*;
use crate::sink::parquet::manifest::ColumnType;

/// The columns of a table that was made from these items.
fn table_of(targets: &Arc<Targets>, items: &[Item<'_>]) -> SchemaFile {
    let first = ParquetSink::new(PathBuf::from("unused"), false, targets.clone(), at_once());
    first.set_shapes(&shapes_of(1, &vec![vec![(0, items.to_vec())]])).unwrap();
    SchemaFile::parse(&first.schema().unwrap().unwrap()).unwrap()
}

/// Ids for columns; what they are is all the same here.
fn ids_of(columns: &[Column]) -> Vec<FieldId> {
    let inside = |column: &Column| match &column.kind {
        ColumnType::List(element) => ids_of(std::slice::from_ref(element)),
        ColumnType::Struct(fields) => ids_of(fields),
        ColumnType::Map(value) => [vec![FieldId { id: 1, inside: Vec::new() }], ids_of(std::slice::from_ref(value))].concat(),
        _ => Vec::new(),
    };
    columns.iter().map(|column| FieldId { id: 1, inside: inside(column) }).collect()
}

/// Writes the later items to a table of the first ones, and to a dataset whose schema is pinned to that of the first ones; each gives them back.
/// Gives the columns of both.
fn appended_and_pinned(first: &[Attributes<'_>], later: &[Attributes<'_>]) -> (Vec<String>, Vec<String>) {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("Doc", &[])]);
    let first: Vec<Item<'_>> = first.iter().map(|attributes| item(&arena, attributes)).collect();
    let later: Vec<Item<'_>> = later.iter().map(|attributes| item(&arena, attributes)).collect();
    let table = table_of(&targets, &first);
    let chunks = vec![vec![(0, later.clone())]];
    let written = |sink: ParquetSink| {
        sink.prepare(Begin::Anew).unwrap();
        let mut writer = sink.writer(1).unwrap();
        writer.write(sink.encoder().encode(&outgoing(&chunks[0])).unwrap(), &mut Vec::new()).unwrap();
        let written = writer.finish(&mut Vec::new()).unwrap();
        sink.commit(std::slice::from_ref(&written)).unwrap();
        let path = sink.folder.address().map(|folder| Path::new(&folder).join(&written.files[0].path)).unwrap();
        is_read_back(&path, &later);
        columns_of(&read(&path))
    };
    let sink = |name: &str| ParquetSink::new(dir.path().join(name), false, targets.clone(), at_once());
    let mut choose = |_: DatasetId, _: &Dataset, columns: &[Column], _: &dyn Fn(&str) -> Option<String>| {
        Ok(Files { stem: "Doc/data".to_owned(), ids: ids_of(columns) })
    };
    let (fixed, _) = sink("lake").fixed(&shapes_of(1, &chunks), &table, &mut choose).unwrap();
    (written(fixed), written(sink("pinned").with_schema(&table).unwrap()))
}

#[test]
fn empty_lists_and_maps_and_lists_of_null_alone_go_to_columns_that_are_typed_already() {
    let first: &[Attributes<'_>] = &[&[
        ("list", L(&[S("a")])),
        ("structs", L(&[M(&[("x", N("1"))])])),
        ("nested", L(&[L(&[N("1")])])),
        ("struct", M(&[("x", N("1")), ("l", L(&[Bool(true)]))])),
        ("inside", M(&[("l", L(&[S("a")])), ("m", M(&[("x", S("a"))]))])),
    ]];
    let later: &[Attributes<'_>] = &[
        &[
            ("list", L(&[])),
            ("structs", L(&[])),
            ("nested", L(&[L(&[]), Null, L(&[Null])])),
            ("struct", M(&[])),
            ("inside", M(&[("l", L(&[])), ("m", M(&[]))])),
        ],
        &[("list", L(&[Null, Null])), ("structs", L(&[M(&[]), Null])), ("struct", Null)],
        &[("inside", M(&[("l", L(&[Null]))]))],
    ];
    let (appended, pinned) = appended_and_pinned(first, later);
    assert_eq!(
        appended,
        [
            "inside: {l: [Utf8 S] L, m: {x: Utf8 S} M} M = {l: [], m: {x: -}} | - | {l: [-], m: -}",
            "list: [Utf8 S] L = [] | [-, -] | -",
            "nested: [[Int64 N] L] L = [[], -, [-]] | - | -",
            "struct: {l: [Boolean BOOL] L, x: Int64 N} M = {l: -, x: -} | - | -",
            "structs: [{x: Int64 N} M] L = [] | [{x: -}, -] | -",
        ]
    );
    assert_eq!(pinned, appended);
}

#[test]
fn empty_maps_go_to_a_column_of_maps_whose_keys_are_data() {
    let names: Vec<String> = (0..100).map(|at| format!("k{at:03}")).collect();
    let many: Vec<(&str, Value<'_>)> = names.iter().map(|name| (name.as_str(), L(&[N("1")]))).collect();
    let empty: Vec<(&str, Value<'_>)> = names.iter().map(|name| (name.as_str(), L(&[]))).collect();
    let first: &[Attributes<'_>] = &[&[("m", M(&many)), ("n", M(&many))]];
    let (appended, pinned) = appended_and_pinned(first, &[&[("m", M(&[])), ("n", M(&empty))], &[("m", M(&[("k", L(&[Null]))]))]]);
    assert!(appended[0].starts_with("m: {Utf8 -> [Int64 N] L} M = {} | {k: [-]}"), "{appended:#?}");
    assert!(appended[1].starts_with("n: {Utf8 -> [Int64 N] L} M = {k000: [], k001: [], "), "{appended:#?}");
    assert_eq!(pinned, appended);
}
