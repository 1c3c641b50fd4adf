//! What a data file is, by its first bytes; its name decides nothing. Knows how files of many kinds begin; reads none of them.

use crate::error::{Error, Kind};
use crate::model::Format;
use crate::source::Lines;
use crate::store::Location;

/// How a gzip member begins.
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How a zstd frame begins.
pub(super) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Looking at so many bytes of text is enough.
pub(super) const LOOK: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How the records lie in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One record a line.
    Lines(Format),
    /// JSON documents, one after the other: arrays, pages of a scan, request files, values over several lines.
    Documents,
}

/// A kind of file that is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    /// What it is; "the data file is" stands before it.
    what: &'static str,
    /// What more was seen.
    found: Option<String>,
    hint: &'static str,
}

impl Foreign {
    fn new(what: &'static str, hint: &'static str) -> Self {
        Self { what, found: None, hint }
    }

    /// The error for a file of this kind; `decompressed` where it is inside of gzip or zstd.
    pub(super) fn into_error(self, location: &Location, decompressed: bool) -> Error {
        let Self { what, found, hint } = self;
        let file = if decompressed { "the decompressed data file" } else { "the data file" };
        let error = Error::new(Kind::Input, format!("{file} is {what}, which is not read"))
            .with("file", location)
            .with("expected", "DynamoDB JSON or Amazon Ion text, plain or compressed with gzip or zstd");
        let error = match found {
            Some(found) => error.with("found", found),
            None => error,
        };
        error.with("hint", hint)
    }
}

const DECOMPRESS: &str = "decompress it and name the result; gzip and zstd are read as they are";
const EXPORT: &str = "export the table to S3 as DYNAMODB_JSON, or save the output of aws dynamodb scan";
const UTF_8: &str = "save it as UTF-8; in PowerShell 5: aws … | Out-File -Encoding utf8 FILE";

/// How files of kinds that are not read begin.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (&GZIP, "compressed with gzip once more", "decompress it once and name the result"),
    (&ZSTD, "compressed with zstd once more", "decompress it once and name the result"),
    (b"\xfd7zXZ\0", "compressed with xz", DECOMPRESS),
    (b"\x04\x22\x4d\x18", "compressed with lz4", DECOMPRESS),
    (b"\x02\x21\x4c\x18", "compressed with lz4", DECOMPRESS),
    (b"\xff\x06\0\0sNaPpY", "compressed with snappy", DECOMPRESS),
    (b"\x1f\x9d", "compressed with compress (.Z)", DECOMPRESS),
    (b"\x89LZO\0", "compressed with lzop", DECOMPRESS),
    (b"\x5d\0\0", "compressed with lzma", DECOMPRESS),
    (b"\x78\x01", "compressed with zlib", DECOMPRESS),
    (b"\x78\x9c", "compressed with zlib", DECOMPRESS),
    (b"\x78\xda", "compressed with zlib", DECOMPRESS),
    (b"PK\x03\x04", "a zip archive", "unpack it and name the files"),
    (b"PK\x05\x06", "an empty zip archive", "name the files that were to be in it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and name the files"),
    (b"PAR1", "a Parquet file", EXPORT),
    (b"PARE", "an encrypted Parquet file", EXPORT),
    (b"Obj\x01", "an Avro file", EXPORT),
    (b"ARROW1\0", "an Arrow file", EXPORT),
    (b"SQLite format 3\0", "a SQLite database", EXPORT),
    (b"\xe0\x01\0\xea", "binary Amazon Ion", "write it as Ion text; DynamoDB exports no other"),
    (b"\0\0\0\0", "full of zero bytes", "it was not written whole; copy it again"),
    (b"\xff\xfe\0\0", "UTF-32 text", UTF_8),
    (b"\0\0\xfe\xff", "UTF-32 text", UTF_8),
    (b"\xff\xfe", "UTF-16 text", UTF_8),
    (b"\xfe\xff", "UTF-16 text", UTF_8),
    (b"{\0", "UTF-16 text", UTF_8),
    (b"\0{", "UTF-16 text", UTF_8),
    (b"[\0", "UTF-16 text", UTF_8),
    (b"\0[", "UTF-16 text", UTF_8),
];

