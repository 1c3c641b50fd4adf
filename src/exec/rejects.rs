//! The rejects files: one JSON line a refused item, which `run` reads back.
//!
//! `{"Item":{…},"Reject":{…}}` where the line was an item: the object stands as it was read, byte for byte.
//! `{"Raw":"…","Reject":{…}}` where it was not, and `{"RawBase64":"…",…}` where it was not even text.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use crate::codec::ddb_json::write_string;
use crate::error::{Error, Kind, Reject, Result, Stage};
use crate::exec::units::RunFile;
use crate::exec::work::set_aside;
use crate::model::{Arena, SourceId};
use crate::plan::Plan;

/// The rejects files of a unit while they are written: one for each source that has any, since an item is read back for the source
/// it came from. A file is created with its first reject.
#[derive(Debug)]
pub(crate) struct RejectsFiles {
    folder: PathBuf,
    stem: String,
    files: BTreeMap<SourceId, BufWriter<File>>,
    count: u64,
}

impl RejectsFiles {
    /// Files in `folder` that are named `STEM.jsonl`, or `STEM-SOURCE.jsonl` where sources have names.
    pub(crate) fn new(folder: PathBuf, stem: String) -> Self {
        Self { folder, stem, files: BTreeMap::new(), count: 0 }
    }

    /// Appends rejects.
    pub(crate) fn append(&mut self, rejects: &[Reject], plan: &Plan, files: &[RunFile]) -> Result<()> {
        let mut line = Vec::new();
        for reject in rejects {
            line.clear();
            write_line(reject, plan, files, &mut line);
            let source = files[reject.origin.file.index()].source;
            self.file(source, plan).and_then(|file| file.write_all(&line)).map_err(|error| failed(&self.folder, error))?;
            self.count += 1;
        }
        Ok(())
    }

    fn file(&mut self, source: SourceId, plan: &Plan) -> io::Result<&mut BufWriter<File>> {
        Ok(match self.files.entry(source) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let name = match &plan.sources[source.index()].name {
                    // The names of sources are the user's own, so they are not trusted to be the names of files.
                    Some(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
                        format!("{}-{name}.jsonl", self.stem)
                    }
                    Some(_) => format!("{}-source-{}.jsonl", self.stem, source.0 + 1),
                    None => format!("{}.jsonl", self.stem),
                };
                entry.insert(BufWriter::new(File::create(self.folder.join(name))?))
            }
        })
    }

    /// Makes the files durable; gives how many rejects they hold.
    pub(crate) fn finish(self) -> Result<u64> {
        let Self { folder, stem: _, files, count } = self;
        for file in files.into_values() {
            let file = file.into_inner().map_err(|error| failed(&folder, error.into_error()))?;
            file.sync_all().map_err(|error| failed(&folder, error))?;
        }
        Ok(count)
    }
}

/// Gives the rejects of a finished run their place: `unfinished` becomes `folder`. Those of an earlier run move to
/// `rejects.1`, `rejects.2` … beside it: they may be all that is left of an item's story, so only a person removes them. A publication that
/// was cut short is finished by the next one.
pub(crate) fn publish(unfinished: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let publish = || {
        // Without the folder of unfinished ones they have been published already.
        if unfinished.exists() {
            set_aside(folder)?;
            match fs::remove_dir(unfinished) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                    File::open(unfinished)?.sync_all()?;
                    fs::rename(unfinished, folder)?;
                }
                emptied => emptied?,
            }
        }
        let mut published = match fs::read_dir(folder) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        published.sort();
        Ok(published)
    };
    publish().map_err(|error| failed(folder, error))
}

/// What a line of a rejects file held when it was refused, where it was no item then; any other line is given as it is.
pub(crate) fn unwrap<'a>(line: &'a [u8], arena: &'a Arena) -> &'a [u8] {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Refused {
        raw: Option<String>,
        raw_base64: Option<String>,
        reject: Option<serde::de::IgnoredAny>,
    }
    if !line.starts_with(b"{\"Raw") {
        return line;
    }
    match serde_json::from_slice(line) {
        Ok(Refused { raw: Some(text), raw_base64: None, reject: Some(_) }) => arena.alloc_str(&text).as_bytes(),
        Ok(Refused { raw: None, raw_base64: Some(text), reject: Some(_) }) => match STANDARD.decode(text) {
            Ok(bytes) => arena.alloc_slice_copy(&bytes),
            Err(_) => line,
        },
        _ => line,
    }
}

fn write_line(reject: &Reject, plan: &Plan, files: &[RunFile], out: &mut Vec<u8>) {
    let text = std::str::from_utf8(&reject.source);
    match (reject.reason.stage, text) {
        (Stage::Decode, Ok(text)) => {
            out.extend_from_slice(b"{\"Raw\":");
            write_string(text, out);
        }
        (_, Err(_)) => {
            out.extend_from_slice(b"{\"RawBase64\":\"");
            out.extend_from_slice(STANDARD.encode(&reject.source).as_bytes());
            out.push(b'"');
        }
        // The members of the record, before the brace that closes it.
        (_, Ok(_)) => out.extend_from_slice(&reject.source[..reject.source.len() - 1]),
    }
    let mut fields = Map::new();
    let file = &files[reject.origin.file.index()];
    fields.insert("file".to_owned(), json!(file.file.name));
    if let Some(source) = &plan.sources[file.source.index()].name {
        fields.insert("source".to_owned(), json!(source));
    }
    let number = if file.counts_elements() { "element" } else { "line" };
    fields.insert(number.to_owned(), json!(reject.origin.line));
    if let Some(entity) = reject.entity.and_then(|id| plan.entities.get(id.index())) {
        fields.insert("entity".to_owned(), json!(entity.name));
    }
    if !reject.key.is_empty() {
        fields.insert("key".to_owned(), json!(reject.key));
    }
    fields.insert("stage".to_owned(), json!(reject.reason.stage.name()));
    fields.insert("rule".to_owned(), json!(reject.reason.rule));
    fields.insert("reason".to_owned(), json!(reject.reason.message));
    out.extend_from_slice(b",\"Reject\":");
    out.extend_from_slice(Json::Object(fields).to_string().as_bytes());
    out.extend_from_slice(b"}\n");
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(Kind::Output, "cannot write the rejects").with("path", path.display()).caused_by(error)
}
