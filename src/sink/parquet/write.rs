//! The half on the lane: batches gather to row groups, the pool encodes and compresses them, the lane appends them to files.
//!
//! Where a row group or a file ends is decided by the batches in their order, never by how quick a job was.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use parquet::basic::ZstdLevel;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use sha2::{Digest as _, Sha256};

use super::Layouts;
use super::convert::{Way, convert};
use super::encode::Batch;
use super::layout::Layout;
use super::partition::{self, PARTITION, Partition};
use super::row_group::{Encoded, RowGroup, Rows, columns};
use crate::codec::hexadecimal;
use crate::error::{Error, Kind, Result};
use crate::model::DatasetId;
use crate::shape::Shape;
use crate::sink::{LateReject, Payload as AnyPayload, Spawn, Writer, Written, WrittenFile};
use crate::store::{StagedFile, Staging};

/// Sizes that decide where row groups and files end, and how much waits in memory.
///
/// The memory of a writer is at most `buffered`, one payload, `in_flight` and what the encoders of that hold, twice where rows are sorted; and what
/// the open files have to remember of their row groups, some 64 MiB at the most. Mostly it is far less, since of row groups what is encoded is
/// kept compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A dataset's batches become a row group when they have this many bytes in memory.
    pub row_group: usize,
    /// The batches of all datasets together have at most this many bytes in memory, those that are encoded for a row group that goes on counted
    /// with; above, the largest becomes a row group.
    pub buffered: usize,
    /// When so many bytes of batches wait for a row group, they are encoded ahead of the rest of it.
    pub piece: usize,
    /// So much memory is counted for each leaf column of a row group that goes on.
    pub encoder: usize,
    /// A file ends with the row group that makes it this long, in bytes.
    pub file: usize,
    /// Bytes of batches in the pool at a time; one row group, or piece of one, always passes. The files do not depend on this.
    pub in_flight: usize,
    /// The columns of what is encoded are shared out in jobs of about this many bytes in memory.
    pub job: usize,
}

/// Bytes of batches in the pool for each of its workers.
pub(super) const IN_FLIGHT: usize = 4 << 20;

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            row_group: 32 * MIB,
            buffered: 64 * MIB,
            piece: 2 * MIB,
            encoder: 32 << 10,
            file: 512 * MIB,
            in_flight: 2 * IN_FLIGHT,
            job: MIB / 2,
        }
    }
}

/// What the user may say of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Bytes of a row group in memory.
    pub row_group: usize,
    /// A file ends with the row group that makes it this long, in bytes.
    pub file: usize,
    /// The level of zstd.
    pub zstd_level: i32,
}

impl Default for FileOptions {
    /// The level 1 costs half of what Parquet costs; on the usual texts a higher one saves little.
    fn default() -> Self {
        let Limits { row_group, file, .. } = Limits::default();
        Self { row_group, file, zstd_level: 1 }
    }
}

impl FileOptions {
    /// Checks that there can be such files; gives the level of zstd.
    pub(super) fn check(&self) -> Result<ZstdLevel> {
        const KIB: usize = 1 << 10;
        const GIB: usize = 1 << 30;
        // A row group is in memory as a whole, and its texts are counted in 32 bits.
        for (name, bytes, most, in_words) in [("row group", self.row_group, GIB, "1GiB"), ("file", self.file, 64 * GIB, "64GiB")] {
            if !(KIB..=most).contains(&bytes) {
                return Err(Error::new(Kind::Usage, format!("a Parquet {name} cannot have this size"))
                    .with("found", format_args!("{bytes} bytes"))
                    .with("expected", format_args!("1KiB to {in_words}")));
            }
        }
        ZstdLevel::try_new(self.zstd_level)
            .map_err(|_| Error::new(Kind::Usage, "zstd has no such level").with("found", self.zstd_level).with("expected", "1 to 22"))
    }
}

/// Writes the files of one unit.
pub(super) struct ParquetWriter {
    staging: Staging,
    unit: u32,
    layouts: Arc<Layouts>,
    limits: Limits,
    spawn: Spawn,
    datasets: BTreeMap<DatasetId, Dataset>,
    places: BTreeMap<Place, Waiting>,
    /// The places with an open file, the one that was written longest ago first.
    open: VecDeque<Place>,
    /// Bytes of all batches that wait for their row group.
    buffered: usize,
    /// What is in the pool, the oldest first.
    in_flight: VecDeque<Task>,
    written: Written,
}

