//! The summary and the list of an export, as they are written.

use std::collections::HashSet;

use serde::Deserialize;

use crate::error::{Error, Kind, Result};
use crate::limits::counted;
use crate::model::Format;
use crate::source::manifest::checksum::{check_sibling, parse_md5};
use crate::source::manifest::{Content, DataFile, Export, LIST, SUMMARY, Summary, Verify, View, Window, not_regular};
use crate::store::{self, Facts, Found, Location};

/// The version of full exports.
const FULL_VERSION: &str = "2020-06-30";
/// The version of incremental exports.
const INCREMENTAL_VERSION: &str = "2023-08-01";
/// An error about many files names this many.
const NAMED: usize = 5;

/// `manifest-summary.json` as written. Fields that are not named here are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSummary {
    version: Option<String>,
    export_type: Option<String>,
    output_format: Option<String>,
    output_view: Option<String>,
    export_arn: Option<String>,
    table_arn: Option<String>,
    table_id: Option<String>,
    export_time: Option<String>,
    export_from_time: Option<String>,
    export_to_time: Option<String>,
    billed_size_bytes: Option<u64>,
    #[serde(rename = "s3SseAlgorithm")]
    s3_sse_algorithm: Option<String>,
    #[serde(rename = "s3SseKmsKeyId")]
    s3_sse_kms_key_id: Option<String>,
    #[serde(rename = "manifestFilesS3Key")]
    manifest_files_s3_key: Option<String>,
    item_count: Option<u64>,
}

/// A line of `manifest-files.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDataFile {
    item_count: Option<u64>,
    md5_checksum: Option<String>,
    #[serde(rename = "dataFileS3Key")]
    data_file_s3_key: String,
}

/// What the summary of the export in `folder` says, without its list; and whether there was a checksum to compare it with.
pub(super) fn head(folder: &Location, verify: Verify) -> Result<(Summary, bool)> {
    raw_summary(folder, verify, &mut Vec::new()).map(|(_, summary, checked)| (summary, checked))
}

/// Opens the export whose summary lies in `folder`.
pub(super) fn summary(folder: &Location, verify: Verify) -> Result<Export> {
    let mut notes = Vec::new();
    let (raw, summary, summary_checked) = raw_summary(folder, verify, &mut notes)?;
    let encrypted = summary.kms_key.as_deref().map(|kms_key| folder.clone().encrypted_with(kms_key));
    let folder = encrypted.as_ref().unwrap_or(folder);
    let path = folder.join(SUMMARY);
    let list_key = raw.manifest_files_s3_key.as_deref().unwrap_or(LIST);
    let list_name = rebase(list_key).map(Rebased::name).ok_or_else(|| bad_key(list_key, &path))?;
    let list_path = folder.join(&list_name);
    let list_bytes = manifest(&list_path).map_err(|error| error.with("named as", list_key).with("in", &path))?;
    let list_checked = check_sibling(folder, &list_name, &list_bytes, verify, &mut notes)?;
    let mut files = list(folder, &list_path, without_mark(&list_bytes))?;

    let total_listed = files.iter().filter_map(|file| file.items).try_fold(0, u64::checked_add).ok_or_else(|| {
        Error::new(Kind::Input, "the numbers of items in the list of data files add up to more than 64 bits hold")
            .with("file", &list_path)
            .with("expected", format_args!("at most {} items", u64::MAX))
    })?;
    let sum = files.iter().all(|file| file.items.is_some()).then_some(total_listed);
    if verify == Verify::Off {
        for file in &mut files {
            (file.items, file.md5) = (None, None);
        }
        return Ok(Export { files, items: None, folder: Some(folder.clone()), summary: Some(summary), checked: false, notes });
    }
    if let (Some(sum), Some(total)) = (sum, raw.item_count)
        && sum != total
    {
        return Err(Error::new(Kind::Input, "the list of data files has another number of items than the summary")
            .with("file", list_path)
            .with("expected", counted(total, "item"))
            .with("found", format_args!("{} in {}", counted(sum, "item"), counted(files.len() as u64, "data file"))));
    }
    let checked = summary_checked && list_checked && files.iter().all(|file| file.md5.is_some());
    Ok(Export { files, items: raw.item_count.or(sum), folder: Some(folder.clone()), summary: Some(summary), checked, notes })
}

