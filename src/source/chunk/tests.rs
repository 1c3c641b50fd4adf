use std::io::{self, Cursor, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::store::{Facts, Location, Stamp};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

fn file() -> DataFile {
    let facts = Facts { bytes: 0, stamp: Stamp::Modified(None) };
    DataFile { location: Location::Local("data/x.json".into()), name: "x.json".to_owned(), items: None, md5: None, facts }
}

/// A file whose bytes come in pieces of this size.
struct Pieces {
    bytes: Cursor<Vec<u8>>,
    size: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.size.min(buffer.len());
        self.bytes.read(&mut buffer[..size])
    }
}

fn reader(bytes: &[u8], piece: usize, chunk_bytes: usize, longest: usize) -> Result<ChunkReader> {
    let opened = Box::new(Pieces { bytes: Cursor::new(bytes.to_vec()), size: piece });
    Ok(ChunkReader::new(opened, &file(), FileId(7), chunk_bytes)?.with_max_line(longest))
}

/// What a file gave: the first line and the text of every chunk, the lines of the file, and the warnings.
type Read_ = (Vec<(u64, String)>, u64, Option<String>);

fn read_all(bytes: &[u8], piece: usize, chunk_bytes: usize) -> Result<Read_> {
    let mut reader = reader(bytes, piece, chunk_bytes, MAX_LINE_BYTES)?;
    let mut found = Vec::new();
    while let Some(chunk) = reader.next()? {
        assert_eq!((chunk.first.file, chunk.format), (FileId(7), Format::Json));
        found.push((chunk.first.line, String::from_utf8(chunk.bytes).unwrap()));
    }
    assert_eq!(reader.compressed_read(), bytes.len() as u64);
    assert!(reader.next().unwrap().is_none());
    let warnings = reader.warnings();
    Ok((found, reader.lines(), (!warnings.is_empty()).then(|| warnings.join("\n"))))
}

fn chunks(bytes: &[u8], chunk_bytes: usize) -> Result<(Vec<(u64, String)>, u64)> {
    let (found, lines, _) = read_all(bytes, usize::MAX, chunk_bytes)?;
    Ok((found, lines))
}

/// The text of a file whose bytes come one at a time, as the chunks give it.
fn text(bytes: &[u8]) -> Result<String> {
    let (found, _, warning) = read_all(bytes, 1, 10)?;
    assert_eq!(warning, None);
    Ok(found.into_iter().map(|(_, text)| text).collect())
}

fn owned(chunks: &[(u64, &str)]) -> Vec<(u64, String)> {
    chunks.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
}

#[test]
fn compressed_and_plain_files_are_told_apart_by_their_first_bytes() {
    for bytes in [b"one\ntwo\n".to_vec(), gzip(b"one\ntwo\n"), zstd(b"one\ntwo\n")] {
        assert_eq!(chunks(&bytes, 1000).unwrap(), (owned(&[(1, "one\ntwo\n")]), 2));
    }
}

#[test]
fn a_chunk_ends_at_a_line_end_and_a_long_line_makes_a_long_chunk() {
    let text = b"aa\nbb\n\ncccccccccccccccc\nd";
    let expected = owned(&[(1, "aa\nbb\n"), (3, "\n"), (4, "cccccccccccccccc\n"), (5, "d")]);
    for bytes in [text.to_vec(), gzip(text), zstd(text)] {
        assert_eq!(chunks(&bytes, 6).unwrap(), (expected.clone(), 5));
    }
}

#[test]
fn all_text_arrives_in_order_whatever_the_size_of_a_chunk() {
    let lines: Vec<String> = (0..20_000_u32).map(|n| format!("{n} {}\n", "x".repeat((n % 97) as usize))).collect();
    let text = lines.concat();
    for chunk_bytes in [1, 100, 4096, 256 * 1024, 10_000_000] {
        for bytes in [text.clone().into_bytes(), gzip(text.as_bytes()), zstd(text.as_bytes())] {
            let (found, count) = chunks(&bytes, chunk_bytes).unwrap();
            let mut line = 1;
            for (first, piece) in &found {
                assert_eq!(*first, line);
                line += piece.matches('\n').count() as u64;
                assert!(piece.ends_with('\n'));
            }
            assert_eq!(count, 20_000);
            assert!(found.into_iter().map(|(_, piece)| piece).collect::<String>() == text);
        }
    }
}

