//! The sample exports: how they are made, and that what is committed is what is made here.
//!
//! `UPDATE_GOLDEN=1` writes them. Text is compared after decompression and checksums are taken from the committed files, so that
//! another version of the compressor changes nothing.

mod content;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Once;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dynamorph::error::Result;
use dynamorph::model::FileId;
use dynamorph::source::chunk::ChunkReader;
use dynamorph::source::manifest;
use dynamorph::store::Location;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use md5::{Digest, Md5};

use content::Dice;

/// What the service writes for a partition without items.
const EMPTY_GZIP: [u8; 20] = *b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00";

/// The folder of a sample, such as `docs` or `broken/bad-md5`. With `UPDATE_GOLDEN=1` all samples are written before the first is used.
pub(crate) fn sample(name: &str) -> PathBuf {
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            samples().iter().for_each(Sample::write);
        }
    });
    committed(name)
}

fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_exports").join(name)
}

/// One fault in files that are otherwise right; it concerns the first data file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The list has the MD5 of another file.
    Md5,
    /// The file is listed but not there.
    Missing,
    /// The file ends after two thirds; its MD5 is that of the cut file.
    Cut,
    /// List and summary count one item too many.
    Count,
}

/// One export to be written.
struct Sample {
    name: &'static str,
    table: &'static str,
    /// The folder in the bucket that the export was written to. Copied files keep keys with it.
    prefix: Option<&'static str>,
    /// Lines of each data file.
    files: Vec<Vec<String>>,
    fault: Fault,
}

fn samples() -> Vec<Sample> {
    let healthy = |name, table, prefix, files| Sample { name, table, prefix, files, fault: Fault::None };
    let mut samples = vec![
        healthy("docs", "docs-prod", Some("exports/docs"), content::docs()),
        healthy("workspaces", "workspaces-prod", None, content::workspaces()),
        healthy("sql-style/workspaces", "workspaces", Some("nightly"), content::sql_workspaces()),
        healthy("sql-style/projects", "projects", Some("nightly"), content::sql_projects()),
    ];
    let faults = [("bad-md5", Fault::Md5), ("missing-file", Fault::Missing), ("cut-gzip", Fault::Cut), ("wrong-count", Fault::Count)];
    for (name, fault) in faults {
        let name = &*Box::leak(format!("broken/{name}").into_boxed_str());
        samples.push(Sample { name, table: "docs-test", prefix: None, files: content::small(&mut Dice::new(name)), fault });
    }
    for fault in ["bad-line", "no-key", "two-types", "digits-39", "levels-33", "same-key"] {
        let name = &*Box::leak(format!("broken/{fault}").into_boxed_str());
        let mut dice = Dice::new(name);
        let mut files = content::small(&mut dice);
        files[1].insert(2, content::bad_line(fault, &mut dice));
        samples.push(Sample { name, table: "docs-test", prefix: None, files, fault: Fault::None });
    }
    samples
}

/// One data file: its name, its text, and its bytes as stored.
struct Data {
    name: String,
    text: String,
    items: usize,
    stored: Vec<u8>,
}

impl Sample {
    /// The ids and names that the service makes up.
    fn dice(&self) -> Dice {
        Dice::new(&format!("{} names", self.name))
    }

    /// Milliseconds after the start of April 2026, which is when all samples were exported.
    fn started(&self) -> u32 {
        self.dice().roll(1000)
    }

    fn id(&self) -> String {
        format!("0{}-{}", 1_775_001_600_000_u64 + u64::from(self.started()), self.dice().text("0123456789abcdef", 8))
    }

    /// The export folder below the sample's folder.
    fn folder(&self) -> String {
        format!("AWSDynamoDB/{}", self.id())
    }

    /// The data files, as they are stored by the compressor of today.
    fn data(&self) -> Vec<Data> {
        let mut dice = self.dice();
        let data = self.files.iter().enumerate().map(|(at, lines)| {
            let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let mut stored = if lines.is_empty() { EMPTY_GZIP.to_vec() } else { gzip(&text) };
            if at == 0 && self.fault == Fault::Cut {
                stored.truncate(stored.len() * 2 / 3);
            }
            Data { name: format!("{}.json.gz", dice.text("abcdefghijklmnopqrstuvwxyz234567", 26)), text, items: lines.len(), stored }
        });
        data.collect()
    }

