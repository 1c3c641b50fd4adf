//! The half on the lane: lines gather to windows, a window's lines are spread and cut into pieces, the pool compresses the pieces, and
//! the lane appends them to objects.
//!
//! Where a window, a piece or an object ends is decided by the batches in their order, never by how quick a job was.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use super::compress::Compressor;
use super::encode::{Batch, Line};
use super::{Compression, Limits, Options, order};
use crate::error::{Error, Kind, Result};
use crate::model::{Format, TableId};
use crate::sink::table_folders::{Account, TableFolders};
use crate::sink::{LateReject, Payload as AnyPayload, Spawn, TableContent, Writer, Written};
use crate::store::{StagedFile, Staging};

/// Text is copied together to so many bytes before it is compressed, since lines are short.
const COPIED: usize = 64 << 10;

/// Writes the objects of one unit.
pub(super) struct Objects {
    folders: Arc<TableFolders>,
    staging: Staging,
    options: Options,
    limits: Limits,
    spawn: Spawn,
    unit: u32,
    /// By [`TableId`].
    tables: Vec<Table>,
    /// Bytes of all batches that wait for their window.
    waiting: usize,
    /// Pieces in the pool, the oldest first.
    in_flight: VecDeque<Piece>,
    /// Windows sent so far.
    windows: u64,
    account: Account,
    /// By table.
    content: BTreeMap<u32, TableContent>,
}

/// A table with the objects that grow side by side.
struct Table {
    batches: Vec<Batch>,
    bytes: usize,
    objects: Vec<Option<Object>>,
    /// The partition key of the last line of each, by its hash.
    last_keys: Vec<Option<u64>>,
    /// Where the next piece goes.
    turn: usize,
    /// The number of the next object.
    next: u32,
}

struct Object {
    path: PathBuf,
    file: StagedFile,
    /// `None`: in the pool, with a piece.
    compressor: Option<Compressor>,
    text: u64,
    items: u64,
}

/// Lines of one table in their new order.
struct Window {
    texts: Vec<Vec<u8>>,
    order: Vec<Place>,
}

/// A piece of a window.
struct Cut {
    /// Where it goes, as a place in [`Table::objects`].
    object: usize,
    /// Its part of the window's order.
    lines: Range<usize>,
    /// Its bytes.
    text: u64,
}

#[derive(Clone, Copy)]
struct Place {
    /// The hash of the line's partition key.
    key: u64,
    batch: u32,
    start: u32,
    end: u32,
}

/// What the pool compresses.
struct Piece {
    table: usize,
    object: usize,
    window: u64,
    finished: Receiver<Result<(Compressor, Vec<u8>)>>,
}

impl Objects {
    pub(super) fn new(folders: Arc<TableFolders>, options: Options, limits: Limits, spawn: Spawn, unit: u32) -> Result<Self> {
        let side_by_side = options.side_by_side();
        let table = || Table {
            batches: Vec::new(),
            bytes: 0,
            objects: std::iter::repeat_with(|| None).take(side_by_side).collect(),
            last_keys: vec![None; side_by_side],
            turn: 0,
            next: 0,
        };
        Ok(Self {
            staging: folders.staging()?,
            tables: std::iter::repeat_with(table).take(folders.targets().tables.len()).collect(),
            folders,
            options,
            limits,
            spawn,
            unit,
            waiting: 0,
            in_flight: VecDeque::new(),
            windows: 0,
            account: Account::default(),
            content: BTreeMap::new(),
        })
    }

