//! What a line of a data file may hold: an item of a full export, or a change record of an incremental one.

use crate::codec::refused::short;
use crate::model::number::{self, Decimal};
use crate::model::{Change, Item, Op, Raw, Value};

/// What one line held.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The item or the change.
    pub record: Record<'a>,
    /// The text it was read from.
    pub source: Raw<'a>,
    /// It is an item without a wrapper such as `{"Item":…}`.
    pub bare: bool,
}

/// One record of an export.
#[derive(Debug)]
pub enum Record<'a> {
    /// An item.
    Item(Item<'a>),
    /// What happened to an item within the window of an incremental export. Boxed, so that what holds an item stays small.
    Change(Box<ChangeRecord<'a>>),
}

/// A change record. An export has one at most for each key; its images are whole items, never differences.
///
/// Which images are there (AWS, "S3DataExport.Output"): an insert has the new one, an update the new one and, where the export was made
/// with `NEW_AND_OLD_IMAGES`, the old one, a delete no new one.
#[derive(Debug)]
pub struct ChangeRecord<'a> {
    /// When the last write happened, by the clock of `DynamoDB`, in microseconds since 1970.
    pub written_at: u64,
    /// The key attributes.
    pub keys: Item<'a>,
    /// The item as it was before the window.
    pub old: Option<Item<'a>>,
    /// The item as it was at the end of the window.
    pub new: Option<Item<'a>>,
}

impl<'a> ChangeRecord<'a> {
    /// What happened. Without the old image an update cannot be told from an insert; both are puts then.
    #[must_use]
    pub fn op(&self) -> Op {
        match (&self.old, &self.new) {
            (_, None) => Op::Delete,
            (None, Some(_)) => Op::Put,
            (Some(_), Some(_)) => Op::Update,
        }
    }

    /// Checks that there are keys, and that each image has them: an image of another item would be written under this one's key.
    fn check_keys(&self) -> Result<(), (&'static str, String)> {
        if self.keys.attributes().is_empty() {
            return Err(("keys-empty", "a change record whose `Keys` are empty".to_owned()));
        }
        for (name, image) in [("OldImage", &self.old), ("NewImage", &self.new)] {
            let Some(image) = image else { continue };
            for (key, value) in self.keys.attributes() {
                let same = match (value, image.get(key)) {
                    (_, None) => {
                        let message = format!("`{name}` lacks the key attribute `{}`, which `Keys` has", short(key));
                        return Err(("keys-missing", message));
                    }
                    (Value::N(text), Some(Value::N(other))) => number::same(text, other),
                    (value, Some(other)) => *value == other,
                };
                if !same {
                    let message = format!("`{name}` has another value under the key attribute `{}` than `Keys`", short(key));
                    return Err(("keys-differ", message));
                }
            }
        }
        Ok(())
    }

    /// What happened, and the image that says most of the item: the new one, else the old one, else the keys alone.
    #[must_use]
    pub fn into_image(self) -> (Change, Item<'a>) {
        let keys_only = self.old.is_none() && self.new.is_none();
        let change = Change { op: self.op(), written_at: self.written_at, keys_only };
        (change, self.new.or(self.old).unwrap_or(self.keys))
    }
}

/// The members of a line that were read so far.
#[derive(Default)]
pub(super) struct Parts<'a> {
    /// Where the text of the members starts in the line.
    pub(super) start: usize,
    /// Another member is around them, so that the line goes on after their text.
    pub(super) wrapped: bool,
    pub(super) item: Option<(Item<'a>, Raw<'a>)>,
    pub(super) keys: Option<Item<'a>>,
    pub(super) old: Option<Item<'a>>,
    pub(super) new: Option<Item<'a>>,
    pub(super) written_at: Option<u64>,
}