/// How the records lie in a text that starts like this, and how many bytes to skip before them.
///
/// # Errors
/// What it is instead, where it looks like a file of another kind.
pub(super) fn text(start: &[u8]) -> Result<(Shape, usize), Foreign> {
    if let Some(found) = foreign_bytes(start) {
        return Err(found);
    }
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let skip = start.len() - text.len();
    let trimmed = text.trim_ascii_start();
    let shape = match trimmed.first() {
        Some(b'[') => Shape::Documents,
        Some(b'{') if are_documents(trimmed) => Shape::Documents,
        Some(b'<') if trimmed.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || b"?!".contains(byte)) => {
            return Err(markup(trimmed));
        }
        _ if is_csv(trimmed) => return Err(Foreign::new("a table of comma-separated values by its looks", EXPORT)),
        _ => Shape::Lines(format(trimmed)),
    };
    Ok((shape, skip))
}

fn foreign_bytes(start: &[u8]) -> Option<Foreign> {
    if let Some((_, what, hint)) = MAGIC.iter().find(|(magic, _, _)| start.starts_with(magic)) {
        return Some(Foreign::new(what, hint));
    }
    // These begin with letters, so a look at what follows tells them from text.
    if let [b'B', b'Z', b'h', b'1'..=b'9', b'1' | 0x17, b'A' | b'r', ..] = start {
        return Some(Foreign::new("compressed with bzip2", DECOMPRESS));
    }
    if let [b'O', b'R', b'C', next, ..] = start
        && (next.is_ascii_control() || !next.is_ascii())
    {
        return Some(Foreign::new("an ORC file", EXPORT));
    }
    if start.get(257..262) == Some(b"ustar") {
        return Some(Foreign::new("a tar archive", "unpack it and name the files"));
    }
    None
}

