//! `cast`: a value of one type becomes the same value of another.
//!
//! ```toml
//! steps = [{ cast = { seats = "number", meta = "parse_json", createdAt = "iso(ms)", tags = "set" } }]
//! ```
//!
//! | cast | from | to |
//! |---|---|---|
//! | `number` | S with a decimal number | N, in the spelling that `DynamoDB` stores |
//! | `string` | N, BOOL | S: the number in that spelling; `true`, `false` |
//! | `bool` | S `true` or `false` | BOOL |
//! | `parse_json` | S with plain JSON | M, L, S, N, BOOL or NULL; numbers stay exact |
//! | `to_json` | M, L, N, BOOL, NULL, without sets and binary in them | S with plain JSON |
//! | `set` | L of only S, only N or only B, not empty, all different | SS, NS, BS |
//! | `list` | SS, NS, BS | L |
//! | `iso(s)`, `iso(ms)`, `iso(us)` | N: an epoch number in that unit | S such as `2026-11-30T10:00:00Z` |
//! | `epoch(s)`, `epoch(ms)`, `epoch(us)` | S: date and time with its zone | N: an epoch number in that unit |
//!
//! An absent attribute is left alone, and so is a value that has the type already. Everything else is a reject,
//! rule `cast`: nothing is rounded, trimmed or guessed.

use std::fmt;

use bumpalo::collections::Vec as ArenaVec;

use crate::document::{Node, unknown};
use crate::error::{Diagnostics, Reason};
use crate::model::number::Decimal;
use crate::model::time::{Moment, Unit};
use crate::model::{Arena, Batch, Fate, Path, Row, Value};
use crate::ops::{Op, json, read, refused};

#[derive(Debug)]
struct Cast {
    casts: Vec<(Path, Target)>,
}

/// What a value becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Number,
    Text,
    Bool,
    ParseJson,
    ToJson,
    Set,
    List,
    Iso(Unit),
    Epoch(Unit),
}

/// All targets, by the name that the pipeline file gives them.
const TARGETS: [(&str, Target); 13] = [
    ("number", Target::Number),
    ("string", Target::Text),
    ("bool", Target::Bool),
    ("parse_json", Target::ParseJson),
    ("to_json", Target::ToJson),
    ("set", Target::Set),
    ("list", Target::List),
    ("iso(s)", Target::Iso(Unit::Seconds)),
    ("iso(ms)", Target::Iso(Unit::Millis)),
    ("iso(us)", Target::Iso(Unit::Micros)),
    ("epoch(s)", Target::Epoch(Unit::Seconds)),
    ("epoch(ms)", Target::Epoch(Unit::Millis)),
    ("epoch(us)", Target::Epoch(Unit::Micros)),
];

pub(super) fn bind(node: Node<'_>, _captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    let mut casts: Vec<(Path, Target)> = Vec::new();
    for named in read::entries(node, "`cast`", diagnostics)? {
        let path = read::path(named.name, &named.name_span, diagnostics);
        let Some(text) = named.value.string(&format!("the cast of `{}`", named.name), diagnostics) else {
            continue;
        };
        match (TARGETS.iter().find(|(name, _)| *name == text), path) {
            (Some((_, target)), Some(path)) => casts.push((path, *target)),
            (Some(_), None) => {}
            (None, _) => unknown("cast", text, &named.value.span(), TARGETS.map(|(name, _)| name), diagnostics),
        }
    }
    Some(Box::new(Cast { casts }))
}

