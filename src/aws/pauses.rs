//! The pause before a request is sent again: of random length, so that clients that failed together do not come back together.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

/// Gives pauses. The first is at most `first`; with each attempt the longest possible one doubles, up to `longest`.
#[derive(Debug)]
pub(crate) struct Pauses {
    first: Duration,
    longest: Duration,
    dice: u64,
}

impl Pauses {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        // The numbers need not be good, only different for each process.
        Self { first, longest, dice: RandomState::new().hash_one(0_u8) | 1 }
    }

    /// The pause after an attempt that so many others had gone before.
    pub(crate) fn after(&mut self, attempts: u32) -> Duration {
        self.first.saturating_mul(1 << attempts.min(16)).min(self.longest).mul_f64(self.roll())
    }

    /// Between 0 and 1.
    fn roll(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        f64::from(u32::try_from(self.dice >> 32).expect("32 bits are left")) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_random_and_their_bound_doubles_up_to_the_longest() {
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(1));
        for (attempts, bound) in [(0, 100), (1, 200), (2, 400), (4, 1000), (u32::MAX, 1000)] {
            let some: Vec<_> = (0..50).map(|_| pauses.after(attempts)).collect();
            let (least, most) = (some.iter().min().unwrap(), some.iter().max().unwrap());
            assert!(*most <= Duration::from_millis(bound), "{most:?}");
            assert!(least < most);
        }
    }
}