/// XML or HTML: often the answer of a server that was saved in place of a file.
fn markup(text: &[u8]) -> Foreign {
    let between = |from: &[u8], to: &[u8]| {
        let start = memchr::memmem::find(text, from)? + from.len();
        let end = start + memchr::memmem::find(&text[start..], to)?;
        std::str::from_utf8(&text[start..end]).ok().filter(|code| code.len() < 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    let is_error = memchr::memmem::find(text, b"<Error>").is_some();
    let found = between(b"<Code>", b"</Code>").filter(|_| is_error).map(|code| format!("an error page of S3: {code}"));
    Foreign { what: "XML or HTML", found, hint: "it is a server's answer in place of the file; fetch the file again" }
}

/// Whether the first two lines look like a table: they share a separator, and nothing in them looks like JSON or Ion.
fn is_csv(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let Some(header) = lines.next() else { return false };
    let strange = |byte: &u8| b"{}[]$".contains(byte) || (byte.is_ascii_control() && !b"\t\r".contains(byte));
    if header.iter().any(strange) || memchr::memmem::find(header, b"\":").is_some() {
        return false;
    }
    let next = lines.next().unwrap_or(header);
    let is_record = next.trim_ascii_start().first().is_some_and(|byte| b"{[$".contains(byte));
    !is_record && b",\t;|".iter().any(|separator| header.contains(separator) && next.contains(separator))
}

/// How each line is written, by the first one that tells. One that is damaged does not.
fn format(text: &[u8]) -> Format {
    let mut formats = text.split(|byte| *byte == b'\n').filter_map(|line| match line.trim_ascii_start() {
        [b'{', rest @ ..] if rest.trim_ascii_start().first() == Some(&b'"') => Some(Format::Json),
        line if is_ion(line) => Some(Format::Ion),
        _ => None,
    });
    formats.next().unwrap_or(Format::Json)
}

/// Whether a line starts with Ion's version, or with a record whose name has no quotes. Nothing less is Ion: a damaged line of JSON must
/// not decide for a file.
fn is_ion(line: &[u8]) -> bool {
    if let Some(rest) = line.strip_prefix(b"$ion_1_0") {
        return !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(byte));
    }
    let Some(line) = line.strip_prefix(b"{") else { return false };
    let line = line.trim_ascii_start();
    let names: [&[u8]; 6] = [b"Item", b"Record", b"Keys", b"Metadata", b"OldImage", b"NewImage"];
    names.iter().any(|name| line.strip_prefix(*name).is_some_and(|rest| rest.trim_ascii_start().first() == Some(&b':')))
}

/// The names of what stands around a record or makes one. `Raw` and `RawBase64` are of rejects files.
const WRAPPERS: [&[u8]; 11] =
    [b"Item", b"Record", b"Keys", b"Metadata", b"OldImage", b"NewImage", b"PutRequest", b"DeleteRequest", b"Reject", b"Raw", b"RawBase64"];

/// Which lines of a text in `format` are records, by the first ones that tell.
pub(super) fn lines(text: &[u8], format: Format) -> Lines {
    let mut records = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let (line, marked) = match format {
            Format::Json => (line.trim_ascii_start(), false),
            Format::Ion => without_markers(line),
        };
        let name = line.strip_prefix(b"{")?.trim_ascii_start();
        let name = match (format, name.first()?) {
            (_, b'"') | (Format::Ion, b'\'') => &name[1..],
            (Format::Ion, _) => name,
            (Format::Json, _) => return None,
        };
        let end = name.iter().position(|byte| b"\"': \t".contains(byte)).unwrap_or(name.len());
        Some((marked, WRAPPERS.contains(&&name[..end])))
    });
    match (records.next(), records.next()) {
        (Some((_, false)), _) => Lines::Bare,
        // A marker at the start of a file speaks for all of it, so one alone does not say that each line has its own.
        (Some((true, true)), Some((true, _))) => Lines::Marked,
        _ => Lines::Wrapped,
    }
}

/// A line of Ion behind its version markers, and whether it has any.
fn without_markers(line: &[u8]) -> (&[u8], bool) {
    let line = line.trim_ascii_start();
    match line.strip_prefix(b"$ion_1_0") {
        Some(rest) => (without_markers(rest).0, true),
        None => (line, false),
    }
}

/// What may come next in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Value,
    FirstValue,
    Name,
    FirstName,
    Colon,
    CommaOrEnd,
}

