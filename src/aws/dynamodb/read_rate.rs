//! A cap on read units a second, for all readers of a table together.
//!
//! Knows no request: who reads says what it will take, waits as long as it is told, and says afterwards what it took.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::{Error, Kind, Result};

/// What may be read at once after a while without reads, in seconds of the rate.
const BURST: f64 = 0.25;

/// A cap that threads share.
#[derive(Debug)]
pub struct ReadRate {
    units: NonZeroU32,
    started: Instant,
    bucket: Mutex<Bucket>,
}

impl ReadRate {
    /// At most so many read units a second.
    #[must_use]
    pub fn new(units: NonZeroU32) -> Self {
        Self { units, started: Instant::now(), bucket: Mutex::new(Bucket::new(f64::from(units.get()))) }
    }

    /// The cap.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.units.get()
    }

    /// Waits until a read of about so many units may begin.
    pub(super) fn wait_for(&self, units: f64) -> Result<()> {
        let pause = self.bucket.lock().map_err(|_| poisoned())?.reserve(self.started.elapsed(), units);
        std::thread::sleep(pause);
        Ok(())
    }

    /// Says what a read took for which so many units were waited for.
    pub(super) fn took(&self, waited_for: f64, units: f64) -> Result<()> {
        self.bucket.lock().map_err(|_| poisoned())?.correct(waited_for, units);
        Ok(())
    }
}

fn poisoned() -> Error {
    Error::new(Kind::Bug, "a thread ended while it held the read rate")
}

/// Units that may be read now; below zero, units that were read ahead of time.
#[derive(Debug)]
struct Bucket {
    rate: f64,
    units: f64,
    at: Duration,
}

impl Bucket {
    fn new(rate: f64) -> Self {
        Self { rate, units: 0.0, at: Duration::ZERO }
    }

    /// Takes units out; gives how long to wait until they are there.
    fn reserve(&mut self, now: Duration, units: f64) -> Duration {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.units = (self.units + passed * self.rate).min(self.rate * BURST) - units;
        if self.units < 0.0 { Duration::from_secs_f64(-self.units / self.rate) } else { Duration::ZERO }
    }

    /// Puts back what was reserved, and takes out what was used.
    fn correct(&mut self, reserved: f64, used: f64) {
        self.units += reserved - used;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers that ask in turn, each as soon as it may; gives the units that were read until each full second.
    fn read(rate: f64, readers: usize, seconds: u32, estimate: impl Fn(usize) -> f64, real: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut bucket = Bucket::new(rate);
        let mut free_at = vec![Duration::ZERO; readers];
        let mut used = vec![0.0; seconds as usize];
        for turn in 0.. {
            let reader = (0..readers).min_by_key(|at| free_at[*at]).unwrap();
            let now = free_at[reader];
            let begins = now + bucket.reserve(now, estimate(turn));
            bucket.correct(estimate(turn), real(turn));
            let Some(second) = used.get_mut(usize::try_from(begins.as_secs()).unwrap()) else { break };
            *second += real(turn);
            // A page takes 5 ms.
            free_at[reader] = begins + Duration::from_millis(5);
        }
        used.iter()
            .scan(0.0, |sum, units| {
                *sum += units;
                Some(*sum)
            })
            .collect()
    }

    #[test]
    fn no_more_is_read_than_the_cap_allows_and_hardly_less() {
        for (rate, readers) in [(10.0, 1), (100.0, 1), (1_000.0, 8), (40_000.0, 16)] {
            let page = (rate / 20.0_f64).clamp(1.0, 256.0);
            let read = read(rate, readers, 60, |_| page, |_| page);
            for (seconds, units) in (1_u32..).zip(&read) {
                assert!(*units <= rate * (f64::from(seconds) + BURST) + page, "{rate}: {units} units in {seconds} s");
            }
            let all = read.last().unwrap();
            assert!((0.98..1.02).contains(&(all / (rate * 60.0))), "{rate}: {all} units in 60 s");
        }
    }

    #[test]
    fn what_was_estimated_wrongly_is_made_good() {
        // Estimates of one unit for pages of 1 to 256.
        let read = read(500.0, 8, 60, |_| 1.0, |turn| if turn % 3 == 0 { 256.0 } else { 10.0 });
        let all = read.last().unwrap() / 60.0;
        assert!((490.0..540.0).contains(&all), "{all} units a second");
    }

    #[test]
    fn a_pause_earns_no_more_than_the_burst() {
        let mut bucket = Bucket::new(100.0);
        assert_eq!(bucket.reserve(Duration::from_hours(1), 25.0), Duration::ZERO);
        assert_eq!(bucket.reserve(Duration::from_hours(1), 50.0), Duration::from_millis(500));
    }
}
