//! Finds the data files of an export: summary, list, data files. Never lists a folder for data: what the manifest
//! does not name is not read, and what it names must be there. Knows nothing of what the files hold.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest, Md5};
use serde::Deserialize;

use crate::error::{Error, Kind, Result};
use crate::store::{self, io_error};

/// The file that makes a folder a finished export; the service writes it last.
const SUMMARY: &str = "manifest-summary.json";
/// The list of data files, unless the summary names another.
const LIST: &str = "manifest-files.json";
/// The version of full exports.
const FULL_VERSION: &str = "2020-06-30";
/// The version of incremental exports.
const INCREMENTAL_VERSION: &str = "2023-08-01";
/// Endings of data files that may be named one by one.
const BARE_ENDINGS: [&str; 4] = [".json.gz", ".json", ".jsonl", ".jsonl.gz"];
/// Endings of data files in Ion.
const ION_ENDINGS: [&str; 2] = [".ion.gz", ".ion"];
/// An error about many files names this many.
const NAMED: usize = 5;

/// A full export in `DynamoDB` JSON, or data files that were named one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The data files, in the order of the manifest or of the command line.
    pub files: Vec<DataFile>,
    /// Items in all files by the summary, or by the list where the summary does not say it; `None` where neither does.
    pub items: Option<u64>,
    /// What the summary says; `None` for files that were named one by one.
    pub summary: Option<Summary>,
    /// Whether there is an md5 for everything: for the summary and the list, which then were compared, and for each data file,
    /// which is compared while it is read. Copies made by hand and emulators leave them out.
    pub checked: bool,
}

impl Export {
    /// Compressed bytes of all files.
    #[must_use]
    pub fn compressed_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.compressed_bytes).sum()
    }

    /// Compares the number of items found in all data files, that is of lines that are not empty, unreadable ones too, with the
    /// manifest's. [`DataFile::expect_items`] does not replace it: a list may leave out the number of a file.
    ///
    /// # Errors
    /// Kind `Input`, when the manifest says another number.
    pub fn expect_items(&self, found: u64) -> Result<()> {
        match self.items {
            Some(expected) if expected != found => {
                let mut error = Error::new(Kind::Input, "the export holds another number of items than the manifest says");
                if let Some(arn) = self.summary.as_ref().and_then(|summary| summary.export_arn.as_ref()) {
                    error = error.with("export", arn);
                }
                Err(error
                    .with("expected", format_args!("{expected} items"))
                    .with("found", format_args!("{found} items in {} data files", self.files.len()))
                    .with("hint", "a file was cut, changed or mixed up after the export; copy the export again"))
            }
            _ => Ok(()),
        }
    }
}

/// One data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// The name that users see: below the export folder (`data/….json.gz`), or the path as it was given.
    pub name: String,
    /// Items in it, by the manifest.
    pub items: Option<u64>,
    /// MD5 of the file as stored, by the manifest.
    pub md5: Option<[u8; 16]>,
    /// Its size.
    pub compressed_bytes: u64,
}

impl DataFile {
    /// Compares the number of items found, that is of lines that are not empty, unreadable ones too, with the manifest's.
    ///
    /// # Errors
    /// Kind `Input`, when the manifest says another number.
    pub fn expect_items(&self, found: u64) -> Result<()> {
        match self.items {
            Some(expected) if expected != found => {
                Err(Error::new(Kind::Input, "a data file holds another number of items than the manifest says")
                    .with("file", self.path.display())
                    .with("expected", format_args!("{expected} items"))
                    .with("found", format_args!("{found} items"))
                    .with("hint", "the file was cut, changed or mixed up after the export; copy the export again"))
            }
            _ => Ok(()),
        }
    }
}

/// What the summary of an export says about where it comes from. Nothing here is needed to read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The export's ARN.
    pub export_arn: Option<String>,
    /// The table's ARN.
    pub table_arn: Option<String>,
    /// The table's id, which changes when a table is made anew under the same name.
    pub table_id: Option<String>,
    /// The point in time that the export shows.
    pub export_time: Option<String>,
    /// What the service billed; 0 for small tables.
    pub billed_size_bytes: Option<u64>,
}

