//! Spellings of one entity name that drifted apart: `Document`, `document`, `Documents`, `Doc`.

use std::cmp::Reverse;

/// A rarer spelling and what it has in common with the frequent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Twin {
    /// Its place in the list of values.
    pub value: usize,
    /// In which way it differs.
    pub by: &'static str,
}

/// Groups of near-twins: the place of the most frequent spelling, and the others. `values` are names with their counts;
/// `same_keys` says of the places of a frequent and a rarer name whether the keys of the rarer one look like the other's.
pub(super) fn near_twins(values: &[(&str, u64)], same_keys: impl Fn(usize, usize) -> bool) -> Vec<(usize, Vec<Twin>)> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&at| (Reverse(values[at].1), values[at].0));
    let mut groups: Vec<(usize, Vec<Twin>)> = Vec::new();
    for at in order {
        let (name, items) = values[at];
        let found = groups.iter_mut().find_map(|(head, twins)| {
            let (known, known_items) = values[*head];
            // Two entities rarely have keys of one shape, so a name that is less rare is suspected then.
            let factor = if same_keys(*head, at) { 4 } else { 20 };
            difference(known, name, items.saturating_mul(factor) <= known_items).map(|by| (twins, by))
        });
        match found {
            Some((twins, by)) => twins.push(Twin { value: at, by }),
            None => groups.push((at, Vec::new())),
        }
    }
    groups.retain(|(_, twins)| !twins.is_empty());
    groups
}

/// How `name` differs from the more frequent `known`, where both may mean the same. Abbreviations and typing
/// mistakes are looked for in rare names only.
fn difference(known: &str, name: &str, rare: bool) -> Option<&'static str> {
    let (left, right) = (letters(known), letters(name));
    if left == right {
        return Some(if known.to_lowercase() == name.to_lowercase() { "letter case" } else { "blanks or punctuation" });
    }
    if singular(&left) == singular(&right) {
        return Some("plural");
    }
    if !rare {
        return None;
    }
    if left.chars().count() >= 5 && one_edit(&left, &right) {
        return Some("one letter");
    }
    (abbreviates(name, known) || abbreviates(known, name)).then_some("abbreviation")
}

/// Whether `short` is how `long` begins, within its first word: `Order` does not abbreviate `OrderItem`.
fn abbreviates(short: &str, long: &str) -> bool {
    let length = short.chars().count();
    length >= 3 && letters(long).starts_with(&letters(short)) && long.chars().nth(length).is_some_and(char::is_lowercase)
}

/// The letters and digits, in lower case.
fn letters(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn singular(letters: &str) -> String {
    match letters.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => letters.strip_suffix('s').unwrap_or(letters).to_owned(),
    }
}

/// Whether one letter was added, left out or replaced. A digit is a version, no mistake.
fn one_edit(left: &str, right: &str) -> bool {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let (short, long) = if left.len() <= right.len() { (&left, &right) } else { (&right, &left) };
    let same = short.iter().zip(long).take_while(|(short, long)| short == long).count();
    let tail = &long[(same + 1).min(long.len())..];
    let changed = long.get(same).into_iter().chain(short.get(same)).all(|character| !character.is_numeric());
    changed
        && match long.len() - short.len() {
            0 => short.get(same + 1..) == Some(tail),
            1 => &short[same..] == tail,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twins(values: &[(&str, u64)]) -> Vec<String> {
        twins_by_keys(values, false)
    }

    fn twins_by_keys(values: &[(&str, u64)], same_keys: bool) -> Vec<String> {
        near_twins(values, |_, _| same_keys)
            .into_iter()
            .map(|(head, twins)| {
                let twins: Vec<_> = twins.iter().map(|twin| format!("{} ({})", values[twin.value].0, twin.by)).collect();
                format!("{}: {}", values[head].0, twins.join(", "))
            })
            .collect()
    }

    #[test]
    fn spellings_of_one_name_are_found() {
        assert_eq!(
            twins(&[("Doc", 3), ("Document", 1_200), ("document", 7), ("Documents", 2), (" Document", 1), ("Docuemnt", 1), ("Documet", 1)]),
            [
                "Document: document (letter case), Doc (abbreviation), Documents (plural),  Document (blanks or punctuation), Documet (one letter)"
            ]
        );
        assert_eq!(twins(&[("OrderItem", 50), ("order_item", 49)]), ["OrderItem: order_item (blanks or punctuation)"]);
        assert_eq!(twins(&[("customer", 900), ("customert", 1)]), ["customer: customert (one letter)"]);
        assert_eq!(twins(&[("Category", 9), ("Categories", 8)]), ["Category: Categories (plural)"]);
    }

    #[test]
    fn an_abbreviation_with_keys_of_the_same_shape_need_not_be_very_rare() {
        let values = [("Document", 25), ("Doc", 3)];
        assert_eq!(twins_by_keys(&values, true), ["Document: Doc (abbreviation)"]);
        assert!(twins(&values).is_empty());
        assert!(twins_by_keys(&[("Document", 25), ("Doc", 7), ("Comment", 3)], true).is_empty());
    }

    #[test]
    fn names_that_only_look_alike_are_left_alone() {
        assert!(twins(&[("Order", 1), ("OrderItem", 5_000), ("OrderV1", 5_000), ("OrderV2", 3)]).is_empty());
        assert!(twins(&[("Note", 100), ("Vote", 1), ("User", 100), ("Usage", 1)]).is_empty());
        assert!(twins(&[("Invoice", 10), ("Invoicex", 9), ("Inv", 5)]).is_empty());
        assert!(twins(&[]).is_empty());
    }
}
