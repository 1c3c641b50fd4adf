//! A cursor over one line of Ion text that reads values. Every mistake says where and what.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bumpalo::collections::Vec as ArenaVec;

use crate::codec::ion::number::{self, BadNumber};
use crate::codec::ion::text::{self, BadText};
use crate::codec::names::Names;
use crate::codec::refused::{Refused, refusal, short};
use crate::codec::{LEVELS, TOO_MANY, VALUES};
use crate::model::{Arena, Attribute, Place, Type, Value};

/// The names that may follow `null.`.
const TYPES: [&str; 13] =
    ["null", "bool", "int", "float", "decimal", "timestamp", "symbol", "string", "clob", "blob", "struct", "list", "sexp"];

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
    fn rest(&self) -> &'a [u8] {
        &self.line.as_bytes()[self.at..]
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    /// Steps over blanks and comments.
    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        if let Some(b' ' | b'\t'..=b'\r' | b'/') = self.peek() {
            self.at = text::after_blanks(self.line.as_bytes(), self.at);
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

    /// Steps over version markers; says whether there were any.
    pub(super) fn version_markers(&mut self) -> bool {
        const MARKER: &[u8] = b"$ion_1_0";
        let mut marked = false;
        loop {
            self.skip_blanks();
            if !self.rest().starts_with(MARKER) || self.rest().get(MARKER.len()).is_some_and(|byte| is_of_identifier(*byte)) {
                return marked;
            }
            self.at += MARKER.len();
            marked = true;
        }
    }

    /// Nothing but blanks and version markers may follow.
    pub(super) fn end(&mut self) -> Result<(), Refused> {
        if self.at == self.line.len() {
            return Ok(());
        }
        self.version_markers();
        if self.at == self.line.len() { Ok(()) } else { Err(self.unexpected(&Place::Item, "the end of the line; one item a line")) }
    }

    /// Whether a struct begins here.
    #[inline]
    pub(super) fn is_at_struct(&self) -> bool {
        matches!(self.rest(), [b'{', after, ..] if *after != b'{') || self.rest() == b"{"
    }

    /// The name of a field with its colon.
    #[inline]
    pub(super) fn name(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        self.skip_blanks();
        let end = end_of_identifier(self.line.as_bytes(), self.at);
        let name = if end > self.at && !self.rest()[0].is_ascii_digit() {
            let name = &self.line[self.at..end];
            if matches!(name.as_bytes()[0], b'$' | b'n' | b't' | b'f') {
                self.check_identifier(name, place)?;
            }
            self.at = end;
            name
        } else {
            self.quoted_name(place)?
        };
        self.expect(b':', place, "`:` after a field name")?;
        if self.peek() == Some(b':') {
            return Err(self.fail("ion", place, "an annotation where a field name belongs"));
        }
        Ok(name)
    }

    /// A name without quotes must be a symbol's own text.
    fn check_identifier(&self, name: &str, place: &Place<'_>) -> Result<(), Refused> {
        if is_symbol_id(name) {
            return Err(self.symbol_id(name, place));
        }
        if is_keyword(name) {
            let message = format!("the keyword {name} where a field name belongs; as a name it is written '{name}'");
            return Err(self.fail("ion", place, &message));
        }
        Ok(())
    }

    /// A name in quotes of any kind.
    fn quoted_name(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        match self.rest() {
            [b'"', ..] => self.string::<b'"'>(place),
            [b'\'', b'\'', b'\'', ..] => self.long_string(place),
            [b'\'', ..] => self.string::<b'\''>(place),
            _ => Err(self.unexpected(place, "a field name")),
        }
    }

    /// A text in quotes, from its quote on.
    #[inline]
    fn string<const QUOTE: u8>(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        let read = text::quoted::<QUOTE>(self.line, self.at + 1, self.arena);
        self.take_text(read, place)
    }

    /// A text in pieces of three quotes each.
    fn long_string(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        let read = text::long(self.line, self.at, self.arena);
        self.take_text(read, place)
    }

    #[inline]
    fn take_text(&mut self, read: Result<(&'a str, usize), BadText>, place: &Place<'_>) -> Result<&'a str, Refused> {
        match read {
            Ok((text, after)) => {
                self.at = after;
                Ok(text)
            }
            Err(BadText { at, message, unfinished }) => Err(refusal(at, if unfinished { "ion" } else { "escape" }, place, &message)),
        }
    }

    /// The attributes of an item or the entries of a map, whose values are on `level`. A struct begins here.
    pub(super) fn fields(&mut self, level: usize, place: &Place<'_>) -> Result<ArenaVec<'a, Attribute<'a>>, Refused> {
        self.at += 1;
        if self.eat(b'}') {
            return Ok(ArenaVec::new_in(self.arena));
        }
        // An item has some ten attributes, a map fewer. The vector moves when a nested value was put behind it.
        let mut fields = ArenaVec::with_capacity_in(if level == 1 { 16 } else { 4 }, self.arena);
        let mut names = Names::default();
        loop {
            self.skip_blanks();
            let start = self.at;
            let name = self.name(place)?;
            let here = Place::Name(place, name);
            if names.are_known(name, &fields) {
                return Err(refusal(start, "duplicate-attribute", &here, "the name stands there twice; expected once"));
            }
            let value = self.value(level, &here)?;
            fields.push((name, value));
            // A comma may stand behind the last field too.
            if !self.eat(b',') {
                self.expect(b'}', place, "`,` or `}` after a value")?;
                break;
            }
            if self.eat(b'}') {
                break;
            }
        }
        Ok(fields)
    }

    /// One value.
    fn value(&mut self, level: usize, place: &Place<'_>) -> Result<Value<'a>, Refused> {
        if level > LEVELS {
            let message = format!("values nested deeper than {LEVELS} levels; DynamoDB allows 32");
            return Err(self.fail("depth", place, &message));
        }
        self.values += 1;
        if self.values > VALUES {
            return Err(self.fail(TOO_MANY.0, &Place::Item, TOO_MANY.1));
        }
        self.skip_blanks();
        match self.rest() {
            [b'"', ..] => Ok(Value::S(self.string::<b'"'>(place)?)),
            [b'0'..=b'9' | b'-', ..] => Ok(Value::N(self.number(place)?)),
            [b'{', b'{', ..] => Ok(Value::B(self.blob(place)?)),
            [b'{', ..] => Ok(Value::M(self.fields(level + 1, place)?.into_bump_slice())),
            [b'[', ..] => Ok(Value::L(self.list(|cursor, place| cursor.value(level + 1, place), place)?)),
            [b'\'', b'\'', b'\'', ..] => Ok(Value::S(self.long_string(place)?)),
            [b'\'', ..] => {
                let start = self.at;
                let symbol = self.string::<b'\''>(place)?;
                self.after_symbol(start, symbol, place)
            }
            [first, ..] if is_of_identifier(*first) => self.word(place),
            [b'+', b'i', b'n', b'f', ..] => Err(self.fail("number", place, "+inf, which is no number to DynamoDB")),
            _ => Err(self.unexpected(place, "a value")),
        }
    }

    /// A value that begins with a word: a keyword, or the annotation of a set.
    fn word(&mut self, place: &Place<'_>) -> Result<Value<'a>, Refused> {
        let start = self.at;
        self.at = end_of_identifier(self.line.as_bytes(), start);
        let word = &self.line[start..self.at];
        match word {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => self.after_null(place),
            "nan" => Err(refusal(start, "number", place, "nan, which is no number to DynamoDB")),
            _ if is_symbol_id(word) => {
                self.at = start;
                Err(self.symbol_id(word, place))
            }
            _ => self.after_symbol(start, word, place),
        }
    }

    /// A null of any type is a null.
    fn after_null(&mut self, place: &Place<'_>) -> Result<Value<'a>, Refused> {
        if self.peek() == Some(b'.') {
            let start = self.at + 1;
            let end = end_of_identifier(self.line.as_bytes(), start);
            if !TYPES.contains(&&self.line[start..end]) {
                return Err(self.fail("ion", place, "`null.` without one of Ion's types behind it"));
            }
            self.at = end;
        }
        Ok(Value::Null)
    }

    /// What follows a symbol that started at `start`: the set that it annotates, or nothing that belongs there.
    fn after_symbol(&mut self, start: usize, symbol: &str, place: &Place<'_>) -> Result<Value<'a>, Refused> {
        let symbol_end = self.at;
        if !(self.eat(b':') && self.peek() == Some(b':')) {
            self.at = symbol_end;
            let message = "a symbol where a value belongs; text is written in double quotes";
            return Err(refusal(start, "ion-type", place, message));
        }
        self.at += 1;
        self.skip_blanks();
        let kind = match symbol {
            "$dynamodb_SS" => Type::Ss,
            "$dynamodb_NS" => Type::Ns,
            "$dynamodb_BS" => Type::Bs,
            other => {
                let message = format!("unknown annotation `{}`; expected one of $dynamodb_SS, $dynamodb_NS, $dynamodb_BS", short(other));
                return Err(refusal(start, "annotation", place, &message));
            }
        };
        if self.peek() != Some(b'[') {
            let message = format!("{} annotated as {kind}; expected a list", self.found());
            return Err(self.fail(self.rule_of_found("annotation"), place, &message));
        }
        match kind {
            Type::Ss => Ok(Value::Ss(self.list(Self::text_member, place)?)),
            Type::Ns => Ok(Value::Ns(self.list(Self::number_member, place)?)),
            _ => Ok(Value::Bs(self.list(Self::binary_member, place)?)),
        }
    }

    fn text_member(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        match self.rest() {
            [b'"', ..] => self.string::<b'"'>(place),
            [b'\'', b'\'', b'\'', ..] => self.long_string(place),
            _ => Err(self.not_a_member(Type::Ss, "text", place)),
        }
    }

    fn number_member(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        match self.peek() {
            Some(b'0'..=b'9' | b'-') => self.number(place),
            _ => Err(self.not_a_member(Type::Ns, "a number", place)),
        }
    }

    fn binary_member(&mut self, place: &Place<'_>) -> Result<&'a [u8], Refused> {
        if self.rest().starts_with(b"{{") { self.blob(place) } else { Err(self.not_a_member(Type::Bs, "a blob", place)) }
    }

    fn not_a_member(&self, kind: Type, expected: &str, place: &Place<'_>) -> Refused {
        let message = format!("{} in a set of type {kind}; expected {expected}", self.found());
        self.fail(self.rule_of_found("ion-type"), place, &message)
    }

    /// A list, each of whose elements `element` reads from its first byte on.
    fn list<T: Copy>(
        &mut self,
        element: impl Fn(&mut Self, &Place<'_>) -> Result<T, Refused>,
        place: &Place<'_>,
    ) -> Result<&'a [T], Refused> {
        self.at += 1;
        let mut elements = ArenaVec::new_in(self.arena);
        while !self.eat(b']') {
            self.skip_blanks();
            if elements.len() >= VALUES as usize {
                return Err(self.fail(TOO_MANY.0, &Place::Item, TOO_MANY.1));
            }
            let value = element(self, &Place::Index(place, elements.len()))?;
            elements.push(value);
            if !self.eat(b',') {
                self.expect(b']', place, "`,` or `]` after an element")?;
                break;
            }
        }
        Ok(elements.into_bump_slice())
    }

    /// A number in plain digits.
    #[inline]
    fn number(&mut self, place: &Place<'_>) -> Result<&'a str, Refused> {
        match number::read(self.line, self.at, self.arena) {
            Ok((text, after)) => {
                self.at = after;
                Ok(text)
            }
            Err(bad) => Err(self.bad_number(&bad, place)),
        }
    }

    #[cold]
    fn bad_number(&self, bad: &BadNumber, place: &Place<'_>) -> Refused {
        let (rule, message) = match bad {
            BadNumber::Timestamp => ("ion-type", "a timestamp where a value belongs; DynamoDB has no such type"),
            BadNumber::Infinite => ("number", "-inf, which is no number to DynamoDB"),
            BadNumber::TooLarge => ("number", "an integer of more than 128 bits; DynamoDB's numbers have 38 digits"),
            BadNumber::Malformed => ("ion", "what starts like a number but is none; expected digits such as 12.5, 103. or 6d2"),
        };
        self.fail(rule, place, message)
    }

    /// A blob as bytes in the arena. Its braces come next.
    fn blob(&mut self, place: &Place<'_>) -> Result<&'a [u8], Refused> {
        let start = self.at + 2;
        let bytes = self.line.as_bytes();
        let end = start + bytes[start..].iter().position(|byte| *byte == b'}').unwrap_or(bytes.len() - start);
        let base64 = &bytes[start..end];
        if let [b'"' | b'\'', ..] = base64.trim_ascii_start() {
            return Err(self.fail("ion-type", place, "a clob where a value belongs; DynamoDB has no such type"));
        }
        if end == bytes.len() {
            self.at = end;
            return Err(self.unexpected(place, "`}}` after a blob"));
        }
        let room = self.arena.alloc_slice_fill_copy(base64.len().div_ceil(4) * 3, 0_u8);
        let decoded = STANDARD.decode_slice(base64, room).or_else(|wrong| {
            // Blanks may stand anywhere inside.
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
            if !base64.iter().any(is_blank) {
                return Err(wrong);
            }
            let packed: Vec<u8> = base64.iter().copied().filter(|byte| !is_blank(byte)).collect();
            STANDARD.decode_slice(packed, room)
        });
        let Ok(length) = decoded else {
            let message = "the text of a blob is no base64; expected the standard alphabet (A-Z a-z 0-9 + /) with padding";
            return Err(refusal(start, "base64", place, message));
        };
        self.at = end + 1;
        if self.peek() != Some(b'}') {
            return Err(self.unexpected(place, "`}}` after a blob"));
        }
        self.at += 1;
        Ok(&room[..length])
    }

    /// What a line is that does not even start as a struct: rule and message.
    pub(super) fn foreign(&self) -> Option<(&'static str, &'static str)> {
        if self.is_at_struct() {
            return None;
        }
        let rest = &self.line[self.at..];
        Some(if rest.is_empty() {
            ("not-an-item", "an empty line")
        } else if rest.starts_with("$ion_symbol_table") {
            ("symbol-table", "a symbol table, which a line of an export does not have")
        } else if rest.strip_prefix("$ion_").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit())) {
            ("not-an-item", "another version of Ion")
        } else if rest.starts_with('\u{feff}') {
            ("not-an-item", "a byte-order mark at the start of the line; save the file without it")
        } else {
            ("not-an-item", self.found())
        })
    }

    /// What kind of token comes next, never its value.
    pub(super) fn found(&self) -> &'static str {
        let at = text::after_blanks(self.line.as_bytes(), self.at);
        match &self.line.as_bytes()[at..] {
            [] => "the end of the line",
            [b'"', ..] | [b'\'', b'\'', b'\'', ..] => "text",
            [b'{', b'{', inside @ ..] => match inside.trim_ascii_start() {
                [b'"' | b'\'', ..] => "a clob",
                _ => "a blob",
            },
            [b'{', ..] => "a struct",
            [b'[', ..] => "a list",
            [b'(', ..] => "an s-expression",
            [b'-' | b'0'..=b'9', ..] | [b'+', b'i', b'n', b'f', ..] => "a number",
            [b'}', ..] => "`}`",
            [b']', ..] => "`]`",
            [b',', ..] => "`,`",
            [b':', ..] => "`:`",
            [b'/', b'*', ..] => "a comment that does not end",
            [first, ..] if *first == b'\'' || is_of_identifier(*first) => {
                match &self.line[at..end_of_identifier(self.line.as_bytes(), at)] {
                    "true" | "false" => "a boolean",
                    "null" => "null",
                    "nan" => "a number",
                    _ => "a symbol",
                }
            }
            _ => "what is no Ion",
        }
    }

    /// `rule` where a whole value comes next, `ion` where none does.
    fn rule_of_found(&self, rule: &'static str) -> &'static str {
        match self.found() {
            "the end of the line" | "`}`" | "`]`" | "`,`" | "`:`" | "a comment that does not end" | "what is no Ion" => "ion",
            _ => rule,
        }
    }

    #[cold]
    fn unexpected(&self, place: &Place<'_>, expected: &str) -> Refused {
        let (rule, more) = match self.found() {
            "an s-expression" => ("ion-type", ", which DynamoDB has no type for"),
            _ => ("ion", ""),
        };
        self.fail(rule, place, &format!("{}{more}; expected {expected}", self.found()))
    }

    #[cold]
    fn symbol_id(&self, symbol: &str, place: &Place<'_>) -> Refused {
        let message = format!("the number {} of a symbol in place of its text; a line of an export has no symbol table", short(symbol));
        self.fail("symbol-table", place, &message)
    }

    /// A refusal at the cursor.
    #[cold]
    pub(super) fn fail(&self, rule: &'static str, place: &Place<'_>, message: &str) -> Refused {
        refusal(self.at, rule, place, message)
    }
}

/// Whether the byte may stand in a symbol without quotes.
#[inline]
pub(super) fn is_of_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// Whether a symbol without quotes would mean something else.
pub(super) fn is_keyword(name: &str) -> bool {
    matches!(name, "null" | "true" | "false" | "nan")
}

/// Whether this is the number of a symbol in a symbol table, such as `$10`.
fn is_symbol_id(name: &str) -> bool {
    name.strip_prefix('$').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[inline]
fn end_of_identifier(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while bytes.get(at).is_some_and(|byte| is_of_identifier(*byte)) {
        at += 1;
    }
    at
}
