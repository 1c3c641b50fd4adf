//! What lines give which items, what is refused and with which words, round trips of generated items, and the comparison with ion-rs.

use ion_rs::{Element, IonType, TextFormat, WriteConfig, v1_0};
use proptest::prelude::*;

use super::*;
use crate::codec::generate::{self, items};
use crate::codec::{self, LEVELS, ddb_json};
use crate::error::Stage;
use crate::model::Op;
use crate::model::number::{self, Decimal};

/// The rule and message of a refused line.
fn refused(line: &str) -> String {
    let arena = Arena::new();
    match decode_line(line, &arena) {
        Ok(decoded) => panic!("{line} gave {:?}", decoded.record),
        Err(Reason { stage, rule, message }) => {
            assert_eq!(stage, Stage::Decode);
            format!("{rule}: {message}")
        }
    }
}

/// The line's item.
fn item<'a>(line: &'a str, arena: &'a Arena) -> Item<'a> {
    match decode_line(line, arena).unwrap_or_else(|reason| panic!("{line}: {reason}")).record {
        Record::Item(item) => item,
        Record::Change(change) => panic!("{change:?}"),
    }
}

/// The line after decoding and encoding.
fn again(line: &str) -> String {
    let arena = Arena::new();
    let mut out = Vec::new();
    write_line(&item(line, &arena), &mut out);
    String::from_utf8(out).unwrap()
}

/// The line's item in `DynamoDB` JSON.
fn json(line: &str) -> String {
    let arena = Arena::new();
    let mut out = Vec::new();
    ddb_json::write_item(&item(line, &arena), &mut out);
    String::from_utf8(out).unwrap()
}

