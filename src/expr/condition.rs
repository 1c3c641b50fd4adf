//! `DynamoDB`'s condition-expression language, with literals in place of placeholders.
//!
//! ```text
//! condition  = operand (= | <> | < | <= | > | >=) operand
//!            | operand BETWEEN operand AND operand
//!            | operand IN (operand, …)
//!            | attribute_exists(path) | attribute_not_exists(path) | attribute_type(path, 'S')
//!            | begins_with(path, operand) | contains(path, operand)
//!            | condition AND condition | condition OR condition | NOT condition | (condition)
//! operand    = path | literal | size(path)
//! literal    = 'text' ('' inside for one quote) | 12.5 | true | false | null | b'base64'
//! path       = owner.id | tags[0] | "a name of any kind".x
//! ```
//!
//! Keywords are read in any case, functions and `true`, `false`, `null` in lower case only. NOT binds
//! closer than AND, AND closer than OR.
//!
//! # Typing rules
//!
//! They are the service's own. Where its documentation is silent, they follow what others measured against it:
//!
//! - Values of different types are never equal and never ordered. `<`, `<=`, `>`, `>=` and BETWEEN order
//!   strings by UTF-8 bytes, numbers by value, binaries by bytes, and nothing else.
//! - An operand that is missing makes every comparison false, except `<>`, which is true, even where both
//!   are missing (measured: ExtendDB/extenddb pull request 5, nubo-db/dynoxide pull request 8).
//! - Sets are equal in any order, lists in order, maps by name; numbers inside them by value.
//! - `contains` finds a part of a string or binary, a member of a set, an element of a list.
//! - `size` counts UTF-16 code units of a string, not bytes (measured: ExtendDB/extenddb pull request 67), bytes of a
//!   binary, and members of a set, list or map. Other types have no size, which is like a missing operand.

mod parse;
mod token;

use std::cmp::Ordering;
use std::fmt;

use crate::expr::SyntaxError;
use crate::model::number::{self, Decimal};
use crate::model::{Item, Path, Type, Value};

/// A parsed condition.
#[derive(Clone, Debug)]
pub struct Condition {
    text: Box<str>,
    root: Node,
}

/// A condition as a tree. The parser bounds its depth, so that it can be walked by recursion.
#[derive(Clone, Debug)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Compare(Operand, Comparator, Operand),
    Between(Operand, Operand, Operand),
    In(Operand, Vec<Operand>),
    Exists(Path),
    NotExists(Path),
    HasType(Path, Type),
    BeginsWith(Path, Operand),
    Contains(Path, Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Path),
    Size(Path),
    Text(Box<str>),
    /// Checked: a number that the service takes.
    Number(Box<str>),
    Bytes(Box<[u8]>),
    Bool(bool),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The first mistake, with its place in `text`.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self { text: text.into(), root: parse::condition(text)? })
    }

    /// Whether the item meets the condition, by `DynamoDB`'s own typing rules. Allocates nothing.
    #[must_use]
    pub fn holds(&self, item: &Item<'_>) -> bool {
        self.root.holds(item)
    }
}

