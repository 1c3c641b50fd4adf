//! Conditions: an item and a text in, the answer or the mistake out.

use proptest::prelude::*;

use super::*;
use crate::model::{Arena, Attribute};

const ITEM: &[Attribute<'static>] = &[
    ("s", Value::S("hello")),
    ("empty", Value::S("")),
    ("n", Value::N("10")),
    ("ten", Value::N("1.0E1")),
    ("big", Value::N("12345678901234567890123456789012345678")),
    ("neg", Value::N("-5")),
    ("bin", Value::B(b"\x01\x02\xff")),
    ("yes", Value::Bool(true)),
    ("nil", Value::Null),
    ("m", Value::M(&[("id", Value::S("o1")), ("n", Value::N("1"))])),
    ("m2", Value::M(&[("n", Value::N("1.0")), ("id", Value::S("o1"))])),
    ("l", Value::L(&[Value::S("red"), Value::N("1"), Value::Ss(&["a", "b"])])),
    ("l2", Value::L(&[Value::S("red"), Value::N("1.00"), Value::Ss(&["b", "a"])])),
    ("ss", Value::Ss(&["a", "b"])),
    ("ss2", Value::Ss(&["b", "a"])),
    ("ns", Value::Ns(&["1", "2.0"])),
    ("ns2", Value::Ns(&["2", "1"])),
    ("bs", Value::Bs(&[b"x", b"y"])),
    ("wide", Value::S("é𝄞")),
    ("a.b", Value::S("dotted")),
    ("First Name", Value::S("Ada")),
    ("GSI1-PK", Value::S("hello")),
    ("aws:rep:x", Value::S("r")),
    ("between", Value::N("3")),
    ("size", Value::N("7")),
];

fn holds(text: &str) -> bool {
    let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(condition.to_string(), text);
    let arena = Arena::new();
    let mut item = Item::new_in(&arena);
    for (name, value) in ITEM {
        item.push(name, *value);
    }
    condition.holds(&item)
}

#[track_caller]
fn check(rows: &[(&str, bool)]) {
    for (text, expected) in rows {
        assert_eq!(holds(text), *expected, "{text}");
        assert_eq!(holds(&format!("NOT ({text})")), !expected, "NOT ({text})");
    }
}

#[test]
fn scalars_compare_within_their_type() {
    check(&[
        ("s = 'hello'", true),
        ("s = 'Hello'", false),
        ("'hello' = s", true),
        ("s <> 'x'", true),
        ("s < 'hellp'", true),
        ("s < 'hello'", false),
        ("s <= 'hello'", true),
        ("s > 'Z'", true),
        ("s >= 'hello'", true),
        ("empty = ''", true),
        ("empty < 'a'", true),
        ("yes = true", true),
        ("yes = false", false),
        ("yes <> false", true),
        ("nil = null", true),
        ("bin = b'AQL/'", true),
        ("bin > b'AQL+'", true),
        ("bin < B'Ag=='", true),
    ]);
    check(&[("\"GSI1-PK\" = s", true), ("GSI1-PK = s", true), ("\"First Name\" = 'Ada'", true), ("\"a.b\" = 'dotted'", true)]);
}

#[test]
fn numbers_compare_by_value_with_all_their_digits() {
    check(&[
        ("n = 10", true),
        ("n = 10.0", true),
        ("n = 1e1", true),
        ("n = +10", true),
        ("n = ten", true),
        ("n < 9", false),
        ("n > 9.999999999999999999999999", true),
        ("neg < -4.9", true),
        ("neg > -6", true),
        ("big = 12345678901234567890123456789012345678", true),
        ("big = 12345678901234567890123456789012345679", false),
        ("big < 12345678901234567890123456789012345679", true),
        ("n > .5", true),
    ]);
}

#[test]
fn values_of_different_types_are_never_equal_and_never_ordered() {
    check(&[
        ("n = '10'", false),
        ("n <> '10'", true),
        ("n < '9'", false),
        ("n >= '9'", false),
        ("yes <> 'true'", true),
        ("nil = false", false),
        ("ss = 'a'", false),
        ("s BETWEEN 1 AND 9", false),
        ("n IN ('10', true, null)", false),
        ("m < l", false),
        ("ss <= ss2", false),
    ]);
}

