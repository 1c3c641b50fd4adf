//! The sample exports: how they are made, and that what is committed is what is made here.
//!
//! `UPDATE_GOLDEN=1` writes them. Text is compared after decompression and checksums are taken from the committed files, so that
//! another version of the compressor changes nothing.

mod changes;
mod content;
mod ion;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

use dynamorph::error::Result;
use dynamorph::model::FileId;
use dynamorph::source::chunk::ChunkReader;
use dynamorph::source::manifest;
use dynamorph::store::Location;
use flate2::read::GzDecoder;
use md5::{Digest, Md5};

use content::Dice;

use crate::exports::{self, Content, Data, EMPTY_GZIP, Export, Window};

/// The folder of a sample, such as `docs` or `broken/bad-md5`. With `UPDATE_GOLDEN=1` all samples are written before the first is used.
pub(crate) fn sample(name: &str) -> PathBuf {
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            write(&samples());
        }
    });
    committed(name)
}

/// The export folder of a part of a sample that holds several exports, as the command line has it.
pub(crate) fn export_of(name: &str, part: &str) -> String {
    let samples = samples();
    let sample = samples.iter().find(|sample| sample.name == name && sample.part == part).expect("the tests name what is there");
    format!("sample_exports/{name}/{}", sample.folder())
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

/// What is in an export, and how it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Items,
    /// The same in Amazon Ion.
    Ion,
    /// The changes between two hours of the first of April.
    Changes {
        from: u64,
        to: u64,
        view: &'static str,
    },
}

/// One export to be written.
struct Sample {
    name: &'static str,
    /// What it is called in a folder of several exports.
    part: &'static str,
    table: &'static str,
    /// The sample that is an export of the same table.
    like: &'static str,
    /// The folder in the bucket that the export was written to. Copied files keep keys with it.
    prefix: Option<&'static str>,
    holds: Holds,
    /// The export folder itself is the sample's folder: nothing is left of the names above it.
    bare: bool,
    /// Lines of each data file.
    files: Vec<Vec<String>>,
    fault: Fault,
}

impl Sample {
    /// A full export in `DynamoDB` JSON without a fault.
    fn new(name: &'static str, table: &'static str, prefix: Option<&'static str>, files: Vec<Vec<String>>) -> Self {
        Self { name, part: "", table, like: name, prefix, holds: Holds::Items, bare: false, files, fault: Fault::None }
    }
}

fn samples() -> Vec<Sample> {
    let mut samples = vec![
        Sample::new("docs", "docs-prod", Some("exports/docs"), content::docs()),
        Sample::new("workspaces", "workspaces-prod", None, content::workspaces()),
        Sample::new("sql-style/workspaces", "workspaces", Some("nightly"), content::sql_workspaces()),
        Sample::new("sql-style/projects", "projects", Some("nightly"), content::sql_projects()),
    ];
    let of_docs = |name, prefix, files| Sample { like: "docs", ..Sample::new(name, "docs-prod", prefix, files) };
    let mut dice = Dice::new("docs-ion");
    let in_ion = content::docs().iter().map(|lines| lines.iter().map(|line| ion::line(line, &mut dice)).collect()).collect();
    samples.push(Sample { holds: Holds::Ion, ..of_docs("docs-ion", None, in_ion) });
    samples.push(Sample { bare: true, ..of_docs("docs-prefixed", Some("exports/2026"), content::docs()) });
    let [morning, afternoon] = changes::docs();
    let mut window = |part, table, like, files, from, to, view| {
        let holds = Holds::Changes { from, to, view };
        samples.push(Sample { part, like, holds, ..Sample::new("docs-incremental", table, Some("exports/hourly"), files) });
    };
    window("morning", "docs-prod", "docs", morning, 0, 12, "NEW_AND_OLD_IMAGES");
    window("afternoon", "docs-prod", "docs", afternoon, 12, 24, "NEW_IMAGE");
    window("workspaces", "workspaces-prod", "workspaces", changes::workspaces(), 0, 12, "NEW_AND_OLD_IMAGES");
    let faults = [("bad-md5", Fault::Md5), ("missing-file", Fault::Missing), ("cut-gzip", Fault::Cut), ("wrong-count", Fault::Count)];
    for (name, fault) in faults {
        let name = &*Box::leak(format!("broken/{name}").into_boxed_str());
        samples.push(Sample { fault, ..Sample::new(name, "docs-test", None, content::small(&mut Dice::new(name))) });
    }
    for fault in ["bad-line", "no-key", "two-types", "digits-39", "levels-33", "same-key"] {
        let name = &*Box::leak(format!("broken/{fault}").into_boxed_str());
        let mut dice = Dice::new(name);
        let mut files = content::small(&mut dice);
        files[1].insert(2, content::bad_line(fault, &mut dice));
        samples.push(Sample::new(name, "docs-test", None, files));
    }
    samples
}

/// The midnight at which April 2026 begins, in milliseconds since 1970. All samples were exported on that day or the next.
const APRIL: u64 = 1_775_001_600_000;

/// A time in the first days of April, from the milliseconds since it began.
fn time(millis: u64) -> String {
    let (seconds, day) = (millis / 1000, millis / 86_400_000);
    format!("2026-04-{:02}T{:02}:{:02}:{:02}.{:03}Z", day + 1, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, millis % 1000)
}

