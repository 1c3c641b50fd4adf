//! A value written in the pipeline file the way `DynamoDB` types it: `{ N = "5" }`, `{ SS = ["a", "b"] }`.
//!
//! It is checked when it is read, so that a value that the service would refuse is found by `check`.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::document::{Named, Node, unknown};
use crate::error::Diagnostics;
use crate::model::number::Decimal;
use crate::model::{Arena, Type, Value};

/// The deepest nesting `DynamoDB` takes (AWS, "Quotas": 32 levels).
const LEVELS: usize = 32;

/// A value of any of the ten types, owned by the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A string.
    S(String),
    /// A number as decimal text, within the limits.
    N(String),
    /// Binary.
    B(Vec<u8>),
    /// A boolean.
    Bool(bool),
    /// The null value.
    Null,
    /// A map, in the order of the file.
    M(Vec<(String, Literal)>),
    /// A list.
    L(Vec<Literal>),
    /// A set of strings, not empty, without equal elements.
    Ss(Vec<String>),
    /// A set of numbers, not empty, without equal elements.
    Ns(Vec<String>),
    /// A set of binaries, not empty, without equal elements.
    Bs(Vec<Vec<u8>>),
}

impl Literal {
    /// Reads `{ TYPE = value }`. Everything else is a mistake that says how the value is to be written.
    pub fn read(node: Node<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<Self> {
        read_value(node, what, 1, diagnostics)
    }

    /// Reads the attributes of an item: `{ PK = { S = "WS#acme" }, seats = { N = "5" } }`.
    pub fn read_attributes(node: Node<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<Vec<(String, Self)>> {
        read_entries(node, what, 1, diagnostics)
    }

    /// The value, in an item's arena.
    #[must_use]
    pub fn to_value<'a>(&self, arena: &'a Arena) -> Value<'a> {
        let text = |text: &String| -> &'a str { arena.alloc_str(text) };
        match self {
            Literal::S(value) => Value::S(text(value)),
            Literal::N(value) => Value::N(text(value)),
            Literal::B(value) => Value::B(arena.alloc_slice_copy(value)),
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Null => Value::Null,
            Literal::M(entries) => Value::M(arena.alloc_slice_fill_iter(
                entries.iter().map(|(name, value)| -> (&'a str, Value<'a>) { (text(name), value.to_value(arena)) }),
            )),
            Literal::L(elements) => Value::L(arena.alloc_slice_fill_iter(elements.iter().map(|element| element.to_value(arena)))),
            Literal::Ss(elements) => Value::Ss(arena.alloc_slice_fill_iter(elements.iter().map(text))),
            Literal::Ns(elements) => Value::Ns(arena.alloc_slice_fill_iter(elements.iter().map(text))),
            Literal::Bs(elements) => {
                Value::Bs(arena.alloc_slice_fill_iter(elements.iter().map(|element| -> &'a [u8] { arena.alloc_slice_copy(element) })))
            }
        }
    }

    /// The value in `DynamoDB` JSON: `{"N":"5"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        out.push_str("{\"");
        out.push_str(self.kind().descriptor());
        out.push_str("\":");
        match self {
            Literal::S(text) | Literal::N(text) => write_text(text, out),
            Literal::B(bytes) => write_text(&BASE64.encode(bytes), out),
            Literal::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Literal::Null => out.push_str("true"),
            Literal::M(entries) => write_object(entries, out),
            Literal::L(elements) => write_array(elements, out, Literal::write_json),
            Literal::Ss(elements) | Literal::Ns(elements) => write_array(elements, out, |element, out| write_text(element, out)),
            Literal::Bs(elements) => write_array(elements, out, |element, out| write_text(&BASE64.encode(element), out)),
        }
        out.push('}');
    }

    fn kind(&self) -> Type {
        match self {
            Literal::S(_) => Type::S,
            Literal::N(_) => Type::N,
            Literal::B(_) => Type::B,
            Literal::Bool(_) => Type::Bool,
            Literal::Null => Type::Null,
            Literal::M(_) => Type::M,
            Literal::L(_) => Type::L,
            Literal::Ss(_) => Type::Ss,
            Literal::Ns(_) => Type::Ns,
            Literal::Bs(_) => Type::Bs,
        }
    }
}

impl fmt::Display for Literal {
    /// In `DynamoDB` JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// Appends attributes as the object of an item: `{"PK":{"S":"WS#acme"}}`.
pub fn write_object(attributes: &[(String, Literal)], out: &mut String) {
    out.push('{');
    for (at, (name, value)) in attributes.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        value.write_json(out);
    }
    out.push('}');
}

fn write_array<T>(elements: &[T], out: &mut String, write: impl Fn(&T, &mut String)) {
    out.push('[');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(element, out);
    }
    out.push(']');
}

/// Appends a JSON string.
pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                write!(out, "\\u{:04x}", u32::from(control)).expect("writing to a string cannot fail");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

fn read_value(node: Node<'_>, what: &str, level: usize, diagnostics: &mut Diagnostics) -> Option<Literal> {
    if level > LEVELS {
        diagnostics.error(node.span(), format!("{what} nests deeper than {LEVELS} levels"));
        return None;
    }
    let Some(field) = only_field(node) else {
        let message = format!("{what} must be a value with its DynamoDB type, found {}", node.kind());
        diagnostics.error_with_help(node.span(), message, help(node));
        return None;
    };
    let Some(kind) = Type::from_descriptor(field.name) else {
        let known = Type::ALL.map(Type::descriptor);
        unknown("DynamoDB type", field.name, &field.name_span, known, diagnostics);
        return None;
    };
    let node = field.value;
    let what = &format!("{what} of type {kind}");
    match kind {
        Type::S => Some(Literal::S(node.string(what, diagnostics)?.to_owned())),
        Type::N => Some(Literal::N(number(node, what, diagnostics)?)),
        Type::B => Some(Literal::B(binary(node, what, diagnostics)?)),
        Type::Bool => Some(Literal::Bool(node.boolean(what, diagnostics)?)),
        Type::Null if node.boolean(what, diagnostics)? => Some(Literal::Null),
        Type::Null => {
            diagnostics.error_with_help(node.span(), "`NULL = false` is no value", "the null value is written { NULL = true }");
            None
        }
        Type::M => Some(Literal::M(read_entries(node, what, level + 1, diagnostics)?)),
        Type::L => {
            let elements = node.array(what, diagnostics)?;
            let read: Vec<_> = elements.iter().filter_map(|node| read_value(*node, "an element", level + 1, diagnostics)).collect();
            (read.len() == elements.len()).then_some(Literal::L(read))
        }
        Type::Ss => set(node, what, |node, what, diagnostics| Some(node.string(what, diagnostics)?.to_owned()), PartialEq::eq, diagnostics)
            .map(Literal::Ss),
        Type::Ns => set(node, what, number, |left, right| Decimal::parse(left) == Decimal::parse(right), diagnostics).map(Literal::Ns),
        Type::Bs => set(node, what, binary, PartialEq::eq, diagnostics).map(Literal::Bs),
    }
}

fn read_entries(node: Node<'_>, what: &str, level: usize, diagnostics: &mut Diagnostics) -> Option<Vec<(String, Literal)>> {
    let all = node.fields(what, diagnostics)?.all();
    let mut entries = Vec::with_capacity(all.len());
    let mut complete = true;
    for named in all {
        match read_value(named.value, &format!("`{}`", named.name), level, diagnostics) {
            Some(value) => entries.push((named.name.to_owned(), value)),
            None => complete = false,
        }
    }
    complete.then_some(entries)
}

/// The one field of a table with one field.
fn only_field(node: Node<'_>) -> Option<Named<'_>> {
    if !node.is_table() {
        return None;
    }
    let mut all = node.fields("", &mut Diagnostics::new())?.all();
    if all.len() == 1 { all.pop() } else { None }
}

/// How a value is written that was written without its type.
fn help(node: Node<'_>) -> String {
    use toml::de::DeValue;
    match node.value() {
        DeValue::Integer(value) if value.radix() == 10 => format!("write {{ N = \"{}\" }}", value.as_str()),
        DeValue::Float(value) => format!("write {{ N = \"{}\" }}", value.as_str()),
        DeValue::Boolean(value) => format!("write {{ BOOL = {value} }}"),
        DeValue::Array(_) => "write { L = [{ S = \"a\" }] } for a list, { SS = [\"a\"] } for a set of strings".to_owned(),
        _ => "one type and one value: { S = \"a\" }, { N = \"5\" }, { BOOL = true }, { M = { … } }".to_owned(),
    }
}

fn number(node: Node<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<String> {
    use toml::de::DeValue;
    if matches!(node.value(), DeValue::Integer(_) | DeValue::Float(_)) {
        diagnostics.error_with_help(node.span(), format!("{what} must be a string: numbers stay decimal text"), help(node));
        return None;
    }
    let text = node.string(what, diagnostics)?;
    let Some(decimal) = Decimal::parse(text) else {
        diagnostics.error(node.span(), format!("{what} is not a decimal number"));
        return None;
    };
    if let Err(error) = decimal.check() {
        diagnostics.error(node.span(), format!("{what}: {error}"));
        return None;
    }
    Some(text.to_owned())
}

fn binary(node: Node<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<Vec<u8>> {
    let text = node.string(what, diagnostics)?;
    match BASE64.decode(text) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            diagnostics.error(node.span(), format!("{what} is not base64: {}", error.to_string().to_lowercase()));
            None
        }
    }
}

/// The elements of a set: at least one, no two equal.
fn set<T>(
    node: Node<'_>,
    what: &str,
    read: impl Fn(Node<'_>, &str, &mut Diagnostics) -> Option<T>,
    equal: impl Fn(&T, &T) -> bool,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<T>> {
    let elements = node.array(what, diagnostics)?;
    if elements.is_empty() {
        diagnostics.error(node.span(), format!("{what} is empty; DynamoDB has no empty sets"));
        return None;
    }
    let mut found = Vec::with_capacity(elements.len());
    for element in &elements {
        let value = read(*element, &format!("an element of {what}"), diagnostics)?;
        if found.iter().any(|known| equal(known, &value)) {
            diagnostics.error(element.span(), format!("{what} has this element twice"));
            return None;
        }
        found.push(value);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn read(text: &str) -> Result<Literal, String> {
        let text = format!("v = {text}\n");
        let mut diagnostics = Diagnostics::new();
        let document = Document::parse(&text, &mut diagnostics);
        let fields = document.root().fields("the file", &mut diagnostics).unwrap();
        match Literal::read(fields.optional("v").unwrap(), "`v`", &mut diagnostics) {
            Some(literal) if diagnostics.is_empty() => Ok(literal),
            _ => Err(diagnostics.render("p.toml", &text)),
        }
    }

    #[test]
    fn all_ten_types_are_written_as_dynamodb_json_writes_them() {
        for (toml, json) in [
            (r#"{ S = "a\n\"" }"#, r#"{"S":"a\n\""}"#),
            (r#"{ N = "1.50" }"#, r#"{"N":"1.50"}"#),
            (r#"{ B = "AQI=" }"#, r#"{"B":"AQI="}"#),
            (r"{ BOOL = false }", r#"{"BOOL":false}"#),
            (r"{ NULL = true }", r#"{"NULL":true}"#),
            (r#"{ M = { b = { N = "1" }, a = { L = [] } } }"#, r#"{"M":{"b":{"N":"1"},"a":{"L":[]}}}"#),
            (r#"{ L = [{ S = "" }, { NULL = true }] }"#, r#"{"L":[{"S":""},{"NULL":true}]}"#),
            (r#"{ SS = ["a", "b"] }"#, r#"{"SS":["a","b"]}"#),
            (r#"{ NS = ["1", "2"] }"#, r#"{"NS":["1","2"]}"#),
            (r#"{ BS = ["AQ==", "Ag=="] }"#, r#"{"BS":["AQ==","Ag=="]}"#),
        ] {
            assert_eq!(read(toml).unwrap().to_json(), json, "{toml}");
        }
    }

    #[test]
    fn what_the_service_would_refuse_is_a_mistake_with_the_right_way_to_write_it() {
        for (toml, expected) in [
            ("5", "help: write { N = \"5\" }"),
            ("true", "help: write { BOOL = true }"),
            ("{ N = 5 }", "help: write { N = \"5\" }"),
            ("{ N = \"five\" }", "`v` of type N is not a decimal number"),
            ("{ N = \"1E126\" }", "magnitude above"),
            ("{ Bool = true }", "did you mean `BOOL`?"),
            ("{ SS = [] }", "DynamoDB has no empty sets"),
            ("{ NS = [\"1\", \"1.0\"] }", "has this element twice"),
            ("{ B = \"a\" }", "is not base64"),
            ("{ NULL = false }", "{ NULL = true }"),
            ("{ S = \"a\", N = \"1\" }", "one type and one value"),
            ("{ M = { a = 1 } }", "`a` must be a value with its DynamoDB type"),
        ] {
            let message = read(toml).unwrap_err();
            assert!(message.contains(expected), "{toml}: {message}");
        }
    }
}
