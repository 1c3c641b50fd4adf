//! Puts of one table that were never sent: in turn by partition key, in order within one.
//!
//! Exports lie in an order in which many items of one partition key follow each other; sent so, they would load one partition at a
//! time. Nothing here knows of requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

/// A put that could have gone for so long asks for its time anew, so that what gathered while nothing was sent does not go at once.
const STALE: Duration = Duration::from_millis(100);

/// What may become of the put that is next in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It goes.
    Goes,
    /// It goes with no request before [`Fresh::unpark`] is called.
    Parked,
    /// It does not go before this time.
    Sleeps(Instant),
    /// It goes, but not with this request.
    NotNow,
}

/// Puts in lines, a line for each partition key.
#[derive(Debug)]
pub(super) struct Fresh<P> {
    /// The puts of all lines; those of one are linked.
    places: Vec<Place<P>>,
    /// The first place that is free; the others are linked.
    free: Option<u32>,
    lines: FxHashMap<u64, Line>,
    /// The lines that can be asked, the next one first.
    turn: VecDeque<u64>,
    /// Lines that wait for another put to be done.
    parked: Vec<u64>,
    /// Lines that wait for their time.
    asleep: BinaryHeap<Reverse<(Instant, u64)>>,
    len: usize,
}

#[derive(Debug)]
struct Place<P> {
    put: Option<P>,
    next: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    first: u32,
    last: u32,
    /// When the first put may go, where it had to wait for its time.
    slot: Option<Instant>,
}

impl<P> Default for Fresh<P> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: None,
            lines: FxHashMap::default(),
            turn: VecDeque::new(),
            parked: Vec::new(),
            asleep: BinaryHeap::new(),
            len: 0,
        }
    }
}