#[test]
fn a_missing_operand_makes_every_comparison_false_but_not_equal() {
    check(&[
        ("gone = 1", false),
        ("gone <> 1", true),
        ("gone < 1", false),
        ("gone <= 1", false),
        ("gone > 1", false),
        ("gone >= 1", false),
        ("1 <> gone", true),
        ("gone = lost", false),
        ("gone <> lost", true),
        ("gone = null", false),
        ("gone <> null", true),
        ("gone BETWEEN 1 AND 2", false),
        ("n BETWEEN gone AND 20", false),
        ("gone IN (1, 2)", false),
        ("n IN (gone, 10)", true),
        ("begins_with(gone, 'a')", false),
        ("contains(gone, 'a')", false),
        ("contains(s, gone)", false),
        ("attribute_type(gone, 'S')", false),
        ("size(gone) > 0", false),
        ("size(gone) <> 0", true),
        ("m.gone <> 'x'", true),
        ("s.id = 'x'", false),
        ("l[9] = 1", false),
    ]);
}

#[test]
fn between_and_in() {
    check(&[
        ("n BETWEEN 10 AND 11", true),
        ("n BETWEEN 9 AND 10", true),
        ("n BETWEEN 11 AND 12", false),
        ("n between -1 and 1E2", true),
        ("s BETWEEN 'a' AND 'z'", true),
        ("7 BETWEEN neg AND n", true),
        ("n BETWEEN size(ss) AND 10", true),
        ("n IN (1, 10.0)", true),
        ("n IN (1)", false),
        ("s IN ('x', 'hello')", true),
        ("'hello' IN (empty, s)", true),
        ("n BETWEEN 1 AND 20 AND s = 'hello'", true),
        ("\"between\" BETWEEN 1 AND 3", true),
    ]);
}

#[test]
fn documents_and_sets_are_equal_by_what_they_hold() {
    check(&[
        ("m = m2", true),
        ("m <> m2", false),
        ("l = l2", true),
        ("ss = ss2", true),
        ("ns = ns2", true),
        ("ns <> ns2", false),
        ("ss = ns", false),
        ("m = l", false),
        ("m.id = 'o1'", true),
        ("m.n = m2.n", true),
        ("l[0] = 'red'", true),
        ("l[2] = ss2", true),
        ("bs = ss", false),
    ]);
}

#[test]
fn functions_look_at_presence_type_and_content() {
    check(&[
        ("attribute_exists(s)", true),
        ("attribute_exists(nil)", true),
        ("attribute_exists(m.id)", true),
        ("attribute_exists(gone)", false),
        ("attribute_not_exists(gone)", true),
        ("attribute_not_exists(m.id)", false),
        ("attribute_exists(aws:rep:x)", true),
        ("attribute_type(s, 'S')", true),
        ("attribute_type(s, 'N')", false),
        ("attribute_type(yes, 'BOOL')", true),
        ("attribute_type(nil, 'NULL')", true),
        ("attribute_type(ns, 'NS')", true),
        ("begins_with(s, 'hel')", true),
        ("begins_with(s, '')", true),
        ("begins_with(s, 'el')", false),
        ("begins_with(s, empty)", true),
        ("begins_with(n, '1')", false),
        ("begins_with(bin, b'AQI=')", true),
        ("begins_with(bin, 'a')", false),
        ("begins_with(ss, 'a')", false),
        ("contains(s, 'ell')", true),
        ("contains(s, 'x')", false),
        ("contains(bin, b'Av8=')", true),
        ("contains(ss, 'a')", true),
        ("contains(ss, 'ab')", false),
        ("contains(ns, 2)", true),
        ("contains(ns, '2')", false),
        ("contains(bs, b'eA==')", true),
        ("contains(l, 'red')", true),
        ("contains(l, 're')", false),
        ("contains(l, 1.0)", true),
        ("contains(l, ss2)", true),
        ("contains(m, 'id')", false),
        ("contains(n, 1)", false),
    ]);
}

#[test]
fn size_counts_utf16_units_bytes_and_members() {
    check(&[
        ("size(s) = 5", true),
        ("size(wide) = 3", true),
        ("size(empty) = 0", true),
        ("size(bin) = 3", true),
        ("size(ss) = 2", true),
        ("size(ns) = 2", true),
        ("size(bs) = 2", true),
        ("size(l) = 3", true),
        ("size(m) = 2", true),
        ("size(m.id) = 2", true),
        ("size(n) > 0", false),
        ("size(yes) > 0", false),
        ("size(ss) = size(m)", true),
        ("size(l) > size(ss)", true),
        ("5 = size(s)", true),
        ("size(s) IN (4, 5)", true),
        ("size(s) < n", true),
        ("size > 6", true),
        ("size (s) = 5", true),
    ]);
}

