//! The same items in every shape and compression that is read, and what is said of files that are not.

use std::fs;
use std::io::{Read as _, Write as _};

use dynamorph::codec::{ddb_json, ion};
use dynamorph::model::Arena;
use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use crate::program::{Folder, Ran, command, dynamorph, files, golden, root};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";

/// The items of the sample export.
fn items() -> Vec<Value> {
    let mut lines = String::new();
    for (path, bytes) in files(&root().join("sample_exports/docs")) {
        if path.to_str().is_some_and(|path| path.ends_with(".json.gz")) {
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut lines).expect("the sample is gzip");
        }
    }
    let mut items: Vec<_> = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("the sample is JSON")).collect();
    items.iter_mut().map(|line| line["Item"].take()).collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).expect("memory takes everything")
}

/// As the AWS CLI prints it.
fn pretty(value: &Value) -> String {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b"    "))).expect("a value is JSON");
    String::from_utf8(out).expect("JSON is UTF-8") + "\n"
}

/// What `aws dynamodb scan` prints; with `more`, one page of it.
fn page(items: &[Value], more: Option<&Value>) -> Value {
    let mut page = json!({"Items": items, "Count": items.len(), "ScannedCount": items.len(), "ConsumedCapacity": null});
    if let Some(key) = more {
        page["LastEvaluatedKey"] = json!({"PK": key["PK"], "SK": key["SK"]});
    }
    page
}

/// Lines of Amazon Ion that start like this.
fn ion(items: &[Value], start: &str) -> String {
    let arena = Arena::new();
    let mut out = Vec::new();
    for item in items {
        let line = arena.alloc_str(&item.to_string());
        out.extend_from_slice(start.as_bytes());
        out.extend_from_slice(b"{Item:");
        ion::write_item(&ddb_json::decode_item(line, &arena).expect("the sample is right"), &mut out);
        out.extend_from_slice(b"}\n");
    }
    String::from_utf8(out).expect("Ion text is UTF-8")
}

/// The items in each shape, by the name of a file.
fn shapes(items: &[Value]) -> Vec<(&'static str, String)> {
    let wrapped: Vec<_> = items.iter().map(|item| json!({ "Item": item })).collect();
    let requests: Vec<_> = wrapped.iter().map(|item| json!({ "PutRequest": item })).collect();
    let (first, second) = items.split_at(40);
    let pages = [page(first, first.last()), page(second, None)];
    // boto3 adds what the service said besides.
    let mut boto3 = page(items, None);
    boto3["ResponseMetadata"] =
        json!({"RequestId": "0EXAMPLE", "HTTPStatusCode": 200, "HTTPHeaders": {"server": "Server"}, "RetryAttempts": 0});
    let lines = |values: &[Value], end: &str| values.iter().map(|value| value.to_string() + end).collect::<String>();
    vec![
        ("lines", lines(&wrapped, "\n")),
        ("lines-with-mark", "\u{feff}".to_owned() + &lines(&wrapped, "\r\n")),
        ("bare-lines", lines(items, "\n")),
        ("ion", ion(&wrapped, " $ion_1_0 ")),
        ("ion-without-version", ion(&wrapped, "")),
        ("array", Value::from(wrapped.clone()).to_string()),
        ("array-of-bare-items", pretty(&Value::from(items))),
        ("scan", pretty(&page(items, None))),
        ("scan-in-one-line", page(items, None).to_string()),
        ("scan-by-boto3", boto3.to_string()),
        ("pages", pages.iter().map(pretty).collect()),
        ("pages-one-a-line", lines(&pages, "\n")),
        ("requests", requests.chunks(25).map(|requests| json!({ "docs": requests }).to_string() + "\n").collect()),
        ("requests-for-two-tables", pretty(&json!({"comments": requests[..30], "docs": requests[30..]}))),
        ("get-item", wrapped.iter().map(pretty).collect()),
        ("one-behind-the-other", lines(&wrapped, "")),
    ]
}

