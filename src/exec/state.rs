//! What a run keeps in its work folder so that it can go on: what it is, and what its survey found.
//!
//! `run.json` is written before anything else and says by hashes which pipeline, exports and options the run has; a run of the same
//! ones goes on where that one stopped. `report.json` is written last, and then what only going on needs is removed: the run is finished. No file holds a secret.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::codec::hexadecimal;
use crate::error::{Error, Kind, Result};
use crate::exec::options::Options;
use crate::exec::units::{RunFile, UnitReport};
use crate::plan::Plan;
use crate::proof::collisions::Collisions;
use crate::shape::Shape;
use crate::store;

/// The file that says what a run is.
const RUN: &str = "run.json";
/// The file that a finished run has.
pub(super) const REPORT: &str = "report.json";
/// Which tables the run writes to.
const TARGETS: &str = "targets.json";
/// What the survey found of the values.
const SHAPES: &str = "survey.json";
/// What the survey found of the keys.
const COLLISIONS: &str = "collisions.bin";

/// Says that the run reads its exports once: what it writes is not seen before its end.
const ONCE: &str = "reads-once";

/// Says that the run has begun to publish its files.
const PUBLISHING: &str = "publishing";

/// Where the run is, from time to time.
pub(super) const PROGRESS: &str = "progress.json";

/// What a run is. Two runs that are equal write the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// The program's version; another one may write other bytes.
    dynamorph: String,
    /// Hashes of what the pipeline means, of the files that are read, and of the options that decide the output.
    pipeline: String,
    exports: String,
    options: BTreeMap<String, String>,
    /// The sinks, as on the command line; for people.
    pub(super) sinks: Vec<String>,
    /// How many units there are.
    pub(super) units: usize,
    /// `undo` took it back; nothing goes on with it.
    #[serde(default)]
    taken_back: bool,
}

impl Identity {
    pub(super) fn new(plan: &Plan, files: &[RunFile], options: &Options, sinks: Vec<String>, units: usize) -> Self {
        let mut exports = String::new();
        for RunFile { source, file, export, holds: _, seen: _ } in files {
            let (name, items, bytes) = (&file.name, file.items, file.facts.bytes);
            exports.push_str(&format!("{}/{export}/{name}/{items:?}/{bytes}/", source.0));
            // An md5 in the manifest says what the file holds; without one, its time or ETag says that it is the same file.
            match &file.md5 {
                Some(md5) => exports.push_str(&format!("{md5:?}\n")),
                None => exports.push_str(&format!("{:?}\n", file.facts.stamp)),
            }
        }
        Self {
            dynamorph: env!("CARGO_PKG_VERSION").to_owned(),
            pipeline: hash(&plan.identity()),
            exports: hash(&exports),
            options: options.identity().into_iter().map(|(name, value)| (name.to_owned(), hash(&value))).collect(),
            sinks,
            units,
            taken_back: false,
        }
    }

    /// A name for the run, which no other has.
    pub(super) fn name(&self) -> Result<String> {
        Ok(hash(&String::from_utf8_lossy(&json(self)?)))
    }

    /// Checks that a run that was stopped is this one.
    fn check_same(&self, stopped: &Self, work: &Path) -> Result<()> {
        let parts = [
            ("the version of dynamorph", self.dynamorph == stopped.dynamorph),
            ("the pipeline", self.pipeline == stopped.pipeline),
            ("the exports", self.exports == stopped.exports),
        ];
        let options = self.options.iter().map(|(name, value)| (name.as_str(), stopped.options.get(name) == Some(value)));
        let differs: Vec<_> = parts.into_iter().chain(options).filter(|(_, same)| !same).map(|(what, _)| what).collect();
        if differs.is_empty() {
            return Ok(());
        }
        Err(Error::new(Kind::Usage, "the work folder holds a run that was stopped, and this is another one")
            .with("path", work.display())
            .with("differs", differs.join(", "))
            .with("hint", "run the same command to go on with that run, or begin anew with --restart, or name another folder with --work"))
    }
}