impl fmt::Display for Condition {
    /// The condition as written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Where a size is written as a number; 20 digits hold any.
type Digits = [u8; 20];

impl Node {
    fn holds(&self, item: &Item<'_>) -> bool {
        match self {
            Node::All(nodes) => nodes.iter().all(|node| node.holds(item)),
            Node::Any(nodes) => nodes.iter().any(|node| node.holds(item)),
            Node::Not(node) => !node.holds(item),
            Node::Compare(left, comparator, right) => {
                let (mut left_digits, mut right_digits) = (Digits::default(), Digits::default());
                comparator.holds(left.value(item, &mut left_digits), right.value(item, &mut right_digits))
            }
            Node::Between(operand, low, high) => {
                let mut digits = [Digits::default(); 3];
                let [own, low_digits, high_digits] = &mut digits;
                let value = operand.value(item, own);
                Comparator::GreaterOrEqual.holds(value, low.value(item, low_digits))
                    && Comparator::LessOrEqual.holds(value, high.value(item, high_digits))
            }
            Node::In(operand, candidates) => {
                let mut own = Digits::default();
                let value = operand.value(item, &mut own);
                candidates.iter().any(|candidate| Comparator::Equal.holds(value, candidate.value(item, &mut Digits::default())))
            }
            Node::Exists(path) => path.get(item).is_some(),
            Node::NotExists(path) => path.get(item).is_none(),
            Node::HasType(path, kind) => path.get(item).is_some_and(|value| value.kind() == *kind),
            Node::BeginsWith(path, start) => match (path.get(item), start.value(item, &mut Digits::default())) {
                (Some(Value::S(text)), Some(Value::S(start))) => text.starts_with(start),
                (Some(Value::B(bytes)), Some(Value::B(start))) => bytes.starts_with(start),
                _ => false,
            },
            Node::Contains(path, wanted) => match (path.get(item), wanted.value(item, &mut Digits::default())) {
                (Some(value), Some(wanted)) => contains(value, wanted),
                _ => false,
            },
        }
    }
}

impl Operand {
    /// What the operand is for an item; a size is written to `digits`.
    fn value<'v, 'a: 'v>(&'v self, item: &Item<'a>, digits: &'v mut Digits) -> Option<Value<'v>> {
        match self {
            Operand::Path(path) => path.get(item),
            Operand::Size(path) => Some(Value::N(decimal(size(path.get(item)?)?, digits))),
            literal => literal.literal(),
        }
    }

    /// The value of a literal; `None` for what depends on the item.
    fn literal(&self) -> Option<Value<'_>> {
        match self {
            Operand::Path(_) | Operand::Size(_) => None,
            Operand::Text(text) => Some(Value::S(text)),
            Operand::Number(text) => Some(Value::N(text)),
            Operand::Bytes(bytes) => Some(Value::B(bytes)),
            Operand::Bool(value) => Some(Value::Bool(*value)),
            Operand::Null => Some(Value::Null),
        }
    }
}

impl Comparator {
    fn holds(self, left: Option<Value<'_>>, right: Option<Value<'_>>) -> bool {
        let (Some(left), Some(right)) = (left, right) else {
            return self == Comparator::NotEqual;
        };
        match self {
            Comparator::Equal => left.same_as(&right),
            Comparator::NotEqual => !left.same_as(&right),
            Comparator::Less => order(left, right).is_some_and(Ordering::is_lt),
            Comparator::LessOrEqual => order(left, right).is_some_and(Ordering::is_le),
            Comparator::Greater => order(left, right).is_some_and(Ordering::is_gt),
            Comparator::GreaterOrEqual => order(left, right).is_some_and(Ordering::is_ge),
        }
    }
}

/// `number` in decimal.
fn decimal(number: usize, digits: &mut Digits) -> &str {
    let mut rest = number;
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).expect("a remainder of ten is below ten");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[start..]).expect("digits are ASCII")
}

fn size(value: Value<'_>) -> Option<usize> {
    match value {
        Value::S(text) => Some(text.encode_utf16().count()),
        Value::B(bytes) => Some(bytes.len()),
        Value::Ss(members) | Value::Ns(members) => Some(members.len()),
        Value::Bs(members) => Some(members.len()),
        Value::L(elements) => Some(elements.len()),
        Value::M(entries) => Some(entries.len()),
        Value::N(_) | Value::Bool(_) | Value::Null => None,
    }
}

fn order(left: Value<'_>, right: Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::S(left), Value::S(right)) => Some(left.cmp(right)),
        (Value::B(left), Value::B(right)) => Some(left.cmp(right)),
        (Value::N(left), Value::N(right)) => Some(Decimal::parse(left)?.cmp(&Decimal::parse(right)?)),
        _ => None,
    }
}

fn contains(value: Value<'_>, wanted: Value<'_>) -> bool {
    match (value, wanted) {
        (Value::S(text), Value::S(part)) => text.contains(part),
        (Value::B(bytes), Value::B(part)) => memchr::memmem::find(bytes, part).is_some(),
        (Value::Ss(members), Value::S(wanted)) => members.contains(&wanted),
        (Value::Ns(members), Value::N(wanted)) => members.iter().any(|member| number::same(member, wanted)),
        (Value::Bs(members), Value::B(wanted)) => members.contains(&wanted),
        (Value::L(elements), wanted) => elements.iter().any(|element| element.same_as(&wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