/// `manifest-summary.json` as written. Fields that are not named here are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSummary {
    version: Option<String>,
    export_type: Option<String>,
    output_format: Option<String>,
    export_arn: Option<String>,
    table_arn: Option<String>,
    table_id: Option<String>,
    export_time: Option<String>,
    billed_size_bytes: Option<u64>,
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

/// Opens an export by its folder, by its summary, by a folder that holds exactly one export (itself or in
/// `AWSDynamoDB/`), or one data file without a manifest.
///
/// The list of data files is held in memory, some 200 bytes a file.
///
/// # Errors
/// Kind `Input`: no export there, an unfinished or several ones, an export of a kind that is not read, a checksum or a count
/// that disagrees, data files that are missing.
pub fn open(path: &Path) -> Result<Export> {
    let found = fs::metadata(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => nothing_there("there is no such file or folder", path),
        _ => io_error(Kind::Input, "cannot look at the export", path, cause),
    })?;
    if found.is_dir() {
        return open_summary(&find_export(path)?);
    }
    match path.file_name().and_then(|name| name.to_str()) {
        Some(SUMMARY) => open_summary(parent_of(path)),
        Some(LIST) => Err(Error::new(Kind::Input, "this is the list of an export's data files, expected the export")
            .with("file", path.display())
            .with("hint", format_args!("name {} or its folder", path.with_file_name(SUMMARY).display()))),
        _ => bare_files(&[path.to_owned()]),
    }
}

/// Opens what was named: one export, or data files one by one, which then are read without a manifest.
///
/// # Errors
/// As [`open`]; also when an export is named beside anything else, or a file twice.
pub fn open_all(paths: &[PathBuf]) -> Result<Export> {
    match paths {
        [] => Err(Error::new(Kind::Usage, "no export was named")),
        [path] => open(path),
        _ => bare_files(paths),
    }
}

/// The error for a path where no export is.
fn nothing_there(message: &str, path: &Path) -> Error {
    Error::new(Kind::Input, message).with("path", path.display()).with(
        "expected",
        format_args!(
            "an export folder (it holds {SUMMARY}), that file, a folder with one export in AWSDynamoDB/, or data files ({})",
            BARE_ENDINGS.join(", ")
        ),
    )
}

/// Data files without a manifest.
fn bare_files(paths: &[PathBuf]) -> Result<Export> {
    let mut seen = HashSet::new();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let metadata = fs::metadata(path).map_err(|cause| io_error(Kind::Input, "cannot look at the data file", path, cause))?;
        let canonical = fs::canonicalize(path).map_err(|cause| io_error(Kind::Input, "cannot look at the data file", path, cause))?;
        let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_bare = BARE_ENDINGS.iter().any(|ending| file_name.ends_with(ending));
        if (metadata.is_dir() && !is_bare) || file_name == SUMMARY {
            return Err(Error::new(Kind::Input, "an export was named together with other paths, expected one export or data files only")
                .with("found", path.display())
                .with("hint", "name the export alone"));
        }
        if ION_ENDINGS.iter().any(|ending| file_name.ends_with(ending)) {
            return Err(ion_error(path));
        }
        if !is_bare {
            return Err(nothing_there("this file is neither an export nor a data file", path));
        }
        if !metadata.is_file() {
            return Err(not_regular("a data file", path));
        }
        if !seen.insert(canonical) {
            return Err(Error::new(Kind::Input, "a data file was named twice").with("file", path.display()));
        }
        files.push(DataFile {
            path: path.clone(),
            name: path.display().to_string(),
            items: None,
            md5: None,
            compressed_bytes: metadata.len(),
        });
    }
    Ok(Export { files, items: None, summary: None, checked: false })
}

