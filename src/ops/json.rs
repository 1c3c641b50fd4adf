//! Plain JSON text and the values it stands for, as `cast` needs them. Numbers never become floats.
//!
//! Not DynamoDB JSON: here `{"a":1}` is a map with a number.

use bumpalo::collections::{String as ArenaString, Vec as ArenaVec};

use crate::model::number::{Decimal, is_plain};
use crate::model::{Arena, Attribute, Value};

/// The deepest nesting DynamoDB takes (AWS, "Quotas": 32 levels), which bounds the recursion too.
const LEVELS: usize = 32;

/// Reads the whole of `text` as one JSON value: object → M, array → L, string → S, number → N, true and false → BOOL, null → NULL.
/// Texts without escapes are borrowed.
///
/// # Errors
/// What was expected and at which byte; never a part of the text.
pub(super) fn parse<'a>(text: &'a str, arena: &'a Arena) -> Result<Value<'a>, String> {
    let mut reader = Reader { text, at: 0, arena };
    let value = reader.value(1)?;
    reader.blanks();
    if reader.at < text.len() { Err(reader.expected("the end of the text")) } else { Ok(value) }
}

/// Writes a value as plain JSON; `None` for what JSON has no form for: sets, binary, and more than 32 levels.
pub(super) fn write<'a>(value: &Value<'_>, arena: &'a Arena) -> Option<&'a str> {
    let mut out = ArenaString::new_in(arena);
    write_value(value, 1, &mut out)?;
    Some(out.into_bump_str())
}

/// A number in the spelling that the service stores.
///
/// # Errors
/// Why DynamoDB would not take it.
pub(super) fn number<'a>(text: &'a str, arena: &'a Arena) -> Result<&'a str, String> {
    let decimal = Decimal::parse(text).ok_or("it is not a decimal number")?;
    decimal.check().map_err(|error| error.to_string())?;
    Ok(if is_plain(text) { text } else { arena.alloc_str(&decimal.plain()) })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    arena: &'a Arena,
}

impl<'a> Reader<'a> {
    fn value(&mut self, level: usize) -> Result<Value<'a>, String> {
        if level > LEVELS {
            return Err(format!("the JSON nests deeper than {LEVELS} levels"));
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(level),
            Some(b'[') => self.array(level),
            Some(b'"') => Ok(Value::S(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Ok(Value::N(self.number()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.expected("a JSON value")),
        }
    }

    fn object(&mut self, level: usize) -> Result<Value<'a>, String> {
        self.at += 1;
        let mut entries: ArenaVec<'a, Attribute<'a>> = ArenaVec::new_in(self.arena);
        if self.skip(b'}') {
            return Ok(Value::M(&[]));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a name in quotes"));
            }
            let start = self.at;
            let name = self.string()?;
            if entries.iter().any(|(known, _)| *known == name) {
                return Err(format!("the JSON has a name twice in one object, at byte {start}"));
            }
            if !self.skip(b':') {
                return Err(self.expected("`:`"));
            }
            entries.push((name, self.value(level + 1)?));
            if self.skip(b'}') {
                return Ok(Value::M(entries.into_bump_slice()));
            }
            if !self.skip(b',') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn array(&mut self, level: usize) -> Result<Value<'a>, String> {
        self.at += 1;
        let mut elements: ArenaVec<'a, Value<'a>> = ArenaVec::new_in(self.arena);
        if self.skip(b']') {
            return Ok(Value::L(&[]));
        }
        loop {
            elements.push(self.value(level + 1)?);
            if self.skip(b']') {
                return Ok(Value::L(elements.into_bump_slice()));
            }
            if !self.skip(b',') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    /// The string that starts here.
    fn string(&mut self) -> Result<&'a str, String> {
        self.at += 1;
        let start = self.at;
        let plain = self.text[start..].bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ');
        let end = start + plain.ok_or_else(|| self.expected("a closing quote"))?;
        self.at = end;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(&self.text[start..end]);
        }
        let mut out = ArenaString::from_str_in(&self.text[start..end], self.arena);
        loop {
            let rest = &self.text[self.at..];
            let Some(character) = rest.chars().next() else {
                return Err(self.expected("a closing quote"));
            };
            match character {
                '"' => {
                    self.at += 1;
                    return Ok(out.into_bump_str());
                }
                '\\' => out.push(self.escape()?),
                control if control < ' ' => return Err(self.expected("an escape in place of a control character")),
                other => {
                    self.at += other.len_utf8();
                    out.push(other);
                }
            }
        }
    }

    /// The character that the escape here stands for.
    fn escape(&mut self) -> Result<char, String> {
        let escaped = self.text.as_bytes().get(self.at + 1).copied();
        let simple = match escaped {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.expected("an escape such as `\\n`")),
        };
        self.at += 2;
        Ok(simple)
    }

