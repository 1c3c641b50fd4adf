//! One walk over data files: side by side, in the pool, with results in an order that the files alone decide.
//!
//! A reader thread for each open file cuts it into chunks; the feeder takes one chunk from each open file in turn and
//! hands it to the pool; results are taken in the order in which chunks were fed. Nothing in the pool ever waits.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::error::{Error, Kind, Result};
use crate::exec::stop::Stop;
use crate::exec::workers::Workers;
use crate::model::FileId;
use crate::source::Chunk;
use crate::source::chunk::ChunkReader;
use crate::source::manifest::DataFile;
use crate::source::turns::Turns;

/// Files read side by side. A constant, since the order of chunks and so the bytes of the output depend on it.
const OPEN_FILES: usize = 4;
/// Uncompressed bytes of a chunk. A constant for the same reason. Measured with 256 KiB, 512 KiB and 1 MiB, two workers: with 1 MiB
/// `import:` takes 4 % more processor time, likely since a chunk and its arena leave the second-level cache, and half as much memory
/// again; with 256 KiB its files are 1 % larger, since each chunk is compressed by itself. `parquet:` is indifferent.
pub(crate) const CHUNK_BYTES: usize = 512 << 10;
/// Bytes of chunks in the pool or waiting to be taken; only lines of many megabytes come near it, and one chunk always passes.
const IN_FLIGHT: usize = 64 << 20;
/// Chunks that a reader may be ahead of the feeder.
const READ_AHEAD: usize = 2;

/// How often a thread that waits looks whether somebody asked it to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// What a walk may be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'w> {
    /// A longer line ends the walk.
    pub(crate) max_line_bytes: usize,
    /// Ends the walk after so many lines.
    pub(crate) limit: Option<u64>,
    /// Asks the walk to stop.
    pub(crate) stop: &'w Stop,
}

/// Walks over `files`: `work` runs in the pool for each chunk, `take` gets the results in order. Gives what the user should
/// know of the files, in their order.
///
/// # Errors
/// The first cause: what a reader found, or what `take` says; kind `Interrupted` when somebody asked to stop.
pub(crate) fn walk<T: Send>(
    workers: &Workers,
    files: &[(FileId, &DataFile)],
    walk: Walk<'_>,
    work: impl Fn(&Chunk) -> T + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<Vec<String>> {
    let work = &work;
    let Walk { max_line_bytes, limit, stop } = walk;
    let turns = workers.turns();
    thread::scope(|threads| {
        workers.pool().in_place_scope_fifo(|scope| {
            let mut waiting = files.iter();
            let start = |&(id, file): &(FileId, _)| {
                let (chunks, received) = bounded(READ_AHEAD);
                threads.spawn(move || {
                    let mut reader = match ChunkReader::open(file, id, CHUNK_BYTES) {
                        Ok(reader) => reader.with_max_line(max_line_bytes).with_turns(turns.cloned()),
                        // A closed channel means that the feeder has ended and knows why.
                        Err(error) => return drop(chunks.send(Err(error))),
                    };
                    while let Some(chunk) = reader.next().transpose() {
                        let failed = chunk.is_err();
                        if chunks.send(chunk.map(Read::Chunk)).is_err() || failed {
                            return;
                        }
                    }
                    for warning in reader.warnings() {
                        drop(chunks.send(Ok(Read::Warning(warning))));
                    }
                });
                received
            };
            let mut warnings = Vec::new();
            let mut open: VecDeque<Receiver<Result<Read>>> = waiting.by_ref().take(OPEN_FILES).map(start).collect();
            let mut running: VecDeque<(Receiver<T>, usize)> = VecDeque::new();
            let mut left = limit;
            while let Some(file) = open.pop_front() {
                let Some(read) = receive(&file, stop)? else {
                    open.extend(waiting.next().map(start));
                    continue;
                };
                let read = read?;
                open.push_back(file);
                let mut chunk = match read {
                    Read::Chunk(chunk) => chunk,
                    Read::Warning(warning) => {
                        warnings.push(warning);
                        continue;
                    }
                };
                if let Some(left) = &mut left {
                    *left -= cut(&mut chunk, *left);
                }
                let bytes = chunk.bytes.len();
                while !running.is_empty() && running.iter().map(|(_, bytes)| bytes).sum::<usize>() + bytes > IN_FLIGHT {
                    take_oldest(&mut running, &mut take)?;
                }
                let (result, slot) = bounded(1);
                scope.spawn_fifo(move |_| {
                    let _turn = turns.map(Turns::take);
                    drop(result.send(work(&chunk)));
                });
                running.push_back((slot, bytes));
                if running.len() >= workers.window() {
                    take_oldest(&mut running, &mut take)?;
                }
                if left == Some(0) {
                    break;
                }
            }
            while !running.is_empty() {
                take_oldest(&mut running, &mut take)?;
            }
            Ok(warnings)
        })
    })
}

/// What comes out of a data file.
enum Read {
    Chunk(Chunk),
    /// After the last chunk.
    Warning(String),
}

/// The next of what a reader sends; `None` when it has ended.
fn receive<T>(reader: &Receiver<T>, stop: &Stop) -> Result<Option<T>> {
    loop {
        stop.check()?;
        match reader.recv_timeout(LOOK) {
            Ok(read) => return Ok(Some(read)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn take_oldest<T>(running: &mut VecDeque<(Receiver<T>, usize)>, take: &mut impl FnMut(T) -> Result<()>) -> Result<()> {
    let Some((slot, _)) = running.pop_front() else { return Ok(()) };
    // The slot closes without a result only when the worker panicked; the scope then raises that panic.
    let result = slot.recv().map_err(|_| Error::new(Kind::Bug, "a worker ended without a result"))?;
    take(result)
}

/// Cuts the chunk after `left` lines that hold something at most; gives the number of those that stay.
fn cut(chunk: &mut Chunk, left: u64) -> u64 {
    let mut lines = 0;
    let mut end = 0;
    while lines < left && end < chunk.bytes.len() {
        let next = memchr::memchr(b'\n', &chunk.bytes[end..]).map_or(chunk.bytes.len(), |at| end + at + 1);
        lines += u64::from(!chunk.bytes[end..next].trim_ascii().is_empty());
        end = next;
    }
    chunk.bytes.truncate(end);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Format, Origin};
    use crate::source::Lines;

    #[test]
    fn a_limit_counts_the_lines_that_hold_something() {
        for (left, stays, lines) in [(0, "", 0), (1, "\n\na\n", 1), (2, "\n\na\nb", 2), (9, "\n\na\nb", 2)] {
            let first = Origin { file: FileId(0), line: 1 };
            let mut chunk = Chunk { first, format: Format::Json, lines: Lines::Wrapped, bytes: b"\n\na\nb".to_vec() };
            assert_eq!(cut(&mut chunk, left), lines);
            assert_eq!(chunk.bytes, stays.as_bytes());
        }
    }
}