/// A file ends with the row group that brings it to so many column chunks: until then it holds some 500 bytes of metadata for each.
const COLUMN_CHUNKS: usize = 32 * 1024;

/// And with the one that brings all open files to so many, were they all like it.
const COLUMN_CHUNKS_IN_ALL: usize = 4 * COLUMN_CHUNKS;

/// With more leaf columns than this, a row group is encoded as a whole.
const MOST_AHEAD: usize = 512;

/// Rows that are expected of a row group that goes on, at the most: what their Bloom filters have room for, 8 MiB a key.
const MOST_EXPECTED: usize = 4 << 20;

/// Files that are open at a time.
const OPEN_FILES: usize = 64;

/// Where rows go whose files they share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    dataset: DatasetId,
    partition: Option<Arc<Partition>>,
}

/// What there is for a place.
#[derive(Default)]
struct Waiting {
    /// In memory, of the row group that is not ended: what was given to the pool, and what was not.
    given: usize,
    bytes: usize,
    batches: Vec<Batch>,
    /// Of these bytes it was looked whether they can be given ahead, and the layout then.
    looked: usize,
    layout: Option<Arc<Layout>>,
    begun: Option<Begun>,
    file: Option<OpenFile>,
}

/// A row group of which something was given to the pool, and more may come.
struct Begun {
    layout: Arc<Layout>,
    row_group: RowGroup,
    /// Rows given.
    rows: u64,
}

#[derive(Default)]
struct Dataset {
    /// That of all items of the unit so far, where the layouts are made on the way.
    shape: Option<Shape>,
    /// Files begun so far.
    files: u32,
    /// Partitions met so far.
    partitions: usize,
}

struct OpenFile {
    layout: Arc<Layout>,
    path: PathBuf,
    items: u64,
    writer: SerializedFileWriter<Lent>,
}

/// The file of a Parquet writer, with the checksum of what was written. It is taken back by hand, since the writer gives it back only with
/// errors that have lost their words.
pub(super) struct Lent {
    file: Option<StagedFile>,
    sha256: Sha256,
}

impl Lent {
    fn file(&mut self) -> io::Result<&mut StagedFile> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file was taken back"))
    }
}

impl io::Write for Lent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file()?.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

/// What the pool encodes: a row group, or a piece of one.
struct Task {
    place: Place,
    bytes: usize,
    shares: usize,
    finished: Receiver<(usize, Encoded)>,
    layout: Arc<Layout>,
    /// The rows of the row group, where this ends it.
    ends: Option<u64>,
}

impl ParquetWriter {
    pub(super) fn new(staging: Staging, unit: u32, layouts: Arc<Layouts>, limits: Limits, spawn: Spawn) -> Self {
        Self {
            staging,
            unit,
            layouts,
            limits,
            spawn,
            datasets: BTreeMap::new(),
            places: BTreeMap::new(),
            open: VecDeque::new(),
            buffered: 0,
            in_flight: VecDeque::new(),
            written: Written::default(),
        }
    }

    /// Bytes of all batches that wait for their row group.
    #[cfg(test)]
    pub(super) fn waiting_bytes(&self) -> usize {
        self.buffered
    }

    fn add(&mut self, batch: Batch) -> Result<()> {
        let place = Place { dataset: batch.dataset, partition: batch.partition.clone() };
        let bytes = batch.bytes;
        let dataset = self.datasets.entry(place.dataset).or_default();
        if let Some(shape) = &batch.shape {
            match &mut dataset.shape {
                Some(all) => all.merge(shape),
                None => dataset.shape = Some(Shape::clone(shape)),
            }
        }
        if place.partition.is_some() && !self.places.contains_key(&place) {
            dataset.partitions += 1;
            if dataset.partitions > partition::MOST {
                return Err(too_many(&batch.layout));
            }
        }
        let waiting = self.places.entry(place.clone()).or_default();
        waiting.batches.push(batch);
        waiting.bytes += bytes;
        self.buffered += bytes;
        if waiting.given + waiting.bytes >= self.limits.row_group {
            self.end(&place)?;
        } else if waiting.bytes - waiting.looked >= self.limits.piece {
            self.give_ahead(&place)?;
        }
        while self.buffered > self.limits.buffered {
            // Of equally large ones the first, so that the choice does not depend on anything else.
            let largest = self.places.iter().rev().max_by_key(|(_, waiting)| waiting.given + waiting.bytes).map(|(place, _)| place.clone());
            self.end(&largest.expect("what is buffered is buffered for a place"))?;
        }
        Ok(())
    }

