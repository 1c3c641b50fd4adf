//! Whole reports: what is found in small tables, and that it does not depend on the order of the items.

use proptest::prelude::*;

use super::*;
use crate::codec::ddb_json::decode_item;
use crate::model::{Arena, FileId};

/// An inspector that saw these items, given as what stands between the braces of `Item`, with the number of each as its line.
fn inspect<'l>(options: &Options, lines: impl IntoIterator<Item = (u64, &'l str)>) -> Inspector {
    let mut inspector = Inspector::new(options.clone());
    for (line, attributes) in lines {
        let arena = Arena::new();
        let text = format!(r#"{{"Item":{{{attributes}}}}}"#);
        let item = decode_item(&text, &arena).unwrap();
        inspector.observe(&item, Origin { file: FileId(0), line }, text.len() as u64);
    }
    inspector
}

fn report(options: &Options, lines: &[impl AsRef<str>]) -> Report {
    inspect(options, (1..).zip(lines.iter().map(AsRef::as_ref))).report()
}

/// The entities with their counts.
fn labels(report: &Report) -> String {
    report.entities.iter().map(|entity| format!("{} {}", entity.label(), entity.items)).collect::<Vec<_>>().join(", ")
}

fn documents() -> Vec<String> {
    let mut lines: Vec<String> = (0..40)
        .map(|n| format!(r#""PK":{{"S":"WS#w{}"}},"SK":{{"S":"DOC#{n}"}},"EntityType":{{"S":"Document"}},"size":{{"N":"{n}"}}"#, n % 4))
        .collect();
    lines.push(r#""PK":{"S":"WS#w0"},"SK":{"S":"DOC#x1"},"EntityType":{"S":"document"},"size":{"S":"12"}"#.to_owned());
    lines.push(r#""PK":{"S":"WS#w0"},"SK":{"S":"DOC#x2"},"size":{"N":"1"},"note":{"S":"é"}"#.to_owned());
    lines.push(r#""PK":{"S":"WS#w1"},"SK":{"S":"META"},"EntityType":{"S":"Workspace"},"plan":{"M":{"a":{"BOOL":true}}}"#.to_owned());
    lines.push(r#""PK":{"S":"WS#w1"},"SK":{"S":"DOC#1#CMT#2"},"EntityType":{"S":"Comment"},"id":{"S":"2"}"#.to_owned());
    lines
}

#[test]
fn a_small_table_gives_this_text() {
    let text = report(&Options::default(), &documents()).to_string();
    assert_eq!(text, include_str!("small_table.txt"), "{text}");
}

#[test]
fn fields_have_stable_names() {
    let report = report(&Options::default(), &documents()[40..]);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["key"], serde_json::json!({"partition": "PK", "sort": "SK", "guessed": true, "items_without": 0}));
    assert_eq!(
        json["type_attribute"],
        serde_json::json!({"name": "EntityType", "guessed": true, "items": 3, "percent": 75.0, "values": 3})
    );
    assert_eq!(json["item_bytes"]["largest_at"], serde_json::json!({"file": 1, "line": 3}));
    assert_eq!(
        json["entities"][3]["attributes"][2],
        serde_json::json!({"name": "note", "items": 1, "percent": 100.0, "types": [{"type": "S", "items": 1}], "largest": 2})
    );
    assert_eq!(json["entities"][3]["name"], serde_json::Value::Null);
    assert_eq!(json["always_present"], serde_json::json!(["PK", "SK"]));
    assert_eq!(json["hot_partitions"]["by_items"][0]["value"], "WS#w0");
}

#[test]
fn a_key_that_one_item_lacks_is_not_guessed_but_may_be_named() {
    let lines = [r#""PK":{"S":"a"},"SK":{"S":"b"},"id":{"N":"1"}"#, r#""PK":{"S":"a"},"id":{"N":"2"}"#, r#""PK":{"M":{}},"id":{"N":"2"}"#];
    let guessed = report(&Options::default(), &lines).key.unwrap();
    assert_eq!((guessed.partition.as_str(), guessed.sort, guessed.guessed, guessed.items_without), ("id", None, true, 0));
    let options = Options { partition: Some("PK".to_owned()), sort: Some("SK".to_owned()), type_attribute: None };
    let named = report(&options, &lines);
    let key = named.key.clone().unwrap();
    assert_eq!((key.sort.as_deref(), key.guessed, key.items_without), (Some("SK"), false, 2));
    assert_eq!(named.entities[0].key_shapes.len(), 1);
    assert!(named.to_string().contains("PK, SK; 2 items lack it"));
    let unknown = report(&Options::default(), &[r#""a":{"S":"x"},"b":{"BOOL":true},"c":{"N":"1"}"#]);
    assert_eq!((unknown.key.is_none(), unknown.hot_partitions.is_none()), (true, true));
    assert!(unknown.to_string().contains("not recognised; name it. In every item: a, c\n"), "{unknown}");
}

#[test]
fn the_most_frequent_candidate_names_the_entity() {
    let lines = [
        r#""id":{"S":"1"},"type":{"S":"A"},"_et":{"S":"X"}"#,
        r#""id":{"S":"2"},"type":{"S":"A"}"#,
        r#""id":{"S":"3"},"type":{"S":"B"},"_et":{"N":"5"}"#,
        r#""id":{"S":"4"}"#,
    ];
    let found = report(&Options::default(), &lines);
    assert_eq!(found.type_attribute.as_ref().unwrap().name, "type");
    assert_eq!(labels(&found), "A 2, B 1, (none) 1");
    let candidates: Vec<_> = found.type_candidates.iter().map(|candidate| (&*candidate.name, candidate.items)).collect();
    assert_eq!(candidates, [("_et", 1), ("type", 3)]);
    let named = report(&Options { type_attribute: Some("_et".to_owned()), ..Options::default() }, &lines);
    assert_eq!(labels(&named), "X 1, (none) 3");
}

#[test]
fn an_attribute_with_too_many_values_names_no_entity() {
    let lines: Vec<String> = (0..=VALUES).map(|n| format!(r#""id":{{"S":"{n}"}},"type":{{"S":"t{n}"}},"kind":{{"S":"K"}}"#)).collect();
    let few = report(&Options::default(), &lines[..VALUES]);
    assert_eq!((few.type_attribute.unwrap().name, few.entities.len()), ("type".to_owned(), VALUES));
    let many = report(&Options::default(), &lines);
    assert_eq!((many.type_attribute.unwrap().name, many.entities.len()), ("kind".to_owned(), 1));
    assert_eq!(many.type_candidates[0].values, None);
    let long = report(&Options::default(), &[format!(r#""type":{{"S":"{}"}}"#, "x".repeat(300))]);
    assert_eq!((long.type_attribute.as_ref(), labels(&long)), (None, "(none) 1".to_owned()));
    let named = Options { type_attribute: Some("type".to_owned()), ..Options::default() };
    assert_eq!(report(&named, &lines).entities.len(), VALUES + 1);
    let lines: Vec<String> = (0..=NAMED_VALUES).map(|n| format!(r#""id":{{"S":"{n}"}},"type":{{"S":"t{n}"}}"#)).collect();
    let overflown = report(&named, &lines);
    assert_eq!((overflown.items, overflown.entities.len(), overflown.entities[0].items), (2_001, 1, 2_001));
    assert!(overflown.to_string().contains("none found; looked at: type (100.00 %, too many values)"));
}

#[test]
fn blanks_in_a_name_can_be_seen() {
    let lines = ["Doc", "Doc", "Doc ", ""].map(|name| format!(r#""id":{{"S":"1"}},"type":{{"S":"{name}"}}"#));
    let report = report(&Options::default(), &lines);
    assert_eq!(labels(&report), r#"Doc 2, "" 1, "Doc " 1"#);
    assert_eq!(report.drift[0].variants[0].name, "Doc ");
    assert!(report.to_string().contains(r#""Doc "  Doc (2)      1  blanks or punctuation"#), "{report}");
}

#[test]
fn nothing_seen_is_a_report_too() {
    let empty = report(&Options::default(), &[] as &[&str]);
    assert_eq!((empty.items, empty.key.is_none(), empty.entities.len()), (0, true, 0));
    assert!(empty.to_string().starts_with("items           0, 0 bytes (lines: 0 bytes)\n"), "{empty}");
}

#[test]
fn names_and_keys_cannot_break_the_tables() {
    let text = report(&Options::default(), &[r#""PK":{"S":"a\nb\u001b[31m"},"SK":{"S":"x"},"EntityType":{"S":"T\n"}"#]).to_string();
    assert!(text.contains("a\\nb\\u{1b}[31m") && text.contains("\"T\\n\"  ") && !text.contains('\u{1b}'), "{text}");
}

/// Items that give candidates up: some lack a key, some types have many values.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let name = proptest::sample::select(vec!["Document", "document", "Doc", "Comment", "Workspace"]);
    let line = (0_u32..6, name, 0..1_000_u32, any::<bool>()).prop_map(|(form, name, n, flag)| {
        let id = if flag { format!(r#""id":{{"S":"{n}"}}"#) } else { format!(r#""id":{{"N":"{n}"}},"size{n}":{{"BOOL":true}}"#) };
        match form {
            0 => format!(r#""PK":{{"S":"WS#{n}"}},"SK":{{"S":"{name}"}},{id}"#),
            1 => format!(r#""PK":{{"S":"WS#{n}"}},"SK":{{"S":"{}#{n}"}},"type":{{"S":"{name}"}},{id}"#, name.to_uppercase()),
            2 => format!(r#""PK":{{"S":"{name}"}},"SK":{{"S":"DOC#{n}"}},"EntityType":{{"S":"{name}"}},"type":{{"S":"t{n}"}},{id}"#),
            3 => format!(r#""PK":{{"N":"{}"}},"SK":{{"S":"A"}},"EntityType":{{"S":"{name}"}},{id}"#, n % 7),
            4 => format!(r#""PK":{{"S":"x"}},"SK":{{"S":"{name}"}},"EntityType":{{"N":"1"}},{id}"#),
            _ => format!(r#""PK":{{"S":"x"}},"EntityType":{{"S":"{name}"}},{id}"#),
        }
    });
    prop_oneof![
        proptest::collection::vec(line.clone(), 0..40),
        proptest::collection::vec(line.prop_filter("with a sort key", |line| line.contains("\"SK\"")), 400..700),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_report_is_the_same_for_any_split(
        lines in lines(),
        owners in proptest::collection::vec(0_usize..4, 700),
        named_type in any::<bool>(),
        named_key in any::<bool>(),
        backwards in any::<bool>(),
    ) {
        let options = Options {
            partition: named_key.then(|| "PK".to_owned()),
            sort: named_key.then(|| "SK".to_owned()),
            type_attribute: named_type.then(|| "type".to_owned()),
        };
        let numbered: Vec<(u64, &str)> = (1..).zip(lines.iter().map(String::as_str)).collect();
        let whole = inspect(&options, numbered.iter().copied()).report();
        let mut parts: Vec<Inspector> = (0..4)
            .map(|owner| {
                let mut own: Vec<_> = numbered.iter().zip(&owners).filter(|(_, at)| **at == owner).map(|(line, _)| *line).collect();
                if backwards {
                    own.reverse();
                }
                inspect(&options, own)
            })
            .collect();
        let mut merged = parts.pop().unwrap();
        for part in parts {
            merged.merge(part);
        }
        prop_assert_eq!(merged.report(), whole);
    }
}
