//! Templates: texts in, keys and mistakes out.

use proptest::prelude::*;

use super::*;
use crate::model::Arena;

fn template(text: &str) -> Template {
    Template::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// A template that is bound to its own names, and its slots.
fn bound(text: &str) -> (Template, Vec<String>) {
    let mut template = template(text);
    let names: Vec<String> = template.names().into_iter().map(str::to_owned).collect();
    template.bind(&names);
    (template, names)
}

/// What a template renders for an item, or `missing NAME`, or `rule: message`.
fn rendered(text: &str, attributes: &[(&str, Value<'_>)]) -> String {
    let arena = Arena::new();
    let mut item = Item::new_in(&arena);
    for (name, value) in attributes {
        item.push(name, *value);
    }
    match template(text).render(&[], &item) {
        Ok(text) => text.to_owned(),
        Err(RenderError::Missing(name)) => format!("missing {name}"),
        Err(RenderError::Refused { rule, message }) => format!("{rule}: {message}"),
    }
}

/// The captures of a match as `name=text`, or `None`.
fn matched(text: &str, key: &str) -> Option<String> {
    let (template, names) = bound(text);
    template.check_matchable().unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let mut captures = vec![None; names.len()];
    let found = template.matches(key, &mut captures);
    let shown = names.iter().zip(&captures).map(|(name, capture)| format!("{name}={}", capture.unwrap_or("-")));
    found.then(|| shown.collect::<Vec<_>>().join(" "))
}

#[test]
fn literals_and_names_render_as_written() {
    let item = [
        ("doc", Value::S("7")),
        ("n", Value::N("42")),
        ("long", Value::N("1.50E2")),
        ("empty", Value::S("")),
        ("a.b", Value::S("quoted")),
        ("First Name", Value::S("Ada")),
        ("owner", Value::M(&[("id", Value::S("o1"))])),
        ("tags", Value::L(&[Value::S("red"), Value::S("blue")])),
    ];
    for (text, expected) in [
        ("", ""),
        ("META", "META"),
        ("DOC#{doc}", "DOC#7"),
        ("{ doc }", "7"),
        ("{doc}{n}", "742"),
        ("{{doc}}", "{doc}"),
        ("{{{doc}}}", "{7}"),
        ("{long}", "150"),
        ("A#{empty}#", "A##"),
        ("{\"a.b\"}", "quoted"),
        ("{First Name}", "Ada"),
        ("O#{owner.id}#{tags[1]}", "O#o1#blue"),
        ("{doc...}", "7"),
        ("ünï#{doc}#ö", "ünï#7#ö"),
    ] {
        assert_eq!(rendered(text, &item), expected, "{text}");
        assert_eq!(template(text).to_string(), text);
    }
}

#[test]
fn a_missing_part_is_named_and_never_written() {
    let item = [("owner", Value::M(&[]))];
    assert_eq!(rendered("USER#{user}", &item), "missing user");
    assert_eq!(rendered("USER#{owner.id | pad(3)}", &item), "missing owner.id");
    assert_eq!(rendered("USER#{user | default('none')}", &item), "USER#none");
    assert_eq!(rendered("USER#{user | lower | default('it''s') | upper}", &item), "USER#IT'S");
    assert_eq!(rendered("USER#{user | default('x')}", &[("user", Value::S(""))]), "USER#");
}

#[test]
fn types_other_than_text_and_number_are_refused_by_name() {
    for (value, kind) in [(Value::Bool(true), "BOOL"), (Value::Null, "NULL"), (Value::Ss(&["a"]), "SS"), (Value::B(b"x"), "B")] {
        assert_eq!(
            rendered("K#{flag | default('x')}", &[("flag", value)]),
            format!("template-type: part `flag` is of type {kind}; a template takes S or N")
        );
    }
    for number in ["1E999999999", "abc"] {
        assert!(rendered("{n}", &[("n", Value::N(number))]).starts_with("template-number: part `n`"), "{number}");
    }
}

#[test]
fn each_filter_gives_its_text() {
    for (filter, input, expected) in [
        ("pad(5)", "42", "00042"),
        ("pad(2)", "42", "42"),
        ("pad(4)", "007", "0007"),
        ("desc(5)", "42", "99957"),
        ("desc(2)", "0", "99"),
        ("lower", "ÄbC", "äbc"),
        ("upper", "äbc", "ÄBC"),
        ("trim", " a b ", "a b"),
        ("slug", " Hello, Wörld! 2 ", "hello-wörld-2"),
        ("iso(s)", "1796032800", "2026-11-30T10:00:00Z"),
        ("iso(ms)", "1796032800007", "2026-11-30T10:00:00.007Z"),
        ("date(s)", "1796032800", "2026-11-30"),
        ("date(iso)", "2026-11-30T23:30:00-05:00", "2026-11-30"),
        ("epoch(s)", "2026-11-30T10:00:00Z", "1796032800"),
        ("epoch(ms)", "2026-11-30T11:00:00.5+01:00", "1796032800500"),
        ("epoch(us)", "1969-12-31T23:59:59.999999Z", "-1"),
        ("hash(crc32)", "123456789", "cbf43926"),
        ("hash(md5)", "abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("hash(sha256, 8)", "abc", "ba7816bf"),
        ("shard(10)", "123456789", "03"),
        ("shard(1)", "anything", "1"),
        ("replace('-', '')", "a-b-c", "abc"),
        ("replace('''', '|')", "a'b", "a|b"),
        ("trim | lower | pad(3)", " 7 ", "007"),
    ] {
        assert_eq!(rendered(&format!("{{v | {filter}}}"), &[("v", Value::S(input))]), expected, "{filter} of {input}");
    }
    assert_eq!(rendered("{v|pad(3)}", &[("v", Value::N("7.0"))]), "007");
}

#[test]
fn shards_are_within_their_count_and_equally_wide() {
    for n in 0..500 {
        let shard = rendered("{v | shard(100)}", &[("v", Value::S(&format!("user-{n}")))]);
        assert_eq!(shard.len(), 3);
        assert!((1..=100).contains(&shard.parse::<u32>().unwrap()), "{shard}");
    }
}

#[test]
fn a_text_that_a_filter_cannot_take_is_refused_without_showing_it() {
    for (filter, input, expected) in [
        ("pad(3)", "1234", "pad-width: part `v`: pad(3) found 4 digits; a wider pad changes all keys"),
        ("desc(3)", "1234", "pad-width: part `v`: desc(3) found 4 digits; a wider desc changes all keys"),
        ("pad(9)", "-12", "pad-digits: part `v`: pad(9) takes digits only, found 3 bytes with others"),
        ("pad(9)", "", "pad-digits: part `v`: pad(9) takes digits only, found an empty text"),
        ("iso(s)", "1.5", "iso: part `v` in `iso`: not an integer"),
        ("iso(s)", "1796032800000", "iso: part `v` in `iso`: outside the years 0000 to 9999; is the unit right?"),
        ("epoch(s)", "2026-11-30T10:00:00", "epoch: part `v` in `epoch`: a date and time without `Z` or offset"),
        ("epoch(s)", "2026-11-30T10:00:00.5Z", "epoch: part `v` in `epoch`: digits below the unit would be lost; use a finer unit"),
        ("date(iso)", "30.11.2026", "date: part `v` in `date`: not a date and time such as 2026-11-30T10:00:00Z"),
        ("slug", "!?", "slug: part `v` in `slug`: no letter and no digit in it"),
    ] {
        assert_eq!(rendered(&format!("{{v | {filter}}}"), &[("v", Value::S(input))]), expected);
    }
}

#[test]
fn a_mistake_says_where_and_what_next() {
    for (text, at, message, help) in [
        ("DOC#{doc", "{doc", "is not closed", "{{"),
        ("DOC#doc}", "}", "without `{`", "}}"),
        ("a{b{c}", "{b{c}", "is not closed", "{{"),
        ("a{}", "{}", "name is missing", "{doc}"),
        ("a{ | pad(3)}", "{ | pad(3)}", "name is missing", "{doc}"),
        ("a{...}", "{...}", "name is missing", "{doc}"),
        ("{a.}", "a.", "missing", "{doc}"),
        ("{tags[x]}", "tags[x]", "no list position", "{doc}"),
        ("{\"a}", "\"a}", "no closing \"", ""),
        ("{a|}", "{a|}", "filter is missing", "pad(10)"),
        ("{saving:pad(10)}", "saving:pad(10)", "is no name", "follow a `|`"),
        ("{a | padd(3)}", "padd", "unknown filter `padd`", "did you mean `pad`?"),
        ("{a | uppercase}", "uppercase", "unknown filter", "known filters: pad"),
        ("{a | pad}", "pad", "takes one argument, found 0", "pad(10)"),
        ("{a | pad()}", "pad()", "takes one argument, found 0", "pad(10)"),
        ("{a | pad(3, 4)}", "pad(3, 4)", "takes one argument, found 2", "pad(10)"),
        ("{a | pad(x)}", "x", "number from 1 to 1024", "pad(10)"),
        ("{a | pad(0)}", "0", "number from 1 to 1024", "pad(10)"),
        ("{a | pad('3')}", "'3'", "number from 1 to 1024", "pad(10)"),
        ("{a | shard(999999)}", "999999", "number from 1 to 100000", "shard(10)"),
        ("{a | lower(1)}", "lower(1)", "takes no argument", "lower"),
        ("{a | iso(min)}", "min", "no unit", "iso(s)"),
        ("{a | date('iso')}", "'iso'", "without quotes", "date(iso)"),
        ("{a | hash(sha1)}", "sha1", "no hash", "sha256"),
        ("{a | hash(crc32, 9)}", "9", "number from 1 to 8", "hash(crc32)"),
        ("{a | replace('x')}", "replace('x')", "takes 2 arguments, found 1", "replace(' ', '-')"),
        ("{a | replace('', 'x')}", "''", "nothing to replace", "replace"),
        ("{a | default(none)}", "none", "text in single quotes", "default('none')"),
        ("{a | default('none)}", "'none)}", "no closing '", ""),
        ("{a | default(\"x\")}", "\"", "double quotes", "single quotes"),
        ("{a | pad(3}", "(3", "`(` is not closed", ""),
        ("{a | pad(3) lower}", " lower", "unexpected text", "separated by `|`"),
        ("{a | pad(3;4)}", ";", "expected `,` or `)`", ""),
        ("{a | pad(3,)}", ")", "expected an argument", ""),
        ("{a | (3)}", "(3)", "name is missing", ""),
        ("{a...}#{b}", "{a...}", "only in the last part", ""),
    ] {
        let error = Template::parse(text).expect_err(text);
        assert_eq!(&text[error.at.clone()], at, "{text}: {error:?}");
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert!(error.help.as_deref().unwrap_or("").contains(help), "{text}: {error:?}");
    }
}

#[test]
fn a_key_is_matched_as_a_whole_and_a_capture_stops_at_the_separator() {
    for (text, key, expected) in [
        ("META", "META", Some("")),
        ("META", "META2", None),
        ("WS#{ws}", "WS#acme", Some("ws=acme")),
        ("WS#{ws}", "WS#", None),
        ("WS#{ws}", "ws#acme", None),
        ("DOC#{doc}", "DOC#1#CMT#2", None),
        ("DOC#{doc...}", "DOC#1#CMT#2", Some("doc=1#CMT#2")),
        ("DOC#{doc}#CMT#{cmt}", "DOC#1#CMT#2", Some("doc=1 cmt=2")),
        ("DOC#{doc}#CMT#{cmt}", "DOC#1#REV#2#CMT#3", None),
        ("DOC#{doc}#CMT#{cmt}", "DOC##CMT#3", None),
        ("{id}", "a:b/c", Some("id=a:b/c")),
        ("{id}", "a#b", None),
        ("doc:{doc}", "doc:1:cmt:2", None),
        ("doc:{doc}:cmt:{cmt}", "doc:1:cmt:2", Some("doc=1 cmt=2")),
        ("doc:{doc}:cmt:{cmt}", "doc:1#x:cmt:2", Some("doc=1#x cmt=2")),
        ("a/{b}|{c}", "a/1/2|3", Some("b=1/2 c=3")),
        ("USER#{id}-profile", "USER#7f-3e-profile", Some("id=7f-3e")),
        ("LOG#{ts}#{id}", "LOG#2026-11-30T10:00:00Z#9", Some("ts=2026-11-30T10:00:00Z id=9")),
        ("{a}-x", "1-x-x", None),
        ("{{{a}}}", "{1}", Some("a=1")),
        ("Ü#{a}é{b}", "Ü#öéß", Some("a=ö b=ß")),
        ("{a}#{a}", "1#1", Some("a=1")),
        ("{a}#{a}", "1#2", None),
    ] {
        assert_eq!(matched(text, key).as_deref(), expected, "{text} {key}");
    }
}

#[test]
fn a_filter_in_a_match_takes_exactly_what_it_gives() {
    for (text, key, expected) in [
        ("DOC#{doc | pad(4)}", "DOC#0042", Some("doc=42")),
        ("DOC#{doc | pad(4)}", "DOC#0000", Some("doc=0")),
        ("DOC#{doc | pad(4)}", "DOC#042", None),
        ("DOC#{doc | pad(4)}", "DOC#00042", None),
        ("DOC#{doc | pad(4)}", "DOC#00x2", None),
        ("{a | upper}#{a | upper}", "AB#AB", Some("a=AB")),
        ("{a | upper}", "aB", None),
        ("{a | lower}", "äb", Some("a=äb")),
        ("{a | lower}", "Äb", None),
        ("{a | pad(3)}#{a}", "007#7", Some("a=7")),
    ] {
        assert_eq!(matched(text, key).as_deref(), expected, "{text} {key}");
    }
}

#[test]
fn a_slot_that_is_filled_must_match_the_same_text() {
    let names = ["ws".to_owned(), "doc".to_owned()];
    let mut partition = template("WS#{ws}");
    let mut sort = template("DOC#{doc}#{ws}");
    partition.bind(&names);
    sort.bind(&names);
    let mut captures = [None; 2];
    assert!(partition.matches("WS#acme", &mut captures));
    assert!(!sort.clone().matches("DOC#1#other", &mut captures.clone()));
    assert!(sort.matches("DOC#1#acme", &mut captures));
    assert_eq!(captures, [Some("acme"), Some("1")]);
}

#[test]
fn a_capture_comes_before_an_attribute_of_the_same_name() {
    let arena = Arena::new();
    let mut item = Item::new_in(&arena);
    item.push("ws", Value::S("attribute"));
    let (template, _) = bound("{ws}");
    assert_eq!(template.render(&[Some("capture")], &item), Ok("capture"));
    assert_eq!(template.render(&[None], &item), Ok("attribute"));
    assert_eq!(template.render(&[], &item), Ok("attribute"));
}

#[test]
fn what_cannot_be_matched_is_said_when_the_pipeline_is_checked() {
    for (text, at, message) in [
        ("", "", "empty template"),
        ("A#{a}{b}", "{b}", "two names without a text"),
        ("A#{a.b}", "{a.b}", "nested path"),
        ("A#{a[0]}", "{a[0]}", "nested path"),
        ("A#{a | hash(md5)}", "{a | hash(md5)}", "filter `hash` cannot be undone"),
        ("A#{a | default('x')}", "{a | default('x')}", "filter `default`"),
        ("A#{a | pad(3) | pad(4)}", "{a | pad(3) | pad(4)}", "filter `pad`"),
    ] {
        let error = template(text).check_matchable().expect_err(text);
        assert_eq!(&text[error.at.clone()], at, "{text}");
        assert!(error.message.contains(message), "{text}: {error:?}");
    }
    for text in ["META", "A#{a}", "{a}#{b | pad(3) | lower}", "{\"a.b\"}"] {
        assert_eq!(template(text).check_matchable(), Ok(()), "{text}");
    }
}

#[test]
fn names_come_once_in_order_and_nested_paths_are_none() {
    assert_eq!(template("{b}#{a}#{b}#{owner.id}#{tags[0]}#{\"x\"}").names(), ["b", "a", "x"]);
}

#[test]
fn more_literal_bytes_win_then_fewer_names() {
    let mut templates = ["{a}", "A#{a}#{b}", "DOC#{a}", "A#{b}", "A#{a}#", "META"].map(template);
    templates.sort_by_key(Template::literalness);
    let order: Vec<_> = templates.iter().map(ToString::to_string).collect();
    assert_eq!(order, ["{a}", "A#{b}", "A#{a}#{b}", "A#{a}#", "DOC#{a}", "META"]);
}

#[test]
fn two_templates_overlap_where_one_key_could_match_both() {
    for (left, right, expected) in [
        ("WS#{ws}", "PROJ#{p}", false),
        ("DOC#{a}", "DOC#{b}", true),
        ("DOC#{a}", "DOC#{a}#CMT#{b}", false),
        ("DOC#{a...}", "DOC#{a}#CMT#{b}", true),
        ("DOC#{a}#CMT#{b}", "DOC#{a}#REV#{b}", false),
        ("META", "META", true),
        ("META", "{x}", true),
        ("META#1", "{x}", false),
        ("A#{a | pad(3)}", "A#{b | pad(4)}", false),
        ("A#{a | pad(3)}", "A#12{b}", true),
        ("A#{a | pad(3)}", "A#x{b}", false),
        ("A{a}", "AB{b}", true),
        ("A{a}", "A", false),
        ("{a}#X", "Y#{b}", true),
        ("{a}:x", "{b}#x", false),
        ("", "", true),
    ] {
        assert_eq!(template(left).overlaps(&template(right)), expected, "{left} {right}");
        assert_eq!(template(right).overlaps(&template(left)), expected, "{right} {left}");
    }
}

/// Templates that can match, and keys that often fit them.
fn template_and_key() -> impl Strategy<Value = (String, String)> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    let filter = prop::sample::select(vec!["", "|pad(3)", "|upper", "|lower", "|lower|pad(2)"]);
    let literal = prop::sample::select(vec!["#", "DOC#", "#X", ":", "-", "ü", "{{", "|"]);
    let text = prop::sample::select(vec!["1", "007", "042", "AB", "ab", "a-b", "x:y", "é", "00", "1#2", "a|b"]);
    prop::collection::vec((literal, name, filter, text), 1..4).prop_map(|parts| {
        parts.into_iter().fold((String::new(), String::new()), |(template, key), (literal, name, filter, text)| {
            (format!("{template}{literal}{{{name}{filter}}}"), format!("{key}{}{text}", literal.replace("{{", "{")))
        })
    })
}

proptest! {
    #[test]
    fn a_template_that_matched_a_key_renders_that_key((text, key) in template_and_key()) {
        let (template, names) = bound(&text);
        prop_assert_eq!(template.check_matchable(), Ok(()));
        let mut captures = vec![None; names.len()];
        if template.matches(&key, &mut captures) {
            let arena = Arena::new();
            prop_assert_eq!(template.render(&captures, &Item::new_in(&arena)), Ok(key.as_str()));
        }
    }

    #[test]
    fn templates_that_match_one_key_overlap((left, key) in template_and_key(), (right, _) in template_and_key()) {
        let ((one, names), (two, other_names)) = (bound(&left), bound(&right));
        if one.matches(&key, &mut vec![None; names.len()]) {
            prop_assert!(one.overlaps(&one));
            if two.matches(&key, &mut vec![None; other_names.len()]) {
                prop_assert!(one.overlaps(&two), "{} {}", left, right);
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-c{}|()'\"#.,0-3é ]{0,24}") {
        if let Err(error) = Template::parse(&text) {
            prop_assert!(text.get(error.at.clone()).is_some(), "{:?}", error);
        }
    }
}