    /// The character of `\uXXXX`, or of two of them that belong together.
    fn unicode(&mut self) -> Result<char, String> {
        let high = self.unit()?;
        let code = if (0xd800..0xdc00).contains(&high) {
            let low = self.unit()?;
            if !(0xdc00..0xe000).contains(&low) {
                return Err(self.expected("the second half of a character before here"));
            }
            0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
        } else {
            high
        };
        char::from_u32(code).ok_or_else(|| self.expected("the first half of a character before here"))
    }

    /// The four digits of one `\uXXXX`.
    fn unit(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 6).and_then(|escape| escape.strip_prefix("\\u"));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.expected("`\\u` and four hexadecimal digits"))?;
        self.at += 6;
        Ok(code)
    }

    fn number(&mut self) -> Result<&'a str, String> {
        let start = self.at;
        let end = self.text[start..].find(|character: char| !matches!(character, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
        let text = &self.text[start..end.map_or(self.text.len(), |end| start + end)];
        let whole = text.strip_prefix('-').unwrap_or(text);
        // JSON is stricter than a decimal number: no leading zeros, digits on both sides of the point.
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let leading = digits(whole);
        let zeros = leading == 0 || (leading > 1 && whole.starts_with('0'));
        let fraction = whole[leading..].strip_prefix('.').is_some_and(|fraction| digits(fraction) == 0);
        if zeros || fraction || Decimal::parse(text).is_none() {
            return Err(self.expected("a number as JSON writes it"));
        }
        self.at += text.len();
        number(text, self.arena).map_err(|error| format!("the JSON has a number with {error}, at byte {start}"))
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, String> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.expected("a JSON value"))
        }
    }

    fn skip(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, what: &str) -> String {
        format!("it is not JSON: expected {what} at byte {}", self.at)
    }
}

fn write_value(value: &Value<'_>, level: usize, out: &mut ArenaString<'_>) -> Option<()> {
    if level > LEVELS {
        return None;
    }
    match value {
        Value::S(text) => write_text(text, out),
        Value::N(text) if is_plain(text) => out.push_str(text),
        Value::N(text) => out.push_str(&Decimal::parse(text).filter(|decimal| decimal.check().is_ok())?.plain()),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::M(entries) => {
            out.push('{');
            for (at, (name, value)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write_value(value, level + 1, out)?;
            }
            out.push('}');
        }
        Value::L(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_value(element, level + 1, out)?;
            }
            out.push(']');
        }
        Value::B(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => return None,
    }
    Some(())
}

fn write_text(text: &str, out: &mut ArenaString<'_>) {
    let mut quoted = String::with_capacity(text.len() + 2);
    crate::ops::literal::write_text(text, &mut quoted);
    out.push_str(&quoted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_exactly_and_written_back() {
        for text in [
            r#"{"a":1,"b":[true,false,null,"x"],"c":{"d":{}},"e":[]}"#,
            r#""a\"\\\n\u0001é😀""#,
            "123456789012345678901234567890.12345678",
            "-0.5",
        ] {
            let arena = Arena::new();
            let value = parse(text, &arena).unwrap();
            assert_eq!(write(&value, &arena), Some(text));
        }
    }

    #[test]
    fn other_spellings_give_the_same_values() {
        for (text, expected) in [
            (" [ 1.50 , 1E2 ] ", Value::L(&[Value::N("1.5"), Value::N("100")])),
            (r#""\u00e9\ud83d\ude00\/""#, Value::S("é😀/")),
            ("{ \"a\" : \"\" }", Value::M(&[("a", Value::S(""))])),
        ] {
            assert_eq!(parse(text, &Arena::new()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_the_byte_and_without_the_text() {
        for (text, expected) in [
            ("", "a JSON value at byte 0"),
            ("{a:1}", "a name in quotes at byte 1"),
            ("{\"a\":1,}", "a name in quotes at byte 7"),
            ("[1 2]", "`,` or `]` at byte 3"),
            ("1 2", "the end of the text at byte 2"),
            ("01", "a number as JSON writes it at byte 0"),
            ("1.", "a number as JSON writes it"),
            ("-", "a number as JSON writes it"),
            ("1e400", "a number with magnitude above"),
            ("\"a", "a closing quote"),
            ("\"\\x\"", "an escape such as"),
            ("\"\\ud83d\"", "`\\u` and four"),
            ("\"\\ude00\"", "the first half"),
            ("\"\t\"", "a control character"),
            ("nul", "a JSON value"),
            ("{\"a\":1,\"\\u0061\":2}", "a name twice"),
        ] {
            let message = parse(text, &Arena::new()).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
        let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
        assert!(parse(&deep, &Arena::new()).unwrap_err().contains("32 levels"));
        let most = format!("{}{}", "[".repeat(32), "]".repeat(32));
        assert!(parse(&most, &Arena::new()).is_ok());
    }
}
