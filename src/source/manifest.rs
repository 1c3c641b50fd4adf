//! Finds the data files of an export: summary, list, data files. Never lists a folder for data: what the manifest
//! does not name is not read, and what it names must be there. Knows nothing of what the files hold.

mod chain;
mod checksum;
mod find;
mod read;

use std::collections::HashSet;
use std::fs;

use crate::error::{Error, Kind, Result};
use crate::limits::counted;
use crate::model::Format;
use crate::model::time::{Moment, Unit};
use crate::source::chunk::MAX_LINE_BYTES;
use crate::store::{Facts, Found, Location};

pub use find::Choice;

/// The file that makes a folder a finished export; the service writes it last.
const SUMMARY: &str = "manifest-summary.json";
/// The list of data files, unless the summary names another.
const LIST: &str = "manifest-files.json";

/// How an export is chosen and read, and how much of it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which export is meant where a folder holds several.
    pub choice: Option<Choice>,
    /// What is compared with the manifest.
    pub verify: Verify,
    /// A line of a data file may be so long; what is longer ends the run. A line is held in memory.
    pub max_line_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { choice: None, verify: Verify::default(), max_line_bytes: MAX_LINE_BYTES }
    }
}

/// What is compared with the manifest. A damaged compression stream is an error at every level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Everything: the checksums of summary, list and data files, and the counts.
    #[default]
    Strict,
    /// The checksums of data files and the counts; a summary or list with another checksum is a warning, since people redact them.
    Data,
    /// Nothing.
    Off,
}

/// An export, or data files that were named one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The data files, in the order of the manifest or of the command line.
    pub files: Vec<DataFile>,
    /// Items, or change records, in all files by the summary, or by the list where the summary does not say it; `None` where neither does.
    pub items: Option<u64>,
    /// Where its manifest lies; `None` for files that were named one by one.
    pub folder: Option<Location>,
    /// What the summary says; `None` for files that were named one by one.
    pub summary: Option<Summary>,
    /// Whether there is an md5 for everything: for the summary and the list, which then were compared, and for each data file,
    /// which is compared while it is read. Copies made by hand and emulators leave them out.
    pub checked: bool,
    /// What was seen when it was found and opened, and is no error.
    pub notes: Vec<String>,
}

impl Export {
    /// Compressed bytes of all files.
    #[must_use]
    pub fn compressed_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.facts.bytes).sum()
    }

    /// What it is, where it has a manifest: `FOLDER: full export of table docs at 2026-01-14T10:18:50.622Z`.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        Some(format!("{}: {}", self.folder.as_ref()?, self.summary.as_ref()?.in_words()))
    }

    /// The point in time that it shows, or that its window ends with, in milliseconds since 1970.
    #[must_use]
    pub fn as_of(&self) -> Option<i64> {
        let time = match &self.summary.as_ref()?.content {
            Content::Items { export_time } => export_time.as_deref()?,
            Content::Changes(window) => window.to.as_deref()?,
        };
        Moment::from_iso(time).ok()?.epoch(Unit::Millis).ok()
    }

    /// What the user should know of it before it is read.
    pub fn warnings(&self, verify: Verify) -> impl Iterator<Item = String> + '_ {
        let unchecked = self.summary.is_some()
            && match verify {
                Verify::Strict => !self.checked,
                Verify::Data => self.files.iter().any(|file| file.md5.is_none()),
                Verify::Off => false,
            };
        let message = "the export has no md5 for some of its files, so that a changed file cannot be told from a whole one";
        self.notes.iter().cloned().chain(unchecked.then(|| message.to_owned()))
    }

    /// What the user should know of it once it was read: how its files are written, where that is not what the summary says.
    #[must_use]
    pub fn contradiction(&self, found: impl IntoIterator<Item = (String, Format)>) -> Option<String> {
        let summary = self.summary.as_ref()?;
        let (file, other) = found.into_iter().find(|(_, format)| *format != summary.format)?;
        let name = |format| match format {
            Format::Json => "DYNAMODB_JSON",
            Format::Ion => "ION",
        };
        let (says, is) = (name(summary.format), name(other));
        Some(format!("the export's summary says outputFormat {says}, but {file} is {is}; each file is read as what it is"))
    }

    /// The window of an incremental export.
    #[must_use]
    pub fn window(&self) -> Option<&Window> {
        match &self.summary.as_ref()?.content {
            Content::Changes(window) => Some(window),
            Content::Items { .. } => None,
        }
    }

    /// Compares the number of records found in all data files, that is of lines that are not empty, unreadable ones too, with the
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
                    .with("expected", counted(expected, "item"))
                    .with("found", format_args!("{} in {}", counted(found, "item"), counted(self.files.len() as u64, "data file")))
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
    pub location: Location,
    /// The name that users see: below the export folder (`data/….json.gz`), or the path as it was given.
    pub name: String,
    /// Items in it, by the manifest.
    pub items: Option<u64>,
    /// MD5 of the file as stored, by the manifest.
    pub md5: Option<[u8; 16]>,
    /// Its size, and what changes with its content.
    pub facts: Facts,
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
                    .with("file", &self.location)
                    .with("expected", counted(expected, "item"))
                    .with("found", counted(found, "item"))
                    .with("hint", "the file was cut, changed or mixed up after the export; copy the export again"))
            }
            _ => Ok(()),
        }
    }
}

