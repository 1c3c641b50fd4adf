//! Items that do not fit a pinned schema: what the user reads.

use super::*;

/// What is told of these attributes, where the schema is that of the first ones: attribute, found, expected.
fn told(first: Attributes<'_>, later: Attributes<'_>) -> [String; 3] {
    told_of(&Declared::default(), first, later)
}

fn told_of(declared: &Declared, first: Attributes<'_>, later: Attributes<'_>) -> [String; 3] {
    let arena = Arena::new();
    let dataset = Dataset { name: "Doc".to_owned(), declared: declared.clone(), ..Dataset::default() };
    let targets = Arc::new(Targets { datasets: vec![dataset], ..Targets::default() });
    let sink = || ParquetSink::new(PathBuf::from("unused"), false, targets.clone(), at_once());
    let made = sink();
    let mut shapes = shapes_of(1, &vec![vec![(0, vec![item(&arena, first)])]]);
    shapes[0].compare(&item(&arena, first), declared);
    made.set_shapes(&shapes).unwrap();
    let schema = SchemaFile::parse(&made.schema().unwrap().unwrap()).unwrap();
    let checker = sink().with_schema(&schema).unwrap().checker().unwrap();
    let error = checker.encode(&outgoing(&[(0, vec![item(&arena, first), item(&arena, later)])])).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.message()), (Kind::Input, "an item does not fit the schema"));
    let facts: BTreeMap<_, _> = error.context().iter().map(|(name, value)| (*name, value.clone())).collect();
    assert_eq!((facts["dataset"].as_str(), facts["line"].as_str()), ("Doc", "7"));
    assert!(facts["hint"].contains("--schema-out"), "{error}");
    ["attribute", "found", "expected"].map(|fact| facts[fact].clone())
}

#[test]
fn what_does_not_fit_is_told_by_its_path_its_type_and_what_the_column_takes() {
    let acl = M(&[("read", L(&[S("ada")])), ("owner", S("eve"))]);
    let first: Attributes<'_> =
        &[("acl", acl), ("n", N("1")), ("sum", N("1.5")), ("ids", Ns(&["1"])), ("tags", Ss(&["a"])), ("l", L(&[L(&[N("1")])]))];
    for (later, expected) in [
        (("acl", M(&[("read", L(&[S("a"), N("1")]))])), ["acl.read[]", "N", "text"]),
        (("acl", M(&[("read", S("a"))])), ["acl.read", "S", "list of text"]),
        (("acl", M(&[("write", Bool(true))])), ["acl.write", "BOOL", "no field of this name in struct(owner, read)"]),
        (("acl", S("all")), ["acl", "S", "struct(owner, read)"]),
        (("n", S("one")), ["n", "S", "int64"]),
        (("n", N("1.5")), ["n", "N that is no integer of 64 bits", "int64"]),
        (("sum", N("123.25")), ["sum", "N with more digits before or after the point", "decimal(2, 1)"]),
        (("ids", Ns(&["2", "2.5"])), ["ids[]", "N that is no integer of 64 bits", "int64"]),
        (("tags", L(&[S("a")])), ["tags", "L", "set of text"]),
        (("l", L(&[L(&[]), L(&[N("1"), S("b")])])), ["l[][]", "S", "int64"]),
        (("late", Bool(true)), ["late", "BOOL", "no such attribute"]),
    ] {
        assert_eq!(told(first, &[later]), expected);
    }
    let first: Attributes<'_> = &[("m", L(&[M(&[("a", N("1"))])]))];
    assert_eq!(told(first, &[("m", L(&[M(&[("a", B(b"x"))])]))]), ["m[].a", "B", "int64"]);
    let names: Vec<String> = (0..100).map(|at| format!("k{at}")).collect();
    let many: Vec<(&str, Value<'_>)> = names.iter().map(|name| (name.as_str(), N("1"))).collect();
    assert_eq!(told(&[("m", M(&many))], &[("m", M(&[("x", Bool(true))]))]), ["m.x", "BOOL", "int64"]);
    assert_eq!(told(&[("m", M(&many))], &[("m", S("x"))]), ["m", "S", "map of int64"]);
}

#[test]
fn attributes_that_differ_in_case_alone_are_told_apart() {
    let first: Attributes<'_> = &[("Tag", S("a")), ("tag", N("1"))];
    assert_eq!(told(first, &[("Tag", N("1"))]), ["Tag", "N", "text"]);
    assert_eq!(told(first, &[("tag", S("1"))]), ["tag", "S", "int64"]);
    assert_eq!(told(first, &[("TAG", S("1"))]), ["TAG", "S", "no such attribute; `Tag` is another one"]);
    let declared = Declared { names: BTreeMap::from([("Tag".to_owned(), "Label".to_owned())]), ..Declared::default() };
    assert_eq!(told_of(&declared, first, &[("Tag", N("1"))]), ["Tag", "N", "text in the column `Label`"]);
}

#[test]
fn a_value_that_does_not_fit_a_declared_type_is_told_so() {
    let types = BTreeMap::from([("at".to_owned(), ColumnType::Timestamp)]);
    let declared = Declared { types, ..Declared::default() };
    let told = told_of(&declared, &[("at", S("2026-11-30T10:00:00Z"))], &[("at", S("soon"))]);
    assert_eq!(told, ["at", "S that is no date and time", "timestamp(iso)"]);
}
