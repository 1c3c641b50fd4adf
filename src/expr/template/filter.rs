//! Filters: what stands after a `|` in a template, parsed once and applied for each item.
//!
//! Nothing here knows where a text comes from; a filter turns one text into another or refuses it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use bumpalo::collections::String as ArenaString;
use md5::Digest as _;

use crate::error::nearest;
use crate::expr::SyntaxError;
use crate::expr::template::RenderError;
use crate::model::Arena;
use crate::model::time::{Moment, TimeError, Unit, date_as_written};

/// A filter with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// Digits, zero-padded to the width.
    Pad(usize),
    /// The complement of the digits, padded to the width: larger numbers come first.
    Desc(usize),
    Lower,
    Upper,
    Trim,
    /// Letters and digits in lower case, everything between them one `-`.
    Slug,
    /// Epoch number to date and time.
    Iso(Unit),
    /// Epoch number to date.
    Date(Unit),
    /// The date of an ISO text, as written.
    DateAsWritten,
    /// Date and time to epoch number.
    Epoch(Unit),
    /// The first digits of a hash in hexadecimal.
    Hash(Algorithm, usize),
    /// A number from 1 to `count`, padded to the width of `count`.
    Shard {
        count: u32,
        width: usize,
    },
    Replace {
        from: Box<str>,
        to: Box<str>,
    },
    /// The text of a part that is missing.
    Default(Box<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Crc32,
    Md5,
    Sha256,
}

/// Every filter with an example of its use, which is also the help for wrong arguments.
const FILTERS: [(&str, &str); 13] = [
    ("pad", "pad(10)"),
    ("desc", "desc(13)"),
    ("lower", "lower"),
    ("upper", "upper"),
    ("trim", "trim"),
    ("slug", "slug"),
    ("iso", "iso(s), iso(ms) or iso(us)"),
    ("date", "date(s), date(ms), date(us) or date(iso)"),
    ("epoch", "epoch(s), epoch(ms) or epoch(us)"),
    ("hash", "hash(crc32), hash(md5, 8) or hash(sha256, 16)"),
    ("shard", "shard(10)"),
    ("replace", "replace(' ', '-')"),
    ("default", "default('none')"),
];

/// Wider than any key may be; a larger width is a slip of the pen.
const WIDEST: usize = 1_024;
/// More shards than this cannot be queried one by one.
const MOST_SHARDS: usize = 100_000;

/// An argument: a bare word or a text in single quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Word(String),
    Text(String),
}