/// What the summary of an export says about what it holds and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The export's ARN.
    pub export_arn: Option<String>,
    /// The table's ARN.
    pub table_arn: Option<String>,
    /// The table's id, which changes when a table is made anew under the same name.
    pub table_id: Option<String>,
    /// Items, or changes of items.
    pub content: Content,
    /// How its data files are written.
    pub format: Format,
    /// What the service billed; 0 for small tables.
    pub billed_size_bytes: Option<u64>,
    /// The key that the files were encrypted with, where it is one of KMS: whoever reads them needs `kms:Decrypt` on it.
    pub kms_key: Option<String>,
}

impl Summary {
    /// What the export is: `full export of table docs at 2026-01-14T10:18:50.622Z`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let table = self.table_arn.as_deref().map_or("without ARN", |arn| arn.rsplit('/').next().unwrap_or(arn));
        let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "an unknown time".to_owned());
        match &self.content {
            Content::Items { export_time } => format!("full export of table {table} at {}", time(export_time)),
            Content::Changes(Window { from, to, .. }) => {
                format!("incremental export of table {table} from {} until before {}", time(from), time(to))
            }
        }
    }
}

/// What an export holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All items of a table: a full export.
    Items {
        /// The point in time that the export shows.
        export_time: Option<String>,
    },
    /// What changed within a window: an incremental export.
    Changes(Window),
}

/// The window of an incremental export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its start, which belongs to it.
    pub from: Option<String>,
    /// Its end, which does not.
    pub to: Option<String>,
    /// Whether records have old images too.
    pub view: View,
}

/// Which images the records of an incremental export have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The new image only: an update looks like an insert, and a delete holds nothing but keys.
    New,
    /// The new image and the old one.
    NewAndOld,
}

impl View {
    /// As the summary says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            View::New => "NEW_IMAGE",
            View::NewAndOld => "NEW_AND_OLD_IMAGES",
        }
    }
}

/// Opens an export by its folder, by its summary, by a folder that holds exactly one export (itself or in
/// `AWSDynamoDB/`) or the one that `options` choose, or one data file without a manifest.
///
/// The list of data files is held in memory, some 200 bytes a file.
///
/// # Errors
/// Kind `Input`: no export there, an unfinished or several ones, an export of a kind that is not known, a checksum or a count
/// that disagrees, data files that are missing.
pub fn open(location: &Location, options: &Options) -> Result<Export> {
    let mut notes = Vec::new();
    let Some(folder) = folder(location, options, &mut notes)? else { return bare_files(std::slice::from_ref(location)) };
    let mut export = read::summary(&folder, options.verify)?;
    export.notes.splice(0..0, notes);
    Ok(export)
}

/// What the summary of an export says, without a look at its list and its data files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The export's folder.
    pub folder: Location,
    /// What the summary says.
    pub summary: Summary,
    /// Whether there is a checksum beside the summary.
    pub checked: bool,
}

/// Finds an export as [`open`] does and reads its summary; `None` where a data file is named.
///
/// # Errors
/// As [`open`], as far as it looks.
pub fn head(location: &Location, options: &Options) -> Result<Option<Head>> {
    let Some(folder) = folder(location, options, &mut Vec::new())? else { return Ok(None) };
    let (summary, checked) = read::head(&folder, options.verify)?;
    Ok(Some(Head { folder, summary, checked }))
}

