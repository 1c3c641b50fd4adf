//! How a run is asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Kind, Result};
use crate::sink::GoOn;

/// Asks a run to stop. All clones ask the same run, from any thread and as often as they like.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks. The run ends soon with an error of kind `Interrupted`; what it was working on is done again when it goes on.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The flag that asks, for who can only set one: a signal.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether anybody asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// An error where somebody asked.
    pub(crate) fn check(&self) -> Result<()> {
        if self.asked() { Err(Error::new(Kind::Interrupted, "stopped as asked")) } else { Ok(()) }
    }

    /// The same check, for a sink.
    pub(crate) fn go_on(&self) -> GoOn {
        let stop = self.clone();
        Arc::new(move || stop.check())
    }
}