/// Whether a text that starts with `{` holds documents and not one record a line.
///
/// It does when its first object is a page of a scan (a member `Items` that is an array) or a request file (an array of `PutRequest` or
/// `DeleteRequest` objects), goes over several lines, or has another one behind it in the same line. A line that is cut or damaged
/// goes on in the next one by mistake only, so a text whose first object has a mistake must break its lines as pretty-printers do.
fn are_documents(text: &[u8]) -> bool {
    let mut open: Vec<u8> = Vec::new();
    let mut next = Next::Value;
    let mut member: &[u8] = b"";
    // The token before the first line break inside the object, and whether one that may stand there came after it.
    let mut break_after = None;
    let mut goes_on = false;
    let mut last = 0;
    let mut first_of_array = false;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let from = at;
        at += 1;
        match byte {
            b'\n' if break_after.is_none() => {
                break_after = Some(last);
                continue;
            }
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            _ => {}
        }
        let in_object = open.last() == Some(&b'{');
        next = match (next, byte) {
            (Next::Value | Next::FirstValue, b'{' | b'[') => {
                if byte == b'[' && open == b"{" && member == b"Items" {
                    return true;
                }
                first_of_array = next == Next::FirstValue;
                open.push(byte);
                if byte == b'{' { Next::FirstName } else { Next::FirstValue }
            }
            (Next::FirstName | Next::CommaOrEnd, b'}') if in_object => Next::CommaOrEnd,
            (Next::FirstValue | Next::CommaOrEnd, b']') if !in_object => Next::CommaOrEnd,
            (Next::CommaOrEnd, b',') => {
                if in_object {
                    Next::Name
                } else {
                    Next::Value
                }
            }
            (Next::Colon, b':') => Next::Value,
            (Next::Value | Next::FirstValue | Next::Name | Next::FirstName, b'"') => {
                let Some(end) = string_end(text, at) else { return break_after.is_some() };
                let Ok(end) = end else { return is_pretty(break_after, goes_on) };
                let string = &text[at..end];
                at = end + 1;
                if matches!(next, Next::Value | Next::FirstValue) {
                    Next::CommaOrEnd
                } else {
                    if open == b"{" {
                        member = string;
                    }
                    let is_request = matches!(string, b"PutRequest" | b"DeleteRequest");
                    if is_request && open == b"{[{" && first_of_array && next == Next::FirstName {
                        return true;
                    }
                    Next::Colon
                }
            }
            (Next::Value | Next::FirstValue, _) if is_word(byte) => {
                at += text[at..].iter().take_while(|byte| is_word(**byte)).count();
                Next::CommaOrEnd
            }
            _ => return is_pretty(break_after, goes_on),
        };
        if matches!(text[from], b'}' | b']') {
            open.pop();
            if open.is_empty() {
                let behind = text[at..].iter().find(|byte| !b" \t\r".contains(byte));
                return break_after.is_some() || behind == Some(&b'{');
            }
        }
        goes_on |= break_after.is_some();
        last = byte;
    }
    break_after.is_some()
}

/// Whether a text with a mistake in its first object was broken into lines by a pretty-printer, to judge by the token before the first
/// line break.
fn is_pretty(break_after: Option<u8>, goes_on: bool) -> bool {
    goes_on && break_after.is_some_and(|token| b"{[,".contains(&token))
}

/// Where the string that is open at `at` ends; an error where its line ends before; `None` where the text ends before.
fn string_end(text: &[u8], mut at: usize) -> Option<Result<usize, ()>> {
    loop {
        at += memchr::memchr3(b'"', b'\\', b'\n', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(Ok(at)),
            b'\\' => at += 2,
            _ => return Some(Err(())),
        }
    }
}