impl Target {
    /// The value as this type; `None` where it has the type already.
    fn of<'a>(self, value: Value<'a>, arena: &'a Arena) -> Result<Option<Value<'a>>, String> {
        let other = || Err(format!("it is {}, expected {}", value.kind(), self.expects()));
        let changed = match (self, value) {
            (Target::Number | Target::Epoch(_), Value::N(_))
            | (Target::Text | Target::ToJson | Target::Iso(_), Value::S(_))
            | (Target::Bool, Value::Bool(_))
            | (Target::ParseJson, Value::M(_) | Value::L(_) | Value::N(_) | Value::Bool(_) | Value::Null)
            | (Target::Set, Value::Ss(_) | Value::Ns(_) | Value::Bs(_))
            | (Target::List, Value::L(_)) => return Ok(None),
            (Target::Number, Value::S(text)) => Value::N(json::number(text, arena)?),
            (Target::Text, Value::N(text)) => Value::S(json::number(text, arena)?),
            (Target::Text, Value::Bool(value)) => Value::S(if value { "true" } else { "false" }),
            (Target::Bool, Value::S("true")) => Value::Bool(true),
            (Target::Bool, Value::S("false")) => Value::Bool(false),
            (Target::Bool, Value::S(_)) => return Err("it is neither `true` nor `false`".to_owned()),
            (Target::ParseJson, Value::S(text)) => json::parse(text, arena)?,
            (Target::ToJson, Value::M(_) | Value::L(_) | Value::N(_) | Value::Bool(_) | Value::Null) => {
                Value::S(json::write(&value, arena).ok_or("JSON has no form for sets, binary and more than 32 levels")?)
            }
            (Target::Set, Value::L(elements)) => to_set(elements, arena)?,
            (Target::List, Value::Ss(elements)) => Value::L(arena.alloc_slice_fill_iter(elements.iter().map(|text| Value::S(text)))),
            (Target::List, Value::Ns(elements)) => Value::L(arena.alloc_slice_fill_iter(elements.iter().map(|text| Value::N(text)))),
            (Target::List, Value::Bs(elements)) => Value::L(arena.alloc_slice_fill_iter(elements.iter().map(|bytes| Value::B(bytes)))),
            (Target::Iso(unit), Value::N(text)) => {
                let moment = Moment::from_epoch(json::number(text, arena)?, unit).map_err(|error| format!("it is {error}"))?;
                Value::S(bumpalo::format!(in arena, "{}", moment.iso(unit)).into_bump_str())
            }
            (Target::Epoch(unit), Value::S(text)) => {
                let number = Moment::from_iso(text).and_then(|moment| moment.epoch(unit)).map_err(|error| format!("it is {error}"))?;
                Value::N(bumpalo::format!(in arena, "{}", number).into_bump_str())
            }
            _ => return other(),
        };
        Ok(Some(changed))
    }

    /// The types it takes.
    fn expects(self) -> &'static str {
        match self {
            Target::Number | Target::Bool | Target::ParseJson | Target::Epoch(_) => "S",
            Target::Text => "N or BOOL",
            Target::ToJson => "M, L, N, BOOL or NULL",
            Target::Set => "L",
            Target::List => "SS, NS or BS",
            Target::Iso(_) => "N",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = TARGETS.iter().find(|(_, target)| target == self).map(|(name, _)| *name);
        f.write_str(name.expect("TARGETS holds every target"))
    }
}

/// The set of a list's elements.
fn to_set<'a>(elements: &'a [Value<'a>], arena: &'a Arena) -> Result<Value<'a>, String> {
    const MIXED: &str = "its elements are not all S, all N or all B";
    const TWICE: &str = "it has an element twice, and a set cannot";
    let mut texts: ArenaVec<'a, &'a str> = ArenaVec::new_in(arena);
    let mut binaries: ArenaVec<'a, &'a [u8]> = ArenaVec::new_in(arena);
    let Some(first) = elements.first() else {
        return Err("it is an empty list, and DynamoDB has no empty sets".to_owned());
    };
    for element in elements {
        match (element, first) {
            (Value::S(text), Value::S(_)) | (Value::N(text), Value::N(_)) => texts.push(text),
            (Value::B(bytes), Value::B(_)) => binaries.push(bytes),
            _ => return Err(MIXED.to_owned()),
        }
    }
    let twice = match first {
        Value::B(_) => has_equal(&binaries),
        Value::N(_) => {
            let decimals: Option<Vec<_>> = texts.iter().map(|text| Decimal::parse(text)).collect();
            has_equal(&decimals.ok_or("an element is not a decimal number")?)
        }
        _ => has_equal(&texts),
    };
    if twice {
        return Err(TWICE.to_owned());
    }
    Ok(match first {
        Value::B(_) => Value::Bs(binaries.into_bump_slice()),
        Value::N(_) => Value::Ns(texts.into_bump_slice()),
        _ => Value::Ss(texts.into_bump_slice()),
    })
}

