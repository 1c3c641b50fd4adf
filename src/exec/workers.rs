//! The pool, and how many of all threads compute at a time.

use std::sync::Arc;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Kind, Result};
use crate::sink::Spawn;
use crate::source::turns::Turns;

/// The workers of a command. They and those who read and decompress beside them take turns, as many as the user allows.
pub(crate) struct Workers {
    jobs: usize,
    pool: Arc<ThreadPool>,
    /// Where there are more processors than turns; else the system shares them out, which is quicker.
    turns: Option<Turns>,
}

impl Workers {
    pub(crate) fn new(jobs: usize) -> Result<Self> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(jobs)
            .thread_name(|at| format!("worker-{at}"))
            .build()
            .map_err(|error| Error::new(Kind::Usage, "cannot start the workers").with("jobs", jobs).caused_by(error))?;
        let turns = thread::available_parallelism().is_ok_and(|processors| jobs < processors.get()).then(|| Turns::new(jobs));
        Ok(Self { jobs, pool: Arc::new(pool), turns })
    }

    /// At most so many chunks are worked on, or wait to be taken.
    pub(crate) fn window(&self) -> usize {
        self.jobs * 2 + 1
    }

    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    pub(crate) fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref()
    }

    /// What runs the jobs of sinks.
    pub(crate) fn spawn(&self) -> Spawn {
        let (pool, turns) = (Arc::clone(&self.pool), self.turns.clone());
        Arc::new(move |job| {
            let turns = turns.clone();
            pool.spawn_fifo(move || {
                let _turn = turns.as_ref().map(Turns::take);
                job();
            });
        })
    }
}