    /// Gives what waits for a place to the pool and goes on with its row group, where that does no harm: not where rows are sorted, nor where there
    /// are so many columns that their encoders would take more than they save, nor while the columns still change.
    fn give_ahead(&mut self, place: &Place) -> Result<()> {
        let layout = self.layout_of(place.dataset)?;
        let columns_change = self.shape(place.dataset).is_some();
        let waiting = self.places.entry(place.clone()).or_default();
        waiting.looked = waiting.bytes;
        let known = waiting.layout.replace(layout.clone());
        let has_settled = !columns_change || known.is_some_and(|known| known.schema == layout.schema);
        if has_settled {
            if layout.sort.is_empty() && layout.leaves <= MOST_AHEAD {
                self.give(place, layout, false)?;
            }
            return Ok(());
        }
        self.end_begun(place)
    }

    /// Ends the row group of a place with all that waits for it.
    fn end(&mut self, place: &Place) -> Result<()> {
        let layout = self.layout_of(place.dataset)?;
        let waiting = self.places.entry(place.clone()).or_default();
        if waiting.begun.as_ref().is_some_and(|begun| begun.layout.schema != layout.schema) {
            self.end_begun(place)?;
        }
        let waiting = self.places.entry(place.clone()).or_default();
        if waiting.begun.is_some() || !waiting.batches.is_empty() { self.give(place, layout, true) } else { Ok(()) }
    }

    /// Ends the row group that was begun for a place, if one was, without what waits.
    fn end_begun(&mut self, place: &Place) -> Result<()> {
        let waiting = self.places.entry(place.clone()).or_default();
        let Some(begun) = &waiting.begun else { return Ok(()) };
        let layout = begun.layout.clone();
        let (batches, bytes) = (std::mem::take(&mut waiting.batches), std::mem::take(&mut waiting.bytes));
        self.give(place, layout, true)?;
        let waiting = self.places.entry(place.clone()).or_default();
        (waiting.batches, waiting.bytes, waiting.looked) = (batches, bytes, bytes);
        Ok(())
    }

    /// Gives what waits for a place to the pool, in this layout, and ends the row group with it or not.
    fn give(&mut self, place: &Place, layout: Arc<Layout>, ends: bool) -> Result<()> {
        let waiting = self.places.entry(place.clone()).or_default();
        let (batches, bytes) = (std::mem::take(&mut waiting.batches), std::mem::take(&mut waiting.bytes));
        waiting.looked = 0;
        waiting.given += bytes;
        let encoders = layout.leaves * self.limits.encoder;
        match (&waiting.begun, ends) {
            (Some(_), true) => self.buffered -= std::mem::take(&mut waiting.given) + encoders,
            (None, true) => self.buffered -= std::mem::take(&mut waiting.given),
            (None, false) => self.buffered += encoders,
            (Some(_), false) => {}
        }
        let is_full = |writer: &Self| writer.in_flight.iter().map(|task| task.bytes).sum::<usize>() + bytes > writer.limits.in_flight;
        while is_full(self) && !self.in_flight.is_empty() {
            self.settle_oldest()?;
        }
        let batches = self.brought_to(&layout, place.dataset, batches)?;
        let rows = batches.iter().map(|batch| batch.rows).sum::<usize>();
        let waiting = self.places.entry(place.clone()).or_default();
        let (mut begun, rows) = if let Some(begun) = waiting.begun.take() {
            let rows = Rows::of(&begun.layout, batches)?;
            (begun, rows)
        } else {
            // A guess, too high rather than too low: filters that are too large are folded in the end.
            let expected = rows.saturating_mul(self.limits.row_group / bytes.max(1) + 1).min(MOST_EXPECTED);
            let columns = columns(&layout, &batches, if ends { rows } else { expected.max(rows) })?;
            let rows = Rows::of(&layout, batches)?;
            (Begun { row_group: RowGroup::new(columns, &rows, self.limits.job), layout, rows: 0 }, rows)
        };
        begun.rows += rows.count as u64;
        self.in_flight.push_back(Task {
            place: place.clone(),
            bytes,
            shares: begun.row_group.shares(),
            finished: begun.row_group.give(rows, ends, &self.spawn),
            layout: begun.layout.clone(),
            ends: ends.then_some(begun.rows),
        });
        waiting.begun = (!ends).then_some(begun);
        Ok(())
    }