    /// All files but the data files: path below the sample's folder, and content.
    fn manifests(&self, data: &[Data]) -> Vec<(String, Vec<u8>)> {
        let (id, folder) = (self.id(), self.folder());
        let prefix = self.prefix.map(|prefix| format!("{prefix}/")).unwrap_or_default();
        let mut total = 0;
        let mut lines = Vec::new();
        for (at, file) in data.iter().enumerate() {
            let md5: [u8; 16] = match self.fault {
                Fault::Md5 if at == 0 => Md5::digest(b"another file").into(),
                _ => Md5::digest(&file.stored).into(),
            };
            let items = file.items + usize::from(at == 0 && self.fault == Fault::Count);
            total += items;
            lines.push(format!(
                r#"{{"itemCount":{items},"md5Checksum":"{}","etag":"{}-1","dataFileS3Key":"{prefix}{folder}/data/{}"}}"#,
                BASE64.encode(md5),
                hexadecimal(&Md5::digest(md5)),
                file.name,
            ));
        }
        // The list has an order of its own.
        lines.rotate_left(1);
        let list = lines.join("\n") + "\n";

        let arn = format!("arn:aws:dynamodb:eu-central-1:111122223333:table/{}", self.table);
        let mut dice = self.dice();
        let table_id = [8, 4, 4, 4, 12].map(|length| dice.text("0123456789abcdef", length)).join("-");
        let time = format!("2026-04-01T00:00:00.{:03}Z", self.started());
        let s3_prefix = self.prefix.map_or("null".to_owned(), |prefix| format!("\"{prefix}\""));
        let summary = format!(
            r#"{{"version":"2020-06-30","exportArn":"{arn}/export/{id}","startTime":"{time}","endTime":"2026-04-01T00:05:12.345Z","tableArn":"{arn}","tableId":"{table_id}","exportTime":"{time}","s3Bucket":"example-exports","s3Prefix":{s3_prefix},"s3SseAlgorithm":"AES256","s3SseKmsKeyId":null,"manifestFilesS3Key":"{prefix}{folder}/manifest-files.json","billedSizeBytes":0,"itemCount":{total},"outputFormat":"DYNAMODB_JSON"}}"#
        );
        vec![
            (format!("{folder}/_started"), Vec::new()),
            (format!("{folder}/manifest-files.json"), list.clone().into_bytes()),
            (format!("{folder}/manifest-files.md5"), BASE64.encode(Md5::digest(&list)).into_bytes()),
            (format!("{folder}/manifest-summary.json"), summary.clone().into_bytes()),
            (format!("{folder}/manifest-summary.md5"), BASE64.encode(Md5::digest(&summary)).into_bytes()),
        ]
    }

    /// Whether this data file is there.
    fn has(&self, at: usize) -> bool {
        at > 0 || self.fault != Fault::Missing
    }