#[test]
fn the_same_items_give_the_same_output_from_every_shape_and_compression() {
    let folder = Folder::new();
    let items = items();
    let mut expected: Option<(String, Vec<_>)> = None;
    for (name, text) in shapes(&items) {
        // Every shape as it is, and in one of the compressions.
        let forms = [text.clone().into_bytes(), if name.len() % 2 == 0 { gzip(text.as_bytes()) } else { zstd(text.as_bytes()) }];
        for (form, bytes) in forms.into_iter().enumerate() {
            let path = folder.join("data.bin");
            fs::write(&path, bytes).expect("the data can be written");
            let out = folder.sink("import", &format!("{name}-{form}"));
            let ran = folder.run(PIPELINE, &[&path], &[out], &[]).expect(0);
            let found = (
                folder.stable(&ran.stdout).replace(&format!("{name}-{form}"), "OUT"),
                files(&folder.path().join(format!("{name}-{form}"))),
            );
            let table: Vec<_> = found.0.lines().filter(|line| line.contains("total") || line.starts_with("ledger")).collect();
            assert!(table.len() == 2 && table[1].contains("read 109 = written 109"), "{name}: {}", found.0);
            match &expected {
                None => expected = Some((name.to_owned(), found.1)),
                Some((first, files)) => assert!(*files == found.1, "{name} and {first} give other bytes"),
            }
        }
        let inspected = dynamorph(&["inspect", &folder.join("data.bin"), "--output", "json"]).expect(0);
        let inspected: Value = serde_json::from_str(&inspected.stdout).expect("JSON");
        assert_eq!([&inspected["items"], &inspected["unreadable"]], [109, 0], "{name}");
    }
}

#[test]
fn the_place_of_an_element_is_its_number() {
    let folder = Folder::new();
    let good = items().into_iter().find(|item| item["EntityType"]["S"] == "Document").expect("the sample has a document");
    let document = json!({"docs": [{"PutRequest": {"Item": good}}, {"DeleteRequest": {"Key": {"PK": {"S": "a"}}}}, 7, {"PutRequest": {"Item": {"PK": {"S": "b"}}}}]});
    let path = folder.join("requests.json");
    fs::write(&path, pretty(&document)).expect("the data can be written");
    folder.run(PIPELINE, &[&path], &[folder.sink("import", "out")], &[]).expect(3);
    let rejects = fs::read_to_string(folder.path().join("work/rejects/unit-00001.jsonl")).expect("there is a rejects file");
    golden("shapes/elements.rejects.jsonl", &folder.stable(&rejects));
    let inspected = dynamorph(&["inspect", &path, "--quiet"]).expect(0);
    assert!(inspected.stdout.contains(&format!("2 lines are no items; the first is {path}, element 2: ")), "{}", inspected.stdout);
}

#[test]
fn a_scan_that_stopped_before_its_end_is_a_warning_once() {
    let folder = Folder::new();
    let items = items();
    let path = folder.join("scan.json");
    fs::write(&path, pretty(&page(&items, items.last()))).expect("the data can be written");
    let warning = format!(
        "warning: {path} ends before the scan did: its last page has a `LastEvaluatedKey`; unless the next page is in another file, items are missing\n"
    );
    let (work, import) = (folder.join("work"), folder.sink("import", "out"));
    for args in [&["inspect", path.as_str()][..], &["run", PIPELINE, "--from", &path, "--to", &import, "--work", &work]] {
        let ran = dynamorph(args).expect(0);
        assert_eq!(ran.stderr.matches(&warning).count(), 1, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("warning").count(), 1, "{}", ran.stderr);
    }
}

/// What `inspect` says of these bytes, which end it.
fn said(folder: &Folder, name: &str, bytes: &[u8], more: &[&str]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("the data can be written");
    let ran = dynamorph(&[&["inspect", path.as_str(), "--quiet"], more].concat()).expect(1);
    assert_eq!(ran.stdout, "");
    format!("--- {name}\n{}", folder.stable(&ran.stderr))
}