fn hash(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

/// What a work folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No run.
    Nothing,
    /// A run that has not finished.
    Unfinished(Identity),
    /// A run that has.
    Finished(Identity),
    /// A run that was taken back.
    TakenBack(Identity),
}

/// Looks which run the folder holds. A list that cannot be read is none: it was cut when the machine stopped, before anything was written.
pub(super) fn look(work: &Path) -> Result<Found> {
    let identity = read(&work.join(RUN))?.and_then(|bytes| serde_json::from_slice::<Identity>(&bytes).ok());
    let Some(identity) = identity else { return Ok(Found::Nothing) };
    if identity.taken_back {
        return Ok(Found::TakenBack(identity));
    }
    // What only a run that goes on needs is removed last of all, so with it the end was not reached.
    let may_go_on = [SHAPES, ONCE].iter().any(|name| work.join(name).exists());
    Ok(if work.join(REPORT).exists() && !may_go_on { Found::Finished(identity) } else { Found::Unfinished(identity) })
}

/// Whether a run of this identity goes on in the folder, or begins anew. A run that was stopped before its survey, or the first unit of one
/// that reads once, had ended has nothing that is worth keeping, and is forgotten.
///
/// # Errors
/// Kind `Usage` when the folder holds another run that has not finished.
pub(super) fn begins(work: &Path, identity: &Identity, restart: bool) -> Result<store::Begin> {
    match look(work)? {
        Found::Unfinished(stopped) if !restart && (work.join(SHAPES).exists() || has_units(work, &stopped)) => {
            identity.check_same(&stopped, work).map(|()| store::Begin::GoOn)
        }
        _ => Ok(store::Begin::Anew),
    }
}

/// Whether a unit of the run has its report.
pub(super) fn has_units(work: &Path, identity: &Identity) -> bool {
    (1..).take(identity.units).any(|unit| UnitReport::path(work, unit).exists())
}

/// Forgets which run the folder holds; the first step when it is emptied.
pub(super) fn forget(work: &Path) -> Result<()> {
    for name in [RUN, REPORT, TARGETS, SHAPES, COLLISIONS, PROGRESS, ONCE, PUBLISHING] {
        match fs::remove_file(work.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&work.join(name), error)),
            _ => {}
        }
    }
    Ok(())
}

/// Says which run the folder holds from now on, and whether that reads its exports once.
pub(super) fn begin(work: &Path, identity: &Identity, once: bool) -> Result<()> {
    if once {
        store::write_atomically(&work.join(ONCE), b"")?;
    }
    keep_identity(work, identity)
}

fn keep_identity(work: &Path, identity: &Identity) -> Result<()> {
    store::write_atomically(&work.join(RUN), &json(identity)?)
}

/// Says that what the folder's run wrote is about to be taken back, so that no run goes on with it. The caller holds the folder.
///
/// # Errors
/// Kind `Output` when it cannot be written.
#[cfg(feature = "dynamodb")]
pub(super) fn taken_back(work: &Path) -> Result<()> {
    match look(work)? {
        Found::Unfinished(identity) | Found::Finished(identity) => keep_identity(work, &Identity { taken_back: true, ..identity }),
        Found::Nothing | Found::TakenBack(_) => Ok(()),
    }
}

/// Compares the targets with those that the run met before, and keeps them where it met none.
///
/// # Errors
/// Kind `Usage` when one is another.
pub(super) fn check_targets(work: &Path, targets: &[String]) -> Result<()> {
    let path = work.join(TARGETS);
    let Some(kept) = read(&path)? else { return Ok(()) };
    let kept: Vec<String> = serde_json::from_slice(&kept).map_err(|error| {
        Error::new(Kind::Input, "what the stopped run wrote to cannot be read").with("file", path.display()).caused_by(error)
    })?;
    if kept == targets {
        return Ok(());
    }
    Err(Error::new(Kind::Usage, "the tables are not those that the stopped run wrote to")
        .with("expected", kept.join(", "))
        .with("found", targets.join(", "))
        .with("hint", "name the same region, profile and address to go on, or begin anew with --restart"))
}

