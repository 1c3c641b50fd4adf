//! Shapes of keys: `WS#acme` and `WS#zoo` are both `WS#{}`.
//!
//! A shape is guessed from the text alone, so that it does not depend on the items seen before. Where that gives
//! too many shapes, all of them become coarser, which depends on the set of items and never on their order.

use rustc_hash::FxHashMap;

use crate::model::{Origin, Value};

/// More shapes than this in one group become coarser.
pub(super) const SHAPES: usize = 200;

/// Where this many shapes differ only in their last words, the report shows those words as varying.
const ALIKE: usize = 8;

/// Between the shape of the partition key and the shape of the sort key.
const JOINT: char = '\u{1f}';

/// A segment that varies.
const VARYING: &str = "{}";

/// Segments of one key that are told apart; what follows is not looked at.
const SEGMENTS: usize = 16;

/// The longest segment that is taken for a word and not for an id.
const WORD_BYTES: usize = 24;

/// The coarsest level: one shape for all.
const COARSEST: u8 = 4;

/// Appends the shape of a key; `None` where the value can be no key.
pub(super) fn write_shape(partition: &Value<'_>, sort: Option<&Value<'_>>, out: &mut String) -> Option<()> {
    write_value_shape(partition, out)?;
    if let Some(sort) = sort {
        out.push(JOINT);
        write_value_shape(sort, out)?;
    }
    Some(())
}

fn write_value_shape(value: &Value<'_>, out: &mut String) -> Option<()> {
    match value {
        Value::S(text) => write_text_shape(text, out),
        Value::N(_) => out.push_str("{number}"),
        Value::B(_) => out.push_str("{binary}"),
        _ => return None,
    }
    Some(())
}

fn write_text_shape(text: &str, out: &mut String) {
    let mut rest = text;
    for at in 0.. {
        if at == SEGMENTS {
            out.push('…');
            return;
        }
        let end = separator(rest);
        let segment = &rest[..end.unwrap_or(rest.len())];
        // Words in capitals are labels wherever they stand; in other letters they are so at the start, where an id is rare.
        let literal = segment.is_empty() || (is_word(segment) && (at == 0 || is_upper(segment)));
        out.push_str(if literal { segment } else { VARYING });
        let Some(end) = end else { return };
        out.push(char::from(rest.as_bytes()[end]));
        rest = &rest[end + 1..];
    }
}

/// Where the first separator stands. A colon or slash between digits belongs to a time or a date.
fn separator(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    (0..bytes.len()).find(|&at| match bytes[at] {
        b'#' | b'|' => true,
        b':' | b'/' => !(digit(at.checked_sub(1)) && digit(at.checked_add(1))),
        _ => false,
    })
}

fn is_word(segment: &str) -> bool {
    segment.len() <= WORD_BYTES
        && segment.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b'$'))
        && segment.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_upper(segment: &str) -> bool {
    !segment.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// The shape on a coarser level. Levels only lose: going there by way of a level between gives the same.
fn coarser(shape: &str, level: u8) -> String {
    if level >= COARSEST {
        return "…".to_owned();
    }
    let mut out = String::with_capacity(shape.len());
    for (at, value) in shape.split(JOINT).enumerate() {
        if at > 0 {
            out.push(JOINT);
        }
        let mut first = true;
        for (segment, end) in segments(value) {
            let last = end.is_empty();
            let stays = match level {
                0 => true,
                1 => !last || (first && is_upper(segment)),
                2 => first && (!last || is_upper(segment)),
                _ => false,
            };
            out.push_str(if stays || segment.is_empty() || segment.starts_with(['{', '…']) { segment } else { VARYING });
            out.push_str(end);
            first = false;
        }
    }
    out
}

/// Whether every key of the shape `narrow` would also fit the shape `wide`.
pub(super) fn covers(wide: &str, narrow: &str) -> bool {
    let (mut wide, mut narrow) = (segments(wide), segments(narrow));
    loop {
        match (wide.next(), narrow.next()) {
            (None, None) => return true,
            (Some((wide, wide_end)), Some((narrow, narrow_end))) if wide_end == narrow_end && (wide == narrow || wide == VARYING) => {}
            _ => return false,
        }
    }
}

/// The segments of a shape, each with what ends it.
fn segments(shape: &str) -> impl Iterator<Item = (&str, &str)> {
    shape
        .split_inclusive(['#', '|', ':', '/', JOINT])
        .map(|token| token.split_at(token.trim_end_matches(['#', '|', ':', '/', JOINT]).len()))
}

/// The shape for a reader: `PK=WS#{} SK=DOC#{}`.
pub(super) fn with_names(shape: &str, partition: &str, sort: Option<&str>) -> String {
    let mut values = shape.splitn(2, JOINT);
    let mut out = format!("{partition}={}", values.next().unwrap_or_default());
    if let (Some(sort), Some(value)) = (sort, values.next()) {
        out.extend([" ", sort, "=", value]);
    }
    out
}

/// How often a shape occurs, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub items: u64,
    pub first: Origin,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.items += other.items;
        self.first = self.first.min(other.first);
    }
}