    /// What is known of all items of a dataset in the unit so far, where each batch has a layout of its own.
    fn shape(&self, dataset: DatasetId) -> Option<&Shape> {
        self.datasets.get(&dataset)?.shape.as_ref()
    }

    /// The layout for the items of a dataset so far.
    fn layout_of(&self, dataset: DatasetId) -> Result<Arc<Layout>> {
        match self.shape(dataset) {
            Some(shape) => Ok(self.layouts.made_for(self.layouts.targets.dataset(dataset), shape)),
            None => self.layouts.get(dataset).cloned(),
        }
    }

    /// Batches of a dataset in the layout of their row group.
    fn brought_to(&mut self, layout: &Arc<Layout>, dataset: DatasetId, batches: Vec<Batch>) -> Result<Vec<Batch>> {
        let Some(shape) = self.shape(dataset) else { return Ok(batches) };
        let mut inexact = false;
        let mut way: Option<(Arc<Layout>, Way)> = None;
        let mut as_one = Vec::with_capacity(batches.len());
        for batch in batches {
            if batch.layout.schema == layout.schema {
                as_one.push(batch);
                continue;
            }
            if way.as_ref().is_none_or(|(from, _)| from.schema != batch.layout.schema) {
                let found = Way::new(&batch.layout, layout);
                inexact |= !found.is_exact(&batch.layout, layout, shape);
                way = Some((batch.layout.clone(), found));
            }
            let (_, way) = way.as_ref().expect("it was found above");
            as_one.push(convert(batch, way, layout)?);
        }
        self.written.inexact |= inexact;
        Ok(as_one)
    }

    /// Waits for the oldest task in the pool; appends its row group to its file, if it ends one.
    fn settle_oldest(&mut self) -> Result<()> {
        let Some(Task { place, shares, finished, layout, ends, .. }) = self.in_flight.pop_front() else { return Ok(()) };
        let mut parts: Vec<_> = finished.iter().take(shares).collect();
        if parts.len() < shares {
            return Err(Error::new(Kind::Bug, "a job that encodes a row group ended without a result").with("dataset", &layout.dataset));
        }
        parts.sort_by_key(|(at, _)| *at);
        let parts = parts.into_iter().map(|(_, part)| part).collect::<std::result::Result<Vec<_>, _>>();
        let parts = parts.map_err(|cause| cannot_write(&layout, cause))?;
        let Some(rows) = ends else { return Ok(()) };

        let file_of = |writer: &Self| writer.places.get(&place).and_then(|waiting| waiting.file.as_ref()).map(|file| file.layout.clone());
        if file_of(self).is_some_and(|other| other.schema != layout.schema) {
            self.close(&place)?;
        }
        if file_of(self).is_none() {
            if self.open.len() >= OPEN_FILES
                && let Some(oldest) = self.open.front().cloned()
            {
                self.close(&oldest)?;
            }
            let file = self.open(&place, &layout)?;
            self.places.entry(place.clone()).or_default().file = Some(file);
        }
        self.open.retain(|other| *other != place);
        self.open.push_back(place.clone());
        let file = self.places.get_mut(&place).and_then(|waiting| waiting.file.as_mut()).expect("the file was opened above");
        let append = || {
            let mut row_group = file.writer.next_row_group()?;
            for chunk in parts.into_iter().flatten() {
                chunk.append_to_row_group(&mut row_group)?;
            }
            row_group.close()
        };
        append().map_err(|cause| cannot_write(&layout, cause))?;
        file.items += rows;
        *self.written.items.entry(place.dataset.0).or_default() += rows;
        let chunks = file.writer.flushed_row_groups().len() * layout.leaves;
        let is_full = chunks >= COLUMN_CHUNKS || chunks * self.open.len() >= COLUMN_CHUNKS_IN_ALL;
        if is_full || file.writer.bytes_written() >= self.limits.file {
            self.close(&place)?;
        }
        Ok(())
    }

    /// A new file for a place.
    fn open(&mut self, place: &Place, layout: &Arc<Layout>) -> Result<OpenFile> {
        let dataset = self.datasets.entry(place.dataset).or_default();
        let stem = layout.stem.clone().unwrap_or_else(|| {
            let folders = place.partition.as_ref().map(|partition| format!("/{}", partition.folders)).unwrap_or_default();
            format!("{}{folders}/part", folder(&layout.dataset))
        });
        let path = PathBuf::from(format!("{stem}-u{:05}-{:04}.parquet", self.unit, dataset.files));
        dataset.files += 1;
        let file = self.staging.create(&path)?;
        let partition = place.partition.as_ref().map(|partition| partition.json.as_str());
        Ok(OpenFile { writer: file_writer(file, layout, partition)?, layout: layout.clone(), path, items: 0 })
    }