#[test]
fn empty_files_give_no_chunk() {
    let real = *b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    for bytes in [&b""[..], &real, &zstd(b""), b"\xef\xbb\xbf", b"[]", b" [ \n ] \n []", br#"{"Items":[],"Count":0}"#] {
        assert_eq!(chunks(bytes, 100).unwrap(), (Vec::new(), 0));
    }
}

#[test]
fn a_byte_order_mark_at_the_start_is_skipped() {
    for bytes in [b"\xef\xbb\xbf{\"Item\":{}}\n".to_vec(), gzip(b"\xef\xbb\xbf{\"Item\":{}}\n"), b"\xef\xbb\xbf[{\"Item\":{}}]".to_vec()] {
        assert_eq!(text(&bytes).unwrap(), "{\"Item\":{}}\n");
    }
}

#[test]
fn an_error_is_given_once() {
    let mut bytes = gzip(&b"one\n".repeat(100_000));
    let at = bytes.len() - 8;
    bytes[at] ^= 1;
    let mut reader = reader(&bytes, usize::MAX, 1 << 20, MAX_LINE_BYTES).unwrap();
    let error = reader.next().unwrap_err().to_string();
    assert!(error.contains("damaged gzip stream") && error.contains("file: data/x.json"), "{error}");
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn files_of_other_kinds_are_refused_by_name_inside_compression_too() {
    for (bytes, message) in [
        (b"PAR1....".to_vec(), "the data file is a Parquet file, which is not read"),
        (gzip(b"PAR1...."), "the decompressed data file is a Parquet file, which is not read"),
        (gzip(&gzip(b"{}")), "the decompressed data file is compressed with gzip once more, which is not read"),
        (zstd(b"<Error/>"), "the decompressed data file is XML or HTML, which is not read"),
    ] {
        let error = reader(&bytes, 1, 100, 100).unwrap_err();
        assert_eq!(error.message(), message);
        assert!(error.to_string().contains("file: data/x.json"), "{error}");
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    for form in [<[u8]>::to_vec, gzip, zstd] {
        let bytes = form(&[b"ok\n".as_slice(), &vec![b'x'; 16 << 20]].concat());
        let mut reader = reader(&bytes, usize::MAX, 100, 1000).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"ok\n");
        let error = reader.next().unwrap_err();
        let context: Vec<_> = error.context().iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(context[..3], ["data/x.json", "2", "at most 1000 bytes"]);
        let held = context[3].strip_suffix(" bytes without a line end").unwrap_or_else(|| panic!("{error}"));
        assert!((1001..=1100).contains(&held.parse().unwrap()), "{error}");
    }
}

#[test]
fn a_long_line_is_refused_within_a_chunk_too() {
    let text = format!("{}\n{}\n{}\n", "a".repeat(10), "b".repeat(10), "c".repeat(11));
    let mut whole = reader(text.as_bytes(), usize::MAX, 1000, 11).unwrap();
    assert_eq!(whole.next().unwrap().unwrap().bytes, text.as_bytes());
    for unended in ["\n", ""] {
        let mut reader = reader(&[text.trim_ascii_end().as_bytes(), unended.as_bytes()].concat(), usize::MAX, 1000, 10).unwrap();
        let error = reader.next().unwrap_err().to_string();
        assert!(error.contains("line: 3") && error.contains("found: 11 bytes\n"), "{error}");
    }
}

#[test]
fn empty_lines_without_end_take_no_memory() {
    for form in [gzip, zstd] {
        let bytes = form(&vec![b'\n'; 32 << 20]);
        let mut reader = reader(&bytes, usize::MAX, 64 << 10, 1000).unwrap();
        while let Some(chunk) = reader.next().unwrap() {
            assert!(chunk.bytes.len() <= 64 << 10);
        }
        assert_eq!(reader.lines(), 32 << 20);
    }
}

#[test]
fn a_reader_can_be_handed_to_a_thread() {
    fn is_send<T: Send>() {}
    is_send::<ChunkReader>();
}

#[test]
fn elements_are_lines_that_are_counted_from_one() {
    let items: Vec<_> = (0..1000).map(|n| format!(r#"{{"Item":{{"n":{{"N":"{n}"}}}}}}"#)).collect();
    let array = format!("[\n{}\n]\n", items.join(",\n"));
    let (found, lines, _) = read_all(array.as_bytes(), 100, 500).unwrap();
    assert_eq!(lines, 1000);
    let mut line = 1;
    for (first, text) in &found {
        assert_eq!(*first, line);
        line += text.matches('\n').count() as u64;
        assert!(text.ends_with('\n') && (500..530).contains(&text.len()) || line > 1000, "{text}");
    }
    assert_eq!(found.into_iter().map(|(_, text)| text).collect::<String>(), items.join("\n") + "\n");
}

#[test]
fn a_scan_that_stopped_before_its_end_is_told() {
    let page = |more: &str| format!("{{\"Items\":[{{\"pk\":{{\"S\":\"a\"}}}}],\"Count\":1{more}}}\n");
    let warning = |text: &str| read_all(text.as_bytes(), 1, 1000).unwrap().2;
    for whole in ["", r#","LastEvaluatedKey":null"#, r#","NextToken": "" "#, r#","LastEvaluatedKey" : { } "#, r#","Next":"x""#] {
        assert_eq!(warning(&page(whole)), None, "{whole}");
    }
    for (member, value) in [("LastEvaluatedKey", r#"{"pk":{"S":"a"}}"#), ("NextToken", r#""eyJF""#)] {
        let more = page(&format!(r#","{member}":{value}"#));
        let expected = format!(
            "data/x.json ends before the scan did: its last page has a `{member}`; unless the next page is in another file, items are missing"
        );
        assert_eq!(warning(&more), Some(expected.clone()));
        assert_eq!(warning(&format!("{{\"{member}\":{value},{}", &page("")[1..])), Some(expected.clone()), "before the items");
        assert_eq!(warning(&(more.clone() + &page(""))), None, "another page follows");
        assert_eq!(warning(&(page("") + &more)), Some(expected));
    }
    let element = r#"{"Items":[{"NextToken":{"S":"x"}}]}"#;
    assert_eq!(warning(element), None, "an attribute is no member of the page");
}

/// What JSON can hold in the place of an item.
fn item() -> impl Strategy<Value = Value> {
    let text = || prop_oneof!["[a-z]{0,5}", r#"[\\"{}\[\],: \n\tä😀/]{0,8}"#, any::<String>()];
    let leaf = prop_oneof![
        text().prop_map(|text| json!({ "S": text })),
        any::<i32>().prop_map(|number| json!({ "N": number.to_string() })),
        any::<bool>().prop_map(|value| json!({ "BOOL": value })),
        Just(json!({"NULL": true})),
    ];
    let value = leaf.prop_recursive(3, 8, 3, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(|list| json!({ "L": list })),
            proptest::collection::vec((text(), inner), 0..3).prop_map(|map| json!({ "M": map.into_iter().collect::<Map<_, _>>() })),
        ]
    });
    proptest::collection::vec((text(), value), 1..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// A shape of file: its text, and the lines that it gives.
fn shaped(shape: usize, items: &[Value]) -> (String, Vec<String>) {
    let wrapped: Vec<_> = items.iter().map(|item| json!({ "Item": item })).collect();
    let requests: Vec<_> = wrapped.iter().map(|item| json!({ "PutRequest": item })).collect();
    let lines = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let half = items.len() / 2;
    let page = |items: &[Value], more| json!({"Count": items.len(), "Items": items, "LastEvaluatedKey": more, "ResponseMetadata": {"a": [1.5e3, {}]}});
    let pages = [page(&items[..half], json!({"pk": {"S": "]}"}})), page(&items[half..], Value::Null)];
    match shape {
        0 => (lines(&wrapped).iter().map(|line| line.clone() + "\n").collect(), lines(&wrapped)),
        1 => (Value::from(wrapped.clone()).to_string(), lines(&wrapped)),
        2 => (pretty(&Value::from(items)), lines(items)),
        3 => (page(items, Value::Null).to_string(), lines(&wrapped)),
        4 => (pages.iter().map(pretty).collect(), lines(&wrapped)),
        5 => (pages.iter().map(|page| page.to_string() + "\r\n").collect(), lines(&wrapped)),
        6 if requests.len() > 1 => {
            (json!({"empty": [], "orders": &requests[..half], "users": &requests[half..]}).to_string(), lines(&requests))
        }
        7 if !requests.is_empty() => (pretty(&json!({ "orders": requests })) + "\n", lines(&requests)),
        8 => (wrapped.iter().map(|value| pretty(value) + "\n").collect(), lines(&wrapped)),
        9 if wrapped.len() > 1 => (wrapped.iter().map(Value::to_string).collect(), lines(&wrapped)),
        _ => (wrapped.iter().map(|value| pretty(value).replace('\n', "\r\n")).collect(), lines(&wrapped)),
    }
}

const SHAPES: usize = 11;

/// The bytes of a file with this text.
fn formed(form: usize, text: &[u8], at: usize) -> Vec<u8> {
    match form {
        0 => text.to_vec(),
        1 => gzip(text),
        2 => [gzip(&text[..at]), gzip(&text[at..])].concat(),
        3 => zstd(text),
        _ => [zstd(&text[..at]), zstd(&text[at..])].concat(),
    }
}

proptest! {
    #[test]
    fn the_same_items_come_out_of_every_shape_and_form(
        items in proptest::collection::vec(item(), 0..6),
        shape in 0..SHAPES,
        form in 0..5_usize,
        at in any::<prop::sample::Index>(),
        piece in prop_oneof![Just(1_usize), 2..50_usize, Just(usize::MAX)],
        chunk_bytes in prop_oneof![1..300_usize, Just(100_000)],
        mark in any::<bool>(),
    ) {
        let (text, expected) = shaped(shape, &items);
        let text = [if mark { &b"\xef\xbb\xbf"[..] } else { b"" }, text.as_bytes()].concat();
        let bytes = formed(form, &text, at.index(text.len() + 1));
        let (found, lines, warning) = read_all(&bytes, piece, chunk_bytes).unwrap();
        let found: String = found.into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!(found.lines().collect::<Vec<_>>(), expected.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(lines, expected.len() as u64);
        prop_assert_eq!(warning, None);
    }

    #[test]
    fn a_cut_file_is_an_error_or_gives_its_first_items(
        items in proptest::collection::vec(item(), 1..6),
        shape in 0..SHAPES,
        form in 0..5_usize,
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        piece in prop_oneof![Just(1_usize), Just(usize::MAX)],
    ) {
        let (text, expected) = shaped(shape, &items);
        let bytes = formed(form, text.as_bytes(), at.index(text.len() + 1));
        let cut = &bytes[..cut.index(bytes.len())];
        // A cut between two members or within a character leaves whole streams and whole lines that are no text.
        let mut lines = Vec::new();
        let Ok(mut reader) = reader(cut, piece, 100, MAX_LINE_BYTES) else { return Ok(()) };
        loop {
            match reader.next() {
                Err(_) => return Ok(()),
                Ok(None) => break,
                Ok(Some(chunk)) => lines.extend(String::from_utf8_lossy(&chunk.bytes).lines().map(str::to_owned)),
            }
        }
        let whole = lines.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
        // Of lines, and of documents that do not look like such any more, the last may be there in part: no decoder takes it.
        prop_assert!(lines.len() <= whole + 1, "{:?}", lines);
        prop_assert!(lines[whole..].iter().all(|line| serde_json::from_str::<Value>(line).is_err()), "{:?}", lines);
        prop_assert!(form == 0 || form == 2 || form == 4 || cut.is_empty(), "a cut stream is no text: {:?}", lines);
    }

    #[test]
    fn bytes_of_any_kind_never_panic(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        proptest::collection::vec(proptest::sample::select(&b"{}[]\",:\\ \na1\"PutRequestItems"[..]), 0..60),
    ], longest in 1..100_usize) {
        if let Ok(mut reader) = reader(&bytes, 1, 10, longest) {
            while let Ok(Some(chunk)) = reader.next() {
                prop_assert!(chunk.bytes.split(|byte| *byte == b'\n').all(|line| line.len() <= longest));
            }
        }
    }
}