#[test]
fn not_binds_closer_than_and_and_closer_than_or() {
    check(&[
        ("s = 'x' AND s = 'y' OR n = 10", true),
        ("n = 10 OR s = 'x' AND s = 'y'", true),
        ("(n = 10 OR s = 'x') AND s = 'y'", false),
        ("NOT s = 'x' AND n = 10", true),
        ("NOT (s = 'x' AND n = 10)", true),
        ("NOT n = 10 OR n = 10", true),
        ("not not n = 10", true),
        ("n = 10 and(s='hello')or s='x'", true),
        (" ( ( n = 10 ) ) ", true),
        ("n=10\n\tAND s<>'it''s'", true),
        ("NOT(n=10)", false),
        ("NOT contains(s, 'AND') AND n=10", true),
    ]);
}

#[test]
fn a_mistake_says_where_and_what_next() {
    for (text, at, message, help) in [
        ("", "", "condition is empty", "attribute_exists"),
        ("s = 'x", "'x", "no closing '", "'it''s'"),
        ("s == 'x'", "==", "no operator", "equality is ="),
        ("s != 'x'", "!=", "no operator", "<>"),
        ("s = 'x' && n = 1", "&&", "no operator", "AND"),
        ("s = 'x' || n = 1", "||", "no operator", "OR"),
        ("!contains(s, 'x')", "!", "no operator", "NOT"),
        ("n => 1", "=>", "no operator", ">="),
        ("s = \"x\"", "\"x\"", "in double quotes", "single quotes"),
        ("s = \"two words\"", "\"two words\"", "in double quotes", "single quotes"),
        ("\"s\" = \"x\"", "\"x\"", "in double quotes", "single quotes"),
        ("begins_with(s, \"x\")", "\"x\"", "in double quotes", "single quotes"),
        ("s IN (\"x\")", "\"x\"", "in double quotes", "single quotes"),
        ("\"s = 1", "\"s = 1", "no closing \"", "single quotes for texts"),
        ("s = :v", ":v", "placeholder", "the value itself"),
        ("#s = 'x'", "#s", "placeholder", "the attribute's name itself"),
        ("s = 5x", "5x", "`5x` is no number", "single quotes"),
        ("s = -", "-", "`-` is no number", ""),
        ("n = 1e999", "1e999", "magnitude", ""),
        ("s = b'?'", "b'?'", "not base64", "b'"),
        ("s = 'x';", ";", "unexpected `;`", ""),
        ("s", "s", "expected a comparator", "attribute_exists"),
        ("s AND n = 1", "AND", "expected a comparator", ""),
        ("s NOT IN ('x')", "NOT", "expected a comparator", "before the operand"),
        ("s IS NULL", "IS", "expected a comparator", "attribute_not_exists"),
        ("s LIKE 'x'", "LIKE", "expected a comparator", "begins_with"),
        ("s 'x'", "'x'", "expected a comparator", ""),
        ("s =", "", "expected an operand, found the end", ""),
        ("s = AND", "AND", "expected an operand", "double quotes"),
        ("= 'x'", "=", "expected an operand", ""),
        ("s = 'x' n = 1", "n", "expected AND, OR or the end", ""),
        ("1 < n < 5", "<", "compared again", "BETWEEN"),
        ("(s = 'x'", "(", "`(` is not closed", ""),
        ("(s = 'x' n", "n", "expected AND, OR or `)`", ""),
        ("s = 'x')", ")", "`)` without `(`", ""),
        ("s = 'x' AND", "", "expected an operand", ""),
        ("contain(s, 'x')", "contain", "unknown function", "did you mean `contains`?"),
        ("foo(s)", "foo", "unknown function", "known functions"),
        ("Contains(s, 'x')", "Contains", "unknown function", "lower case: contains"),
        ("s = upper(s)", "upper", "unknown function", "known functions"),
        ("s = contains(s, 'x')", "contains", "cannot be compared", ""),
        ("contains(s, 'x') = true", "=", "true or false by itself", "NOT"),
        ("attribute_exists()", "attribute_exists()", "one argument, found 0", "attribute_exists(body)"),
        ("attribute_exists(s, n)", "attribute_exists(s, n)", "one argument, found 2", ""),
        ("contains(s)", "contains(s)", "two arguments, found 1", "contains(tags"),
        ("contains(s, 'x'", "(", "`(` is not closed", ""),
        ("contains(s 'x')", "'x'", "expected `,` or `)`", ""),
        ("attribute_exists('s')", "attribute_exists('s')", "path of an attribute", ""),
        ("contains('x', s)", "contains('x', s)", "path of an attribute", ""),
        ("begins_with(s, 5)", "5", "a text or a binary", ""),
        ("begins_with(s, size(n))", "size(n)", "a text or a binary", ""),
        ("attribute_type(s, 'String')", "'String'", "one of S, N, B, BOOL", ""),
        ("attribute_type(s, S)", "S", "one of S, N, B, BOOL", ""),
        ("size(s)", "size(s)", "expected a comparator", ""),
        ("size('x') > 1", "size('x')", "one attribute", ""),
        ("size(s, n) > 1", "size(s, n)", "one attribute", ""),
        ("size(s) > 'x'", "size(s) > 'x'", "`size` is a number", ""),
        ("'a' = 'a'", "'a' = 'a'", "literals are compared", ""),
        ("1 BETWEEN 0 AND 2", "1 BETWEEN 0 AND 2", "literals are compared", ""),
        ("1 IN (1, 2)", "1 IN (1, 2)", "literals are compared", ""),
        ("s = s", "s = s", "compared with itself", ""),
        ("n < true", "true", "no order", "= or <>"),
        ("n BETWEEN null AND 3", "null", "no order", ""),
        ("n BETWEEN 'a' AND 3", "'a' AND 3", "different types", ""),
        ("n BETWEEN 3 AND 1", "3 AND 1", "above the upper", ""),
        ("n BETWEEN 3, 5", ",", "expected AND between", ""),
        ("s IN 'x'", "'x'", "expected `(` after IN", ""),
        ("s IN ()", ")", "expected an operand", ""),
        ("yes = TRUE", "TRUE", "neither a literal", "lower case"),
        ("tags[x] = 1", "tags[x]", "no list position", ""),
        ("tags[1 = 1", "[1 = 1", "`[` without `]`", ""),
        ("a. = 1", "a.", "missing", ""),
    ] {
        let error = Condition::parse(text).expect_err(text);
        assert_eq!(&text[error.at.clone()], at, "{text}: {error:?}");
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert!(error.help.as_deref().unwrap_or("").contains(help), "{text}: {error:?}");
    }
}