impl<'a> Parts<'a> {
    /// The record that the members make; `whole` is their text.
    ///
    /// # Errors
    /// What is missing or too much: a rule and a message.
    pub(super) fn decoded(self, whole: Raw<'a>) -> Result<Decoded<'a>, (&'static str, String)> {
        let message = match self {
            Parts { item: Some((item, source)), keys: None, old: None, new: None, written_at: None, .. } => {
                return Ok(Decoded { record: Record::Item(item), source, bare: false });
            }
            Parts { item: Some(_), .. } => "an `Item` together with parts of a change record; expected one of the two",
            Parts { keys: Some(keys), written_at: Some(written_at), old, new, .. } => {
                let change = ChangeRecord { written_at, keys, old, new };
                change.check_keys()?;
                return Ok(Decoded { record: Record::Change(Box::new(change)), source: whole, bare: false });
            }
            Parts { keys: None, old: None, new: None, written_at: None, .. } => "no `Item` in the line",
            Parts { keys: None, .. } => "a change record without `Keys`",
            Parts { written_at: None, .. } => "a change record without `Metadata`; expected its WriteTimestampMicros",
        };
        Err(("not-an-item", message.to_owned()))
    }
}

/// Microseconds from the text of a number, which may have a fraction of zeros or an exponent.
pub(super) fn micros(text: &str) -> Option<u64> {
    // What is whole and below 10^20 has few digits, however it was written.
    Decimal::parse(text).filter(|number| number.magnitude() < 20 && number.scale() == 0)?.plain().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::micros;
    use crate::codec::decode_line;
    use crate::model::{Arena, Format};

    #[test]
    fn the_images_of_a_change_have_its_keys() {
        let line =
            |keys: &str, images: &str| format!(r#"{{"Metadata":{{"WriteTimestampMicros":{{"N":"1"}}}},"Keys":{{{keys}}},{images}}}"#);
        let key = r#""pk":{"S":"a"},"sk":{"N":"10"}"#;
        for (line, rule) in [
            (line(key, r#""NewImage":{"sk":{"N":"1e1"},"pk":{"S":"a"},"x":{"S":"b"}}"#), None),
            (line("", r#""NewImage":{"pk":{"S":"a"}}"#), Some("keys-empty")),
            (line(key, r#""NewImage":{"pk":{"S":"a"},"sk":{"N":"11"}}"#), Some("keys-differ")),
            (line(key, r#""NewImage":{"pk":{"S":"a"},"sk":{"S":"10"}}"#), Some("keys-differ")),
            (line(key, r#""OldImage":{"pk":{"S":"b"},"sk":{"N":"10"}}"#), Some("keys-differ")),
            (line(key, r#""OldImage":{"pk":{"S":"a"}}"#), Some("keys-missing")),
            (line(key, r#""NewImage":{}"#), Some("keys-missing")),
        ] {
            let arena = Arena::new();
            let found = decode_line(&line, Format::Json, &arena).err().map(|reason| reason.rule);
            assert_eq!(found, rule, "{line}");
        }
        let arena = Arena::new();
        let ion = "$ion_1_0 {Record:{Keys:{pk:\"a\"},Metadata:{WriteTimestampMicros:1.},NewImage:{pk:\"b\"}}}";
        let reason = decode_line(ion, Format::Ion, &arena).unwrap_err();
        assert_eq!(reason.rule, "keys-differ");
        assert!(reason.message.ends_with(": `NewImage` has another value under the key attribute `pk` than `Keys`"), "{}", reason.message);
    }

    #[test]
    fn a_time_of_a_huge_negative_exponent_is_refused_before_it_fills_the_memory() {
        for tiny in ["168.5e-3001234567", "1e-999999999", "-1e-3001234567"] {
            assert_eq!(micros(tiny), None, "{tiny}");
        }
    }

    #[test]
    fn microseconds_are_whole_numbers_however_they_are_written() {
        assert_eq!(micros("1768386096366933"), Some(1_768_386_096_366_933));
        assert_eq!(micros("17683860963669e2"), Some(1_768_386_096_366_900));
        assert_eq!(micros("1768386096366933.0"), Some(1_768_386_096_366_933));
        for wrong in ["", "x", "-1", "1.5", "1e40", "1e999999999"] {
            assert_eq!(micros(wrong), None, "{wrong}");
        }
    }
}