/// The export folder at `path` or below it.
fn find_export(path: &Path) -> Result<PathBuf> {
    if path.join(SUMMARY).is_file() {
        return Ok(path.to_owned());
    }
    let mut found = Vec::new();
    for parent in [path.join("AWSDynamoDB"), path.to_owned()] {
        // Elsewhere a folder with a `data` folder may be anything.
        let holds_exports = parent.file_name().is_some_and(|name| name == "AWSDynamoDB");
        if parent.is_dir() {
            let folders = folders_in(&parent)?;
            found.extend(folders.into_iter().filter(|folder| folder.join(SUMMARY).is_file() || (holds_exports && is_unfinished(folder))));
        }
    }
    match found.as_slice() {
        [] if is_unfinished(path) => Err(unfinished(path)),
        [] => Err(match path.file_name().zip(path.parent()) {
            Some((name, parent)) if name == "data" && parent.join(SUMMARY).is_file() => {
                Error::new(Kind::Input, "this is the data folder of an export, expected the export")
                    .with("folder", path.display())
                    .with("hint", format_args!("name {}", parent.display()))
            }
            _ => nothing_there("there is no export in this folder", path),
        }),
        [folder] if folder.join(SUMMARY).is_file() => Ok(folder.clone()),
        [folder] => Err(unfinished(folder)),
        several => {
            let names = several.iter().map(|folder| {
                let name = folder.strip_prefix(path).unwrap_or(folder).display();
                if folder.join(SUMMARY).is_file() { name.to_string() } else { format!("{name} (unfinished)") }
            });
            Err(Error::new(Kind::Input, "there are several exports in this folder")
                .with("folder", path.display())
                .with("found", names.collect::<Vec<_>>().join(", "))
                .with("hint", "name one of them"))
        }
    }
}

/// The folders in a folder, by name.
fn folders_in(parent: &Path) -> Result<Vec<PathBuf>> {
    let failed = |cause| io_error(Kind::Input, "cannot look into the folder", parent, cause);
    let mut folders = Vec::new();
    for entry in fs::read_dir(parent).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort_unstable();
    Ok(folders)
}

/// Whether the folder looks like an export but for its summary.
fn is_unfinished(folder: &Path) -> bool {
    !folder.join(SUMMARY).exists() && ["_started", LIST, "data"].iter().any(|name| folder.join(name).exists())
}

fn unfinished(folder: &Path) -> Error {
    Error::new(Kind::Input, format!("unfinished or failed export: no {SUMMARY}"))
        .with("folder", folder.display())
        .with("hint", "wait until the export is COMPLETED (aws dynamodb describe-export), or copy the whole folder")
}

fn ion_error(path: &Path) -> Error {
    Error::new(Kind::Input, "an export in Amazon Ion, not read yet")
        .with("file", path.display())
        .with("expected", "DYNAMODB_JSON")
        .with("hint", "export the table with --export-format DYNAMODB_JSON")
}

/// The error for a path that would give other bytes when it is read again, or none at all.
fn not_regular(what: &str, path: &Path) -> Error {
    Error::new(Kind::Input, format!("{what} is no regular file")).with("path", path.display()).with("hint", "copy its content into a file")
}

/// Reads the summary or the list. A pipe in its place would be waited for without end.
fn read_manifest(path: &Path) -> Result<Vec<u8>> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(not_regular("a manifest", path));
    }
    store::read_whole(path)
}

/// The text without the byte order mark that some editors write at its start.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

