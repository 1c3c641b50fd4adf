//! How fast puts may go: a bucket of write units for all tables together, and a pace for each partition key.
//!
//! Every time is told, none is looked up.

use std::num::NonZeroU32;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

/// What the bucket holds at most: what flows into it in this time.
const BURST: f64 = 0.25;

/// What a ramp starts with, of the whole rate.
const START: f64 = 0.1;

/// What is left of the rate when the service says that it is too much.
const LESS: f64 = 0.7;

/// The least that is left, however often it says so.
const LEAST: f64 = 0.02;

/// What of the whole rate comes back in a second.
const RISE: f64 = 0.05;

/// The rate is lowered at most once in this time, since what is under way is throttled together, and what a lower rate does shows
/// only after a while.
const CALM: Duration = Duration::from_secs(1);

/// Write units a second that a partition key gets. A partition takes 1,000 (AWS, "Best practices for designing and using partition
/// keys"); some room is left for what is sent again.
const PACE: f64 = 900.0;

/// How far a partition key may run ahead of its pace.
const AHEAD: Duration = Duration::from_millis(50);

/// Units, by estimate and by the service's count, that a table's ratio is made of at first. The more, the slower it moves.
const INERTIA: f64 = 500.0;

/// What an answer leaves of the answers before it.
const MEMORY: f64 = 0.98;

/// The state of a limited rate; one for all units of work, since they write one after the other.
#[derive(Debug)]
pub(super) struct Rate {
    /// Units a second.
    most: f64,
    ramp: Duration,
    /// When the first put asked.
    started: Option<Instant>,
    /// What throttling has left of the rate, from 0 to 1.
    share: f64,
    lowered: Option<Instant>,
    /// Units in the bucket. Below 0 after an item of more units than the bucket holds.
    units: f64,
    filled: Instant,
    /// By table.
    ratios: Vec<Ratio>,
    /// By the number of a partition key: up to when its pace is used up. A key that is not here is idle.
    paces: FxHashMap<u64, Instant>,
    /// How many partition keys were left when the idle ones were taken out.
    swept: usize,
}

/// What the service counted, and what was estimated for the same puts.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    counted: f64,
    estimated: f64,
}

impl Rate {
    pub(super) fn new(most: NonZeroU32, ramp: Option<Duration>, tables: usize, now: Instant) -> Self {
        Self {
            most: f64::from(most.get()),
            ramp: ramp.unwrap_or_default(),
            started: None,
            share: 1.0,
            lowered: None,
            units: 0.0,
            filled: now,
            ratios: vec![Ratio { counted: INERTIA, estimated: INERTIA }; tables],
            paces: FxHashMap::default(),
            swept: 0,
        }
    }

    /// The rate at this time, in units a second.
    fn rate(&self, now: Instant) -> f64 {
        let since = self.started.map_or(Duration::ZERO, |started| now.saturating_duration_since(started));
        let ramped = if since < self.ramp { START + (1.0 - START) * since.as_secs_f64() / self.ramp.as_secs_f64() } else { 1.0 };
        self.most * ramped * self.share
    }

    fn fill(&mut self, now: Instant) {
        if self.started.is_none() {
            (self.started, self.filled) = (Some(now), now);
        }
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.share = (self.share + RISE * seconds).min(1.0);
        let rate = self.rate(now);
        self.units = (self.units + rate * seconds).min(rate * BURST);
        self.filled = self.filled.max(now);
    }

    /// What puts of a table will cost by all that is known, when their estimate is `units`.
    pub(super) fn cost(&self, table: usize, units: f64) -> f64 {
        let Ratio { counted, estimated } = self.ratios[table];
        units * counted / estimated
    }

    /// What the bucket can hold; a request of more would wait for it in vain, one put alone excepted.
    pub(super) fn bucket(&self, now: Instant) -> f64 {
        self.rate(now) * BURST
    }

