//! What the encoders of both formats write alike: attributes in the order of their names, lists, base64.
//!
//! Exports have attributes in any order, and each format in another one; a table gives the same output whichever it was read from.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::model::{Attribute, Value};

/// Appends attributes between braces, each as `name` and `value` write the two.
pub(super) fn write_attributes(
    attributes: &[Attribute<'_>],
    out: &mut Vec<u8>,
    name: impl Fn(&str, &mut Vec<u8>),
    value: impl Fn(&Value<'_>, &mut Vec<u8>),
) {
    out.push(b'{');
    let first = out.len();
    each_by_name(attributes, |(known, content)| {
        if out.len() > first {
            out.push(b',');
        }
        name(known, out);
        out.push(b':');
        value(content, out);
    });
    out.push(b'}');
}

/// Appends elements between brackets.
pub(super) fn write_list<T>(elements: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(element, out);
    }
    out.push(b']');
}

/// Appends base64: standard alphabet, padded.
pub(super) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    STANDARD.encode_slice(bytes, &mut out[start..]).expect("padded base64 has four characters for every three bytes begun");
}

/// More attributes than this are put in order with memory of their own.
const FEW: usize = 64;

/// Calls `write` with each attribute, in the order of the names' bytes.
fn each_by_name<'i, 'a>(attributes: &'i [Attribute<'a>], mut write: impl FnMut(&'i Attribute<'a>)) {
    if attributes.is_sorted_by(|(one, _), (other, _)| one <= other) {
        for attribute in attributes {
            write(attribute);
        }
        return;
    }
    let mut few = [0_u8; FEW];
    if let Some(places) = few.get_mut(..attributes.len()) {
        for (place, at) in places.iter_mut().zip(0..) {
            *place = at;
        }
        places.sort_unstable_by_key(|at| attributes[usize::from(*at)].0);
        for at in &*places {
            write(&attributes[usize::from(*at)]);
        }
    } else {
        let mut sorted: Vec<_> = attributes.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        for attribute in sorted {
            write(attribute);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    #[test]
    fn attributes_are_written_by_name_however_many_there_are() {
        for count in [0, 1, 2, 3, 64, 65, 300] {
            let names: Vec<String> = (0..count).map(|at| format!("a{:03}", (at * 7 + 3) % count.max(1))).collect();
            let attributes: Vec<Attribute<'_>> = names.iter().map(|name| (name.as_str(), Value::Null)).collect();
            let mut written = Vec::new();
            each_by_name(&attributes, |(name, _)| written.push(*name));
            assert!(written.is_sorted(), "{written:?}");
            assert_eq!(written.len(), count);
        }
    }
}