fn raw_summary(folder: &Location, verify: Verify, notes: &mut Vec<String>) -> Result<(RawSummary, Summary, bool)> {
    let path = folder.join(SUMMARY);
    let bytes = manifest(&path)?;
    let checked = check_sibling(folder, SUMMARY, &bytes, verify, notes)?;
    let raw: RawSummary = serde_json::from_slice(without_mark(&bytes))
        .map_err(|cause| Error::new(Kind::Input, "the summary of the export cannot be understood").with("file", &path).caused_by(cause))?;
    let (content, format) = content(&raw, &path)?;
    let summary = Summary {
        export_arn: raw.export_arn.clone(),
        table_arn: raw.table_arn.clone(),
        table_id: raw.table_id.clone(),
        content,
        format,
        billed_size_bytes: raw.billed_size_bytes,
        kms_key: (raw.s3_sse_algorithm.as_deref() == Some("KMS"))
            .then(|| raw.s3_sse_kms_key_id.clone().unwrap_or_else(|| "its key".to_owned())),
    };
    Ok((raw, summary, checked))
}

/// What the export holds, and how it is written. A full one says so by its version alone; emulators write a type too.
fn content(raw: &RawSummary, path: &Location) -> Result<(Content, Format)> {
    let refuse = |message: &str, expected: &str, found: Option<&str>| {
        Err(Error::new(Kind::Input, message).with("file", path).with("expected", expected).with("found", found.unwrap_or("nothing")))
    };
    let format = match raw.output_format.as_deref() {
        Some("DYNAMODB_JSON") => Format::Json,
        Some("ION") => Format::Ion,
        other => return refuse("an export of unknown outputFormat", "DYNAMODB_JSON or ION", other),
    };
    let version = raw.version.as_deref();
    if !matches!(version, Some(FULL_VERSION | INCREMENTAL_VERSION)) {
        return refuse("an export of unknown version", &format!("{FULL_VERSION} or {INCREMENTAL_VERSION}"), version);
    }
    match raw.export_type.as_deref() {
        None if version == Some(FULL_VERSION) => {}
        Some("FULL_EXPORT") => {}
        None | Some("INCREMENTAL_EXPORT") => {
            let view = match raw.output_view.as_deref() {
                Some("NEW_AND_OLD_IMAGES") => View::NewAndOld,
                Some("NEW_IMAGE") => View::New,
                other => return refuse("an incremental export of unknown outputView", "NEW_AND_OLD_IMAGES or NEW_IMAGE", other),
            };
            let window = Window { from: raw.export_from_time.clone(), to: raw.export_to_time.clone(), view };
            return Ok((Content::Changes(window), format));
        }
        other => return refuse("an export of unknown exportType", "FULL_EXPORT or INCREMENTAL_EXPORT", other),
    }
    Ok((Content::Items { export_time: raw.export_time.clone() }, format))
}