impl<P> Fresh<P> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a put at the end of its partition key's line.
    pub(super) fn push(&mut self, partition: u64, put: P) {
        let place = Place { put: Some(put), next: None };
        let at = if let Some(at) = self.free {
            self.free = self.places[at as usize].next;
            self.places[at as usize] = place;
            at
        } else {
            self.places.push(place);
            u32::try_from(self.places.len() - 1).expect("what lies in memory is bounded far below 2^32 puts")
        };
        self.len += 1;
        if let Some(line) = self.lines.get_mut(&partition) {
            self.places[line.last as usize].next = Some(at);
            line.last = at;
        } else {
            self.lines.insert(partition, Line { first: at, last: at, slot: None });
            self.turn.push_back(partition);
        }
    }

    /// Takes the next put that may go. `judge` says of one whether it does; it is told whether the put has waited for its time.
    pub(super) fn pop(&mut self, now: Instant, mut judge: impl FnMut(&P, bool) -> Next) -> Option<P> {
        for _ in 0..self.turn.len() {
            let partition = self.turn.pop_front()?;
            let line = self.lines.get_mut(&partition)?;
            let Place { put, next } = &mut self.places[line.first as usize];
            let waited = line.slot.is_some_and(|slot| now.saturating_duration_since(slot) < STALE);
            match judge(put.as_ref()?, waited) {
                Next::Goes => {}
                Next::Parked => {
                    self.parked.push(partition);
                    continue;
                }
                Next::Sleeps(until) => {
                    line.slot = Some(until);
                    self.asleep.push(Reverse((until, partition)));
                    continue;
                }
                Next::NotNow => {
                    self.turn.push_front(partition);
                    return None;
                }
            }
            let put = put.take();
            let (gone, next) = (line.first, next.take());
            self.places[gone as usize].next = self.free.replace(gone);
            self.len -= 1;
            match next {
                Some(next) => {
                    (line.first, line.slot) = (next, None);
                    self.turn.push_back(partition);
                }
                None => drop(self.lines.remove(&partition)),
            }
            return put;
        }
        None
    }

    /// Lets parked puts be asked again.
    pub(super) fn unpark(&mut self) {
        self.turn.extend(self.parked.drain(..));
    }

    /// Lets the puts be asked whose time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some(Reverse((until, partition))) = self.asleep.peek().copied()
            && until <= now
        {
            self.asleep.pop();
            self.turn.push_back(partition);
        }
    }

    /// When the next put has its time.
    pub(super) fn wakes(&self) -> Option<Instant> {
        self.asleep.peek().map(|Reverse((until, _))| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(puts: &[(u64, &'static str)]) -> Fresh<&'static str> {
        let mut fresh = Fresh::default();
        for (partition, put) in puts {
            fresh.push(*partition, *put);
        }
        fresh
    }

    fn all(fresh: &mut Fresh<&'static str>, mut judge: impl FnMut(&&'static str, bool) -> Next) -> Vec<&'static str> {
        let now = Instant::now();
        std::iter::from_fn(|| fresh.pop(now, &mut judge)).collect()
    }

    #[test]
    fn partition_keys_take_turns_and_each_keeps_its_order() {
        let mut fresh = fresh(&[(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (3, "c2")]);
        assert_eq!(fresh.pop(Instant::now(), |_, _| Next::Goes), Some("a1"));
        fresh.push(2, "b2");
        fresh.push(4, "d1");
        assert_eq!(all(&mut fresh, |_, _| Next::Goes), ["b1", "c1", "a2", "d1", "b2", "c2", "a3"]);
        assert_eq!((fresh.len(), fresh.lines.len()), (0, 0));
    }

    #[test]
    fn places_are_used_again() {
        let mut fresh = fresh(&[(0, "x")]);
        for partition in 1..1000 {
            fresh.push(partition, "y");
            assert!(fresh.pop(Instant::now(), |_, _| Next::Goes).is_some());
        }
        assert_eq!((fresh.len(), fresh.places.len()), (1, 2));
    }

    #[test]
    fn a_parked_put_holds_up_its_line_alone() {
        let mut fresh = fresh(&[(1, "a1"), (1, "a2"), (2, "b1"), (2, "b2")]);
        assert_eq!(all(&mut fresh, |put, _| if *put == "a1" { Next::Parked } else { Next::Goes }), ["b1", "b2"]);
        fresh.unpark();
        assert_eq!(all(&mut fresh, |_, _| Next::Goes), ["a1", "a2"]);
    }

    #[test]
    fn a_put_that_does_not_fit_stays_first() {
        let mut fresh = fresh(&[(1, "a1"), (2, "b1")]);
        assert_eq!(all(&mut fresh, |_, _| Next::NotNow), Vec::<&str>::new());
        assert_eq!(all(&mut fresh, |_, _| Next::Goes), ["a1", "b1"]);
    }

    #[test]
    fn a_put_sleeps_until_its_time_and_then_goes_unless_it_could_have_gone_long_ago() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut fresh = fresh(&[(1, "a1"), (1, "a2"), (2, "b1")]);
        let mut judged = Vec::new();
        let mut pop = |fresh: &mut Fresh<&'static str>, now| {
            fresh.wake(now);
            fresh.pop(now, |put, waited| {
                judged.push((*put, waited));
                if waited || put.starts_with('b') { Next::Goes } else { Next::Sleeps(now + Duration::from_millis(500)) }
            })
        };
        assert_eq!(pop(&mut fresh, at(0)), Some("b1"));
        assert_eq!((fresh.wakes(), pop(&mut fresh, at(499))), (Some(at(500)), None));
        assert_eq!(pop(&mut fresh, at(500)), Some("a1"));
        assert_eq!((pop(&mut fresh, at(501)), fresh.wakes()), (None, Some(at(1001))));
        assert_eq!((pop(&mut fresh, at(1200)), fresh.wakes()), (None, Some(at(1700))));
        assert_eq!((pop(&mut fresh, at(1700)), fresh.wakes()), (Some("a2"), None));
        assert_eq!(judged, [("a1", false), ("b1", false), ("a1", true), ("a2", false), ("a2", false), ("a2", true)]);
    }
}
