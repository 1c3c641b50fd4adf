//! A cursor over one line that reads typed values. Every mistake says where and what.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bumpalo::collections::Vec as ArenaVec;

use crate::codec::ddb_json::scan::{self, BadString};
use crate::codec::names::Names;
use crate::codec::plain::end_of_plain;
use crate::codec::refused::{Refused, refusal, short};
use crate::codec::{LEVELS, TOO_MANY, VALUES};
use crate::model::{Arena, Attribute, Place, Type, Value};

/// Reads one line from left to right.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    at: usize,
    arena: &'a Arena,
    /// Values read so far.
    values: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str, at: usize, arena: &'a Arena) -> Self {
        Self { line, at, arena, values: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn line(&self) -> &'a str {
        self.line
    }

    pub(super) fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// The bytes from `start` to here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        &self.line.as_bytes()[start..self.at]
    }

    /// The bytes that are left.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.line.as_bytes()[self.at..]
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the blanks before it, if it comes next.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        if self.peek() != Some(byte) {
            self.skip_blanks();
            if self.peek() != Some(byte) {
                return false;
            }
        }
        self.at += 1;
        true
    }

    /// Steps over `byte`, or says that `expected` was expected.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, place: &Place<'_>, expected: &str) -> Result<(), Refused> {
        if self.eat(byte) { Ok(()) } else { Err(self.unexpected(place, expected)) }
    }

    /// Nothing but blanks may follow.
    pub(super) fn end(&mut self) -> Result<(), Refused> {
        self.skip_blanks();
        if self.at == self.line.len() { Ok(()) } else { Err(self.unexpected(&Place::Item, "the end of the line; one item a line")) }
    }

    /// The name of a member with its colon.
    #[expect(clippy::inline_always, reason = "measured: a tenth of the time of decoding")]
    #[inline(always)]
    pub(super) fn name(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        self.expect(b'"', place, "a name in quotes")?;
        let name = self.string(place)?;
        self.expect(b':', place, "`:` after a name")?;
        Ok(name)
    }

    /// A string, from behind its quote.
    #[expect(clippy::inline_always, reason = "measured: a tenth of the time of decoding")]
    #[inline(always)]
    fn string(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        let end = end_of_plain::<b'"'>(self.line.as_bytes(), self.at);
        if self.line.as_bytes().get(end) != Some(&b'"') {
            return self.escaped(end, place);
        }
        let text = &self.line[self.at..end];
        self.at = end + 1;
        Ok(text)
    }

    /// A string that is plain up to `end` only.
    #[inline(never)]
    fn escaped(&mut self, end: usize, place: &Place<'_>) -> Result<&'a str, Refused> {
        match scan::escaped(self.line, self.at, end, self.arena) {
            Ok((text, after)) => {
                self.at = after;
                Ok(text)
            }
            Err(BadString { at, message, unfinished }) => Err(refusal(at, if unfinished { "json" } else { "escape" }, place, &message)),
        }
    }

    /// The text of a number that is written as a typed value, as text, or as a JSON number.
    pub(super) fn number_text(&mut self) -> Result<&'a str, Refused> {
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => match self.value(1, &Place::Item)? {
                Value::N(text) => Ok(text),
                other => Err(self.fail("not-an-item", &Place::Item, &format!("a value of type {} where N belongs", other.kind()))),
            },
            Some(b'"') => {
                self.at += 1;
                self.string(&Place::Item)
            }
            _ => {
                let start = self.at;
                self.skip()?;
                Ok(&self.line[start..self.at])
            }
        }
    }

    /// The attributes of an item or the entries of a map, whose values are on `level`.
    pub(super) fn attributes(&mut self, level: usize, place: &Place<'_>) -> Result<ArenaVec<'a, Attribute<'a>>, Refused> {
        self.expect(b'{', place, "an object of attributes")?;
        if self.eat(b'}') {
            return Ok(ArenaVec::new_in(self.arena));
        }
        // An item has some ten attributes, a map fewer. The vector moves when a nested value was put behind it.
        let mut attributes = ArenaVec::with_capacity_in(if level == 1 { 16 } else { 4 }, self.arena);
        let mut names = Names::default();
        loop {
            self.skip_blanks();
            let start = self.at;
            let name = self.name(place)?;
            let here = Place::Name(place, name);
            if names.are_known(name, &attributes) {
                return Err(refusal(start, "duplicate-attribute", &here, "the name stands there twice; expected once"));
            }
            let value = match self.plain(level) {
                Some(value) => value,
                None => self.value(level, &here)?,
            };
            attributes.push((name, value));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', place, "`,` or `}` after a value")?;
        Ok(attributes)
    }

    /// One value as exports write nearly all: text without escapes, a number or a boolean, and no blanks. Where it is another, or
    /// anything is wrong with it, nothing is stepped over.
    #[expect(clippy::inline_always, reason = "measured: a tenth of the time of decoding")]
    #[inline(always)]
    fn plain(&mut self, level: usize) -> Option<Value<'a>> {
        if level > LEVELS || self.values >= VALUES {
            return None;
        }
        let start = self.at + br#"{"S":""#.len();
        let kind = match self.rest() {
            [b'{', b'"', kind @ (b'S' | b'N'), b'"', b':', b'"', ..] => *kind,
            rest => {
                let (value, length) = if rest.starts_with(br#"{"BOOL":true}"#) {
                    (true, br#"{"BOOL":true}"#.len())
                } else if rest.starts_with(br#"{"BOOL":false}"#) {
                    (false, br#"{"BOOL":false}"#.len())
                } else {
                    return None;
                };
                self.at += length;
                self.values += 1;
                return Some(Value::Bool(value));
            }
        };
        let end = end_of_plain::<b'"'>(self.line.as_bytes(), start);
        if !self.line.as_bytes()[end..].starts_with(br#""}"#) {
            return None;
        }
        let text = &self.line[start..end];
        self.at = end + br#""}"#.len();
        self.values += 1;
        Some(if kind == b'S' { Value::S(text) } else { Value::N(text) })
    }

    /// One value: an object with one type descriptor.
    fn value(&mut self, level: usize, place: &Place<'_>) -> Result<Value<'a>, Refused> {
        if level > LEVELS {
            let message = format!("values nested deeper than {LEVELS} levels; DynamoDB allows 32");
            return Err(self.fail("depth", place, &message));
        }
        self.values += 1;
        if self.values > VALUES {
            return Err(self.fail(TOO_MANY.0, &Place::Item, TOO_MANY.1));
        }
        if !self.eat(b'{') {
            let message = format!(r#"{} where a typed value belongs; expected an object such as {{"S":"…"}}"#, self.found());
            return Err(self.fail(self.rule_of_found("descriptor"), place, &message));
        }
        let start = self.at;
        let kind = self.descriptor(place)?;
        self.skip_blanks();
        let value = match kind {
            Type::S => Value::S(self.text_of(kind, place)?),
            Type::N => Value::N(self.text_of(kind, place)?),
            Type::B => {
                let start = self.at;
                let text = self.text_of(kind, place)?;
                Value::B(self.binary(text, start, place)?)
            }
            Type::Bool => Value::Bool(self.boolean(kind, place)?),
            Type::Null if self.boolean(kind, place)? => Value::Null,
            Type::Null => return Err(refusal(start, "null-false", place, "NULL is false; DynamoDB knows only true there")),
            Type::M => {
                self.opens(b'{', kind, "an object of attributes", place)?;
                Value::M(self.attributes(level + 1, place)?.into_bump_slice())
            }
            Type::L => Value::L(self.list(level + 1, place)?),
            Type::Ss => Value::Ss(self.set(kind, place, |_, text, _, _| Ok(text))?),
            Type::Ns => Value::Ns(self.set(kind, place, |_, text, _, _| Ok(text))?),
            Type::Bs => Value::Bs(self.set(kind, place, Self::binary)?),
        };
        if self.eat(b'}') { Ok(value) } else { Err(self.after_value(kind, place)) }
    }

    /// The type descriptor with its colon, from behind the brace.
    #[inline]
    fn descriptor(&mut self, place: &Place<'_>) -> Result<Type, Refused> {
        let (kind, length) = match self.rest() {
            [b'"', b'S', b'"', b':', ..] => (Type::S, 4),
            [b'"', b'N', b'"', b':', ..] => (Type::N, 4),
            [b'"', b'M', b'"', b':', ..] => (Type::M, 4),
            [b'"', b'L', b'"', b':', ..] => (Type::L, 4),
            [b'"', b'B', b'O', b'O', b'L', b'"', b':', ..] => (Type::Bool, 7),
            _ => return self.any_descriptor(place),
        };
        self.at += length;
        Ok(kind)
    }

    fn any_descriptor(&mut self, place: &Place<'_>) -> Result<Type, Refused> {
        if self.eat(b'}') {
            return Err(self.fail("descriptor", place, r#"an object without a type; expected one descriptor, such as {"S":"…"}"#));
        }
        self.skip_blanks();
        let start = self.at;
        let name = self.name(place)?;
        Type::from_descriptor(name).ok_or_else(|| {
            let message = format!("unknown type `{}`; expected one of S, N, B, BOOL, NULL, M, L, SS, NS, BS", short(name));
            refusal(start, "descriptor", place, &message)
        })
    }

    /// What is wrong where the value's object should have closed.
    #[cold]
    fn after_value(&mut self, kind: Type, place: &Place<'_>) -> Refused {
        if !self.eat(b',') {
            return self.unexpected(place, "`}` after the value");
        }
        match self.name(place) {
            Ok(second) => {
                let message = format!("one value with two types, {kind} and {}; expected exactly one", short(second));
                self.fail("two-types", place, &message)
            }
            Err(refused) => refused,
        }
    }

    /// The text of S, N, B or of a member of a set.
    #[inline]
    fn text_of(&mut self, kind: Type, place: &Place<'_>) -> Result<&'a str, Refused> {
        if self.peek() == Some(b'"') {
            self.at += 1;
            return self.string(place);
        }
        if matches!(kind, Type::N | Type::Ns) && self.found() == "a number" {
            let message = format!(r#"a JSON number under {kind}; expected its digits as text, such as "1.5""#);
            return Err(self.fail("number-not-text", place, &message));
        }
        Err(self.fail(self.rule_of_found("descriptor"), place, &format!("{} under {kind}; expected text", self.found())))
    }

    fn boolean(&mut self, kind: Type, place: &Place<'_>) -> Result<bool, Refused> {
        for (word, value) in [("true", true), ("false", false)] {
            if self.rest().starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        let message = format!("{} under {kind}; expected {}", self.found(), if kind == Type::Null { "true" } else { "true or false" });
        Err(self.fail(self.rule_of_found("descriptor"), place, &message))
    }

    /// `open` must come next, as the value of `kind`; it is not stepped over.
    fn opens(&self, open: u8, kind: Type, expected: &str, place: &Place<'_>) -> Result<(), Refused> {
        if self.peek() == Some(open) {
            return Ok(());
        }
        Err(self.fail(self.rule_of_found("descriptor"), place, &format!("{} under {kind}; expected {expected}", self.found())))
    }

    fn list(&mut self, level: usize, place: &Place<'_>) -> Result<&'a [Value<'a>], Refused> {
        self.opens(b'[', Type::L, "an array of typed values", place)?;
        self.at += 1;
        if self.eat(b']') {
            return Ok(&[]);
        }
        let mut elements = ArenaVec::new_in(self.arena);
        loop {
            let value = match self.plain(level) {
                Some(value) => value,
                None => self.value(level, &Place::Index(place, elements.len()))?,
            };
            elements.push(value);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']', place, "`,` or `]` after an element")?;
        Ok(elements.into_bump_slice())
    }

    /// A set, each of whose texts `member` makes a member; it gets the text's place in the line for its message.
    fn set<T: Copy>(
        &mut self,
        kind: Type,
        place: &Place<'_>,
        member: impl Fn(&Self, &'a str, usize, &Place<'_>) -> Result<T, Refused>,
    ) -> Result<&'a [T], Refused> {
        self.opens(b'[', kind, "an array of texts", place)?;
        self.at += 1;
        let mut members = ArenaVec::new_in(self.arena);
        if self.eat(b']') {
            return Ok(members.into_bump_slice());
        }
        loop {
            self.skip_blanks();
            let start = self.at;
            let here = Place::Index(place, members.len());
            self.values += 1;
            if self.values > VALUES {
                return Err(self.fail(TOO_MANY.0, &Place::Item, TOO_MANY.1));
            }
            let text = self.text_of(kind, &here)?;
            members.push(member(self, text, start, &here)?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']', place, "`,` or `]` after a member")?;
        Ok(members.into_bump_slice())
    }

    /// Base64 as bytes in the arena; `start` is where its text stands in the line.
    fn binary(&self, text: &str, start: usize, place: &Place<'_>) -> Result<&'a [u8], Refused> {
        let room = self.arena.alloc_slice_fill_copy(text.len().div_ceil(4) * 3, 0_u8);
        let Ok(length) = STANDARD.decode_slice(text, room) else {
            let message = "the text of a binary is no base64; expected the standard alphabet (A-Z a-z 0-9 + /) with padding";
            return Err(refusal(start, "base64", place, message));
        };
        Ok(&room[..length])
    }

    /// Steps over one JSON value of any kind, without recursion. It belongs to no item, so that its inner order is not checked.
    pub(super) fn skip(&mut self) -> Result<(), Refused> {
        let mut open = 0_usize;
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.string(&Place::Item)?;
                }
                Some(b'{' | b'[') => {
                    self.at += 1;
                    open += 1;
                    continue;
                }
                Some(b'}' | b']') if open > 0 => {
                    self.at += 1;
                    open -= 1;
                }
                Some(b',' | b':') if open > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' => {
                    let word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                    self.at += self.rest().iter().take_while(word).count();
                }
                _ => return Err(self.unexpected(&Place::Item, "a JSON value")),
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// What a line is that does not even start as an object of ours: rule and message.
    pub(super) fn foreign(&mut self) -> Option<(&'static str, String)> {
        self.skip_blanks();
        let rest = &self.line[self.at..];
        let message = if rest.is_empty() {
            "an empty line".to_owned()
        } else if rest.starts_with("$ion_1_0") {
            "a line of Amazon Ion".to_owned()
        } else if rest.starts_with('\u{feff}') {
            "a byte-order mark at the start of the line; save the file without it".to_owned()
        } else if rest.starts_with('{') {
            return None;
        } else {
            self.found().to_owned()
        };
        Some(("not-an-item", format!(r#"column {}: {message}; expected `{{"Item":{{…}}}}`"#, self.at + 1)))
    }

    /// What kind of token comes next, never its value.
    pub(super) fn found(&self) -> &'static str {
        match self.rest().trim_ascii_start() {
            [] => "the end of the line",
            [b'"', ..] => "text",
            [b'{', ..] => "an object",
            [b'[', ..] => "an array",
            [b'-' | b'0'..=b'9', ..] => "a number",
            [b't', b'r', b'u', b'e', ..] | [b'f', b'a', b'l', b's', b'e', ..] => "a boolean",
            [b'n', b'u', b'l', b'l', ..] => "null",
            [b'}', ..] => "`}`",
            [b']', ..] => "`]`",
            [b',', ..] => "`,`",
            [b':', ..] => "`:`",
            _ => "what is no JSON",
        }
    }

    /// `rule` where a whole JSON value comes next, `json` where none does.
    fn rule_of_found(&self, rule: &'static str) -> &'static str {
        match self.found() {
            "text" | "an object" | "an array" | "a number" | "a boolean" | "null" => rule,
            _ => "json",
        }
    }

    #[cold]
    fn unexpected(&self, place: &Place<'_>, expected: &str) -> Refused {
        self.fail("json", place, &format!("{}; expected {expected}", self.found()))
    }

    /// A refusal at the cursor.
    #[cold]
    pub(super) fn fail(&self, rule: &'static str, place: &Place<'_>, message: &str) -> Refused {
        refusal(self.at, rule, place, message)
    }
}