    /// Ends the open file of a place, if there is one.
    fn close(&mut self, place: &Place) -> Result<()> {
        let Some(OpenFile { layout, path, items, writer }) = self.places.get_mut(place).and_then(|waiting| waiting.file.take()) else {
            return Ok(());
        };
        self.open.retain(|other| other != place);
        let (bytes, sha256) = finish(writer, &layout)?;
        self.written.bytes += bytes;
        self.written.files.push(WrittenFile { path, items, bytes, schema: Some(layout.fingerprint()?), sha256: Some(sha256) });
        Ok(())
    }
}

impl Writer for ParquetWriter {
    fn write(&mut self, payload: AnyPayload, _late: &mut Vec<LateReject>) -> Result<()> {
        let AnyPayload::Parquet(payload) = payload else {
            return Err(Error::new(Kind::Bug, "a payload of another sink reached the Parquet writer"));
        };
        payload.batches.into_iter().try_for_each(|batch| self.add(batch))
    }

    fn finish(mut self: Box<Self>, _late: &mut Vec<LateReject>) -> Result<Written> {
        let places: Vec<_> = self.places.keys().cloned().collect();
        places.iter().try_for_each(|place| self.end(place))?;
        while !self.in_flight.is_empty() {
            self.settle_oldest()?;
        }
        places.iter().try_for_each(|place| self.close(place))?;
        Ok(self.written)
    }
}

/// A writer of a file of this layout, with the JSON of its partition where it is in one.
pub(super) fn file_writer(file: StagedFile, layout: &Layout, partition: Option<&str>) -> Result<SerializedFileWriter<Lent>> {
    let settings = layout.file()?;
    let lent = Lent { file: Some(file), sha256: Sha256::new() };
    let writer = SerializedFileWriter::new(lent, settings.schema.clone(), settings.properties.clone());
    let mut writer = writer.map_err(|cause| cannot_write(layout, cause))?;
    if let Some(json) = partition {
        writer.append_key_value_metadata(KeyValue::new(PARTITION.to_owned(), json.to_owned()));
    }
    Ok(writer)
}

fn too_many(layout: &Layout) -> Error {
    Error::new(Kind::Input, "a dataset has too many partitions")
        .with("dataset", &layout.dataset)
        .with("expected", format_args!("at most {}", partition::MOST))
        .with("hint", "name an attribute of fewer values under `partition` in the entity's [parquet], such as a day in place of a time")
}

/// Ends a file; gives its size in bytes, and its SHA-256.
pub(super) fn finish(mut writer: SerializedFileWriter<Lent>, layout: &Layout) -> Result<(u64, String)> {
    writer.finish().map_err(|cause| cannot_write(layout, cause))?;
    let Lent { file, sha256 } = writer.inner_mut();
    let bytes = file.take().expect("the file is taken back once").finish()?;
    let digest = std::mem::take(sha256).finalize();
    Ok((bytes, hexadecimal(&digest)))
}

/// The error of the file where it is the file that failed, else one about the data.
pub(super) fn cannot_write(layout: &Layout, cause: ParquetError) -> Error {
    let cannot = |cause: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(Kind::Output, "cannot write the Parquet file").with("dataset", &layout.dataset).caused_by(cause)
    };
    match cause {
        ParquetError::External(cause) => match cause.downcast::<io::Error>().map(|cause| cause.downcast::<Error>()) {
            Ok(Ok(error)) => error,
            Ok(Err(cause)) => cannot(cause.into()),
            Err(cause) => cannot(cause),
        },
        cause => cannot(cause.into()),
    }
}

/// The entity's name as the name of a folder: what file systems or stores may take amiss is percent-encoded.
pub(in crate::sink) fn folder(entity: &str) -> String {
    let mut name = String::with_capacity(entity.len());
    for (at, byte) in entity.bytes().enumerate() {
        match byte {
            // A name of dots alone would be another folder, one that begins with a dot is hidden.
            b'.' if at == 0 => name.push_str("%2E"),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' => name.push(char::from(byte)),
            _ => {
                name.push('%');
                name.extend([byte >> 4, byte & 15].map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])));
            }
        }
    }
    name
}