impl Filter {
    /// The filter called `name`, which stands at `name_at`, with these arguments; the whole stands at `at`.
    pub(super) fn new(
        name: &str,
        name_at: Range<usize>,
        arguments: &[(Argument, Range<usize>)],
        at: Range<usize>,
    ) -> Result<Self, SyntaxError> {
        let Some((_, example)) = FILTERS.iter().find(|(known, _)| *known == name) else {
            let help = match nearest(name, FILTERS.iter().map(|(known, _)| *known)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known filters: {}", FILTERS.map(|(known, _)| known).join(", ")),
            };
            return Err(SyntaxError { at: name_at, message: format!("unknown filter `{name}`"), help: Some(help) });
        };
        let wrong = |at: &Range<usize>, message: String| SyntaxError { at: at.clone(), message, help: Some(format!("write {example}")) };
        let count = match name {
            "lower" | "upper" | "trim" | "slug" => 0..=0,
            "hash" => 1..=2,
            "replace" => 2..=2,
            _ => 1..=1,
        };
        if !count.contains(&arguments.len()) {
            let expected = match (count.start(), count.end()) {
                (0, _) => "no argument".to_owned(),
                (1, 1) => "one argument".to_owned(),
                (least, most) if least == most => format!("{least} arguments"),
                (least, most) => format!("{least} to {most} arguments"),
            };
            return Err(wrong(&at, format!("filter `{name}` takes {expected}, found {}", arguments.len())));
        }
        let number = |place: usize, most: usize| -> Result<usize, SyntaxError> {
            let (argument, at) = &arguments[place];
            let number = match argument {
                Argument::Word(word) if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok(),
                _ => None,
            };
            number
                .filter(|number| (1..=most).contains(number))
                .ok_or_else(|| wrong(at, format!("filter `{name}` takes a number from 1 to {most} here")))
        };
        let word = |expected: &str| match &arguments[0] {
            (Argument::Word(word), at) => Ok((word.as_str(), at)),
            (Argument::Text(_), at) => Err(wrong(at, format!("filter `{name}` takes {expected} without quotes"))),
        };
        let text = |place: usize| match &arguments[place] {
            (Argument::Text(text), _) => Ok(text.as_str().into()),
            (Argument::Word(_), at) => Err(wrong(at, format!("filter `{name}` takes a text in single quotes here"))),
        };
        let unit = || {
            let (word, at) = word("a unit")?;
            Unit::from_name(word).ok_or_else(|| wrong(at, format!("`{word}` is no unit")))
        };
        Ok(match name {
            "pad" => Filter::Pad(number(0, WIDEST)?),
            "desc" => Filter::Desc(number(0, WIDEST)?),
            "lower" => Filter::Lower,
            "upper" => Filter::Upper,
            "trim" => Filter::Trim,
            "slug" => Filter::Slug,
            "iso" => Filter::Iso(unit()?),
            "date" if word("a unit")?.0 == "iso" => Filter::DateAsWritten,
            "date" => Filter::Date(unit()?),
            "epoch" => Filter::Epoch(unit()?),
            "hash" => {
                let (word, at) = word("a hash")?;
                let (algorithm, digits) = match word {
                    "crc32" => (Algorithm::Crc32, 8),
                    "md5" => (Algorithm::Md5, 32),
                    "sha256" => (Algorithm::Sha256, 64),
                    _ => return Err(wrong(at, format!("`{word}` is no hash that is known here"))),
                };
                Filter::Hash(algorithm, if arguments.len() == 2 { number(1, digits)? } else { digits })
            }
            "shard" => {
                let count = number(0, MOST_SHARDS)?;
                Filter::Shard { count: u32::try_from(count).expect("the most shards fit 32 bits"), width: count.to_string().len() }
            }
            "replace" => {
                let from: Box<str> = text(0)?;
                if from.is_empty() {
                    return Err(wrong(&arguments[0].1, "there is nothing to replace in an empty text".to_owned()));
                }
                Filter::Replace { from, to: text(1)? }
            }
            "default" => Filter::Default(text(0)?),
            _ => unreachable!("every name in the table of filters has its arm"),
        })
    }