    /// Takes what a request costs out of the bucket, or says when it may be asked for again.
    pub(super) fn take(&mut self, cost: f64, now: Instant) -> Result<(), Instant> {
        self.fill(now);
        let missing = cost.min(self.bucket(now)) - self.units;
        // Far less than a unit is an error of the arithmetic.
        if missing < 1e-6 {
            self.units -= cost;
            return Ok(());
        }
        Err(now + Duration::from_secs_f64(missing / self.rate(now)))
    }

    /// Learns what the service counted for puts of a table.
    pub(super) fn learn(&mut self, table: usize, estimated: f64, counted: f64) {
        let ratio = &mut self.ratios[table];
        ratio.counted = ratio.counted * MEMORY + counted;
        ratio.estimated = ratio.estimated * MEMORY + estimated;
    }

    /// The service said that it is too much.
    pub(super) fn throttled(&mut self, now: Instant) {
        if self.lowered.is_none_or(|lowered| now.saturating_duration_since(lowered) >= CALM) {
            self.fill(now);
            self.share = (self.share * LESS).max(LEAST);
            self.units = self.units.min(self.bucket(now));
            self.lowered = Some(now);
        }
    }

    /// Whether partition keys can be loaded beyond their pace at all.
    pub(super) fn paces(&self) -> bool {
        self.most > PACE
    }

    /// When a put of so many units may go that loads these partition keys; the time is taken for it.
    pub(super) fn slot(&mut self, loads: impl Iterator<Item = u64> + Clone, units: u32, now: Instant) -> Instant {
        let known = loads.clone().filter_map(|key| self.paces.get(&key).copied());
        let slot = known.max().and_then(|until| until.checked_sub(AHEAD)).unwrap_or(now).max(now);
        let takes = Duration::from_secs_f64(f64::from(units) / PACE);
        for key in loads {
            let until = self.paces.entry(key).or_insert(slot);
            *until = (*until).max(slot) + takes;
        }
        if self.paces.len() >= 2 * self.swept + 4096 {
            self.paces.retain(|_, until| *until > now);
            self.swept = self.paces.len();
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// A random number below `most`, always the same row of them.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, most: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most
        }
    }

    /// Sends requests of these costs as soon as they may go, for so many seconds; gives the units sent in each millisecond. Timers wake
    /// up to 2 ms too late.
    fn sent(rate: &mut Rate, start: Instant, seconds: u64, mut cost: impl FnMut(f64) -> f64) -> Vec<f64> {
        let mut dice = Dice(7);
        let end = Duration::from_secs(seconds);
        let mut sent = vec![0.0; usize::try_from(seconds * 1000).unwrap()];
        let mut now = start;
        loop {
            let next = cost(rate.bucket(now));
            while let Err(until) = rate.take(next, now) {
                now = until + Duration::from_micros(dice.roll(2000));
            }
            let since = now - start;
            if since >= end {
                return sent;
            }
            sent[usize::try_from(since.as_millis()).unwrap()] += next;
        }
    }

    fn rate(most: u32, ramp: Option<Duration>, now: Instant) -> Rate {
        Rate::new(NonZeroU32::new(most).unwrap(), ramp, 1, now)
    }

    #[test]
    fn over_a_minute_the_rate_is_what_was_asked_for_and_no_second_has_much_more() {
        for most in [1_u32, 7, 40, 1000, 25_000] {
            let start = Instant::now();
            let mut dice = Dice(3);
            // Requests of up to 25 puts, of 1 to 40 units each, as far as the bucket holds them.
            let request = |bucket: f64| {
                let mut all = 1.0;
                for _ in 0..25 {
                    #[expect(clippy::cast_precision_loss, reason = "it is less than 40")]
                    let next = (1 + dice.roll(40)) as f64;
                    if all + next > bucket {
                        break;
                    }
                    all += next;
                }
                all
            };
            let sent = sent(&mut rate(most, None, start), start, 60, request);
            let most = f64::from(most);
            let all: f64 = sent.iter().sum();
            assert!((all / (60.0 * most) - 1.0).abs() < 0.02, "{all} of {}", 60.0 * most);
            assert!(sent[..1000].iter().sum::<f64>() <= most + 1.0);
            let busiest = sent.windows(1000).step_by(10).map(|second| second.iter().sum::<f64>()).fold(0.0, f64::max);
            assert!(busiest <= most * 1.25 + 1.0, "{busiest} of {most}");
        }
    }

