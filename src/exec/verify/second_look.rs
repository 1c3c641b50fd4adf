//! A second look at the items that are shown: what is different between them, attribute by attribute.

use crate::codec::canonical::hash_item;
use crate::codec::ddb_json;
use crate::error::Result;
use crate::exec::verify::Setting;
use crate::exec::verify::expected::Expected;
use crate::exec::verify::files::each_line;
use crate::exec::verify::form::View;
use crate::exec::verify::report::{self, Shown};
use crate::exec::verify::target::{Asked, Open};
use crate::model::{Arena, FileId};
use crate::proof::compare::{Difference, Outcome};
use crate::proof::difference::{Change, changes};
use crate::source::Chunk;

/// The first differences of all kinds, with what is different.
pub(super) fn show(setting: &Setting<'_>, target: &Open, expected: &Expected<'_>, outcome: &Outcome) -> Result<Vec<Shown>> {
    let chosen = choose(outcome, setting.options.show);
    let looked_at: Vec<_> =
        chosen.iter().filter(|difference| difference.expected.is_some() && difference.found.is_some()).copied().collect();
    let asked: Vec<_> = looked_at
        .iter()
        .filter_map(|difference| Some(Asked { origin: difference.found?.origin, place: difference.place, key: &difference.key }))
        .collect();
    let left = expected_items(setting, target.view(), expected, &looked_at)?;
    let right = if asked.is_empty() { Vec::new() } else { target.content().again(setting, &asked)? };
    let mut pairs = looked_at.iter().zip(left.iter().zip(&right)).peekable();
    let mut shown = Vec::new();
    for difference in &chosen {
        let mut line = report::shown(setting, target, expected, difference);
        if let Some((_, (left, right))) = pairs.next_if(|(looked_at, _)| std::ptr::eq(**looked_at, *difference)) {
            let (changes, note) = compare(setting, target.view(), difference, left.as_deref(), right.as_deref());
            (line.changes, line.note) = (changes, note);
        }
        shown.push(line);
    }
    Ok(shown)
}

/// So many differences, of each kind its share: one kind of which there are thousands must not hide another.
fn choose(outcome: &Outcome, show: usize) -> Vec<&Difference> {
    let mut taken = [0; 4];
    while taken.iter().sum::<usize>() < show {
        let before = taken;
        for kind in 0..taken.len() {
            if taken[kind] < outcome.first[kind].len() && taken.iter().sum::<usize>() < show {
                taken[kind] += 1;
            }
        }
        if taken == before {
            break;
        }
    }
    outcome.first.iter().zip(taken).flat_map(|(first, taken)| &first[..taken]).collect()
}

/// What must be there, as `DynamoDB` JSON; `None` where the exports have changed since.
fn expected_items(setting: &Setting<'_>, view: View, expected: &Expected<'_>, asked: &[&Difference]) -> Result<Vec<Option<Vec<u8>>>> {
    let mut found = vec![None; asked.len()];
    let origins = asked.iter().enumerate().filter_map(|(at, difference)| Some((difference.expected?.origin, at)));
    let files: Vec<_> = (0..).map(FileId).zip(expected.files.iter().map(|file| &file.file)).collect();
    let lines = each_line(setting, &files, origins, Chunk::clone)?;
    for (at, line) in lines {
        found[at] = item_of(setting, view, expected, asked[at], &line);
    }
    Ok(found)
}

/// The item that a line becomes at the place and under the key of a difference.
fn item_of(setting: &Setting<'_>, view: View, expected: &Expected<'_>, difference: &Difference, line: &Chunk) -> Option<Vec<u8>> {
    let hash = difference.expected?.hash;
    expected.again(line, |routed| {
        let (mut key, mut scratch) = (Vec::new(), Vec::new());
        for outgoing in routed.outgoing.iter().filter(|outgoing| view.place(outgoing) == Some(difference.place)) {
            for row in &outgoing.rows {
                let item = setting.forms.seen(view, difference.place, &row.item);
                setting.forms.write_key(view, difference.place, &item, &mut key, &mut scratch);
                if *key == *difference.key && hash_item(&item, &mut scratch) == hash {
                    let mut json = Vec::new();
                    ddb_json::write_item(&item, &mut json);
                    return Some(json);
                }
            }
        }
        None
    })
}

/// What is different between two items, and what must be said besides.
fn compare(
    setting: &Setting<'_>,
    view: View,
    difference: &Difference,
    left: Option<&[u8]>,
    right: Option<&[u8]>,
) -> (Vec<Change>, Option<&'static str>) {
    let arena = Arena::new();
    let item = |json: &[u8]| {
        let line = format!("{{\"Item\":{}}}", String::from_utf8_lossy(json));
        ddb_json::decode_item(arena.alloc_str(&line), &arena).ok()
    };
    let (Some(left), Some(right)) = (left.and_then(item), right.and_then(item)) else {
        return (Vec::new(), Some("gone at a second look"));
    };
    let right = setting.forms.seen(view, difference.place, &right);
    let hash = hash_item(&right, &mut Vec::new());
    let note = match (difference.expected, difference.found) {
        (Some(expected), _) if expected.hash == hash => Some("equal at a second look"),
        (_, Some(found)) if found.hash != hash => Some("changed again before a second look, which is what is shown"),
        _ => None,
    };
    (changes(&left, &right), note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::compare::DifferenceKind;

    #[test]
    fn no_kind_of_difference_hides_another() {
        let some = |kind: DifferenceKind, count: u8| -> Vec<Difference> {
            let one = |number| Difference { place: 0, key: Box::new([number]), kind, row: 0, expected: None, found: None };
            (0..count).map(one).collect()
        };
        let [missing, extra, different, duplicate] = DifferenceKind::ALL;
        let outcome = Outcome { first: [some(missing, 9), some(extra, 1), some(different, 9), some(duplicate, 0)], ..Outcome::default() };
        for (show, expected) in [(0, [0, 0, 0]), (2, [1, 1, 0]), (7, [3, 1, 3]), (8, [4, 1, 3]), (99, [9, 1, 9])] {
            let chosen = choose(&outcome, show);
            let count = |kind| chosen.iter().filter(|difference| difference.kind == kind).count();
            assert_eq!([count(missing), count(extra), count(different)], expected, "{show}");
        }
    }
}