/// The shapes of a group, at most [`SHAPES`].
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    level: u8,
    seen: FxHashMap<Box<str>, Seen>,
}

impl Shapes {
    /// Counts a shape of [`write_shape`].
    pub(super) fn add(&mut self, shape: &str, seen: Seen) {
        if self.level > 0 {
            self.insert(&coarser(shape, self.level), seen);
        } else {
            self.insert(shape, seen);
        }
        self.shrink();
    }

    pub(super) fn merge(&mut self, other: &Shapes) {
        self.raise(other.level);
        for (shape, seen) in &other.seen {
            self.add(shape, *seen);
        }
    }

    pub(super) fn clear(&mut self) {
        self.seen.clear();
    }

    fn insert(&mut self, shape: &str, seen: Seen) {
        match self.seen.get_mut(shape) {
            Some(known) => known.add(seen),
            None => {
                self.seen.insert(shape.into(), seen);
            }
        }
    }

    fn shrink(&mut self) {
        while self.seen.len() > SHAPES {
            self.raise(self.level + 1);
        }
    }

    fn raise(&mut self, level: u8) {
        if level <= self.level {
            return;
        }
        self.level = level;
        for (shape, seen) in std::mem::take(&mut self.seen) {
            self.insert(&coarser(&shape, level), seen);
        }
    }