#[test]
fn deep_nesting_is_refused_and_long_chains_are_not() {
    let nested = |depth: usize| format!("{}n = 10{}", "(".repeat(depth), ")".repeat(depth));
    assert!(holds(&nested(200)));
    assert!(Condition::parse(&nested(201)).unwrap_err().message.contains("more than 200"));
    assert!(Condition::parse(&nested(1_000_000)).is_err());
    assert!(Condition::parse(&"NOT ".repeat(1_000_000)).is_err());
    assert!(holds(&vec!["n = 10"; 20_000].join(" AND ")));
    assert!(holds(&format!("{} OR n = 10", vec!["(n = 1)"; 20_000].join(" OR "))));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(s|n|size|contains|NOT|AND|OR|IN|BETWEEN|'x'|b'eA=='|[-+.,()=<>!&|\"' \\[\\]#:0-9é]){0,16}") {
        if let Err(error) = Condition::parse(&text) {
            prop_assert!(text.get(error.at.clone()).is_some(), "{:?}", error);
        }
    }

    #[test]
    fn numbers_order_like_integers(left in -1000_i64..1000, right in -1000_i64..1000) {
        let arena = Arena::new();
        let mut item = Item::new_in(&arena);
        let text = left.to_string();
        item.push("n", Value::N(arena.alloc_str(&text)));
        for (comparator, expected) in
            [("=", left == right), ("<>", left != right), ("<", left < right), ("<=", left <= right), (">", left > right), (">=", left >= right)]
        {
            let condition = Condition::parse(&format!("n {comparator} {right}")).unwrap();
            prop_assert_eq!(condition.holds(&item), expected, "{} {} {}", left, comparator, right);
        }
    }
}