    /// The name as a template spells it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Filter::Pad(_) => "pad",
            Filter::Desc(_) => "desc",
            Filter::Lower => "lower",
            Filter::Upper => "upper",
            Filter::Trim => "trim",
            Filter::Slug => "slug",
            Filter::Iso(_) => "iso",
            Filter::Date(_) | Filter::DateAsWritten => "date",
            Filter::Epoch(_) => "epoch",
            Filter::Hash(..) => "hash",
            Filter::Shard { .. } => "shard",
            Filter::Replace { .. } => "replace",
            Filter::Default(_) => "default",
        }
    }

    /// Applies the filter to the text of `part`; what changes is made in `arena`.
    pub(super) fn apply<'a>(&self, text: &'a str, part: &str, arena: &'a Arena) -> Result<&'a str, RenderError> {
        let time = |rule: &'static str, error: TimeError| refused(rule, part, &error);
        Ok(match self {
            Filter::Pad(width) => padded(text, *width, part, "pad", arena)?,
            Filter::Desc(width) => {
                let padded = padded(text, *width, part, "desc", arena)?;
                // All digits of 10^w - 1 are nine, so the complement needs no carry.
                let digits = padded.bytes().map(|digit| char::from(b'0' + b'9' - digit));
                ArenaString::from_iter_in(digits, arena).into_bump_str()
            }
            Filter::Lower if is_lower(text) => text,
            Filter::Lower => arena.alloc_str(&text.to_lowercase()),
            Filter::Upper if is_upper(text) => text,
            Filter::Upper => arena.alloc_str(&text.to_uppercase()),
            Filter::Trim => text.trim(),
            Filter::Slug => slug(text, part, arena)?,
            Filter::Iso(unit) => {
                let moment = Moment::from_epoch(text, *unit).map_err(|error| time("iso", error))?;
                bumpalo::format!(in arena, "{}", moment.iso(*unit)).into_bump_str()
            }
            Filter::Date(unit) => {
                let moment = Moment::from_epoch(text, *unit).map_err(|error| time("date", error))?;
                bumpalo::format!(in arena, "{}", moment.date()).into_bump_str()
            }
            Filter::DateAsWritten => date_as_written(text).map_err(|error| time("date", error))?,
            Filter::Epoch(unit) => {
                let number = Moment::from_iso(text).and_then(|moment| moment.epoch(*unit)).map_err(|error| time("epoch", error))?;
                bumpalo::format!(in arena, "{}", number).into_bump_str()
            }
            Filter::Hash(Algorithm::Crc32, digits) => hex(&crc32fast::hash(text.as_bytes()).to_be_bytes(), *digits, arena),
            Filter::Hash(Algorithm::Md5, digits) => hex(&md5::Md5::digest(text.as_bytes()), *digits, arena),
            Filter::Hash(Algorithm::Sha256, digits) => hex(&sha2::Sha256::digest(text.as_bytes()), *digits, arena),
            Filter::Shard { count, width } => {
                bumpalo::format!(in arena, "{:0width$}", crc32fast::hash(text.as_bytes()) % count + 1).into_bump_str()
            }
            Filter::Replace { from, to } if text.contains(&**from) => arena.alloc_str(&text.replace(&**from, to)),
            // A default stands for a missing part only; this part is there.
            Filter::Replace { .. } | Filter::Default(_) => text,
        })
    }
}

/// A refusal that names the part and its reason, never the text itself.
fn refused(rule: &'static str, part: &str, reason: &dyn std::fmt::Display) -> RenderError {
    RenderError::Refused { rule, message: format!("part `{part}` in `{rule}`: {reason}") }
}

fn padded<'a>(text: &'a str, width: usize, part: &str, filter: &str, arena: &'a Arena) -> Result<&'a str, RenderError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let found = if text.is_empty() { Cow::Borrowed("an empty text") } else { Cow::Owned(format!("{} bytes with others", text.len())) };
        let message = format!("part `{part}`: {filter}({width}) takes digits only, found {found}");
        return Err(RenderError::Refused { rule: "pad-digits", message });
    }
    if text.len() > width {
        let message = format!("part `{part}`: {filter}({width}) found {} digits; a wider {filter} changes all keys", text.len());
        return Err(RenderError::Refused { rule: "pad-width", message });
    }
    if text.len() == width {
        return Ok(text);
    }
    Ok(bumpalo::format!(in arena, "{:0>width$}", text).into_bump_str())
}

/// Whether [`str::to_lowercase`] would change nothing.
pub(super) fn is_lower(text: &str) -> bool {
    text.chars().flat_map(char::to_lowercase).eq(text.chars())
}

/// Whether [`str::to_uppercase`] would change nothing.
pub(super) fn is_upper(text: &str) -> bool {
    text.chars().flat_map(char::to_uppercase).eq(text.chars())
}

fn slug<'a>(text: &str, part: &str, arena: &'a Arena) -> Result<&'a str, RenderError> {
    let mut out = ArenaString::with_capacity_in(text.len(), arena);
    for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push('-');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    if out.is_empty() { Err(refused("slug", part, &"no letter and no digit in it")) } else { Ok(out.into_bump_str()) }
}

/// The first `digits` hexadecimal digits, in lower case.
fn hex<'a>(bytes: &[u8], digits: usize, arena: &'a Arena) -> &'a str {
    let mut out = ArenaString::with_capacity_in(2 * bytes.len(), arena);
    for byte in bytes {
        write!(out, "{byte:02x}").expect("writing to a string cannot fail");
    }
    &out.into_bump_str()[..digits]
}
