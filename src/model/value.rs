//! `DynamoDB`'s ten attribute value types, borrowed from the chunk they were read from.
//!
//! Numbers stay decimal text; sets stay sets; nothing is converted here.

use std::cmp::Ordering;
use std::fmt;

use crate::model::number;

/// A named value, as it stands in an item or in a map.
pub type Attribute<'a> = (&'a str, Value<'a>);

/// One attribute value. A value is two words plus a tag and is copied freely; what it points to
/// lives in the chunk's bytes or in the worker's arena.
///
/// Equality is by text: `N("1")` and `N("1.0")` differ here. Comparisons by numeric value are in
/// [`number`].
// The tag is a whole word: with a smaller one a copy moves the bytes behind it in pieces that the processor has to wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u64)]
pub enum Value<'a> {
    /// A string, possibly empty.
    S(&'a str),
    /// A number as the decimal text that was read.
    N(&'a str),
    /// Binary, decoded from base64.
    B(&'a [u8]),
    /// A boolean.
    Bool(bool),
    /// The null value; different from an absent attribute.
    Null,
    /// A map, in document order.
    M(&'a [Attribute<'a>]),
    /// A list; its elements may have different types.
    L(&'a [Value<'a>]),
    /// A set of strings.
    Ss(&'a [&'a str]),
    /// A set of numbers, each as decimal text.
    Ns(&'a [&'a str]),
    /// A set of binaries.
    Bs(&'a [&'a [u8]]),
}

impl Value<'_> {
    /// The type of this value.
    #[must_use]
    pub fn kind(&self) -> Type {
        match self {
            Value::S(_) => Type::S,
            Value::N(_) => Type::N,
            Value::B(_) => Type::B,
            Value::Bool(_) => Type::Bool,
            Value::Null => Type::Null,
            Value::M(_) => Type::M,
            Value::L(_) => Type::L,
            Value::Ss(_) => Type::Ss,
            Value::Ns(_) => Type::Ns,
            Value::Bs(_) => Type::Bs,
        }
    }

    /// Whether two values are the same to `DynamoDB`: numbers by value, maps and sets in any order, lists in order; values of
    /// different types never. Recurses as deep as the values go, which the decoder bounds.
    #[must_use]
    pub fn same_as(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::N(left), Value::N(right)) => number::same(left, right),
            (Value::L(left), Value::L(right)) => {
                left.len() == right.len() && left.iter().zip(*right).all(|(mine, theirs)| mine.same_as(theirs))
            }
            (Value::M(left), Value::M(right)) => same_members(
                left,
                right,
                |(name, _), (other, _)| name.cmp(other),
                |(name, value), (other, theirs)| name == other && value.same_as(theirs),
            ),
            (Value::Ss(left), Value::Ss(right)) => same_members(left, right, Ord::cmp, PartialEq::eq),
            (Value::Bs(left), Value::Bs(right)) => same_members(left, right, Ord::cmp, PartialEq::eq),
            (Value::Ns(left), Value::Ns(right)) => {
                same_members(left, right, |mine, theirs| number::order(mine, theirs), |mine, theirs| number::same(mine, theirs))
            }
            (left, right) => left == right,
        }
    }
}

/// Whether two collections hold the same members in any order. Members of one collection differ from each other by `order`.
/// In the time of a sort, since a set may have a hundred thousand members.
fn same_members<T>(left: &[T], right: &[T], order: impl Fn(&T, &T) -> Ordering, same: impl Fn(&T, &T) -> bool) -> bool {
    if left.len() != right.len() {
        return false;
    }
    // What was stored together usually comes in one order, and then nothing is sorted.
    if left.iter().zip(right).all(|(mine, theirs)| same(mine, theirs)) {
        return true;
    }
    let sorted = |members: &'_ [T]| {
        let mut places: Vec<usize> = (0..members.len()).collect();
        places.sort_by(|one, other| order(&members[*one], &members[*other]));
        places
    };
    sorted(left).into_iter().zip(sorted(right)).all(|(mine, theirs)| same(&left[mine], &right[theirs]))
}

/// The type of a value, by the name `DynamoDB` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// String.
    S,
    /// Number.
    N,
    /// Binary.
    B,
    /// Boolean.
    Bool,
    /// Null.
    Null,
    /// Map.
    M,
    /// List.
    L,
    /// String set.
    Ss,
    /// Number set.
    Ns,
    /// Binary set.
    Bs,
}

impl Type {
    /// All ten types, in the order of the enum.
    pub const ALL: [Type; 10] = [Type::S, Type::N, Type::B, Type::Bool, Type::Null, Type::M, Type::L, Type::Ss, Type::Ns, Type::Bs];

    /// The descriptor of `DynamoDB` JSON: `S`, `N`, `B`, `BOOL`, `NULL`, `M`, `L`, `SS`, `NS`, `BS`.
    #[must_use]
    pub fn descriptor(self) -> &'static str {
        match self {
            Type::S => "S",
            Type::N => "N",
            Type::B => "B",
            Type::Bool => "BOOL",
            Type::Null => "NULL",
            Type::M => "M",
            Type::L => "L",
            Type::Ss => "SS",
            Type::Ns => "NS",
            Type::Bs => "BS",
        }
    }

    /// The type with this descriptor, if there is one.
    #[must_use]
    pub fn from_descriptor(text: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| kind.descriptor() == text)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.descriptor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_by_what_they_mean() {
        let (a, b) = (("a", Value::N("1")), ("b", Value::N("2.0")));
        let (a2, b2) = (("a", Value::N("1.0")), ("b", Value::N("2")));
        for (left, right, expected) in [
            (Value::M(&[a, b]), Value::M(&[b2, a2]), true),
            (Value::M(&[a, b]), Value::M(&[a, ("b", Value::S("2"))]), false),
            (Value::M(&[a]), Value::M(&[b]), false),
            (Value::L(&[a.1, b.1]), Value::L(&[b.1, a.1]), false),
            (Value::Ns(&["1", "2", "3"]), Value::Ns(&["3.0", "1E0", "2"]), true),
            (Value::Ns(&["1", "2"]), Value::Ns(&["1", "3"]), false),
            (Value::Ss(&["x", "y"]), Value::Ss(&["y", "x"]), true),
            (Value::Ss(&["1"]), Value::Ns(&["1"]), false),
            (Value::Null, Value::Bool(false), false),
        ] {
            assert_eq!(left.same_as(&right), expected, "{left:?} {right:?}");
            assert_eq!(right.same_as(&left), expected, "{right:?} {left:?}");
        }
    }

    #[test]
    fn large_sets_in_another_order_are_compared_in_the_time_of_a_sort() {
        let texts: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
        let forth: Vec<&str> = texts.iter().map(String::as_str).collect();
        let back: Vec<&str> = forth.iter().rev().copied().collect();
        assert!(Value::Ns(&forth).same_as(&Value::Ns(&back)));
        assert!(Value::Ss(&forth).same_as(&Value::Ss(&back)));
    }
}