/// What a number in Ion becomes.
fn number(text: &str) -> String {
    let (line, arena) = (format!("{{Item:{{a:{text}}}}}"), Arena::new());
    match item(&line, &arena).get("a") {
        Some(Value::N(text)) => text.to_owned(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn lines_of_real_exports_are_read() {
    let line = r#" $ion_1_0 {Item:{PK0:"IdEntry:01785e00ca29-59b56bb3-32cf-46bd-9520-ef777b9a521a",SK0:"IdEntry:01785e00ca29-59b56bb3-32cf-46bd-9520-ef777b9a521a",type:"IdEntry"}}"#;
    let expected = r#"{"PK0":{"S":"IdEntry:01785e00ca29-59b56bb3-32cf-46bd-9520-ef777b9a521a"},"SK0":{"S":"IdEntry:01785e00ca29-59b56bb3-32cf-46bd-9520-ef777b9a521a"},"type":{"S":"IdEntry"}}"#;
    assert_eq!(json(line), expected);
    assert_eq!(again(line), format!("{}\n", line.trim_start()));
    let line = r#"$ion_1_0 {Item:{Authors:$dynamodb_SS::["Author1","Author2"],Dimensions:"8.5 x 11.0 x 1.5",ISBN:"333-3333333333",Id:103.,InPublication:false,PageCount:6d2,Price:2d3,ProductCategory:"Book",Title:"Book 103 Title"}}"#;
    let expected = r#"{"Authors":{"SS":["Author1","Author2"]},"Dimensions":{"S":"8.5 x 11.0 x 1.5"},"ISBN":{"S":"333-3333333333"},"Id":{"N":"103"},"InPublication":{"BOOL":false},"PageCount":{"N":"600"},"Price":{"N":"2000"},"ProductCategory":{"S":"Book"},"Title":{"S":"Book 103 Title"}}"#;
    assert_eq!(json(line), expected);
    assert_eq!(again(line), format!("{line}\n"));
    for (ion, json) in [("1d1", "10"), ("6d2", "600"), ("2d3", "2000"), ("616d2", "61600"), ("18534d1", "185340"), ("1334.", "1334")] {
        assert_eq!(number(ion), json);
        assert_eq!(again(&format!("{{Item:{{a:{ion}}}}}")), format!("$ion_1_0 {{Item:{{a:{ion}}}}}\n"));
    }
    assert_eq!(number("1.70206220242E+12"), "1702062202420");
}

#[test]
fn every_type_is_read_as_it_stands() {
    let line = concat!(
        r#"$ion_1_0 {Item:{PK:"WS#acme",seats:12.5,key:{{AAEC/w==}},open:true,shut:false,gone:null,owner:{id:"u1",none:{}},"#,
        r#"rows:[1.,[],"",null],tags:$dynamodb_SS::["b","a"],sizes:$dynamodb_NS::[3.,1d2],parts:$dynamodb_BS::[{{}},{{Zm9v}}],empty:$dynamodb_SS::[]}}"#
    );
    let arena = Arena::new();
    let decoded = decode_line(line, &arena).unwrap();
    let inside = &line[15..line.len() - 1];
    assert_eq!(decoded.source, Raw { format: Format::Ion, part: Part::Item, bytes: inside.as_bytes() });
    let expected = [
        ("PK", Value::S("WS#acme")),
        ("seats", Value::N("12.5")),
        ("key", Value::B(&[0, 1, 2, 255])),
        ("open", Value::Bool(true)),
        ("shut", Value::Bool(false)),
        ("gone", Value::Null),
        ("owner", Value::M(&[("id", Value::S("u1")), ("none", Value::M(&[]))])),
        ("rows", Value::L(&[Value::N("1"), Value::L(&[]), Value::S(""), Value::Null])),
        ("tags", Value::Ss(&["b", "a"])),
        ("sizes", Value::Ns(&["3", "100"])),
        ("parts", Value::Bs(&[b"", b"foo"])),
        ("empty", Value::Ss(&[])),
    ];
    assert_eq!(item(line, &arena).attributes(), expected);
    assert_eq!(decode_attributes(inside, &arena).unwrap().attributes(), expected);
    let by_name = concat!(
        r#"$ion_1_0 {Item:{PK:"WS#acme",empty:$dynamodb_SS::[],gone:null,key:{{AAEC/w==}},open:true,owner:{id:"u1",none:{}},"#,
        r#"parts:$dynamodb_BS::[{{}},{{Zm9v}}],rows:[1.,[],"",null],seats:12.5,shut:false,sizes:$dynamodb_NS::[3.,1d2],"#,
        r#"tags:$dynamodb_SS::["b","a"]}}"#,
        "\n"
    );
    assert_eq!(again(line), by_name);
}

#[test]
fn blanks_comments_and_markers_may_stand_wherever_ion_allows_them() {
    let expected = "$ion_1_0 {Item:{a:1.,b:[\"x\",$dynamodb_SS::[\"p\",\"q\"]],c:{d:{{AAE=}}}}}\n";
    for line in [
        " \t$ion_1_0\r\n$ion_1_0 // a comment\n {Item :{ a : 1. ,\u{b}b: [ \"x\" , $dynamodb_SS :: [ \"p\" ,\"q\" , ], ] ,\u{c}c:{ d : {{ A A\nE= }} , } , } , } $ion_1_0 \n",
        "/**/$ion_1_0/***/{/* { */Item/**/:/**/{a:1./**/,b:[\"x\"/* \" */,$dynamodb_SS/**/::/**/[\"p\",\"q\"]],c:{d:{{AAE=}}}}}//",
        "{Item:{a:1.,b:[\"x\",'$dynamodb_SS'::[\"p\",\"q\"]],c:{d:{{AAE=}}}}}",
        "{a:1.,b:[\"x\",$dynamodb_SS::[\"p\",\"q\"]],c:{d:{{AAE=}}}}",
    ] {
        assert_eq!(again(line), expected, "{line}");
    }
}

#[test]
fn names_are_read_in_any_quotes_and_written_in_quotes_only_where_they_must() {
    let line = concat!(
        r#"{Item:{"double quoted":1.,'single quoted':2.,'''long ''' '''quoted''':3.,handle:4.,'handle-name':5.,'null':6.,'true':7.,'nan':8.,"#,
        r#"'$7':9.,'$ion_1_0':10.,'':11.,'7':12.,_a1:13.,é:14.}}"#
    )
    .replace("é:", r"'\u00e9\'':");
    let expected = concat!(
        r#"$ion_1_0 {Item:{'':11.,'$7':9.,'$ion_1_0':1d1,'7':12.,_a1:13.,'double quoted':1.,handle:4.,'handle-name':5.,'long quoted':3.,"#,
        r#"'nan':8.,'null':6.,'single quoted':2.,'true':7.,'é\'':14.}}"#,
        "\n"
    );
    assert_eq!(again(&line), expected);
    assert_eq!(again("{Item:{$ion_1_0:1.,$x:2.,nulls:3.,S:{S:{}}}}"), "$ion_1_0 {Item:{'$ion_1_0':1.,'$x':2.,S:{S:{}},nulls:3.}}\n");
}

#[test]
fn numbers_become_the_plain_digits_that_json_has() {
    for (ion, expected) in [
        ("103.", "103"),
        ("0.", "0"),
        ("-0.", "0"),
        ("0.0", "0"),
        ("-0.000", "0"),
        ("0d5", "0"),
        ("0d999999999", "0"),
        ("12.5", "12.5"),
        ("-12.50", "-12.5"),
        ("0.0012", "0.0012"),
        ("1.2d-3", "0.0012"),
        ("5d-1", "0.5"),
        ("616D2", "61600"),
        ("1.5d+1", "15"),
        ("100.00", "100"),
        ("123d-4", "0.0123"),
        ("1_000.000_1", "1000.0001"),
        ("7", "7"),
        ("-0", "0"),
        ("-42", "-42"),
        ("1_000", "1000"),
        ("1e0", "1"),
        ("1.25E-1", "0.125"),
        ("-15.789e6", "-15789000"),
        ("0x1F", "31"),
        ("-0X1_f", "-31"),
        ("0b1_01", "5"),
        ("-0b0", "0"),
        ("0xffffffffffffffffffffffffffffffff", "340282366920938463463374607431768211455"),
    ] {
        assert_eq!(number(ion), expected, "{ion}");
    }
    assert_eq!(number("1d125"), format!("1{}", "0".repeat(125)));
    assert_eq!(number("1d-130"), format!("0.{}1", "0".repeat(129)));
    assert_eq!(number("123d-40"), format!("0.{}123", "0".repeat(37)));
    let long = "1234567890".repeat(14);
    assert_eq!(number(&format!("{long}.")), long);
    // So many digits that they could be those of an attack, and the limits refuse the number anyhow.
    for (ion, expected) in
        [("1d126", "1e126"), ("-1.5D999999999", "-1.5e999999999"), ("1d-99999999999999999999", "1e-99999999999999999999")]
    {
        assert_eq!(number(ion), expected);
        assert!(Decimal::parse(expected).unwrap().check().is_err());
    }
}

#[test]
fn numbers_are_written_as_decimals_in_the_spelling_of_exports() {
    let write = |text: &str| {
        let mut out = Vec::new();
        write_value(&Value::N(text), &mut out);
        String::from_utf8(out).unwrap()
    };
    for (text, expected) in [
        ("1", "1."),
        ("0", "0."),
        ("-0.0", "0."),
        ("10", "1d1"),
        ("61600", "616d2"),
        ("-103", "-103."),
        ("12.50", "12.5"),
        ("0.5", "5d-1"),
        ("0.0012", "1.2d-3"),
        ("1e125", "1d125"),
        ("1.5E2", "15d1"),
        ("1e-130", "1d-130"),
        ("1234567890123456789012345678901234567.8", "1234567890123456789012345678901234567.8"),
        ("no number", "nan"),
    ] {
        assert_eq!(write(text), expected, "{text}");
    }
}

#[test]
fn escapes_stand_for_their_characters_and_only_needful_ones_are_written() {
    let line = r#"{Item:{'\u00e9':"\"\'\\\/\?\0\a\b\t\n\v\f\r\x1F\xe9\u2028\ud83d\uDE00\U0001F600é"}}"#;
    let arena = Arena::new();
    let text = "\"'\\/?\0\u{7}\u{8}\t\n\u{b}\u{c}\r\u{1f}é\u{2028}😀😀é";
    assert_eq!(item(line, &arena).attributes(), [("é", Value::S(text))]);
    let written = "$ion_1_0 {Item:{'é':\"\\\"'\\\\/?\\x00\\x07\\x08\\t\\n\\x0b\\x0c\\r\\x1fé\u{2028}😀😀é\"}}\n";
    assert_eq!(again(line), written);
    assert_eq!(again(written), written);
    // Controls as they are, and an escaped line end that stands for nothing.
    assert_eq!(item("{Item:{a:\"x\ty\u{1}\u{7f}\\\nz\\\r\nz\"}}", &arena).get("a"), Some(Value::S("x\ty\u{1}\u{7f}zz")));
}

#[test]
fn long_texts_are_joined() {
    let arena = Arena::new();
    let line = "{Item:{a:'''it's ''fine'' ''' /* and */ '''so\\n\\\non\r\n\r'''   ,b:[''' ''', \"\", '''''']}}";
    let item = item(line, &arena);
    assert_eq!(item.get("a"), Some(Value::S("it's ''fine'' so\non\n\n")));
    assert_eq!(item.get("b"), Some(Value::L(&[Value::S(" "), Value::S(""), Value::S("")])));
}

#[test]
fn a_null_of_any_type_is_a_null() {
    let types = ["null", "bool", "int", "float", "decimal", "timestamp", "symbol", "string", "clob", "blob", "struct", "list", "sexp"];
    for name in types {
        assert_eq!(again(&format!("{{Item:{{a:null.{name}}}}}")), "$ion_1_0 {Item:{a:null}}\n");
    }
    for wrong in ["null.", "null.text", "null.strings"] {
        assert_eq!(
            refused(&format!("{{Item:{{a:{wrong}}}}}")),
            "ion: column 14, attribute a: `null.` without one of Ion's types behind it"
        );
    }
}

#[test]
fn texts_and_numbers_without_escapes_borrow_from_the_line() {
    let line = r#"$ion_1_0 {Item:{name:"a text of some length",n:103.,'q q':-12.50}}"#;
    let arena = Arena::new();
    let item = item(line, &arena);
    let inside = |text: &str| line.as_bytes().as_ptr_range().contains(&text.as_ptr());
    for (name, value) in item.attributes() {
        let (Value::S(text) | Value::N(text)) = value else { panic!("{item:?}") };
        assert!(inside(name) && inside(text), "{name}");
    }
}

#[test]
fn change_records_are_told_by_their_images() {
    let (keys, old, new) = (r#"Keys:{PK:"a"}"#, r#"OldImage:{PK:"a",n:1.}"#, r#"NewImage:{PK:"a"}"#);
    let metadata = "Metadata:{WriteTimestampMicros:1684374845117899.}";
    for (members, op, attributes) in [
        (format!("{keys},{metadata},{new}"), Op::Put, 1),
        (format!("{keys},{metadata},{old},{new}"), Op::Update, 1),
        (format!("{metadata},{keys},{old},"), Op::Delete, 2),
        (format!("{metadata},{keys}"), Op::Delete, 1),
        (format!("{keys},Metadata:{{Other:[1],WriteTimestampMicros:\"1684374845117899\"}}"), Op::Delete, 1),
        (format!("{keys},Metadata:{{WriteTimestampMicros:1684374845117899}}"), Op::Delete, 1),
    ] {
        for line in [format!(" $ion_1_0 {{Record:{{{members}}}}}"), format!("{{{members}}}"), format!("{{ Record : {{{members}}} , }}")] {
            let arena = Arena::new();
            let Decoded { record: Record::Change(change), source, .. } =
                decode_line(&line, &arena).unwrap_or_else(|reason| panic!("{line}: {reason}"))
            else {
                panic!("{line}")
            };
            assert_eq!((change.op(), change.written_at), (op, 1_684_374_845_117_899), "{line}");
            assert_eq!((source.format, source.part, source.bytes), (Format::Ion, Part::Change, format!("{{{members}}}").as_bytes()));
            assert_eq!(change.keys.get("PK"), Some(Value::S("a")));
            assert_eq!(change.into_image().1.attributes().len(), attributes);
        }
    }
    let arena = Arena::new();
    let line = format!("{{Record:{{{keys},Metadata:{{WriteTimestampMicros:16843748451178d2}}}}}}");
    let Ok(Decoded { record: Record::Change(change), .. }) = decode_line(&line, &arena) else { panic!("{line}") };
    assert_eq!(change.written_at, 1_684_374_845_117_800);
    for (line, expected) in [
        (format!("{{{metadata}}}"), "not-an-item: column 52: a change record without `Keys`"),
        (format!("{{{keys}}}"), "not-an-item: column 16: a change record without `Metadata`; expected its WriteTimestampMicros"),
        (format!("{{{keys},Metadata:{{}}}}"), "not-an-item: column 25: `Metadata` without WriteTimestampMicros"),
        (
            format!("{{{keys},Metadata:{{WriteTimestampMicros:1.5}}}}"),
            "not-an-item: column 25: WriteTimestampMicros is no number of microseconds",
        ),
        (
            format!("{{Item:{{}},{keys},{metadata}}}"),
            "not-an-item: column 74: an `Item` together with parts of a change record; expected one of the two",
        ),
        (format!("{{{keys},{keys},{metadata}}}"), "not-an-item: column 16: a second `Keys` in the line"),
        (format!("{{Record:{{{keys},{metadata}}},Item:{{}}}}"), "ion: column 75: a symbol; expected `}` after the record"),
        ("{Record:[]}".to_owned(), "not-an-item: column 9: a list under `Record`; expected a struct"),
        ("{Record:{}}".to_owned(), "not-an-item: column 11: no `Item` in the line"),
    ] {
        assert_eq!(refused(&line), expected, "{line}");
    }
}

#[test]
fn what_is_no_item_is_named() {
    for (line, expected) in [
        ("", "not-an-item: column 1: an empty line; expected `$ion_1_0 {Item:{…}}`"),
        (" $ion_1_0 ", "not-an-item: column 11: an empty line; expected `$ion_1_0 {Item:{…}}`"),
        ("$ion_1_0 [{Item:{a:1.}}]", "not-an-item: column 10: a list; expected `$ion_1_0 {Item:{…}}`"),
        ("$ion_1_0 {{AAAA}}", "not-an-item: column 10: a blob; expected `$ion_1_0 {Item:{…}}`"),
        ("$ion_1_0 Item", "not-an-item: column 10: a symbol; expected `$ion_1_0 {Item:{…}}`"),
        ("$ion_1_0", "not-an-item: column 9: an empty line; expected `$ion_1_0 {Item:{…}}`"),
        ("$ion_1_1 {Item:{a:1.}}", "not-an-item: column 1: another version of Ion; expected `$ion_1_0 {Item:{…}}`"),
        (
            "$ion_1_0 $ion_symbol_table::{symbols:[\"a\"]}",
            "symbol-table: column 10: a symbol table, which a line of an export does not have; expected `$ion_1_0 {Item:{…}}`",
        ),
        (
            "\u{feff}$ion_1_0 {}",
            "not-an-item: column 1: a byte-order mark at the start of the line; save the file without it; expected `$ion_1_0 {Item:{…}}`",
        ),
        ("{}", "not-an-item: column 3: an empty struct; expected `$ion_1_0 {Item:{…}}`"),
        ("{Item:{},Extra:1}", "not-an-item: column 10: field `Extra` beside or instead of `Item`; expected `$ion_1_0 {Item:{…}}`"),
        ("{Item:[]}", "not-an-item: column 7: a list under `Item`; expected a struct of attributes"),
        ("{Item:null.struct}", "not-an-item: column 7: null under `Item`; expected a struct of attributes"),
        ("{Item:{{}}}", "not-an-item: column 7: a blob under `Item`; expected a struct of attributes"),
        ("{Item:a::{}}", "not-an-item: column 7: a symbol under `Item`; expected a struct of attributes"),
        ("{Item:{},Item:{}}", "not-an-item: column 10: a second `Item` in the line"),
        ("{Item:{}}{Item:{}}", "ion: column 10: a struct; expected the end of the line; one item a line"),
        ("{Item:{}} x", "ion: column 11: a symbol; expected the end of the line; one item a line"),
        ("{Item:{}", "ion: column 9: the end of the line; expected `,` or `}`"),
        (
            r#"{"Item":{"PK":{"S":"a"},"n":{"N":"1"}}}"#,
            "not-an-item: column 1: a line of DynamoDB JSON among lines of Amazon Ion; the first record says how all of them are written, so put each kind into a file of its own",
        ),
    ] {
        assert_eq!(refused(line), expected, "{line}");
    }
    // A map that looks like a typed value is a map where something else says that the line is Ion.
    assert_eq!(again(r#"$ion_1_0 {Item:{a:{S:"x"}}}"#), "$ion_1_0 {Item:{a:{S:\"x\"}}}\n");
    assert_eq!(again(r#"{Item:{a:{S:"x"},b:"y"}}"#), "$ion_1_0 {Item:{a:{S:\"x\"},b:\"y\"}}\n");
}

#[test]
fn a_wrong_value_is_refused_with_its_column_and_its_attribute() {
    for (attributes, expected) in [
        ("a:foo", "ion-type: column 10, attribute a: a symbol where a value belongs; text is written in double quotes"),
        ("a:'foo'", "ion-type: column 10, attribute a: a symbol where a value belongs; text is written in double quotes"),
        ("a:[foo]", "ion-type: column 11, attribute a[0]: a symbol where a value belongs; text is written in double quotes"),
        ("a:2007-02-23T12:14Z", "ion-type: column 10, attribute a: a timestamp where a value belongs; DynamoDB has no such type"),
        ("a:2007T", "ion-type: column 10, attribute a: a timestamp where a value belongs; DynamoDB has no such type"),
        (r#"a:{{"text"}}"#, "ion-type: column 10, attribute a: a clob where a value belongs; DynamoDB has no such type"),
        ("a:{{ '''text''' }}", "ion-type: column 10, attribute a: a clob where a value belongs; DynamoDB has no such type"),
        ("a:(1. 2.)", "ion-type: column 10, attribute a: an s-expression, which DynamoDB has no type for; expected a value"),
        ("a:nan", "number: column 10, attribute a: nan, which is no number to DynamoDB"),
        ("a:+inf", "number: column 10, attribute a: +inf, which is no number to DynamoDB"),
        ("a:-inf", "number: column 10, attribute a: -inf, which is no number to DynamoDB"),
        (
            "a:0x100000000000000000000000000000000",
            "number: column 10, attribute a: an integer of more than 128 bits; DynamoDB's numbers have 38 digits",
        ),
        (
            "a:x::[1.]",
            "annotation: column 10, attribute a: unknown annotation `x`; expected one of $dynamodb_SS, $dynamodb_NS, $dynamodb_BS",
        ),
        ("a:$dynamodb_SS::x::[\"1\"]", "annotation: column 24, attribute a: a symbol annotated as SS; expected a list"),
        ("a:$dynamodb_SS::\"x\"", "annotation: column 24, attribute a: text annotated as SS; expected a list"),
        ("a:$dynamodb_NS::null.list", "annotation: column 24, attribute a: null annotated as NS; expected a list"),
        ("a:$dynamodb_SS", "ion-type: column 10, attribute a: a symbol where a value belongs; text is written in double quotes"),
        ("a:$dynamodb_SS::[\"x\",1.]", "ion-type: column 29, attribute a[1]: a number in a set of type SS; expected text"),
        ("a:$dynamodb_NS::[null]", "ion-type: column 25, attribute a[0]: null in a set of type NS; expected a number"),
        ("a:$dynamodb_BS::[\"x\"]", "ion-type: column 25, attribute a[0]: text in a set of type BS; expected a blob"),
        ("a:$dynamodb_BS::[,]", "ion: column 25, attribute a[0]: `,` in a set of type BS; expected a blob"),
        (
            "a:$10",
            "symbol-table: column 10, attribute a: the number $10 of a symbol in place of its text; a line of an export has no symbol table",
        ),
        ("$10:1.", "symbol-table: column 8: the number $10 of a symbol in place of its text; a line of an export has no symbol table"),
        ("a:{null:1.}", "ion: column 11, attribute a: the keyword null where a field name belongs; as a name it is written 'null'"),
        ("a::b:1.", "ion: column 10: an annotation where a field name belongs"),
        ("5:1.", "ion: column 8: a number; expected a field name"),
        (
            "a:{{A}}",
            "base64: column 12, attribute a: the text of a blob is no base64; expected the standard alphabet (A-Z a-z 0-9 + /) with padding",
        ),
        ("a:{{AA==} }", "ion: column 17, attribute a: `}`; expected `}}` after a blob"),
        ("a:1.,b:2.,a:3.", "duplicate-attribute: column 18, attribute a: the name stands there twice; expected once"),
        ("m:{x:1.,'\\x78':2.}", "duplicate-attribute: column 16, attribute m.x: the name stands there twice; expected once"),
        (r#"a:"\y""#, r"escape: column 11, attribute a: a backslash that starts no Ion escape; a backslash itself is written \\"),
        (r#"a:"\xg0""#, r"escape: column 11, attribute a: \x without two hexadecimal digits"),
        (r#"a:"\u12g4""#, r"escape: column 11, attribute a: \u without four hexadecimal digits"),
        (r#"a:"\U0000g000""#, r"escape: column 11, attribute a: \U without eight hexadecimal digits"),
        (r#"a:"\U00110000""#, r"escape: column 11, attribute a: the number of no character; the last one is \U0010ffff"),
        (r#"a:"\ud83d""#, "escape: column 11, attribute a: half of a surrogate pair without its other half; it stands for no character"),
        (
            r#"a:"\ude00\ud83d""#,
            "escape: column 11, attribute a: half of a surrogate pair without its other half; it stands for no character",
        ),
        (
            r#"a:"\U0000d83d""#,
            "escape: column 11, attribute a: half of a surrogate pair without its other half; it stands for no character",
        ),
        ("a:\"x\ny\"", r"escape: column 12, attribute a: a line end inside a text; Ion wants it written \n"),
        ("'\r':1.", r"escape: column 9: a line end inside a text; Ion wants it written \r"),
        ("a:1.,,", "ion: column 13: `,`; expected a field name"),
        ("a:[1.,,]", "ion: column 14, attribute a[1]: `,`; expected a value"),
        ("a:,", "ion: column 10, attribute a: `,`; expected a value"),
        ("a:1. b:2.", "ion: column 13: a symbol; expected `,` or `}` after a value"),
        ("a 1.", "ion: column 10: a number; expected `:` after a field name"),
        ("a:/* x", "ion: column 10, attribute a: a comment that does not end; expected a value"),
    ] {
        assert_eq!(refused(&format!("{{Item:{{{attributes}}}}}")), expected, "{attributes}");
    }
    for wrong in [
        "01.", "1..", "1.2.3", "1_", "_1.", "1__0", "1._5", "1d", "1d+", "1d1_0", "1d1.5", "0x", "0x_1", "0xg", "0b2", "-", "--1", "1a",
        "1.5é",
    ] {
        let message = refused(&format!("{{Item:{{a:{wrong}}}}}"));
        assert!(message.contains("what starts like a number but is none") || wrong == "_1.", "{wrong}: {message}");
    }
}

#[test]
fn a_cut_line_is_refused_wherever_it_is_cut() {
    let line = r#" $ion_1_0 {Item:{a:"x\u00e9\n",'b':[true,{c:$dynamodb_BS::[{{AA==}}]},'''l'''],d:null.list,n:1.5d2}} "#;
    again(line);
    for end in 0..line.len() - 1 {
        let reason = refused(&line[..end]);
        assert!(["ion:", "not-an-item:", "ion-type:"].iter().any(|rule| reason.starts_with(rule)), "{end}: {reason}");
    }
}

#[test]
fn depth_is_bounded_whatever_the_line_holds() {
    let nested =
        |levels: usize, open: &str, close: &str| format!("{{Item:{{a:{}\"\"{}}}}}", open.repeat(levels - 1), close.repeat(levels - 1));
    for (open, close) in [("[", "]"), ("{'':", "}")] {
        let deepest = nested(LEVELS, open, close);
        assert_eq!(again(&deepest), format!("$ion_1_0 {deepest}\n"));
        assert!(refused(&nested(LEVELS + 1, open, close)).contains("deeper than 64 levels; DynamoDB allows 32"));
        assert!(refused(&nested(500_000, open, close)).starts_with("depth: column "));
    }
    let metadata = format!("{{Keys:{{}},Metadata:{{x:{}", "[".repeat(500_000));
    assert!(refused(&metadata).starts_with("depth: column "));
}

#[test]
fn a_message_does_not_grow_with_the_names_in_it() {
    let line = format!("{{Item:{{'{0}':{{'{0}':foo}}}}}}", "é".repeat(30_000));
    let message = refused(&line);
    assert!(message.len() < 1_000 && message.contains("é…"), "{} bytes", message.len());
}

#[test]
fn a_name_twice_is_found_among_many() {
    let entries = |count: usize| (0..count).map(|n| format!("attribute{n:04}:1.")).collect::<Vec<_>>().join(",");
    for count in [2, 47, 48, 49, 50, 5_000] {
        let line = format!("$ion_1_0 {{Item:{{m:{{{}}}}}}}\n", entries(count));
        assert_eq!(again(&line), line);
        for twice in [0, count / 2, count - 1] {
            let line = format!("{{Item:{{{},attribute{twice:04}:null}}}}", entries(count));
            assert!(refused(&line).starts_with("duplicate-attribute: "), "{count} {twice}");
        }
    }
}

/// The value with every number in its one spelling.
fn plain<'a>(value: Value<'a>, arena: &'a Arena) -> Value<'a> {
    let number = |text: &str| &*arena.alloc_str(&Decimal::parse(text).unwrap().plain());
    match value {
        Value::N(text) => Value::N(number(text)),
        Value::Ns(members) => Value::Ns(arena.alloc_slice_fill_iter(members.iter().map(|text| number(text)))),
        Value::L(elements) => Value::L(arena.alloc_slice_fill_iter(elements.iter().map(|element| plain(*element, arena)))),
        Value::M(entries) => Value::M(arena.alloc_slice_fill_iter(entries.iter().map(|(name, value)| (*name, plain(*value, arena))))),
        other => other,
    }
}

/// The value as an element of ion-rs.
fn element(value: &Value<'_>) -> Element {
    let list = |elements: Vec<Element>| Element::from(Element::sequence_builder().push_all(elements).build_list());
    match value {
        Value::S(text) => Element::string(*text),
        Value::N(text) => {
            let number = Decimal::parse(text).unwrap();
            let digits = String::from_utf8(number.significant_digits().collect()).unwrap();
            let coefficient = digits.parse::<i128>().unwrap_or(0) * if number.is_negative() { -1 } else { 1 };
            Element::decimal(ion_rs::Decimal::new(coefficient, number.magnitude() - i64::try_from(digits.len()).unwrap()))
        }
        Value::B(bytes) => Element::blob(bytes),
        Value::Bool(truth) => Element::boolean(*truth),
        Value::Null => Element::null(IonType::Null),
        Value::M(entries) => {
            entries.iter().fold(Element::struct_builder(), |fields, (name, value)| fields.with_field(*name, element(value))).build().into()
        }
        Value::L(elements) => list(elements.iter().map(element).collect()),
        Value::Ss(members) => list(members.iter().map(|member| element(&Value::S(member))).collect()).with_annotations(["$dynamodb_SS"]),
        Value::Ns(members) => list(members.iter().map(|member| element(&Value::N(member))).collect()).with_annotations(["$dynamodb_NS"]),
        Value::Bs(members) => list(members.iter().map(|member| element(&Value::B(member))).collect()).with_annotations(["$dynamodb_BS"]),
    }
}

/// Whether ion-rs found the same in a text as this reader.
fn agrees(element: &Element, value: &Value<'_>) -> bool {
    let annotation = match value {
        Value::Ss(_) => Some("$dynamodb_SS"),
        Value::Ns(_) => Some("$dynamodb_NS"),
        Value::Bs(_) => Some("$dynamodb_BS"),
        _ => None,
    };
    let is_annotated =
        |element: &Element, wanted: Option<&str>| element.annotations().iter().map(|name| name.text()).eq(wanted.into_iter().map(Some));
    if !is_annotated(element, annotation) {
        return false;
    }
    let each = |test: &dyn Fn(usize, &Element) -> bool, count: usize| {
        element.as_list().is_some_and(|list| {
            list.len() == count && list.elements().enumerate().all(|(at, member)| is_annotated(member, None) && test(at, member))
        })
    };
    match value {
        Value::S(text) => element.as_string() == Some(text),
        Value::N(text) => is_number(element, text),
        Value::B(bytes) => element.as_blob() == Some(bytes),
        Value::Bool(truth) => element.as_bool() == Some(*truth),
        Value::Null => element.is_null(),
        Value::M(entries) => element.as_struct().is_some_and(|fields| {
            fields.len() == entries.len()
                && fields
                    .iter()
                    .zip(*entries)
                    .all(|((symbol, element), (name, value))| symbol.text() == Some(name) && agrees(element, value))
        }),
        Value::L(elements) => element.as_list().is_some_and(|list| {
            list.len() == elements.len() && list.elements().zip(*elements).all(|(element, value)| agrees(element, value))
        }),
        Value::Ss(members) => each(&|at, member| member.as_string() == Some(members[at]), members.len()),
        Value::Ns(members) => each(&|at, member| is_number(member, members[at]), members.len()),
        Value::Bs(members) => each(&|at, member| member.as_blob() == Some(members[at]), members.len()),
    }
}

/// Whether the element is the number in `text`: an int, a decimal, or the float nearest to it.
fn is_number(element: &Element, text: &str) -> bool {
    if let Some(decimal) = element.as_decimal() {
        let coefficient = decimal.coefficient();
        let sign = if coefficient.is_negative() { "-" } else { "" };
        return number::same(&format!("{sign}{}e{}", coefficient.magnitude(), decimal.exponent()), text);
    }
    match (element.as_int(), element.as_float()) {
        (Some(int), _) => number::same(&int.to_string(), text),
        (None, Some(float)) => text.parse() == Ok(float),
        (None, None) => false,
    }
}

/// The attributes in a line's element, where it is an item.
fn attributes_of(element: &Element) -> Option<&Element> {
    element.as_struct().filter(|fields| fields.len() == 1).and_then(|fields| fields.get("Item"))
}

/// A line with small things wrong or merely unusual.
fn lines() -> impl Strategy<Value = String> {
    let value = r#"(-?[0-9_]{1,5}\.?[0-9_]{0,3}([deDE][+-]?[0-9]{1,2})?|0x[0-9a-f_]{1,4}|null\.?[a-z]{0,6}|true|[a-z$]{1,5}|"[ -~]{0,8}"|'{1,3}[ -~]{0,6}'{1,3}|\{\{ ?[A-Za-z0-9+/=]{0,8} ?\}\}|\[[0-9,. ]{0,8}\]|\$dynamodb_[SN]S::\[["0-9,.]{0,8}\]|\{[a-z0-9:., ]{0,8}\}|/\*.{0,3}\*/|\([0-9 ]{0,4}\)|[0-9]{4}(-[0-9]{2}){0,2}T?)"#;
    proptest::collection::vec(("([a-z$_]{1,4}|'[ -~]{0,4}'|\"[ -~]{0,4}\")", value), 0..5).prop_map(|fields| {
        let fields: Vec<String> = fields.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
        format!("$ion_1_0 {{Item:{{{}}}}}", fields.join(","))
    })
}

proptest! {
    #[test]
    fn decoding_what_was_encoded_gives_the_item_back(attributes in items()) {
        let arena = Arena::new();
        let given = generate::item(&attributes, &arena);
        let (mut ion, mut json) = (Vec::new(), br#"{"Item":"#.to_vec());
        write_line(&given, &mut ion);
        ddb_json::write_item(&given, &mut json);
        json.push(b'}');
        let (ion, json) = (String::from_utf8(ion).unwrap(), String::from_utf8(json).unwrap());
        prop_assert_eq!(ion.matches('\n').count(), 1);
        let read = item(&ion, &arena);
        let expected = plain(Value::M(given.attributes()), &arena);
        prop_assert_eq!(Value::M(read.attributes()), expected);
        // JSON and Ion of one item are one item.
        let from_json = ddb_json::decode_item(&json, &arena).unwrap();
        prop_assert_eq!(plain(Value::M(from_json.attributes()), &arena), expected);
        let rejected = String::from_utf8(codec::json_line(decode_line(&ion, &arena).unwrap().source)).unwrap();
        let from_rejects = ddb_json::decode_item(&rejected, &arena).unwrap();
        prop_assert_eq!(Value::M(from_rejects.attributes()), expected);
    }

    #[test]
    fn ion_rs_reads_what_is_written(attributes in items()) {
        let arena = Arena::new();
        let given = generate::item(&attributes, &arena);
        let mut line = Vec::new();
        write_line(&given, &mut line);
        let element = Element::read_one(&line).unwrap();
        let attributes = attributes_of(&element).unwrap();
        prop_assert!(agrees(attributes, &Value::M(given.attributes())), "{}", String::from_utf8_lossy(&line));
    }

    #[test]
    fn what_ion_rs_writes_is_read(attributes in items()) {
        let arena = Arena::new();
        let given = generate::item(&attributes, &arena);
        let element = element(&Value::M(given.attributes()));
        let expected = plain(Value::M(given.attributes()), &arena);
        for format in [TextFormat::Compact, TextFormat::Lines, TextFormat::Pretty] {
            let text = element.encode_as(WriteConfig::<v1_0::Text>::new(format)).unwrap();
            let line = format!("$ion_1_0 {{Item:{text}}}");
            let read = item(&line, &arena);
            prop_assert_eq!(Value::M(read.attributes()), expected, "{}", line);
        }
    }

    #[test]
    fn any_text_is_decoded_or_refused(line in prop_oneof![
        any::<String>(),
        "[{}\\[\\]\"':, a-zA-Z0-9\\\\$.()/*_+-]{0,60}".prop_map(|rest| format!("$ion_1_0 {{Item:{{{rest}")),
    ]) {
        let arena = Arena::new();
        let _ = decode_line(&line, &arena);
    }

    #[test]
    fn where_ion_rs_reads_a_damaged_line_too_both_read_the_same(attributes in items(), at in any::<proptest::sample::Index>(), byte in 0_u8..128) {
        let arena = Arena::new();
        let mut line = Vec::new();
        write_line(&generate::item(&attributes, &arena), &mut line);
        let at = at.index(line.len());
        line[at] = byte;
        if let Ok(line) = String::from_utf8(line) {
            compare(&line)?;
        }
    }

    #[test]
    fn where_ion_rs_reads_an_unusual_line_too_both_read_the_same(line in lines()) {
        compare(&line)?;
    }
}

/// Reads the line with both readers and compares what they find, where both find an item.
fn compare(line: &str) -> Result<(), TestCaseError> {
    let arena = Arena::new();
    let Ok(Decoded { record: Record::Item(item), .. }) = decode_line(line, &arena) else { return Ok(()) };
    let Ok(element) = Element::read_one(line) else { return Ok(()) };
    if let Some(attributes) = attributes_of(&element) {
        prop_assert!(agrees(attributes, &Value::M(item.attributes())), "{}: {:?}", line, item);
    }
    Ok(())
}