/// Whether a byte belongs to a number, `true`, `false` or `null`.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &[u8], shape: Shape) {
        match super::text(text) {
            Ok((found, _)) => assert_eq!(found, shape, "{}", String::from_utf8_lossy(text)),
            Err(foreign) => panic!("{foreign:?}: {}", String::from_utf8_lossy(text)),
        }
    }

    const JSON: Shape = Shape::Lines(Format::Json);

    #[test]
    fn one_record_a_line_is_read_as_lines_whatever_is_wrong_with_the_first() {
        for text in [
            r#"{"Item":{"pk":{"S":"a"}}}"#,
            "{\"Item\":{\"pk\":{\"S\":\"a\"}}}\n{\"Item\":{}}\n",
            "\n\n  {\"Item\":{\"pk\":{\"S\":\"a\"}}}  \r\n{\"Item\":{}}\r\n",
            "{\"pk\":{\"S\":\"a\"},\"Items\":{\"L\":[{\"S\":\"x\"}]}}\n",
            "{\"Items\":\"\\\"[\"}\n",
            "{\"id\":\"1\",\"tags\":[\"a\",\"b\"]}\n{\"id\":\"2\"}\n",
            "{\"id\":\"1\",\"tags\":[{\"PutRequests\":1}]}\n",
            "{\"id\":\"1\",\"tags\":[{\"x\":1},{\"PutRequest\":1}]}\n",
            "{\"Raw\":\"{\\\"Items\\\":[\",\"Reject\":{}}\n",
            // Cut, in a place where the next line looks as if it went on for a moment, or damaged otherwise.
            "{\"Item\":{\"pk\":{\"S\":\"a\"\n{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n",
            "{\"Item\":{\"pk\":{\"S\":\"a\"},\n{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n",
            "{\"Item\":{\"pk\":\n{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n{\"Item\":{}}\n",
            "{\"Item\":{\n{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n",
            "{\"Item\":{\"pk\":{\"S\":\"a\n{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n",
            "tem\":{\"pk\":{\"S\":\"a\"}}}\n{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n",
            "garbage, more\n{\"Item\":{\"pk\":{\"S\":\"b\"}}}\n",
            "{\"Item\":]\n",
            "{",
            "",
            "\n\n",
            "hello\nworld\n",
        ] {
            is(text.as_bytes(), JSON);
        }
        let long = format!("{{\"Item\":{{\"pk\":{{\"S\":\"{}", "x".repeat(LOOK));
        is(&long.as_bytes()[..LOOK], JSON);
    }

    #[test]
    fn documents_are_known_by_their_first_bytes() {
        for text in [
            "[",
            " \r\n [{\"pk\":{\"S\":\"a\"}}]",
            r#"{"Items":[{"pk":{"S":"a"}}],"Count":1}"#,
            r#"{"Count":0,"Items":[]}"#,
            r#"{"ConsumedCapacity":{"CapacityUnits":[0.5,true,null]},"Count":1,"Items":[{"pk""#,
            r#"{"orders":[{"PutRequest":{"Item":{}}}]}"#,
            r#"{ "empty" : [ ] , "orders" : [ { "DeleteRequest" : {"#,
            "{\n    \"Item\": {\n        \"pk\": {\n            \"S\": \"a\"\n        }\n    }\n}\n",
            "{\"Item\": {\n  \"pk\": {\"S\": \"a\"}}}\n{\"Item\": {}}",
            "{\"Item\"\n:{}}",
            "{\n",
            "{\n  \"Item\": {\n    \"pk\": \"a \n text that is broken\"",
            "{\n  \"Item\": {\n    \"pk\" \"a\"",
            "{\"Item\":{}}{\"Item\":{}}",
            "{\"Item\":{}} \t {\"Item\":{}}",
        ] {
            is(text.as_bytes(), Shape::Documents);
        }
    }

    #[test]
    fn ion_is_known_by_its_version_or_by_a_record_without_quotes() {
        for text in [
            "$ion_1_0 {Item:{pk:\"a\"}}\n",
            " $ion_1_0 {Item:{pk:\"a\"}}\n",
            "$ion_1_0\n{Item:{}}",
            "\n{ Item : {pk:\"a\"}}\n",
            "{Record:{Keys:{}}}",
            "{Metadata:{}}",
            // The first line is damaged; the second tells.
            "$io\n$ion_1_0 {Item:{}}\n",
        ] {
            is(text.as_bytes(), Shape::Lines(Format::Ion));
        }
        for text in
            ["$ion_1_01 {Item:{}}", "$ion_1_0_x", "{Items:{}}", "{Item", "{pk:\"a\"}", "{tem\":{\"pk\":1}}\n{\"Item\":{}}\n{Item:{}}"]
        {
            is(text.as_bytes(), JSON);
        }
        assert_eq!(text(b"\xef\xbb\xbf$ion_1_0 {").unwrap(), (Shape::Lines(Format::Ion), 3));
    }

    #[test]
    fn the_first_records_say_which_lines_are_records() {
        for (text, format, expected) in [
            ("{\"Item\":{}}\n{\"pk\":{\"S\":\"a\"}}\n", Format::Json, Lines::Wrapped),
            ("garbage\n\n { \"Item\" : {\n", Format::Json, Lines::Wrapped),
            ("{\"Metadata\":{}}", Format::Json, Lines::Wrapped),
            ("{\"PutRequest\":{\"Item\":{}}}", Format::Json, Lines::Wrapped),
            ("{\"Raw\":\"{\\\"pk\\\":{}}\",\"Reject\":{}}\n", Format::Json, Lines::Wrapped),
            ("garbage\n", Format::Json, Lines::Wrapped),
            ("{\"Items\":{\"S\":\"a\"}}\n{\"Item\":{}}", Format::Json, Lines::Bare),
            ("$io\n{ \"pk\" :{\"S\":\"a\"}}\n", Format::Json, Lines::Bare),
            (" $ion_1_0 {Item:{}}\n $ion_1_0 {Item:{}}\n{Item:{}}", Format::Ion, Lines::Marked),
            ("$ion_1_0 {Record:{}}\ngarbage\n$ion_1_0 $ion_1_0 {'Item':{}}\n", Format::Ion, Lines::Marked),
            ("$ion_1_0 {Item:{}}\n", Format::Ion, Lines::Wrapped),
            ("$ion_1_0 {Item:{}}\n{Item:{}}\n", Format::Ion, Lines::Wrapped),
            ("$ion_1_0\n{Item :{}}\n$ion_1_0 {Item:{}}\n", Format::Ion, Lines::Wrapped),
            ("{\"Item\":{}}\n", Format::Ion, Lines::Wrapped),
            ("$ion_1_0 {pk:\"a\"}\n$ion_1_0 {Item:{}}", Format::Ion, Lines::Bare),
            ("$ion_1_0\n{pk:\"a\"}\n", Format::Ion, Lines::Bare),
        ] {
            assert_eq!(lines(text.as_bytes(), format), expected, "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(text(b"\xef\xbb\xbf{\"Item\":{}}\n").unwrap(), (JSON, 3));
        assert_eq!(text(b"\xef\xbb\xbf[").unwrap(), (Shape::Documents, 3));
        assert_eq!(text(b"\xef\xbb\xbf").unwrap(), (JSON, 3));
    }

    #[test]
    fn files_of_other_kinds_are_named() {
        let tar = [&b"data/x.json"[..], &[b'0'; 246], b"ustar\x0000"].concat();
        for (bytes, what) in [
            (&b"BZh91AY&SY\x01"[..], "compressed with bzip2"),
            (b"BZh9\x17\x72\x45\x38\x50\x90", "compressed with bzip2"),
            (b"ORC\x0a\x03", "an ORC file"),
            (&tar, "a tar archive"),
            (b"\xff\xfe{\0\"\0", "UTF-16 text"),
            (b"[\0{\0", "UTF-16 text"),
            (b"<!DOCTYPE html><html>", "XML or HTML"),
            (b"\xef\xbb\xbf\n<Error><Code>x</Code>", "XML or HTML"),
            (b"PK,SK,EntityType\nWS#a,META,Workspace\n", "a table of comma-separated values by its looks"),
            (b"\"PK\",\"aws:rep:region\"\n\"a\",\"{\"\"S\"\":1}\"\n", "a table of comma-separated values by its looks"),
            (b"PK\tSK\r\n", "a table of comma-separated values by its looks"),
        ] {
            assert_eq!(text(bytes).unwrap_err().what, what, "{}", String::from_utf8_lossy(bytes));
        }
        for (magic, what, _) in MAGIC {
            assert_eq!(text(&[magic, &b"rest"[..]].concat()).unwrap_err().what, *what);
        }
    }

    #[test]
    fn an_error_page_of_s3_is_named_by_its_code() {
        let page = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code><Message>x</Message></Error>";
        assert_eq!(text(page).unwrap_err().found.as_deref(), Some("an error page of S3: AccessDenied"));
        assert_eq!(text(b"<html><Code>no page of S3</Code>").unwrap_err().found, None);
    }
}