    /// Writes all files anew.
    fn write(&self) {
        let root = committed(self.name);
        if root.exists() {
            fs::remove_dir_all(&root).unwrap();
        }
        let data = self.data();
        let stored = data.iter().enumerate().filter(|(at, _)| self.has(*at));
        let stored = stored.map(|(_, file)| (format!("{}/data/{}", self.folder(), file.name), file.stored.clone()));
        for (path, bytes) in stored.chain(self.manifests(&data)) {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// Compares what is committed with what is made here, and gives the paths of all files.
    fn check(&self) -> Vec<PathBuf> {
        let root = sample(self.name);
        let mut paths = Vec::new();
        let mut data = self.data();
        for (at, file) in data.iter_mut().enumerate().filter(|(at, _)| self.has(*at)) {
            let path = root.join(self.folder()).join("data").join(&file.name);
            file.stored = fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}; {HOW}", path.display()));
            assert_eq!(&file.stored[..10], &EMPTY_GZIP[..10], "the gzip header is the service's");
            let mut text = String::new();
            let whole = GzDecoder::new(file.stored.as_slice()).read_to_string(&mut text).is_ok();
            let cut = at == 0 && self.fault == Fault::Cut;
            assert!(whole != cut && if cut { file.text.starts_with(&text) } else { file.text == text }, "{}: {HOW}", path.display());
            paths.push(path);
        }
        for (path, bytes) in self.manifests(&data) {
            let path = root.join(path);
            assert!(fs::read(&path).is_ok_and(|committed| committed == bytes), "{}: {HOW}", path.display());
            paths.push(path);
        }
        paths
    }
}

const HOW: &str = "not what tests/it/samples.rs makes; UPDATE_GOLDEN=1 writes it anew";

/// One gzip member without a time and a file name, as the service writes it.
fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Reads a whole export: for each data file its lines that are not empty.
fn read(path: &Path) -> Result<Vec<Vec<String>>> {
    let export = manifest::open(&Location::Local(path.to_owned()), &manifest::Options::default())?;
    let mut files = Vec::new();
    for (file, id) in export.files.iter().zip(0..) {
        let mut reader = ChunkReader::open(file, FileId(id), 4096)?;
        let mut lines = Vec::new();
        while let Some(chunk) = reader.next()? {
            let text = String::from_utf8(chunk.bytes).unwrap();
            lines.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
        }
        file.expect_items(lines.len() as u64)?;
        files.push(lines);
    }
    Ok(files)
}

#[test]
fn the_committed_samples_are_what_the_generator_makes() {
    let samples = samples();
    let made: BTreeSet<PathBuf> = samples.iter().flat_map(Sample::check).collect();
    let mut found = BTreeSet::new();
    let mut waiting = vec![sample("")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    found.remove(&sample("README.md"));
    assert_eq!(found, made, "{HOW}");
}

#[test]
fn every_sample_has_a_line_in_the_readme() {
    let readme = fs::read_to_string(sample("README.md")).unwrap();
    for sample in samples() {
        assert!(readme.contains(&format!("`{}`", sample.name)), "{} is missing", sample.name);
    }
}

#[test]
fn the_docs_sample_is_read_whole_by_folder_and_by_parent() {
    let docs = samples().swap_remove(0);
    let export = manifest::open(&Location::Local(sample("docs")), &manifest::Options::default()).unwrap();
    assert_eq!(export.items, Some(docs.files.iter().map(|lines| lines.len() as u64).sum()));
    assert!(export.checked);
    let mut expected = docs.files;
    expected.rotate_left(1);
    assert_eq!(read(&sample("docs")).unwrap(), expected);
    assert_eq!(read(&sample("docs").join("AWSDynamoDB")).unwrap(), expected);
}

#[test]
fn every_value_type_and_every_spelling_of_the_type_attribute_occurs_in_the_docs_sample() {
    let text = read(&sample("docs")).unwrap().concat().join("\n");
    for part in ["S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"].map(|kind| format!("{{\"{kind}\":")) {
        assert!(text.contains(&part), "{part}");
    }
    for spelling in ["Workspace", "Document", "Doc", "document", "Comment", "COMMENT"] {
        assert!(text.contains(&format!("\"EntityType\":{{\"S\":\"{spelling}\"}}")), "{spelling}");
    }
    assert!(text.lines().any(|line| !line.contains("EntityType")));
}

#[test]
fn a_fault_of_the_files_ends_the_reading_with_its_own_message() {
    for (name, part) in [
        ("bad-md5", "is not what the manifest says"),
        ("missing-file", "1 of 2 data files are missing"),
        ("cut-gzip", "ends in the middle of the gzip stream"),
        ("wrong-count", "another number of items than the manifest says"),
    ] {
        let error = read(&sample("broken").join(name)).unwrap_err();
        assert!(error.message().contains(part), "{name}: {error}");
    }
}

#[test]
fn a_fault_of_a_line_leaves_the_files_readable() {
    for name in ["bad-line", "no-key", "two-types", "digits-39", "levels-33", "same-key"] {
        let lines = read(&sample("broken").join(name)).unwrap().concat();
        assert_eq!(lines.len(), 10, "{name}");
    }
}