    /// Bytes of the batches that wait, and how many windows are in the pool.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, u64) {
        (self.waiting, self.in_flight.front().map_or(0, |oldest| self.windows - oldest.window))
    }

    fn add(&mut self, batch: Batch) -> Result<()> {
        let id = batch.table;
        let content = self.content.entry(id.0).or_default();
        content.text_bytes += batch.text.len() as u64;
        for (dataset, items) in &batch.items {
            self.account.add_items(dataset.0, *items);
            *content.items.entry(dataset.0).or_default() += items;
        }
        let (table, bytes) = (&mut self.tables[id.index()], batch.bytes());
        table.batches.push(batch);
        table.bytes += bytes;
        self.waiting += bytes;
        if table.bytes >= self.limits.window {
            self.send(id)?;
        }
        while self.waiting > self.limits.waiting {
            // Of equally large ones the first, so that the choice does not depend on anything else.
            let largest = (0..).zip(&self.tables).min_by_key(|(_, table)| Reverse(table.bytes)).map(|(at, _)| TableId(at));
            self.send(largest.expect("what waits is some table's"))?;
        }
        Ok(())
    }

    /// Gives what a table has gathered to the pool.
    fn send(&mut self, id: TableId) -> Result<()> {
        let at = id.index();
        let batches = std::mem::take(&mut self.tables[at].batches);
        self.waiting -= std::mem::take(&mut self.tables[at].bytes);
        if batches.is_empty() {
            return Ok(());
        }
        while self.in_flight.front().is_some_and(|oldest| oldest.window + self.limits.in_flight <= self.windows) {
            self.append_oldest()?;
        }
        let window = Arc::new(Window::new(batches));
        let table = &mut self.tables[at];
        let sizes = (self.limits.piece, self.options.object_bytes, self.limits.object_items);
        let pieces = window.pieces(sizes, table.turn, &mut table.last_keys);
        table.turn = (table.turn + pieces.len()) % table.objects.len();
        for Cut { object, lines, text } in pieces {
            self.make_room(id, object, text, lines.len() as u64)?;
            let table = &mut self.tables[at];
            let Some(compressor) = table.objects[object].as_mut().and_then(|object| object.compressor.take()) else {
                return Err(Error::new(Kind::Bug, "an object for import is not where it should be"));
            };
            let (sender, finished) = channel();
            self.in_flight.push_back(Piece { table: at, object, window: self.windows, finished });
            let window = Arc::clone(&window);
            // Nobody listens any more when the lane has failed; its error is the one that counts.
            (self.spawn)(Box::new(move || drop(sender.send(window.compress(lines, compressor)))));
        }
        self.windows += 1;
        Ok(())
    }

    /// Sees to it that the object is at hand and has room for a piece; another one takes its place where it has not.
    fn make_room(&mut self, id: TableId, place: usize, text: u64, items: u64) -> Result<()> {
        let at = id.index();
        while self.tables[at].objects[place].as_ref().is_some_and(|object| object.compressor.is_none()) {
            self.append_oldest()?;
        }
        let is_full = |object: &Object| object.text + text > self.options.object_bytes || object.items + items > self.limits.object_items;
        if self.tables[at].objects[place].as_ref().is_some_and(is_full) {
            self.close(at, place)?;
        }
        let table = &mut self.tables[at];
        let object = match &mut table.objects[place] {
            Some(object) => object,
            empty => {
                let name = format!("part-u{:05}-{:04}.{}", self.unit, table.next, ending(self.options));
                table.next += 1;
                let path = self.folders.folder(id).join("data").join(name);
                let (file, compressor) = (self.staging.create(&path)?, Compressor::new(self.options.compression)?);
                empty.insert(Object { path, file, compressor: Some(compressor), text: 0, items: 0 })
            }
        };
        object.text += text;
        object.items += items;
        Ok(())
    }

    /// Waits for the oldest piece and appends it to its object.
    fn append_oldest(&mut self) -> Result<()> {
        let Some(Piece { table, object, finished, .. }) = self.in_flight.pop_front() else { return Ok(()) };
        let result = finished.recv().map_err(|_| Error::new(Kind::Bug, "a job that compresses import files ended without a result"))?;
        let (compressor, bytes) = result?;
        if let Some(object) = &mut self.tables[table].objects[object] {
            object.file.put(&bytes)?;
            object.compressor = Some(compressor);
        }
        Ok(())
    }

    /// Ends an object of which nothing is in the pool.
    fn close(&mut self, table: usize, object: usize) -> Result<()> {
        let Some(Object { path, mut file, compressor, items, .. }) = self.tables[table].objects[object].take() else { return Ok(()) };
        if let Some(compressor) = compressor {
            file.put(&compressor.finish()?)?;
        }
        let bytes = file.finish()?;
        self.account.add_file(path, items, bytes);
        Ok(())
    }
}

