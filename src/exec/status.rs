//! Where a run is, for whoever looks into its work folder from outside.
//!
//! A run leaves a heartbeat about once a second; the rest is read from its identity and the reports of its units.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::exec::event::{Event, Observer};
use crate::exec::ledger::{Counts, Ledger};
use crate::exec::state::{self, Found, PROGRESS};
use crate::exec::units::UnitReport;
use crate::exec::work::WorkFolder;

/// How often it is written.
const EVERY: Duration = Duration::from_secs(1);

/// What a run says of itself while it works.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Heartbeat {
    /// `survey` or `write`.
    pass: String,
    /// Lines read in this pass, by units that were done before too.
    items: u64,
    /// Lines to read, where the manifests say so.
    of: Option<u64>,
    /// Lines read since this process began the pass, and for how long, so that a rate can be told.
    since: u64,
    seconds: f64,
    /// Items that a live target has taken since then.
    taken: Option<u64>,
    /// When it was written, in seconds since 1970.
    at: u64,
}

/// An observer that leaves the heartbeat and passes every event on.
pub(super) struct Recorder<'o> {
    observer: &'o mut dyn Observer,
    path: PathBuf,
    heartbeat: Heartbeat,
    started: Instant,
    written: Option<Instant>,
}

impl<'o> Recorder<'o> {
    pub(super) fn new(observer: &'o mut dyn Observer, work: &Path) -> Self {
        let now = Instant::now();
        Self { observer, path: work.join(PROGRESS), heartbeat: Heartbeat::default(), started: now, written: None }
    }

    fn write(&mut self) {
        self.written = Some(Instant::now());
        self.heartbeat.seconds = self.started.elapsed().as_secs_f64();
        self.heartbeat.at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let Ok(json) = serde_json::to_vec(&self.heartbeat) else { return };
        let temporary = self.path.with_extension("tmp");
        // It only tells people where the run is, so a disk that refuses it ends no run.
        let _ = fs::write(&temporary, json).and_then(|()| fs::rename(&temporary, &self.path));
    }
}

impl Observer for Recorder<'_> {
    fn event(&mut self, event: Event) {
        match &event {
            Event::Started { pass, items } => {
                self.heartbeat = Heartbeat { pass: pass.name().to_owned(), of: *items, ..Heartbeat::default() };
                self.started = Instant::now();
                self.write();
            }
            Event::Read { items, .. } => {
                self.heartbeat.items += items;
                self.heartbeat.since += items;
                if self.written.is_none_or(|written| written.elapsed() >= EVERY) {
                    self.write();
                }
            }
            Event::Taken { items } => {
                self.heartbeat.taken = Some(*items);
                if self.written.is_none_or(|written| written.elapsed() >= EVERY) {
                    self.write();
                }
            }
            Event::GoingOn { items, .. } => self.heartbeat.items += items,
            Event::Finished(_) => self.write(),
            _ => {}
        }
        self.observer.event(event);
    }
}

/// Where a run is. The field names are stable.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// `running`, `stopped` (the same command goes on), `done`, or `taken back` by `undo`.
    pub state: &'static str,
    /// Its sinks, as on the command line.
    pub sinks: Vec<String>,
    /// What it is doing, or was doing when it stopped: `survey` or `write`.
    pub pass: Option<String>,
    /// Lines read in this pass.
    pub items: u64,
    /// Lines to read, where the manifests say so.
    pub items_in_all: Option<u64>,
    /// Items that live tables have taken since this process began or went on.
    pub items_taken: Option<u64>,
    /// Items a second, while it runs: those that live tables took, else lines read.
    pub items_per_second: Option<f64>,
    /// Seconds left in this pass at that rate, while it runs.
    pub seconds_left: Option<f64>,
    /// Seconds since the run last said where it is; many of them say that it waits for something, such as a throttled table.
    pub silent_seconds: Option<u64>,
    /// Units that are done.
    pub units_done: usize,
    /// Units in all.
    pub units: usize,
    /// What the units that are done wrote, dropped and rejected.
    pub total: Counts,
    /// Rejects of them by `stage/rule`.
    pub rejects: std::collections::BTreeMap<String, u64>,
}

/// Looks into a work folder; changes nothing, and may be asked at any time.
///
/// # Errors
/// Kind `Usage` when the folder holds no run, kind `Input` when a report of a unit cannot be read.
pub fn status(work: &Path) -> Result<Status> {
    let held = WorkFolder::is_held(work);
    let (identity, state) = match state::look(work)? {
        Found::Unfinished(identity) => (identity, if held { "running" } else { "stopped" }),
        Found::Finished(identity) => (identity, "done"),
        Found::TakenBack(identity) => (identity, "taken back"),
        Found::Nothing => {
            return Err(Error::new(Kind::Usage, "the folder holds no run")
                .with("path", work.display())
                .with("expected", "the work folder of a run: what --work says, or .dynamorph/PIPELINE")
                .with("hint", "a run that has only begun says where it is after a moment"));
        }
    };
    let mut ledger = Ledger::default();
    let mut units_done = 0;
    for unit in (1..).take(identity.units) {
        if UnitReport::path(work, unit).exists() {
            ledger.add(&UnitReport::load(work, unit)?.ledger);
            units_done += 1;
        }
    }
    let heartbeat: Option<Heartbeat> = fs::read(work.join(PROGRESS)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let running = heartbeat.as_ref().filter(|_| state == "running");
    // A live table is what the run waits for, so it decides.
    let done = |beat: &Heartbeat| beat.taken.unwrap_or(beat.since);
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = running.filter(|beat| done(beat) > 0 && beat.seconds > 0.0).map(|beat| done(beat) as f64 / beat.seconds);
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    let left = running.and_then(|beat| Some((beat.of? + beat.since).saturating_sub(beat.items + done(beat)) as f64 / rate?));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(Status {
        state,
        sinks: identity.sinks,
        pass: heartbeat.as_ref().filter(|_| matches!(state, "running" | "stopped")).map(|beat| beat.pass.clone()),
        items: heartbeat.as_ref().map_or(0, |beat| beat.items),
        items_in_all: heartbeat.as_ref().and_then(|beat| beat.of),
        items_taken: running.and_then(|beat| beat.taken),
        items_per_second: rate,
        seconds_left: left,
        silent_seconds: running.map(|beat| now.saturating_sub(beat.at)),
        units_done,
        units: identity.units,
        total: ledger.total(),
        rejects: ledger.rules,
    })
}
