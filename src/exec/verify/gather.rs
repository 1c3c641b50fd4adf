//! Threads that read what cannot be cut into chunks: pages of a table, row groups of a file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crossbeam_channel::bounded;

use crate::error::Result;

/// Results that may wait to be taken, for each thread.
const WAITING: usize = 2;

/// Does the tasks one after the other on so many threads. A task sends any number of parts, until it is told that no more is wanted;
/// they are taken on the calling thread, in no order.
///
/// # Errors
/// The first that a task or `take` gives; the others are stopped then.
pub(super) fn gather<Task: Sync, Part: Send>(
    threads: usize,
    tasks: &[Task],
    work: impl Fn(&Task, &mut dyn FnMut(Part) -> bool) -> Result<()> + Sync,
    mut take: impl FnMut(Part) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let (work, next) = (&work, &next);
    let threads = threads.min(tasks.len());
    let (sender, parts) = bounded(threads.max(1) * WAITING);
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut wanted = true;
                    let worked = work(task, &mut |part| {
                        wanted = sender.send(Ok(part)).is_ok();
                        wanted
                    });
                    // A closed channel means that the caller has ended and knows why.
                    if let Err(error) = worked {
                        return drop(sender.send(Err(error)));
                    }
                    if !wanted {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut parts = parts.into_iter();
        parts.try_for_each(|part| part.and_then(&mut take))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};

    #[test]
    fn all_parts_of_all_tasks_are_taken_and_an_error_stops_the_others() {
        let tasks: Vec<u64> = (0..50).collect();
        let work = |task: &u64, send: &mut dyn FnMut(u64) -> bool| {
            for part in 0..*task {
                if *task == 40 && part == 5 {
                    return Err(Error::new(Kind::Input, "broken"));
                }
                if !send(1) {
                    break;
                }
            }
            Ok(())
        };
        let mut sum = 0;
        let mut add = |part| {
            sum += part;
            Ok(())
        };
        gather(3, &tasks[..40], work, &mut add).unwrap();
        assert_eq!(sum, (0..40).sum::<u64>());
        assert_eq!(gather(3, &tasks, work, |_| Ok(())).unwrap_err().message(), "broken");
        assert_eq!(gather(3, &tasks[..40], work, |_| Err(Error::new(Kind::Output, "full"))).unwrap_err().message(), "full");
        gather(3, &tasks[..0], work, |_| Ok(())).unwrap();
    }
}
