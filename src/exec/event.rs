//! What a run tells its observer. The library draws nothing.

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A walk over the data files begins. The counts come from the manifest, where there is one.
    Started {
        /// What the walk is for.
        pass: Pass,
        /// Items to read, where the manifests say so.
        items: Option<u64>,
    },
    /// More lines were read.
    Read {
        /// Lines since the last event.
        items: u64,
        /// Uncompressed bytes since the last event.
        bytes: u64,
    },
    /// A run that was stopped goes on: what it need not do again.
    GoingOn {
        /// Units that are done.
        units: usize,
        /// Units in all.
        of: usize,
        /// Lines in the units that are done.
        items: u64,
    },
    /// A live target takes items, while the walk may wait for it.
    Taken {
        /// Items that it has taken since the run began or went on.
        items: u64,
    },
    /// The walk is over.
    Finished(Pass),
    /// An export was found and is about to be read: what it is, in words.
    Reading(String),
    /// What was done to make a target ready, and where it is: a line of its own.
    Ready(String),
    /// What a run wrote was found and is about to be taken back: where it is, in words.
    TakingBack(String),
    /// Something the user must look at; the run goes on.
    Warning(String),
}

/// What a walk over the data files is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All items are looked at before the first is written: keys that collide, schemas.
    Survey,
    /// Items are written.
    Write,
    /// Items are described, nothing is written.
    Inspect,
    /// Items are carried, to know what must be in a target.
    Expect,
    /// The items of a target are read.
    Target,
}

impl Pass {
    /// The pass in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pass::Survey => "survey",
            Pass::Write => "write",
            Pass::Inspect => "inspect",
            Pass::Expect => "expect",
            Pass::Target => "target",
        }
    }
}

/// Gets the events of a run, on the thread that called it.
pub trait Observer {
    /// Takes an event; called a few times a second and chunk, never per item.
    fn event(&mut self, event: Event);
}

/// An observer that looks away.
impl Observer for () {
    fn event(&mut self, _: Event) {}
}