/// Opens the export whose summary lies in `folder`.
fn open_summary(folder: &Path) -> Result<Export> {
    let path = folder.join(SUMMARY);
    let bytes = read_manifest(&path)?;
    let summary_checked = check_sibling(&path, &bytes)?;
    let raw: RawSummary = serde_json::from_slice(without_mark(&bytes)).map_err(|cause| {
        Error::new(Kind::Input, "the summary of the export cannot be understood").with("file", path.display()).caused_by(cause)
    })?;
    check_kind(&raw, &path)?;

    let list_key = raw.manifest_files_s3_key.as_deref().unwrap_or(LIST);
    let list_name = rebase(list_key).ok_or_else(|| bad_key(list_key, &path))?;
    let list_path = folder.join(&list_name);
    let list_bytes = read_manifest(&list_path).map_err(|error| error.with("named as", list_key).with("in", path.display()))?;
    let list_checked = check_sibling(&list_path, &list_bytes)?;
    let files = read_list(folder, &list_path, without_mark(&list_bytes))?;

    let counted = files.iter().filter_map(|file| file.items).try_fold(0, u64::checked_add).ok_or_else(|| {
        Error::new(Kind::Input, "the numbers of items in the list of data files add up to more than 64 bits hold")
            .with("file", list_path.display())
            .with("expected", format_args!("at most {} items", u64::MAX))
    })?;
    let sum = files.iter().all(|file| file.items.is_some()).then_some(counted);
    if let (Some(sum), Some(total)) = (sum, raw.item_count)
        && sum != total
    {
        return Err(Error::new(Kind::Input, "the list of data files has another number of items than the summary")
            .with("file", list_path.display())
            .with("expected", format_args!("{total} items"))
            .with("found", format_args!("{sum} items in {} data files", files.len())));
    }
    let checked = summary_checked && list_checked && files.iter().all(|file| file.md5.is_some());
    let RawSummary { export_arn, table_arn, table_id, export_time, billed_size_bytes, item_count, .. } = raw;
    let summary = Summary { export_arn, table_arn, table_id, export_time, billed_size_bytes };
    Ok(Export { files, items: item_count.or(sum), summary: Some(summary), checked })
}

/// Refuses everything but a full export in `DynamoDB` JSON.
fn check_kind(raw: &RawSummary, path: &Path) -> Result<()> {
    let refuse = |message: &str, expected: &str, found: Option<&str>| {
        Err(Error::new(Kind::Input, message)
            .with("file", path.display())
            .with("expected", expected)
            .with("found", found.unwrap_or("nothing")))
    };
    let (version, kind) = (raw.version.as_deref(), raw.export_type.as_deref());
    if kind == Some("INCREMENTAL_EXPORT") || version == Some(INCREMENTAL_VERSION) {
        let found = kind.or(version);
        return refuse("an incremental export, not read yet", "a full export", found);
    }
    if !matches!(kind, None | Some("FULL_EXPORT")) {
        return refuse("an export of unknown exportType", "FULL_EXPORT", kind);
    }
    if version != Some(FULL_VERSION) {
        return refuse("an export of unknown version", FULL_VERSION, version);
    }
    match raw.output_format.as_deref() {
        Some("DYNAMODB_JSON") => Ok(()),
        Some("ION") => Err(ion_error(path)),
        other => refuse("an export of unknown outputFormat", "DYNAMODB_JSON", other),
    }
}