/// The folder of the export that is meant by `location`; `None` where that is a data file.
fn folder(location: &Location, options: &Options, notes: &mut Vec<String>) -> Result<Option<Location>> {
    // The summary is asked for by its name first: who may read an export may not be allowed to list what lies around it.
    let is_folder = match location.name() {
        Some(SUMMARY | LIST) => false,
        _ => match location.join(SUMMARY).is_file() {
            Ok(true) => {
                find::check_choice(location, options)?;
                return Ok(Some(location.clone()));
            }
            Ok(false) => location.look()?.ok_or_else(|| absent(location))? == Found::Folder,
            // Without that permission S3 denies what does not exist; but a data file may be there.
            Err(denied) => match location.look() {
                Ok(Some(found)) => found == Found::Folder,
                _ => return Err(denied),
            },
        },
    };
    if is_folder {
        return find::export(location, options, notes).map(Some);
    }
    if let Some(choice) = &options.choice {
        return Err(Error::new(Kind::Usage, "an export is chosen, but a file is named")
            .with("found", format_args!("{location} and --export {choice}"))
            .with("hint", "name the folder that holds the exports, or leave the choice out"));
    }
    match location.name() {
        Some(SUMMARY) => Ok(Some(location.parent())),
        Some(LIST) => Err(Error::new(Kind::Input, "this is the list of an export's data files, expected the export")
            .with("file", location)
            .with("hint", format_args!("name {} or its folder", location.parent().join(SUMMARY)))),
        _ => Ok(None),
    }
}

/// Opens what was named for one source: an export, several incremental exports whose windows follow each other, or data files one
/// by one, which then are read without a manifest.
///
/// # Errors
/// As [`open`]; also when exports are named that do not belong together, an export beside data files, or a file twice.
pub fn open_all(locations: &[Location], options: &Options) -> Result<Vec<Export>> {
    let is_export = |location: &Location| Ok(location.name() == Some(SUMMARY) || location.look()? == Some(Found::Folder));
    match locations {
        [] => Err(Error::new(Kind::Usage, "no export was named")),
        [location] => Ok(vec![open(location, options)?]),
        several => {
            let exports = several.iter().map(is_export).collect::<Result<Vec<_>>>()?;
            if exports.iter().all(|is_export| *is_export) {
                return chain::in_order(several.iter().map(|location| open(location, options)).collect::<Result<_>>()?);
            }
            if let Some(at) = exports.iter().position(|is_export| *is_export) {
                return Err(Error::new(Kind::Input, "an export was named together with data files, expected one of the two")
                    .with("found", &several[at])
                    .with("hint", "name the export alone"));
            }
            Ok(vec![bare_files(several)?])
        }
    }
}

/// The error for a path where no export is.
fn nothing_there(message: &str, location: &Location) -> Error {
    Error::new(Kind::Input, message).with("path", location).with(
        "expected",
        format_args!("an export folder (it holds {SUMMARY}), that file, a folder with one export in AWSDynamoDB/, or a data file"),
    )
}

/// The error for a place where nothing is. In S3 there are no folders, only keys that start alike.
fn absent(location: &Location) -> Error {
    match location.local() {
        Some(_) => nothing_there("there is no such file or folder", location),
        None => nothing_there(&format!("nothing lies at {location}"), location),
    }
}

/// Data files without a manifest.
fn bare_files(locations: &[Location]) -> Result<Export> {
    let mut seen = HashSet::new();
    let mut files = Vec::with_capacity(locations.len());
    for location in locations {
        let facts = match location.look()? {
            Some(Found::File(facts)) => facts,
            Some(_) => return Err(not_regular("a data file", location)),
            None => return Err(absent(location)),
        };
        // Two names of one file are one file.
        let real = location.local().and_then(|path| fs::canonicalize(path).ok()).map(Location::Local);
        if !seen.insert(real.as_ref().unwrap_or(location).to_string()) {
            return Err(Error::new(Kind::Input, "a data file was named twice").with("file", location));
        }
        files.push(DataFile { location: location.clone(), name: location.to_string(), items: None, md5: None, facts });
    }
    Ok(Export { files, ..Export::default() })
}

/// The error for a path that would give other bytes when it is read again, or none at all.
fn not_regular(what: &str, location: &Location) -> Error {
    Error::new(Kind::Input, format!("{what} is no regular file")).with("path", location).with("hint", "copy its content into a file")
}

#[cfg(test)]
mod tests;