#[test]
fn files_of_kinds_that_are_not_read_are_refused_by_name() {
    let folder = Folder::new();
    let utf16: Vec<u8> = "\u{feff}{\"Items\":[]}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let s3 = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
    let kinds: [(&str, &[u8]); 19] = [
        ("bzip2", b"BZh91AY&SY\0\0"),
        ("xz", b"\xfd7zXZ\0\0\x04"),
        ("lz4", b"\x04\x22\x4d\x18\x64\x40"),
        ("snappy", b"\xff\x06\0\0sNaPpY\x01"),
        ("zlib", b"\x78\x9c\x03\0\0\0\0\x01"),
        ("zip", b"PK\x03\x04\x14\0"),
        ("parquet", b"PAR1\x15\x04"),
        ("orc", b"ORC\x0a\x03\0"),
        ("avro", b"Obj\x01\x04\x16"),
        ("sqlite", b"SQLite format 3\0\x10\0"),
        ("binary-ion", b"\xe0\x01\0\xea\xd3"),
        ("utf-16", &utf16),
        ("zeros", &[0; 512]),
        ("csv", b"PK,SK,EntityType\nWS#acme,META,Workspace\n"),
        ("html", b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n"),
        ("s3-error", s3.as_bytes()),
        ("gzip-in-gzip", &gzip(&gzip(b"{}"))),
        ("parquet-in-zstd", &zstd(b"PAR1\x15\x04")),
        ("tar-in-gzip", &gzip(&[&b"data/x.json"[..], &[b'0'; 246], b"ustar\x0000"].concat())),
    ];
    let all: String = kinds.iter().map(|(name, bytes)| said(&folder, name, bytes, &[])).collect();
    golden("shapes/refused.txt", &all);
}

#[test]
fn files_that_are_cut_or_damaged_are_refused_with_the_place() {
    let folder = Folder::new();
    let item = json!({"PK": {"S": "WS#acme"}, "SK": {"S": "META"}});
    let scan = pretty(&page(&[item.clone(), item.clone()], None));
    let line = json!({ "Item": item }).to_string() + "\n";
    let packed = zstd(line.as_bytes());
    let text_after = scan.clone() + "\nAn error occurred (ThrottlingException)\n";
    let garbage = scan.replacen("\n        },\n", "\n        }\n", 1);
    let unclosed = scan.replacen("\"META\"\n            }\n", "\"META\"\n", 1);
    assert!(garbage != scan && unclosed != scan, "{scan}");
    let dictionary = b"\x28\xb5\x2f\xfd\x01\x50\x07\x01\0\0";
    let window = b"\x28\xb5\x2f\xfd\0\xa8\x01\0\0";
    let files: [(&str, &[u8]); 10] = [
        ("cut.json.zst", &packed[..packed.len() - 1]),
        ("longer.json.zst", &[&packed[..], b"x"].concat()),
        ("damaged.json.zst", &[&packed[..6], b"\xff\xff\xff", &packed[9..]].concat()),
        ("empty.json.zst", b""),
        ("window.json.zst", window),
        ("dictionary.json.zst", dictionary),
        ("cut-scan.json", &scan.as_bytes()[..scan.len() / 2]),
        ("garbage-in-scan.json", garbage.as_bytes()),
        ("unclosed-in-scan.json", unclosed.as_bytes()),
        ("text-after-scan.json", text_after.as_bytes()),
    ];
    let mut all: String = files.iter().map(|(name, bytes)| said(&folder, name, bytes, &[])).collect();
    all += &said(&folder, "long-line.json", line.repeat(3).as_bytes(), &["--max-line", "40"]);
    all += &said(&folder, "long-element.json", scan.as_bytes(), &["--max-line", "40"]);
    golden("shapes/damaged.txt", &all);
}

#[test]
fn a_file_that_grows_without_end_is_refused_while_memory_is_small() {
    let folder = Folder::new();
    let limited = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("the data can be written");
        // 512 MiB for everything that is mapped, threads and the program itself included.
        let program = "ulimit -v 524288; exec \"$0\" \"$@\"";
        let output = std::process::Command::new("sh")
            .args(["-c", program, env!("CARGO_BIN_EXE_dynamorph"), "inspect", &path, "--quiet", "--jobs", "1"])
            .current_dir(root())
            .output();
        Ran::of(output.expect("a shell starts"))
    };
    // 320 MiB of text: one line, or lines of a megabyte of blanks.
    let bomb = |pack: fn(&[u8]) -> Vec<u8>, end: &[u8]| pack(&[&vec![b' '; 1 << 20], end].concat().repeat(16)).repeat(20);
    let line = limited("line.gz", &bomb(gzip, b"")).expect(1);
    assert!(line.stderr.contains("a line is too long to be an item"), "{}", line.stderr);
    let empty = limited("blanks.gz", &bomb(gzip, b"\n")).expect(0);
    assert!(empty.stdout.starts_with("items           0,"), "{}", empty.stdout);
    let bomb = limited("blanks.zst", &bomb(zstd, b"\n")).expect(1);
    assert!(bomb.stderr.contains("the data file is a decompression bomb"), "{}", bomb.stderr);
}

#[test]
fn the_longest_line_is_a_size() {
    for wrong in ["0", "-1", "64Mb1", "much"] {
        let ran = dynamorph(&["inspect", "sample_exports/docs", &format!("--max-line={wrong}")]).expect(2);
        assert!(ran.stderr.contains("expected a number of bytes above 0"), "{}", ran.stderr);
    }
    let ran = Ran::of(command(&["inspect", "sample_exports/docs", "--quiet", "--max-line", "1KiB"]).output().expect("the program starts"));
    ran.expect(0);
    let folder = Folder::new();
    let ran = folder.run(PIPELINE, &["sample_exports/docs"], &[folder.sink("import", "out")], &["--max-line", "100"]).expect(1);
    assert!(ran.stderr.contains("a line is too long to be an item"), "{}", ran.stderr);
}
