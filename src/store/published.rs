//! The list of what a run published in a folder, and what it says about the next run: may it write there, and what may it remove?
//!
//! The same rules hold wherever the folder lies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::store::{PUBLISHED, UNFINISHED};

/// How far a publication came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is under way.
    #[default]
    Complete,
    /// Files are being moved into a folder that was empty before.
    Filling,
    /// Files are being moved over those of an earlier run.
    Replacing,
}

/// What a run published in a folder; without a list nothing was published, and nothing was cut short.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Listed")]
pub(super) struct Published {
    pub(super) state: State,
    /// Paths below the folder, with `/` between names.
    pub(super) files: BTreeSet<String>,
}

/// [`Published`] as it is written.
#[derive(Serialize, Deserialize)]
struct Listed {
    /// False while files are being moved.
    complete: bool,
    /// Whether they replace those of an earlier run; only an incomplete list says it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    overwriting: bool,
    files: BTreeSet<String>,
}

impl From<Listed> for Published {
    fn from(Listed { complete, overwriting, files }: Listed) -> Self {
        let state = match (complete, overwriting) {
            (true, _) => State::Complete,
            (false, false) => State::Filling,
            (false, true) => State::Replacing,
        };
        Self { state, files }
    }
}

impl From<Published> for Listed {
    fn from(Published { state, files }: Published) -> Self {
        Self { complete: state == State::Complete, overwriting: state == State::Replacing, files }
    }
}

impl Published {
    /// The list as it was written at `place`. Its paths decide what may be removed, so each is checked.
    pub(super) fn parse(bytes: &[u8], place: &dyn Display) -> Result<Self> {
        let hint = "name another folder, or empty this one by hand";
        let list: Self = serde_json::from_slice(bytes).map_err(|cause| {
            let error = Error::new(Kind::Output, "the list of published files cannot be understood");
            error.with("file", place).with("hint", hint).caused_by(cause)
        })?;
        for file in &list.files {
            published_name(Path::new(file)).map_err(|error| error.with("listed in", place).with("hint", hint))?;
        }
        Ok(list)
    }

    pub(super) fn into_json(self) -> Vec<u8> {
        serde_json::to_vec(&Listed::from(self)).expect("a list of texts can be written as JSON")
    }

    /// The list while `names` are being published into a folder that has this list.
    pub(super) fn under_way(list: Option<&Self>, names: &BTreeMap<String, u64>) -> Self {
        let state = match list {
            None | Some(Self { state: State::Filling, .. }) => State::Filling,
            Some(_) => State::Replacing,
        };
        let earlier = list.iter().flat_map(|list| list.files.iter().cloned());
        Self { state, files: earlier.chain(names.keys().cloned()).collect() }
    }

    /// The list once exactly `names` are published.
    pub(super) fn complete(names: &BTreeMap<String, u64>) -> Self {
        Self { state: State::Complete, files: names.keys().cloned().collect() }
    }

    /// Checks that no replacement was stopped in the folder, or that this run finishes it.
    pub(super) fn check_not_replacing(&self, folder: &dyn Display, overwrite: bool) -> Result<()> {
        if self.state != State::Replacing || overwrite {
            return Ok(());
        }
        Err(Error::new(Kind::Usage, "an earlier run was stopped while it replaced the output")
            .with("folder", folder)
            .with("hint", "--overwrite finishes the replacement by this run's output; or name another folder"))
    }

    /// Checks that a run may write into the folder, where `present` are the files in it but for unfinished ones.
    pub(super) fn check_present(&self, present: &[String], folder: &dyn Display, overwrite: bool) -> Result<()> {
        let is_ours = |relative: &&String| *relative == PUBLISHED || self.files.contains(*relative);
        if let Some(foreign) = present.iter().find(|relative| !is_ours(relative)) {
            return Err(if overwrite {
                Error::new(Kind::Usage, "the output folder holds a file that dynamorph did not write")
                    .with("folder", folder)
                    .with("found", foreign)
                    .with("hint", "move the file away, or name another folder; --overwrite replaces only what an earlier run wrote")
            } else {
                not_empty(folder, foreign)
            });
        }
        match present.first() {
            Some(first) if !overwrite && self.state == State::Complete => Err(not_empty(folder, first)),
            _ => Ok(()),
        }
    }

    /// The listed files that are not among `names`.
    pub(super) fn without<'s>(&'s self, names: &BTreeMap<String, u64>) -> impl Iterator<Item = &'s String> {
        self.files.iter().filter(|file| !names.contains_key(*file))
    }
}

fn not_empty(folder: &dyn Display, found: &str) -> Error {
    Error::new(Kind::Usage, "the output folder is not empty")
        .with("folder", folder)
        .with("found", found)
        .with("hint", "name an empty or new folder, or pass --overwrite to replace what an earlier run wrote")
}

/// The folder that is to be shared with others is a sink's own.
pub(super) fn not_shared(folder: &dyn Display) -> Error {
    Error::new(Kind::Usage, "the folder holds what another sink wrote, which has its folder for itself")
        .with("folder", folder)
        .with("found", PUBLISHED)
        .with("hint", "name another folder")
}

/// A file came into the folder after the run had looked at it.
pub(super) fn in_the_way(file: &dyn Display) -> Error {
    Error::new(Kind::Output, "a file that dynamorph did not write is in the way")
        .with("file", file)
        .with("hint", "move it away and run the same command again")
}

/// What to do where staged files are not what was written.
const ANEW: &str = "it was removed or changed meanwhile; begin anew with --restart";

/// A file that was staged is not there.
pub(super) fn missing(file: &dyn Display) -> Error {
    Error::new(Kind::Output, "an output file that was written is missing").with("file", file).with("hint", ANEW)
}

/// A staged file has not the size that its writer reported.
pub(super) fn wrong_size(file: &dyn Display, expected: u64, found: u64) -> Error {
    Error::new(Kind::Output, "an output file has not the size that was written")
        .with("file", file)
        .with("expected", format_args!("{expected} bytes"))
        .with("found", format_args!("{found} bytes"))
        .with("hint", ANEW)
}

/// The files by their names below the folder, each once, with their sizes.
pub(super) fn named(files: &[(PathBuf, u64)]) -> Result<BTreeMap<String, u64>> {
    let mut names = BTreeMap::new();
    for (relative, bytes) in files {
        if names.insert(published_name(relative)?, *bytes).is_some() {
            return Err(Error::new(Kind::Bug, "a file is published twice").with("file", relative.display()));
        }
    }
    Ok(names)
}

/// The path below the final folder with `/` between names, or an error when it could lead elsewhere.
pub(super) fn published_name(relative: &Path) -> Result<String> {
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) if name.to_str().is_some_and(|name| name != UNFINISHED && name != PUBLISHED) => {
                names.extend(name.to_str());
            }
            _ => names.clear(),
        }
        if names.is_empty() {
            break;
        }
    }
    if names.is_empty() {
        return Err(
            Error::new(Kind::Output, "an output path leads out of its folder or is not plain text").with("path", relative.display())
        );
    }
    Ok(names.join("/"))
}