/// The data files by the list, each looked for.
fn list(folder: &Location, list_path: &Location, bytes: &[u8]) -> Result<Vec<DataFile>> {
    let mut listed = Vec::new();
    let mut names = HashSet::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
        let here = |error: Error| error.with("file", list_path).with("line", at + 1);
        let raw: RawDataFile = serde_json::from_slice(line)
            .map_err(|cause| here(Error::new(Kind::Input, "a line of the list of data files cannot be understood").caused_by(cause)))?;
        let rebased = rebase(&raw.data_file_s3_key).ok_or_else(|| bad_key(&raw.data_file_s3_key, list_path).with("line", at + 1))?;
        let md5 = match &raw.md5_checksum {
            None => None,
            Some(text) => Some(parse_md5(text.as_bytes()).ok_or_else(|| {
                here(Error::new(Kind::Input, "an md5Checksum is no MD5").with("expected", "base64 of 16 bytes").with("found", text))
            })?),
        };
        if !names.insert(rebased.clone()) {
            return Err(here(Error::new(Kind::Input, "the list names a data file twice").with("key", raw.data_file_s3_key)));
        }
        listed.push((at + 1, raw, rebased, md5));
    }
    let locations: Vec<_> = listed.iter().map(|(_, _, rebased, _)| rebased.below(folder)).collect();
    let mut files = Vec::new();
    let mut places = HashSet::new();
    let mut missing = Vec::new();
    for ((line, raw, rebased, md5), (location, found)) in listed.into_iter().zip(locations.iter().zip(store::look_all(&locations)?)) {
        let (location, found) = match (&rebased, found) {
            // Copies of an incremental export may hold its data files in its own folder.
            (Rebased::Shared(name), None) => {
                let own = folder.join(name);
                own.look()?.map_or_else(|| (location.clone(), None), |found| (own, Some(found)))
            }
            (_, found) => (location.clone(), found),
        };
        let facts: Facts = match found {
            Some(Found::File(facts)) => facts,
            Some(_) => return Err(not_regular("a data file", &location).with("file", list_path).with("line", line)),
            None => {
                missing.push((raw.data_file_s3_key, location));
                continue;
            }
        };
        if !places.insert(location.to_string()) {
            return Err(Error::new(Kind::Input, "the list names a data file twice, by two keys")
                .with("file", list_path)
                .with("line", line)
                .with("key", raw.data_file_s3_key)
                .with("found", location));
        }
        files.push(DataFile { location, name: rebased.name(), items: raw.item_count, md5, facts });
    }
    if missing.is_empty() {
        return Ok(files);
    }
    let count = files.len() + missing.len();
    let mut error = Error::new(Kind::Input, format!("{} of {count} data files are missing", missing.len()))
        .with("file", list_path)
        .with("expected", format_args!("{count} data files, as the list says"))
        .with("found", format_args!("{} of them", files.len()));
    for (key, location) in missing.iter().take(NAMED) {
        error = error.with("missing", format_args!("{key} (looked for {location})"));
    }
    if missing.len() > NAMED {
        error = error.with("missing", format_args!("and {} more", missing.len() - NAMED));
    }
    // Whoever unpacked them in place has other bytes than the list says, so that they are no files of this export any more.
    let unpacked =
        missing.iter().take(NAMED).map(|(_, location)| Ok(without_gz(location).map(|plain| plain.is_file()).transpose()? == Some(true)));
    let unpacked = unpacked.collect::<Result<Vec<_>>>()?.contains(&true);
    Err(error.with(
        "hint",
        if unpacked {
            "files lie there without .gz, so somebody decompressed them; copy the export again, or name the files one by one, which compares nothing"
        } else {
            "copy the export with its whole data folder"
        },
    ))
}

/// The place with the name that gunzip gives.
fn without_gz(location: &Location) -> Option<Location> {
    location.name()?.strip_suffix(".gz").map(|name| location.parent().join(name))
}

fn bad_key(key: &str, path: &Location) -> Error {
    Error::new(Kind::Input, "a key leads out of the export")
        .with("file", path)
        .with("found", key)
        .with("expected", "AWSDynamoDB/<export id>/data/<name>, AWSDynamoDB/data/<name>, or a path relative to the export folder")
}

/// Where a key of a manifest leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rebased {
    /// To this path below the export folder.
    Own(String),
    /// To this path beside the export folder: the data of all incremental exports lies in one folder.
    Shared(String),
}

impl Rebased {
    fn name(self) -> String {
        match self {
            Rebased::Own(name) | Rebased::Shared(name) => name,
        }
    }

    fn below(&self, folder: &Location) -> Location {
        match self {
            Rebased::Own(name) => folder.join(name),
            Rebased::Shared(name) => folder.parent().join(name),
        }
    }
}

/// Where a key leads. Keys count from the root of the bucket that the export was written to, so in a copy only their tail holds.
/// `None` when the key could lead out of the export.
pub(super) fn rebase(key: &str) -> Option<Rebased> {
    let parts: Vec<&str> = key.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.iter().any(|part| *part == ".." || part.contains(['\\', '\0'])) {
        return None;
    }
    // The prefix may itself hold a folder of this name, so the last one counts; the export's id or `data` follows it.
    let tail = match parts.iter().rposition(|part| *part == "AWSDynamoDB").map(|at| &parts[at + 1..]) {
        Some(shared @ ["data", _]) => return Some(Rebased::Shared(shared.join("/"))),
        Some([_, tail @ ..]) if !tail.is_empty() => tail,
        _ => match parts.as_slice() {
            [.., "data", name] => &["data", name],
            [.., _] if key.starts_with('/') || key.contains(':') => &parts[parts.len() - 1..],
            relative => relative,
        },
    };
    if tail.is_empty() { None } else { Some(Rebased::Own(tail.join("/"))) }
}

/// Reads the summary or the list. A pipe in its place would be waited for without end.
fn manifest(location: &Location) -> Result<Vec<u8>> {
    if matches!(location.look()?, Some(Found::Other | Found::Folder)) {
        return Err(not_regular("a manifest", location));
    }
    location.read_whole()?.ok_or_else(|| Error::new(Kind::Input, "cannot read the file: it is not there").with("file", location))
}

/// The text without the byte order mark that some editors write at its start.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}