/// The data files by the list, each looked for.
fn read_list(folder: &Path, list_path: &Path, bytes: &[u8]) -> Result<Vec<DataFile>> {
    let mut files = Vec::new();
    let mut names = HashSet::new();
    let mut missing = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
        let here = |error: Error| error.with("file", list_path.display()).with("line", at + 1);
        let raw: RawDataFile = serde_json::from_slice(line)
            .map_err(|cause| here(Error::new(Kind::Input, "a line of the list of data files cannot be understood").caused_by(cause)))?;
        let key = raw.data_file_s3_key;
        let name = rebase(&key).ok_or_else(|| bad_key(&key, list_path).with("line", at + 1))?;
        let md5 = match &raw.md5_checksum {
            None => None,
            Some(text) => Some(parse_md5(text.as_bytes()).ok_or_else(|| {
                here(Error::new(Kind::Input, "an md5Checksum is no MD5").with("expected", "base64 of 16 bytes").with("found", text))
            })?),
        };
        let path = folder.join(&name);
        let compressed_bytes = match fs::metadata(&path) {
            Ok(found) if found.is_file() => found.len(),
            Ok(_) => return Err(here(not_regular("a data file", &path))),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                missing.push((key.clone(), path.clone()));
                0
            }
            Err(cause) => return Err(io_error(Kind::Input, "cannot look at a data file", &path, cause)),
        };
        if !names.insert(name.clone()) {
            return Err(here(Error::new(Kind::Input, "the list names a data file twice").with("key", key)));
        }
        files.push(DataFile { path, name, items: raw.item_count, md5, compressed_bytes });
    }
    if missing.is_empty() {
        return Ok(files);
    }
    let mut error = Error::new(Kind::Input, format!("{} of {} data files are missing", missing.len(), files.len()))
        .with("file", list_path.display())
        .with("expected", format_args!("{} data files, as the list says", files.len()))
        .with("found", format_args!("{} of them", files.len() - missing.len()));
    for (key, path) in missing.iter().take(NAMED) {
        error = error.with("missing", format_args!("{key} (looked for {})", path.display()));
    }
    if missing.len() > NAMED {
        error = error.with("missing", format_args!("and {} more", missing.len() - NAMED));
    }
    Err(error.with("hint", "copy the export with its whole data folder"))
}

fn bad_key(key: &str, path: &Path) -> Error {
    Error::new(Kind::Input, "a key leads out of the export")
        .with("file", path.display())
        .with("found", key)
        .with("expected", "AWSDynamoDB/<export id>/data/<name>, or a path relative to the export folder")
}

/// The path below the export folder that a key means. Keys count from the root of the bucket that the export was
/// written to, so in a copy only their tail holds. `None` when the key could lead out of the folder.
fn rebase(key: &str) -> Option<String> {
    let parts: Vec<&str> = key.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.iter().any(|part| *part == ".." || part.contains(['\\', '\0'])) {
        return None;
    }
    // The prefix may itself hold a folder of this name, so the last one counts; the export's id follows it.
    let after_id = parts.iter().rposition(|part| *part == "AWSDynamoDB").map(|at| at + 2);
    let tail = match after_id {
        Some(start) if start < parts.len() => &parts[start..],
        _ => match parts.as_slice() {
            [.., "data", name] => &["data", name],
            [.., _] if key.starts_with('/') || key.contains(':') => &parts[parts.len() - 1..],
            relative => relative,
        },
    };
    if tail.is_empty() { None } else { Some(tail.join("/")) }
}

/// Compares the bytes with the checksum beside the file; gives false where there is none.
fn check_sibling(path: &Path, bytes: &[u8]) -> Result<bool> {
    for ending in ["md5", "checksum"] {
        let sibling = path.with_extension(ending);
        let text = match fs::read(&sibling) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(io_error(Kind::Input, "cannot read the checksum", &sibling, cause)),
        };
        let expected = parse_md5(&text).ok_or_else(|| {
            Error::new(Kind::Input, "the checksum file holds no MD5").with("file", sibling.display()).with("expected", "base64 of 16 bytes")
        })?;
        let found: [u8; 16] = Md5::digest(bytes).into();
        if found == expected {
            return Ok(true);
        }
        return Err(Error::new(Kind::Input, "the file is not what its checksum says; it was changed or damaged")
            .with("file", path.display())
            .with("expected", format_args!("md5 {}", BASE64.encode(expected)))
            .with("found", format_args!("md5 {}", BASE64.encode(found)))
            .with("hint", "copy the export again"));
    }
    Ok(false)
}

/// Reads an MD5 in base64, as the service writes it, or in 32 hexadecimal digits, as one emulator does.
fn parse_md5(text: &[u8]) -> Option<[u8; 16]> {
    let text = text.trim_ascii();
    if text.len() == 32 {
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        return Some(bytes);
    }
    BASE64.decode(text).ok()?.try_into().ok()
}

/// The folder a file lies in; `.` for a bare name.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests;