/// Keeps what the run writes to.
pub(super) fn keep_targets(work: &Path, targets: &[String]) -> Result<()> {
    store::write_atomically(&work.join(TARGETS), &json(&targets)?)
}

/// Keeps what the survey found.
pub(super) fn keep_survey(work: &Path, shapes: &[Shape], collisions: &Collisions) -> Result<()> {
    keep_collisions(work, collisions)?;
    // Written last: with it the survey is whole.
    store::write_atomically(&work.join(SHAPES), &json(&shapes)?)
}

/// Says that files are published from now on.
pub(super) fn publishes(work: &Path) -> Result<()> {
    store::write_atomically(&work.join(PUBLISHING), b"")
}

/// Whether the run that goes on may have published files.
pub(super) fn has_published(work: &Path) -> bool {
    work.join(PUBLISHING).exists() || work.join(REPORT).exists()
}

/// Keeps what the keys of all units say.
pub(super) fn keep_collisions(work: &Path, collisions: &Collisions) -> Result<()> {
    store::write_atomically(&work.join(COLLISIONS), &collisions.to_bytes())
}

/// What the keys of all units of the same run said before it was stopped, if it came to that. A run that has its report needs no more.
pub(super) fn kept_collisions(work: &Path) -> Result<Option<Collisions>> {
    if work.join(REPORT).exists() {
        return Ok(Some(Collisions::default()));
    }
    let Some(bytes) = read(&work.join(COLLISIONS))? else { return Ok(None) };
    Collisions::from_bytes(&bytes).map(Some).ok_or_else(|| unreadable(work))
}

/// What the survey of the same run found before it was stopped, if it came to its end.
///
/// A run that has its report, and was stopped while it removed the rest, needs no collisions any more.
pub(super) fn kept_survey(work: &Path) -> Result<Option<(Vec<Shape>, Collisions)>> {
    if work.join(REPORT).exists()
        && let Some(shapes) = read(&work.join(SHAPES))?
        && let Ok(shapes) = serde_json::from_slice(&shapes)
    {
        return Ok(Some((shapes, Collisions::default())));
    }
    let (Some(shapes), Some(collisions)) = (read(&work.join(SHAPES))?, read(&work.join(COLLISIONS))?) else { return Ok(None) };
    match (serde_json::from_slice(&shapes), Collisions::from_bytes(&collisions)) {
        (Ok(shapes), Some(collisions)) => Ok(Some((shapes, collisions))),
        _ => Err(unreadable(work)),
    }
}

fn unreadable(work: &Path) -> Error {
    Error::new(Kind::Input, "what the survey of the stopped run found cannot be read")
        .with("path", work.display())
        .with("hint", "begin anew with --restart")
}

/// Takes away what only a run that goes on needs; the run is finished. What is left where this is cut short is what a run leaves that goes on
/// rightly: one that was to read once, and had to look at all items first all the same, is not taken for one that did read once.
pub(super) fn tidy(work: &Path) {
    for name in [TARGETS, COLLISIONS, PROGRESS, PUBLISHING, ONCE, SHAPES] {
        match fs::remove_file(work.join(name)) {
            // What stays is in nobody's way.
            Err(error) if error.kind() != ErrorKind::NotFound => return,
            _ => {}
        }
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::new(Kind::Bug, "cannot write the state of the run").caused_by(error))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(Kind::Output, "cannot use the work folder").with("path", path.display()).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_is_never_taken_away_before_the_mark_of_a_run_that_reads_once() {
        let work = tempfile::tempdir().unwrap();
        fs::write(work.path().join(ONCE), b"").unwrap();
        // A folder cannot be removed as a file.
        fs::create_dir(work.path().join(SHAPES)).unwrap();
        tidy(work.path());
        assert!(!work.path().join(ONCE).exists());
        fs::write(work.path().join(ONCE), b"").unwrap();
        fs::create_dir(work.path().join(PUBLISHING)).unwrap();
        tidy(work.path());
        assert!(work.path().join(ONCE).exists());
    }
}