    #[test]
    fn an_item_of_more_units_than_the_bucket_holds_passes_and_is_paid_for() {
        let start = Instant::now();
        let sent = sent(&mut rate(100, None, start), start, 60, |_| 400.0);
        let all: f64 = sent.iter().sum();
        assert!((5600.0..=6400.0).contains(&all), "{all}");
    }

    #[test]
    fn a_ramp_goes_evenly_from_a_tenth_to_the_whole() {
        let start = Instant::now();
        let sent = sent(&mut rate(1000, Some(Duration::from_secs(10)), start), start, 20, |_| 5.0);
        let seconds: Vec<f64> = sent.chunks(1000).map(|second| second.iter().sum()).collect();
        for (at, expected) in [(0, 145.0), (1, 235.0), (5, 595.0), (9, 955.0), (10, 1000.0), (19, 1000.0)] {
            let found: f64 = seconds[at];
            assert!((found - expected).abs() < 30.0, "{found} in second {at}");
        }
    }

    #[test]
    fn throttling_lowers_the_rate_once_in_a_calm_time_and_it_comes_back_but_never_above_what_was_asked_for() {
        let start = Instant::now();
        let mut rate = rate(1000, None, start);
        rate.take(0.0, start).unwrap();
        let at = |rate: &Rate, now| rate.rate(now);
        for millis in 0..50 {
            rate.throttled(start + MILLI * millis);
        }
        assert!((at(&rate, start) - 700.0).abs() < 3.0);
        rate.throttled(start + MILLI * 1000);
        assert!((at(&rate, start) - 525.0).abs() < 3.0, "{}", at(&rate, start));
        rate.take(0.0, start + MILLI * 3000).unwrap();
        assert!((at(&rate, start) - 625.0).abs() < 3.0);
        rate.take(0.0, start + MILLI * 60_000).unwrap();
        assert!((at(&rate, start) - 1000.0).abs() < 1e-9);
        for second in 0..1000 {
            rate.throttled(start + MILLI * (60_000 + second * 1000));
        }
        assert!(at(&rate, start) >= 20.0);
    }

    #[test]
    fn the_bucket_follows_what_the_service_counts() {
        let mut rate = rate(1000, None, Instant::now());
        assert!((rate.cost(0, 10.0) - 10.0).abs() < 1e-9);
        for _ in 0..500 {
            rate.learn(0, 25.0, 50.0);
        }
        assert!((rate.cost(0, 10.0) - 20.0).abs() < 0.1);
        rate.learn(0, 25.0, 2500.0);
        assert!(rate.cost(0, 10.0) < 45.0, "one answer moves it slowly");
    }

    #[test]
    fn a_partition_key_gets_less_than_a_partition_takes_and_others_do_not_wait_for_it() {
        let start = Instant::now();
        let mut rate = rate(10_000, None, start);
        let hot: Vec<_> = (0..3000).map(|_| rate.slot([1, 2].into_iter(), 1, start)).collect();
        for (at, slot) in hot.iter().enumerate() {
            let second = hot.iter().filter(|other| (*slot..*slot + Duration::from_secs(1)).contains(*other)).count();
            assert!(second < 1000, "{second} units in the second after put {at}");
        }
        let last = (*hot.last().unwrap() - start).as_secs_f64();
        assert!((3.2..3.4).contains(&last), "{last}");
        assert_eq!(rate.slot([3].into_iter(), 1, start), start);
        assert!(rate.slot([2, 4].into_iter(), 1, start) > start + Duration::from_secs(3), "a value of an index is paced too");
    }

    #[test]
    fn partition_keys_that_are_idle_are_forgotten() {
        let start = Instant::now();
        let mut rate = rate(10_000, None, start);
        for key in 1..=100_000_u64 {
            rate.slot([key].into_iter(), 1, start + Duration::from_micros(100 * key));
        }
        assert!(rate.paces.len() < 5000, "{}", rate.paces.len());
    }
}
