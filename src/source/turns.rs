//! Turns at the processors: how many threads compute at a time, whatever their number.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// So many turns. A thread takes one while it computes, never while it waits for another thread, a disk or a network.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: Mutex<usize>,
    given_back: Condvar,
}

/// A turn that was taken; it is given back when this is dropped.
#[derive(Debug)]
pub struct Turn(Arc<Shared>);

impl Turns {
    /// Turns for so many threads, at least one.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self(Arc::new(Shared { free: Mutex::new(threads.max(1)), given_back: Condvar::new() }))
    }

    /// Takes a turn; waits until one is free.
    #[must_use]
    pub fn take(&self) -> Turn {
        let free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.0.given_back.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Turn(Arc::clone(&self.0))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_threads_have_a_turn_than_there_are() {
        let turns = Turns::new(2);
        let (busy, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|threads| {
            for _ in 0..6 {
                threads.spawn(|| {
                    for _ in 0..20 {
                        let turn = turns.take();
                        most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::sleep(Duration::from_micros(100));
                        busy.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 2);
    }
}
