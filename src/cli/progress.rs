//! Progress on stderr: a bar on a terminal, a plain line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use dynamorph::event::{Event, Observer};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// How often a plain line is written.
const EVERY: Duration = Duration::from_secs(10);

/// Items a second, in whole numbers.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // Nobody is left to be told when the bar cannot be drawn.
    let _ = out.write_fmt(format_args!("{:.0} items/s", state.per_sec()));
}

/// Draws the events of a run.
pub(crate) struct Progress {
    quiet: bool,
    terminal: bool,
    bar: Option<ProgressBar>,
    name: &'static str,
    items: u64,
    /// Items of units that were done before.
    before: u64,
    /// Items that a live table has taken.
    taken: Option<u64>,
    total: Option<u64>,
    started: Instant,
    said: Instant,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let now = Instant::now();
        Self {
            quiet,
            terminal: std::io::stderr().is_terminal(),
            bar: None,
            name: "",
            items: 0,
            before: 0,
            taken: None,
            total: None,
            started: now,
            said: now,
        }
    }

    fn start(&mut self, name: &'static str, total: Option<u64>) {
        (self.name, self.items, self.total, self.started, self.said) = (name, 0, total, Instant::now(), Instant::now());
        (self.before, self.taken) = (0, None);
        if !self.terminal {
            return;
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{prefix:>8} [{bar:30}] {human_pos}/{human_len} items  {rate}  {eta} left"),
            None => (ProgressBar::new_spinner(), "{prefix:>8} {spinner} {human_pos} items  {rate}"),
        };
        // The templates are constants; a mistake in one shows the plain bar.
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ")
            .with_key("rate", rate);
        self.bar = Some(bar.with_style(style).with_prefix(name));
    }

    fn advance(&mut self, items: u64) {
        self.items += items;
        match &self.bar {
            Some(bar) if self.taken.is_none() => bar.inc(items),
            None if self.said.elapsed() >= EVERY => {
                self.said = Instant::now();
                say(&self.line());
            }
            _ => {}
        }
    }

    /// What a live table has taken is how far the run is; what was read only waits.
    fn taken(&mut self, items: u64) {
        self.taken = Some(items);
        if let Some(bar) = &self.bar {
            bar.set_position(self.before + items);
        }
        self.advance(0);
    }

    fn finish(&mut self) {
        match self.bar.take() {
            Some(bar) => bar.finish_and_clear(),
            None => say(&format!("{}, {:.1} s", self.line(), self.started.elapsed().as_secs_f64())),
        }
    }

    fn line(&self) -> String {
        let taken = self.taken.map(|taken| format!(" read, {taken} taken by live tables")).unwrap_or_default();
        match self.total {
            Some(total) => format!("{}: {} of {total} items{taken}", self.name, self.items),
            None => format!("{}: {} items{taken}", self.name, self.items),
        }
    }
}

impl Observer for Progress {
    fn event(&mut self, event: Event) {
        if self.quiet {
            return;
        }
        match event {
            Event::Started { pass, items } => self.start(pass.name(), items),
            Event::Read { items, .. } => self.advance(items),
            Event::GoingOn { units, of, items } => {
                let text = format!("going on: {units} of {of} units are done already");
                self.items += items;
                self.before = items;
                match &self.bar {
                    Some(bar) => {
                        bar.suspend(|| say(&text));
                        bar.set_position(items);
                        bar.reset_eta();
                    }
                    None => say(&text),
                }
            }
            Event::Taken { items } => self.taken(items),
            Event::Finished(_) => self.finish(),
            Event::Reading(what) => say(&format!("reading {what}")),
            Event::Ready(line) => say(&line),
            Event::TakingBack(what) => say(&format!("taking back {what}")),
            Event::Warning(text) => match &self.bar {
                Some(bar) => bar.suspend(|| say(&format!("warning: {text}"))),
                None => say(&format!("warning: {text}")),
            },
            _ => {}
        }
    }
}

/// Writes a line to stderr. What a run does is worth more than what it says, so a stderr that takes nothing ends no run.
fn say(line: &str) {
    drop(std::io::stderr().write_all(format!("{line}\n").as_bytes()));
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