impl Sample {
    /// The ids and names that the service makes up.
    fn dice(&self) -> Dice {
        Dice::new(&format!("{}{} names", self.name, self.part))
    }

    /// When it was started, in milliseconds since April began: a full export at once, an incremental one after its window.
    fn started(&self) -> u64 {
        match self.holds {
            Holds::Items | Holds::Ion => u64::from(self.dice().roll(1000)),
            Holds::Changes { to, .. } => to * 3_600_000 + 300_000 + u64::from(self.dice().roll(60)) * 1000,
        }
    }

    fn id(&self) -> String {
        format!("0{}-{}", APRIL + self.started(), self.dice().text("0123456789abcdef", 8))
    }

    fn folder(&self) -> String {
        format!("AWSDynamoDB/{}", self.id())
    }

    /// The export, its data files as they are stored by the compressor of today.
    fn export(&self) -> Export {
        let mut dice = self.dice();
        let (ending, format) = if self.holds == Holds::Ion { ("ion", "ION") } else { ("json", "DYNAMODB_JSON") };
        let data = self.files.iter().map(|lines| {
            let name = dice.text("abcdefghijklmnopqrstuvwxyz234567", 26);
            Data::of(format!("{name}.{ending}.gz"), lines)
        });
        let data = data.collect();
        let started = self.started();
        let (ended, content) = match self.holds {
            Holds::Items | Holds::Ion => (312_345, Content::Items(time(started))),
            Holds::Changes { from, to, view } => {
                (started + 303_622, Content::Changes(Window { from: time(from * 3_600_000), to: time(to * 3_600_000), view }))
            }
        };
        let mut names = Dice::new(&format!("{} names", self.like));
        let mut export = Export {
            id: self.id(),
            table: self.table.to_owned(),
            table_id: [8, 4, 4, 4, 12].map(|length| names.text("0123456789abcdef", length)).join("-"),
            prefix: self.prefix.map(str::to_owned),
            started: time(started),
            ended: time(ended),
            content,
            format,
            data,
        };
        if self.fault == Fault::Cut {
            let first = &mut export.data[0];
            first.stored.truncate(first.stored.len() * 2 / 3);
        }
        export
    }

    /// What the list says of the first data file where it is wrong.
    fn falsify(&self, export: &mut Export) {
        for file in &mut export.data {
            file.md5 = Md5::digest(&file.stored).into();
        }
        let first = &mut export.data[0];
        match self.fault {
            Fault::Md5 => first.md5 = Md5::digest(b"another file").into(),
            Fault::Count => first.items += 1,
            Fault::None | Fault::Missing | Fault::Cut => {}
        }
    }

    /// Where a file of the export is.
    fn place(&self, path: &str) -> PathBuf {
        let folder = format!("{}/", self.folder());
        committed(self.name).join(if self.bare { path.strip_prefix(&folder).expect("a full export lies in one folder") } else { path })
    }

    /// Whether this data file is there.
    fn has(&self, at: usize) -> bool {
        at > 0 || self.fault != Fault::Missing
    }

    /// Compares what is committed with what is made here, and gives the paths of all files.
    fn check(&self) -> Vec<PathBuf> {
        sample(self.name);
        let mut paths = Vec::new();
        let mut export = self.export();
        let names: Vec<_> = export.data_files().map(|(path, _)| path).collect();
        for (at, path) in names.iter().enumerate().filter(|(at, _)| self.has(*at)) {
            let path = self.place(path);
            let stored = fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}; {HOW}", path.display()));
            assert_eq!(&stored[..10], &EMPTY_GZIP[..10], "the gzip header is the service's");
            let (mut text, expected) = (String::new(), exports::text(&self.files[at]));
            let whole = GzDecoder::new(stored.as_slice()).read_to_string(&mut text).is_ok();
            let cut = at == 0 && self.fault == Fault::Cut;
            assert!(whole != cut && if cut { expected.starts_with(&text) } else { expected == text }, "{}: {HOW}", path.display());
            export.data[at].stored = stored;
            paths.push(path);
        }
        self.falsify(&mut export);
        for (path, bytes) in export.manifests() {
            let path = self.place(&path);
            assert!(fs::read(&path).is_ok_and(|committed| committed == bytes), "{}: {HOW}", path.display());
            paths.push(path);
        }
        paths
    }
}

/// Writes all files of all samples anew.
fn write(samples: &[Sample]) {
    for sample in samples {
        let root = committed(sample.name);
        if root.exists() {
            fs::remove_dir_all(&root).unwrap();
        }
    }
    for sample in samples {
        let mut export = sample.export();
        sample.falsify(&mut export);
        let stored = export.data_files().enumerate().filter(|(at, _)| sample.has(*at));
        for (_, (path, bytes)) in stored {
            exports::put(&sample.place(&path), bytes);
        }
        for (path, bytes) in export.manifests() {
            exports::put(&sample.place(&path), &bytes);
        }
    }
}

const HOW: &str = "not what tests/it/samples.rs makes; UPDATE_GOLDEN=1 writes it anew";

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
        assert!(sample.part.is_empty() || readme.contains(&format!("`{}`", sample.id())), "{} is missing", sample.id());
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
