//! The order in which attributes are written: that of their names. Exports have them in any order, and each format in another one; a table
//! gives the same output whichever it was read from.

use crate::model::Attribute;

/// More attributes than this are put in order with memory of their own.
const FEW: usize = 64;

/// Calls `write` with each attribute, in the order of the names' bytes.
pub(super) fn each_by_name<'i, 'a>(attributes: &'i [Attribute<'a>], mut write: impl FnMut(&'i Attribute<'a>)) {
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