impl Writer for Objects {
    fn write(&mut self, payload: AnyPayload, _late: &mut Vec<LateReject>) -> Result<()> {
        let AnyPayload::Import(payload) = payload else {
            return Err(Error::new(Kind::Bug, "a payload of another sink reached the import files"));
        };
        payload.batches.into_iter().try_for_each(|batch| self.add(batch))
    }

    fn finish(mut self: Box<Self>, _late: &mut Vec<LateReject>) -> Result<Written> {
        (0..).map(TableId).take(self.tables.len()).try_for_each(|table| self.send(table))?;
        while !self.in_flight.is_empty() {
            self.append_oldest()?;
        }
        for table in 0..self.tables.len() {
            (0..self.tables[table].objects.len()).try_for_each(|object| self.close(table, object))?;
        }
        Ok(Written { tables: self.content, ..self.account.written() })
    }
}

/// What names of objects end with.
fn ending(options: Options) -> &'static str {
    match (options.format, options.compression) {
        (Format::Json, Compression::Gzip) => "json.gz",
        (Format::Json, Compression::Zstd) => "json.zst",
        (Format::Ion, Compression::Gzip) => "ion.gz",
        (Format::Ion, Compression::Zstd) => "ion.zst",
    }
}

impl Window {
    fn new(batches: Vec<Batch>) -> Self {
        let mut places = Vec::with_capacity(batches.iter().map(|batch| batch.lines.len()).sum());
        let mut texts = Vec::with_capacity(batches.len());
        for (at, batch) in (0..).zip(batches) {
            let mut start = 0;
            for Line { key, end } in batch.lines {
                places.push(Place { key, batch: at, start, end });
                start = end;
            }
            texts.push(batch.text);
        }
        let keys: Vec<u64> = places.iter().map(|place| place.key).collect();
        let order = order::spread(&keys).into_iter().map(|line| places[line as usize]).collect();
        Self { texts, order }
    }

    /// Cuts the window into pieces of about `bytes`, all about equally long, for one object after the other from `turn` on. A piece has
    /// at most `most_bytes` unless a line has more, and at most `most_lines`. Below that it goes on while the next one would begin with
    /// the partition key that its object ends with; `last_keys` are those keys.
    fn pieces(&self, (bytes, most_bytes, most_lines): (u64, u64, u64), turn: usize, last_keys: &mut [Option<u64>]) -> Vec<Cut> {
        let whole: u64 = self.texts.iter().map(|text| text.len() as u64).sum();
        let wanted = whole.div_ceil(whole.div_ceil(bytes.min(most_bytes).max(1)).max(1));
        let mut pieces: Vec<Cut> = Vec::new();
        let mut object = turn;
        let (mut start, mut text) = (0, 0);
        for (at, place) in self.order.iter().enumerate() {
            let line = u64::from(place.end - place.start);
            let next = (object + 1) % last_keys.len();
            let full = text + line > most_bytes || (at - start) as u64 >= most_lines;
            if at > start && (full || (text >= wanted && last_keys[next] != Some(place.key))) {
                pieces.push(Cut { object, lines: start..at, text });
                (object, start, text) = (next, at, 0);
            }
            last_keys[object] = Some(place.key);
            text += line;
        }
        pieces.push(Cut { object, lines: start..self.order.len(), text });
        pieces
    }

    /// Runs in the pool.
    fn compress(&self, lines: Range<usize>, mut compressor: Compressor) -> Result<(Compressor, Vec<u8>)> {
        let mut copied = Vec::with_capacity(COPIED);
        for place in &self.order[lines] {
            let line = &self.texts[place.batch as usize][place.start as usize..place.end as usize];
            if copied.len() + line.len() > COPIED {
                compressor.write(&copied)?;
                copied.clear();
            }
            copied.extend_from_slice(line);
        }
        compressor.write(&copied)?;
        let bytes = compressor.take();
        Ok((compressor, bytes))
    }
}