    /// The shapes for the report, the most frequent first. Words at the end of a key that look like ids in small
    /// numbers (`USER#ALICE`) become varying ones where there are several.
    pub(super) fn ranked(&self) -> Vec<(String, Seen)> {
        let mut alike: FxHashMap<String, Vec<(&str, Seen)>> = FxHashMap::default();
        for (shape, seen) in &self.seen {
            alike.entry(coarser(shape, self.level.max(1))).or_default().push((shape, *seen));
        }
        let mut ranked: Vec<(String, Seen)> = Vec::new();
        for (wide, shapes) in alike {
            if shapes.len() <= ALIKE {
                ranked.extend(shapes.into_iter().map(|(shape, seen)| (shape.to_owned(), seen)));
            } else if let Some(seen) = shapes.into_iter().map(|(_, seen)| seen).reduce(|mut sum, seen| {
                sum.add(seen);
                sum
            }) {
                ranked.push((wide, seen));
            }
        }
        ranked.sort_by(|(left, left_seen), (right, right_seen)| right_seen.items.cmp(&left_seen.items).then_with(|| left.cmp(right)));
        ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileId;

    fn shape(partition: &str, sort: &str) -> String {
        let mut out = String::new();
        write_shape(&Value::S(partition), Some(&Value::S(sort)), &mut out).unwrap();
        with_names(&out, "PK", Some("SK"))
    }

    #[test]
    fn labels_stay_and_ids_vary() {
        for (partition, sort, expected) in [
            ("WS#acme", "META", "PK=WS#{} SK=META"),
            ("WS#acme", "DOC#17#CMT#b9", "PK=WS#{} SK=DOC#{}#CMT#{}"),
            ("user:bob", "order/7/item/2", "PK=user:{} SK=order/{}/{}/{}"),
            ("IdEntry:01785e00ca29", "profile", "PK=IdEntry:{} SK=profile"),
            ("892f902bd23f0824128b2f330c5c7fd0", "2026-02-08T02:35:27.060Z", "PK={} SK={}"),
            ("T|a|b", "TS#2026-02-08T02:35:27Z", "PK=T|{}|{} SK=TS#{}"),
            ("", "A##B", "PK= SK=A##B"),
            ("ÄÖ#x", "WORKSPACE_MEMBER#Größe", "PK={}#{} SK=WORKSPACE_MEMBER#{}"),
        ] {
            assert_eq!(shape(partition, sort), expected);
        }
        let mut out = String::new();
        write_shape(&Value::N("5"), Some(&Value::B(b"x")), &mut out).unwrap();
        assert_eq!(with_names(&out, "id", Some("at")), "id={number} at={binary}");
        assert!(write_shape(&Value::Null, None, &mut out).is_none());
        let long = "a#".repeat(5_000);
        assert!(shape(&long, &long).len() < 120);
    }

    #[test]
    fn going_coarser_step_by_step_or_at_once_gives_the_same() {
        for shape in ["WS#{}\u{1f}DOC#{}#CMT#X", "alice\u{1f}META", "alice#X\u{1f}a#B#C", "{number}\u{1f}{binary}", "A##\u{1f}…"] {
            for low in 0..=COARSEST {
                for high in low..=COARSEST {
                    assert_eq!(coarser(&coarser(shape, low), high), coarser(shape, high), "{shape} {low} {high}");
                }
            }
        }
        assert_eq!(coarser("CITY#OSLO\u{1f}META", 1), "CITY#{}\u{1f}META");
        assert_eq!(coarser("CITY#OSLO\u{1f}DOC#{}#CMT#{}", 2), "CITY#{}\u{1f}DOC#{}#{}#{}");
    }

    #[test]
    fn a_wide_shape_covers_a_narrow_one() {
        assert!(covers("WS#{}\u{1f}DOC#{}", "WS#{}\u{1f}DOC#{}"));
        assert!(covers("WS#{}\u{1f}DOC#{}", "WS#ACME\u{1f}DOC#X"));
        assert!(!covers("WS#ACME\u{1f}DOC#{}", "WS#{}\u{1f}DOC#{}"));
        assert!(!covers("WS#{}\u{1f}DOC#{}", "WS#{}\u{1f}DOC#{}#CMT#{}"));
        assert!(!covers("WS#{}", "WS|{}"));
    }

    #[test]
    fn too_many_shapes_become_coarser_in_any_order() {
        let at = |line| Seen { items: 1, first: Origin { file: FileId(0), line } };
        let word = |n: usize| {
            [b'A' + u8::try_from(n / 26).unwrap(), b'A' + u8::try_from(n % 26).unwrap()].map(char::from).iter().collect::<String>()
        };
        let all: Vec<String> = (0..300).map(|n| format!("CITY#{}\u{1f}DOC#{{}}#CMT#{{}}", word(n))).collect();
        let mut whole = Shapes::default();
        for (line, shape) in (0..).zip(&all) {
            whole.add(shape, at(line));
        }
        let mut halves = [Shapes::default(), Shapes::default()];
        for (line, shape) in (0..).zip(&all).collect::<Vec<_>>().into_iter().rev() {
            halves[usize::from(line % 3 == 0)].add(shape, at(line));
        }
        let [mut left, right] = halves;
        left.merge(&right);
        assert_eq!(left.ranked(), whole.ranked());
        assert_eq!(whole.ranked(), [("CITY#{}\u{1f}DOC#{}#CMT#{}".to_owned(), Seen { items: 300, ..at(0) })]);
    }

    #[test]
    fn several_words_that_may_be_ids_are_shown_as_varying() {
        let mut shapes = Shapes::default();
        for (line, name) in (1..).zip(["ANN", "BOB", "CAT", "DAN", "EVE", "FAY", "GUS", "HAL", "IDA"]) {
            shapes.add(&format!("USER#{name}\u{1f}META"), Seen { items: 1, first: Origin { file: FileId(0), line } });
            assert_eq!(shapes.ranked().len(), if line <= 8 { usize::try_from(line).unwrap() } else { 1 });
        }
    }
}