/// Whether two elements are equal. Sorted, since a list may be long.
fn has_equal<T: Ord + Clone>(elements: &[T]) -> bool {
    let mut sorted = elements.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

impl Cast {
    fn row(&self, row: &mut Row<'_>) -> Result<Fate, Reason> {
        let arena = row.item.arena();
        for (path, target) in &self.casts {
            let Some(value) = path.get(&row.item) else {
                continue;
            };
            let step = format_args!("cast {path} to {target}");
            if let Some(value) = target.of(value, arena).map_err(|message| refused("cast", step, message))? {
                row.item.set_path(path, value).map_err(|error| refused("cast", step, error))?;
            }
        }
        Ok(Fate::Keep)
    }
}

impl Op for Cast {
    fn apply(&self, batch: &mut Batch<'_>) {
        batch.each(|row| self.row(row));
    }
}

impl fmt::Display for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (path, target)) in self.casts.iter().enumerate() {
            write!(f, "{}{path} to {target}", if at == 0 { "cast " } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{check, mistakes};

    fn cast(target: &str, from: &str, to: &str) {
        let outcome = if to.starts_with('{') { format!("{{ a = {to} }}") } else { format!("step/cast: cast a to {target}: {to}") };
        check(&format!("{{ cast = {{ a = \"{target}\" }} }}"), &format!("{{ a = {from} }}"), &outcome);
    }

    #[test]
    fn texts_and_numbers() {
        cast("number", r#"{ S = "00012" }"#, r#"{ N = "12" }"#);
        cast("number", r#"{ S = "1.50E1" }"#, r#"{ N = "15" }"#);
        cast("number", r#"{ N = "1.0" }"#, r#"{ N = "1.0" }"#);
        cast("number", r#"{ S = " 1" }"#, "it is not a decimal number");
        cast("number", r#"{ S = "1e999" }"#, "magnitude above");
        cast("number", r"{ BOOL = true }", "it is BOOL, expected S");
        cast("string", r#"{ N = "1.0" }"#, r#"{ S = "1" }"#);
        cast("string", r"{ BOOL = true }", r#"{ S = "true" }"#);
        cast("string", r"{ NULL = true }", "it is NULL, expected N or BOOL");
        cast("bool", r#"{ S = "false" }"#, r"{ BOOL = false }");
        cast("bool", r#"{ S = "False" }"#, "it is neither `true` nor `false`");
    }

    #[test]
    fn json() {
        cast("parse_json", r#"{ S = '{"a":[1.50,null]}' }"#, r#"{ M = { a = { L = [{ N = "1.5" }, { NULL = true }] } } }"#);
        cast("parse_json", r"{ S = '{' }", "it is not JSON: expected a name in quotes at byte 1");
        cast("parse_json", r#"{ SS = ["a"] }"#, "it is SS, expected S");
        cast("to_json", r#"{ M = { a = { L = [{ N = "1.50" }, { NULL = true }] } } }"#, r#"{ S = '{"a":[1.5,null]}' }"#);
        cast("to_json", r#"{ M = { a = { SS = ["x"] } } }"#, "JSON has no form for sets");
    }

    #[test]
    fn lists_and_sets() {
        cast("set", r#"{ L = [{ S = "a" }, { S = "b" }] }"#, r#"{ SS = ["a", "b"] }"#);
        cast("set", r#"{ L = [{ N = "1" }, { N = "2" }] }"#, r#"{ NS = ["1", "2"] }"#);
        cast("set", r#"{ L = [{ B = "AQ==" }] }"#, r#"{ BS = ["AQ=="] }"#);
        cast("set", r"{ L = [] }", "it is an empty list");
        cast("set", r#"{ L = [{ N = "1" }, { N = "1.0" }] }"#, "it has an element twice");
        cast("set", r#"{ L = [{ S = "1" }, { N = "1" }] }"#, "its elements are not all S");
        cast("set", r"{ L = [{ NULL = true }] }", "its elements are not all S");
        cast("list", r#"{ SS = ["a", "b"] }"#, r#"{ L = [{ S = "a" }, { S = "b" }] }"#);
        cast("list", r#"{ NS = ["1"] }"#, r#"{ L = [{ N = "1" }] }"#);
        cast("list", r#"{ BS = ["AQ=="] }"#, r#"{ L = [{ B = "AQ==" }] }"#);
    }

    #[test]
    fn moments() {
        cast("iso(s)", r#"{ N = "1796032800" }"#, r#"{ S = "2026-11-30T10:00:00Z" }"#);
        cast("iso(ms)", r#"{ N = "1.796032800007E12" }"#, r#"{ S = "2026-11-30T10:00:00.007Z" }"#);
        cast("iso(s)", r#"{ N = "1.5" }"#, "it is not an integer");
        cast("epoch(s)", r#"{ S = "2026-11-30T10:00:00Z" }"#, r#"{ N = "1796032800" }"#);
        cast("epoch(s)", r#"{ S = "2026-11-30T10:00:00" }"#, "it is a date and time without");
    }

    #[test]
    fn nested_values_are_cast_and_absent_ones_left_alone() {
        check(
            r#"{ cast = { "m.l[0]" = "number", none = "set" } }"#,
            r#"{ m = { M = { l = { L = [{ S = "1" }] } } } }"#,
            r#"{ m = { M = { l = { L = [{ N = "1" }] } } } }"#,
        );
    }

    #[test]
    fn mistakes_are_found_by_check() {
        mistakes(r#"{ cast = { a = "nummber" } }"#, "did you mean `number`?");
        mistakes(r#"{ cast = { a = "iso(h)" } }"#, "did you mean `iso(s)`?");
    }
}
