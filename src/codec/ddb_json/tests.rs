//! What lines give which items, what is refused and with which words, and round trips of generated items.

use proptest::prelude::*;

use super::*;
use crate::codec::LEVELS;
use crate::codec::generate::{self, items};
use crate::error::Stage;
use crate::model::{Op, Part, Value};

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

/// The line's record, which is an item.
fn item(decoded: Decoded<'_>) -> Item<'_> {
    match decoded.record {
        Record::Item(item) => item,
        Record::Change(change) => panic!("{change:?}"),
    }
}

/// The line after decoding and encoding.
fn again(line: &str) -> String {
    let arena = Arena::new();
    let mut out = Vec::new();
    write_item(&decode_item(line, &arena).unwrap_or_else(|reason| panic!("{line}: {reason}")), &mut out);
    format!(r#"{{"Item":{}}}"#, String::from_utf8(out).unwrap())
}

#[test]
fn every_type_is_read_as_it_stands() {
    let line = concat!(
        r#"{"Item":{"PK":{"S":"WS#acme"},"seats":{"N":"12.50"},"key":{"B":"AAEC/w=="},"open":{"BOOL":true},"shut":{"BOOL":false},"#,
        r#""gone":{"NULL":true},"owner":{"M":{"id":{"S":"u1"},"none":{"M":{}}}},"rows":{"L":[{"N":"1"},{"L":[]},{"S":""}]},"#,
        r#""tags":{"SS":["b","a"]},"sizes":{"NS":["3","1e2"]},"parts":{"BS":["","Zm9v"]}}}"#
    );
    let arena = Arena::new();
    let decoded = decode_line(line, &arena).unwrap();
    let source = decoded.source.bytes;
    assert_eq!(
        item(decoded).attributes(),
        [
            ("PK", Value::S("WS#acme")),
            ("seats", Value::N("12.50")),
            ("key", Value::B(&[0, 1, 2, 255])),
            ("open", Value::Bool(true)),
            ("shut", Value::Bool(false)),
            ("gone", Value::Null),
            ("owner", Value::M(&[("id", Value::S("u1")), ("none", Value::M(&[]))])),
            ("rows", Value::L(&[Value::N("1"), Value::L(&[]), Value::S("")])),
            ("tags", Value::Ss(&["b", "a"])),
            ("sizes", Value::Ns(&["3", "1e2"])),
            ("parts", Value::Bs(&[b"", b"foo"])),
        ]
    );
    assert_eq!(source, &line.as_bytes()[8..line.len() - 1]);
    let by_name = concat!(
        r#"{"Item":{"PK":{"S":"WS#acme"},"gone":{"NULL":true},"key":{"B":"AAEC/w=="},"open":{"BOOL":true},"#,
        r#""owner":{"M":{"id":{"S":"u1"},"none":{"M":{}}}},"parts":{"BS":["","Zm9v"]},"rows":{"L":[{"N":"1"},{"L":[]},{"S":""}]},"#,
        r#""seats":{"N":"12.50"},"shut":{"BOOL":false},"sizes":{"NS":["3","1e2"]},"tags":{"SS":["b","a"]}}}"#
    );
    assert_eq!(again(line), by_name);
}

#[test]
fn blanks_may_stand_wherever_json_allows_them() {
    let line = " {\t\"Item\" : { \"a\" : { \"N\" : \"1\" } ,\r\n\"b\":{ \"L\" : [ { \"S\" : \"x\" } , {\"SS\":[ \"p\" , \"q\" ]} ] } , \"c\":{ \"NULL\" : true }\n} }\r";
    assert_eq!(again(line), r#"{"Item":{"a":{"N":"1"},"b":{"L":[{"S":"x"},{"SS":["p","q"]}]},"c":{"NULL":true}}}"#);
    let arena = Arena::new();
    let source = decode_line(line, &arena).unwrap().source.bytes;
    assert!(source.starts_with(b"{ \"a\"") && source.ends_with(b"\n}"));
    assert_eq!(again("{\"Item\":{} } "), r#"{"Item":{}}"#);
}

#[test]
fn names_that_look_like_types_or_paths_are_names() {
    let line = r#"{"Item":{"S":{"S":"S"},"M":{"M":{"M":{"M":{"L":{"L":[]}}},"N":{"N":"1"}}},"Item":{"S":"x"},"a.b":{"BOOL":true},"GSI1-PK":{"S":"p"},"":{"NULL":true}}}"#;
    let by_name = r#"{"Item":{"":{"NULL":true},"GSI1-PK":{"S":"p"},"Item":{"S":"x"},"M":{"M":{"M":{"M":{"L":{"L":[]}}},"N":{"N":"1"}}},"S":{"S":"S"},"a.b":{"BOOL":true}}}"#;
    assert_eq!(again(line), by_name);
    assert_eq!(again(r#"{"Item":{"a":{"\u0053":"x"}}}"#), r#"{"Item":{"a":{"S":"x"}}}"#);
}

#[test]
fn digits_are_kept_however_many() {
    let line = format!(r#"{{"Item":{{"n":{{"N":"{}"}},"x":{{"N":"no number"}}}}}}"#, "1234567890".repeat(14));
    assert_eq!(again(&line), line);
}

#[test]
fn escapes_stand_for_their_characters_and_only_needful_ones_are_written() {
    let line = r#"{"Item":{"\u00e9":{"S":"\"\\\/\b\f\n\r\t\u0000\u001F\ud83d\uDE00\u2028é"}}}"#;
    let arena = Arena::new();
    let item = decode_item(line, &arena).unwrap();
    assert_eq!(item.get("é"), Some(Value::S("\"\\/\u{8}\u{c}\n\r\t\0\u{1f}😀\u{2028}é")));
    assert_eq!(again(line), "{\"Item\":{\"é\":{\"S\":\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f😀\u{2028}é\"}}}");
}

#[test]
fn texts_without_escapes_borrow_from_the_line() {
    let line = r#"{"Item":{"name":{"S":"a text of some length"}}}"#;
    let arena = Arena::new();
    let item = decode_item(line, &arena).unwrap();
    let (name, Value::S(text)) = item.attributes()[0] else { panic!("{item:?}") };
    let inside = |text: &str| line.as_bytes().as_ptr_range().contains(&text.as_ptr());
    assert!(inside(name) && inside(text));
}

#[test]
fn a_line_of_a_rejects_file_is_read_again() {
    let item = r#"{"PK":{"S":"a\"b"}}"#;
    for line in [
        format!(r#"{{"Item":{item},"Reject":{{"rule":"item-size","at":[1,-2.5e3,{{"x":null}}],"text":"}}]\""}}}}"#),
        format!(r#"{{"Reject":{{}},"Item":{item}}}"#),
        format!(r#"{{"Reject":null , "Item" :{item}}}"#),
    ] {
        let arena = Arena::new();
        let decoded = decode_line(&line, &arena).unwrap_or_else(|reason| panic!("{line}: {reason}"));
        assert_eq!(decoded.source.bytes, item.as_bytes(), "{line}");
        assert_eq!(self::item(decoded).attributes(), [("PK", Value::S("a\"b"))]);
    }
    assert_eq!(refused(r#"{"Item":{},"Item":{}}"#), "not-an-item: column 12: a second `Item` in the line");
    assert_eq!(refused(r#"{"Reject":{}}"#), "not-an-item: column 14: no `Item` in the line");
}

#[test]
fn what_other_tools_wrap_an_item_in_is_taken_off() {
    let item = r#"{"PK":{"S":"a"},"Item":{"S":"x"}}"#;
    for line in [
        item.to_owned(),
        format!(" {item} "),
        format!(r#"{{"PutRequest":{{"Item":{item}}}}}"#),
        format!(r#"{{ "PutRequest" : {{ "Item" : {item} }} }}"#),
    ] {
        let arena = Arena::new();
        let decoded = decode_line(&line, &arena).unwrap_or_else(|reason| panic!("{line}: {reason}"));
        assert_eq!((decoded.source.part, decoded.source.bytes), (Part::Item, item.as_bytes()), "{line}");
        assert_eq!(self::item(decoded).attributes(), [("PK", Value::S("a")), ("Item", Value::S("x"))]);
    }
    for (line, expected) in [
        (
            r#"{"DeleteRequest":{"Key":{"PK":{"S":"a"}}}}"#,
            "not-an-item: column 2: a `DeleteRequest`, which holds no item; only puts are read",
        ),
        (r#"{"PutRequest":[]}"#, "json: column 15: an array; expected an object under `PutRequest`"),
        (r#"{"PutRequest":{"Item":{}},"x":1}"#, "not-an-item: column 31: another member beside the record"),
        (r#"{"PK":"a"}"#, r#"descriptor: column 7, attribute PK: text where a typed value belongs; expected an object such as {"S":"…"}"#),
    ] {
        assert_eq!(refused(line), expected, "{line}");
    }
}

#[test]
fn change_records_are_told_by_their_images() {
    let (keys, old, new) = (r#""Keys":{"PK":{"S":"a"}}"#, r#""OldImage":{"PK":{"S":"a"},"n":{"N":"1"}}"#, r#""NewImage":{"PK":{"S":"a"}}"#);
    let metadata = r#""Metadata":{"WriteTimestampMicros":{"N":"1768387673917155"}}"#;
    for (line, op, attributes) in [
        (format!("{{{metadata},{keys},{new}}}"), Op::Put, 1),
        (format!("{{{metadata},{keys},{old},{new}}}"), Op::Update, 1),
        (format!("{{{metadata},{keys},{old}}}"), Op::Delete, 2),
        (format!("{{{metadata},{keys}}}"), Op::Delete, 1),
        (format!(r#"{{{keys},"Reject":{{"rule":"x"}},{metadata}}}"#), Op::Delete, 1),
        (format!(r#"{{{keys},"Metadata":{{"Other":[1],"WriteTimestampMicros":"1768387673917155"}}}}"#), Op::Delete, 1),
        (format!(r#"{{{keys},"Metadata":{{"WriteTimestampMicros":1768387673917155}}}}"#), Op::Delete, 1),
        (format!(r#"{{"Record":{{{keys},{metadata}}}}}"#), Op::Delete, 1),
    ] {
        let arena = Arena::new();
        let Decoded { record: Record::Change(change), source, .. } =
            decode_line(&line, &arena).unwrap_or_else(|reason| panic!("{line}: {reason}"))
        else {
            panic!("{line}")
        };
        assert_eq!((change.op(), change.written_at, source.part), (op, 1_768_387_673_917_155, Part::Change), "{line}");
        assert_eq!(change.keys.get("PK"), Some(Value::S("a")));
        assert_eq!(change.into_image().1.attributes().len(), attributes);
        assert!(line.contains(std::str::from_utf8(source.bytes).unwrap()));
    }
    for (line, expected) in [
        (format!("{{{metadata}}}"), "not-an-item: column 63: a change record without `Keys`"),
        (format!("{{{keys}}}"), "not-an-item: column 26: a change record without `Metadata`; expected its WriteTimestampMicros"),
        (format!(r#"{{{keys},"Metadata":{{}}}}"#), "not-an-item: column 39: `Metadata` without WriteTimestampMicros"),
        (
            format!(r#"{{{keys},"Metadata":{{"WriteTimestampMicros":{{"N":"soon"}}}}}}"#),
            "not-an-item: column 61: WriteTimestampMicros is no number of microseconds",
        ),
        (
            format!(r#"{{"Item":{{}},{keys},{metadata}}}"#),
            "not-an-item: column 97: an `Item` together with parts of a change record; expected one of the two",
        ),
        (format!("{{{keys},{keys},{metadata}}}"), "not-an-item: column 26: a second `Keys` in the line"),
    ] {
        assert_eq!(refused(&line), expected, "{line}");
    }
}

#[test]
fn what_is_no_item_is_named() {
    for (line, expected) in [
        ("", r#"not-an-item: column 1: an empty line; expected `{"Item":{…}}`"#),
        (" \t", r#"not-an-item: column 3: an empty line; expected `{"Item":{…}}`"#),
        ("[]", r#"not-an-item: column 1: an array; expected `{"Item":{…}}`"#),
        (
            "\u{feff}{}",
            r#"not-an-item: column 1: a byte-order mark at the start of the line; save the file without it; expected `{"Item":{…}}`"#,
        ),
        ("{}", r#"not-an-item: column 3: an empty object; expected `{"Item":{…}}`"#),
        (" $ion_1_0 {Item:{a:\"b\"}}", r#"not-an-item: column 2: a line of Amazon Ion; expected `{"Item":{…}}`"#),
        (r#"{"Item":{},"Extra":1}"#, r#"not-an-item: column 12: member `Extra` beside or instead of `Item`; expected `{"Item":{…}}`"#),
        (r#"{"Item":[]}"#, "not-an-item: column 9: an array under `Item`; expected an object of attributes"),
        (r#"{"Item":{}}{"Item":{}}"#, "json: column 12: an object; expected the end of the line; one item a line"),
        (r#"{"Item":{}},"#, "json: column 12: `,`; expected the end of the line; one item a line"),
        (r#"{"Item":{}"#, "json: column 11: the end of the line; expected `,` or `}` after the item"),
        (r#"{"Item":{},}"#, "json: column 12: `}`; expected a name in quotes"),
    ] {
        assert_eq!(refused(line), expected, "{line}");
    }
}

#[test]
fn a_wrong_value_is_refused_with_its_column_and_its_attribute() {
    for (attributes, expected) in [
        (r#""a":{"N":5}"#, r#"number-not-text: column 19, attribute a: a JSON number under N; expected its digits as text, such as "1.5""#),
        (
            r#""a":{"NS":["1",2]}"#,
            r#"number-not-text: column 25, attribute a[1]: a JSON number under NS; expected its digits as text, such as "1.5""#,
        ),
        (r#""a":{"NULL":false}"#, "null-false: column 15, attribute a: NULL is false; DynamoDB knows only true there"),
        (r#""a":{"NULL":null}"#, "descriptor: column 22, attribute a: null under NULL; expected true"),
        (r#""a":{"BOOL":"true"}"#, "descriptor: column 22, attribute a: text under BOOL; expected true or false"),
        (r#""a":{"S":1}"#, "descriptor: column 19, attribute a: a number under S; expected text"),
        (r#""a":{"SS":"x"}"#, "descriptor: column 20, attribute a: text under SS; expected an array of texts"),
        (r#""a":{"L":{}}"#, "descriptor: column 19, attribute a: an object under L; expected an array of typed values"),
        (r#""a":{"M":[]}"#, "descriptor: column 19, attribute a: an array under M; expected an object of attributes"),
        (r#""a":"x""#, r#"descriptor: column 14, attribute a: text where a typed value belongs; expected an object such as {"S":"…"}"#),
        (r#""a":{}"#, r#"descriptor: column 16, attribute a: an object without a type; expected one descriptor, such as {"S":"…"}"#),
        (
            r#""acl":{"M":{"read":{"L":[{"S":"x"},{"N":"1"},{"s":"y"}]}}}"#,
            "descriptor: column 56, attribute acl.read[2]: unknown type `s`; expected one of S, N, B, BOOL, NULL, M, L, SS, NS, BS",
        ),
        (r#""a":{"S":"x","N":"1"}"#, "two-types: column 27, attribute a: one value with two types, S and N; expected exactly one"),
        (
            r#""a.b":{"B":"A"}"#,
            r#"base64: column 21, attribute "a.b": the text of a binary is no base64; expected the standard alphabet (A-Z a-z 0-9 + /) with padding"#,
        ),
        (
            r#""a":{"BS":["AA==","A-=="]}"#,
            "base64: column 28, attribute a[1]: the text of a binary is no base64; expected the standard alphabet (A-Z a-z 0-9 + /) with padding",
        ),
        (
            r#""a":{"S":"1"},"b":{"S":"2"},"a":{"S":"3"}"#,
            "duplicate-attribute: column 38, attribute a: the name stands there twice; expected once",
        ),
        (
            r#""m":{"M":{"x":{"S":"1"},"\u0078":{"S":"2"}}}"#,
            "duplicate-attribute: column 34, attribute m.x: the name stands there twice; expected once",
        ),
        (r#""a":{"S":"\x"}"#, "escape: column 20, attribute a: a backslash that starts no JSON escape; a backslash itself is written \\\\"),
        (r#""a":{"S":"\u12g4"}"#, "escape: column 20, attribute a: \\u without four hexadecimal digits"),
        (
            r#""a":{"S":"\ud83d"}"#,
            "escape: column 20, attribute a: half of a surrogate pair without its other half; it stands for no character",
        ),
        (
            r#""a":{"S":"\ude00\ud83d"}"#,
            "escape: column 20, attribute a: half of a surrogate pair without its other half; it stands for no character",
        ),
        ("\"a\":{\"S\":\"x\ty\"}", "escape: column 21, attribute a: control character 0x09 inside a string; JSON wants it written \\u0009"),
        (r#""a":{"S":"x"},"#, "json: column 24: `}`; expected a name in quotes"),
        (
            r#""a":{"L":[{"S":"x"},]}"#,
            "json: column 30, attribute a[1]: `]` where a typed value belongs; expected an object such as {\"S\":\"…\"}",
        ),
        (r#""a":{"BOOL":truely}"#, "json: column 26, attribute a: what is no JSON; expected `}` after the value"),
        (r#""a":{"S" "x"}"#, "json: column 19, attribute a: text; expected `:` after a name"),
    ] {
        assert_eq!(refused(&format!(r#"{{"Item":{{{attributes}}}}}"#)), expected, "{attributes}");
    }
}

#[test]
fn a_cut_line_is_refused_wherever_it_is_cut() {
    let line =
        r#"{"Item":{"a":{"S":"x\u00e9\n"},"b":{"L":[{"BOOL":true},{"M":{"c":{"BS":["AA=="]}}}]},"d":{"NULL":true}},"Reject":{"x":[1]}}"#;
    again(line);
    for end in 0..line.len() {
        let reason = refused(&line[..end]);
        assert!(["json:", "not-an-item:"].iter().any(|rule| reason.starts_with(rule)), "{end}: {reason}");
    }
}

#[test]
fn a_name_twice_is_found_among_many() {
    let entries = |count: usize| (0..count).map(|n| format!(r#""attribute{n:04}":{{"N":"{n}"}}"#)).collect::<Vec<_>>().join(",");
    for count in [2, 47, 48, 49, 50, 5_000] {
        let line = format!(r#"{{"Item":{{"m":{{"M":{{{}}}}}}}}}"#, entries(count));
        assert_eq!(again(&line), line);
        for twice in [0, count / 2, count - 1] {
            let line = format!(r#"{{"Item":{{{},"attribute{twice:04}":{{"NULL":true}}}}}}"#, entries(count));
            assert!(refused(&line).starts_with("duplicate-attribute: "), "{count} {twice}");
        }
    }
}

#[test]
fn depth_is_bounded_whatever_the_line_holds() {
    let nested = |levels: usize, open: &str, close: &str| {
        format!(r#"{{"Item":{{"a":{}{{"S":""}}{}}}}}"#, open.repeat(levels - 1), close.repeat(levels - 1))
    };
    for (open, close) in [(r#"{"L":["#, "]}"), (r#"{"M":{"":"#, "}}")] {
        let deepest = nested(LEVELS, open, close);
        assert_eq!(again(&deepest), deepest);
        assert!(refused(&nested(LEVELS + 1, open, close)).contains("deeper than 64 levels; DynamoDB allows 32"));
        assert!(refused(&nested(500_000, open, close)).starts_with("depth: column "));
    }
    let reject = format!(r#"{{"Item":{{}},"Reject":{}{}}}"#, "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(again(&reject), r#"{"Item":{}}"#);
}

#[test]
fn a_message_does_not_grow_with_the_names_in_it() {
    let line = format!(r#"{{"Item":{{"{0}":{{"{0}":1}}}}}}"#, "é".repeat(30_000));
    let message = refused(&line);
    assert!(message.len() < 1_000 && message.contains("é…"), "{} bytes", message.len());
}

proptest! {
    #[test]
    fn decoding_what_was_encoded_gives_the_item_back(attributes in items()) {
        let arena = Arena::new();
        let item = generate::item(&attributes, &arena);
        let mut line = br#"{"Item":"#.to_vec();
        write_item(&item, &mut line);
        line.push(b'}');
        let line = String::from_utf8(line).unwrap();
        let decoded = decode_line(&line, &arena).unwrap();
        prop_assert_eq!(decoded.source.bytes, &line.as_bytes()[8..line.len() - 1]);
        let again = self::item(decoded);
        prop_assert_eq!(again.attributes(), item.attributes());
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&line).map(|_| ()).map_err(|error| error.to_string()), Ok(()));
    }

    #[test]
    fn any_text_is_decoded_or_refused(line in prop_oneof![
        any::<String>(),
        "[{}\\[\\]\":, a-zA-Z0-9\\\\]{0,60}".prop_map(|rest| format!(r#"{{"Item":{{{rest}"#)),
    ]) {
        let arena = Arena::new();
        let _ = decode_line(&line, &arena);
    }

    #[test]
    fn a_line_with_one_changed_byte_is_decoded_or_refused(attributes in items(), at in any::<proptest::sample::Index>(), byte in 0_u8..128) {
        let arena = Arena::new();
        let mut line = br#"{"Item":"#.to_vec();
        write_item(&generate::item(&attributes, &arena), &mut line);
        line.push(b'}');
        let at = at.index(line.len());
        line[at] = byte;
        if let Ok(line) = String::from_utf8(line) && let Ok(decoded) = decode_line(&line, &arena) {
            let valid = serde_json::from_slice::<serde_json::Value>(decoded.source.bytes);
            prop_assert!(valid.is_ok(), "{line}");
        }
    }
}
