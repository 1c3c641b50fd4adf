//! The half on the lane: batches gather to row groups, the pool encodes and compresses them, the lane appends them to files.
//!
//! Where a row group or a file ends is decided by the batches in their order, never by how quick a job was.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use arrow::array::new_null_array;
use arrow::datatypes::FieldRef;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::basic::ZstdLevel;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use sha2::{Digest as _, Sha256};

use super::Layouts;
use super::convert::{Way, convert};
use super::encode::{Batch, rows_at_once};
use super::form::Form;
use super::group;
use super::layout::Layout;
use super::partition::{self, PARTITION, Partition};
use super::sort::{Order, whole};
use super::sparse::Packed;
use crate::codec::hexadecimal;
use crate::error::{Error, Kind, Result};
use crate::model::DatasetId;
use crate::shape::Shape;
use crate::sink::{LateReject, Payload as AnyPayload, Spawn, Writer, Written, WrittenFile};
use crate::store::{StagedFile, Staging};

/// Sizes that decide where row groups and files end, and how much waits in memory.
///
/// The memory of a writer is at most `buffered`, one payload, `in_flight` row groups and what the encoders of those hold, twice where rows are
/// sorted; and what the open files have to remember of their row groups, some 64 MiB at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A dataset's batches become a row group when they have this many bytes in memory.
    pub row_group: usize,
    /// The batches of all datasets together have at most this many bytes in memory; above, the largest becomes a row group.
    pub buffered: usize,
    /// A file ends with the row group that makes it this long, in bytes.
    pub file: usize,
    /// Row groups in the pool at a time.
    pub in_flight: usize,
    /// The columns of a row group are shared out in jobs of about this many bytes in memory.
    pub job: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self { row_group: 32 * MIB, buffered: 64 * MIB, file: 512 * MIB, in_flight: 2, job: 4 * MIB }
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
    /// Row groups in the pool, the oldest first.
    in_flight: VecDeque<RowGroup>,
    written: Written,
}

/// A file ends with the row group that brings it to so many column chunks: until then it holds some 500 bytes of metadata for each.
const COLUMN_CHUNKS: usize = 32 * 1024;

/// And with the one that brings all open files to so many, were they all like it.
const COLUMN_CHUNKS_IN_ALL: usize = 4 * COLUMN_CHUNKS;

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
    batches: Vec<Batch>,
    bytes: usize,
    file: Option<OpenFile>,
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

/// A row group that the pool encodes.
struct RowGroup {
    place: Place,
    layout: Arc<Layout>,
    rows: u64,
    jobs: usize,
    finished: Receiver<(usize, Encoded)>,
}

pub(super) type Encoded = std::result::Result<Vec<ArrowColumnChunk>, ParquetError>;

/// One column of a row group.
pub(super) struct Column {
    field: FieldRef,
    pieces: Vec<Piece>,
    /// The order in which the rows of all pieces are written, where it is another one.
    order: Option<Order>,
    /// Of its leaves.
    writers: Vec<ArrowColumnWriter>,
    /// Rows of the pieces.
    rows: usize,
    bytes: usize,
}

/// Rows of a column.
struct Piece {
    rows: usize,
    /// `None`: nothing but nulls.
    values: Option<Packed>,
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
        if waiting.bytes >= self.limits.row_group {
            self.send(&place)?;
        }
        while self.buffered > self.limits.buffered {
            // Of equally large ones the first, so that the choice does not depend on anything else.
            let largest = self.places.iter().rev().max_by_key(|(_, waiting)| waiting.bytes).map(|(place, _)| place.clone());
            self.send(&largest.expect("what is buffered is buffered for a place"))?;
        }
        Ok(())
    }

    /// Gives what has gathered for a place to the pool, as one row group.
    fn send(&mut self, place: &Place) -> Result<()> {
        let waiting = self.places.entry(place.clone()).or_default();
        let batches = std::mem::take(&mut waiting.batches);
        self.buffered -= std::mem::take(&mut waiting.bytes);
        if batches.is_empty() {
            return Ok(());
        }
        while self.in_flight.len() >= self.limits.in_flight.max(1) {
            self.append_oldest()?;
        }
        let (layout, batches) = self.as_one(place.dataset, batches)?;
        let rows = batches.iter().map(|batch| batch.rows as u64).sum();
        let order = Order::of(&layout, &batches).map_err(|cause| cannot_write(&layout, cause.into()))?;
        let mut columns = columns_of(&layout, batches)?;
        for column in &mut columns {
            column.order.clone_from(&order);
        }
        let jobs = share_out(columns, self.limits.job);
        let (sender, finished) = channel();
        self.in_flight.push_back(RowGroup { place: place.clone(), layout, rows, jobs: jobs.len(), finished });
        for (at, job) in jobs.into_iter().enumerate() {
            let sender = sender.clone();
            // Nobody listens any more when the lane has failed; its error is the one that counts.
            (self.spawn)(Box::new(move || drop(sender.send((at, encode(job))))));
        }
        Ok(())
    }

    /// The batches of a row group in one layout: that of all items of the unit so far, where each batch has one of its own.
    fn as_one(&mut self, dataset: DatasetId, batches: Vec<Batch>) -> Result<(Arc<Layout>, Vec<Batch>)> {
        let Some(shape) = &self.datasets.entry(dataset).or_default().shape else {
            return Ok((self.layouts.get(dataset)?.clone(), batches));
        };
        let layout = self.layouts.made_for(self.layouts.targets.dataset(dataset), shape);
        let mut way: Option<(Arc<Layout>, Way)> = None;
        let mut as_one = Vec::with_capacity(batches.len());
        for batch in batches {
            if batch.layout.schema == layout.schema {
                as_one.push(batch);
                continue;
            }
            if way.as_ref().is_none_or(|(from, _)| from.schema != batch.layout.schema) {
                let found = Way::new(&batch.layout, &layout);
                self.written.inexact |= !found.is_exact(&batch.layout, &layout, shape);
                way = Some((batch.layout.clone(), found));
            }
            let (_, way) = way.as_ref().expect("it was found above");
            as_one.push(convert(batch, way, &layout)?);
        }
        Ok((layout, as_one))
    }

    /// Waits for the oldest row group and appends it to its file.
    fn append_oldest(&mut self) -> Result<()> {
        let Some(RowGroup { place, layout, rows, jobs, finished }) = self.in_flight.pop_front() else { return Ok(()) };
        let mut parts: Vec<_> = finished.iter().take(jobs).collect();
        if parts.len() < jobs {
            return Err(Error::new(Kind::Bug, "a job that encodes a row group ended without a result").with("dataset", &layout.dataset));
        }
        parts.sort_by_key(|(at, _)| *at);

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
            for (_, chunks) in parts {
                for chunk in chunks? {
                    chunk.append_to_row_group(&mut row_group)?;
                }
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
        places.iter().try_for_each(|place| self.send(place))?;
        while !self.in_flight.is_empty() {
            self.append_oldest()?;
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

/// The columns of a row group with fresh writers for their leaves.
pub(super) fn columns_of(layout: &Layout, batches: Vec<Batch>) -> Result<Vec<Column>> {
    let mut writers = group::writers(layout, &batches)?.into_iter();
    let column = |(field, form): (&FieldRef, &Form)| {
        let writers = writers.by_ref().take(form.leaves()).collect();
        Column { field: field.clone(), pieces: Vec::new(), order: None, writers, rows: 0, bytes: 0 }
    };
    let mut columns: Vec<_> = layout.schema.fields().iter().zip(&layout.forms).map(column).collect();
    let mut rows = 0;
    for batch in batches {
        for (place, packed) in batch.columns {
            let column = &mut columns[place];
            column.fill(rows);
            column.rows += batch.rows;
            column.bytes += packed.bytes();
            column.pieces.push(Piece { rows: batch.rows, values: Some(packed) });
        }
        rows += batch.rows;
    }
    for column in &mut columns {
        column.fill(rows);
    }
    Ok(columns)
}

impl Column {
    /// Fills up to `rows` with nulls.
    fn fill(&mut self, rows: usize) {
        if rows > self.rows {
            self.pieces.push(Piece { rows: rows - self.rows, values: None });
            self.rows = rows;
        }
    }

    pub(super) fn encode(self) -> Encoded {
        let Column { field, pieces, order, mut writers, .. } = self;
        let at_once = rows_at_once(writers.len());
        let mut write = |array| {
            for (leaf, writer) in compute_leaves(&field, &array)?.iter().zip(&mut writers) {
                writer.write(leaf)?;
            }
            Ok::<_, ParquetError>(())
        };
        if let Some(order) = order.filter(|_| pieces.iter().any(|piece| piece.values.is_some())) {
            let whole = whole(field.data_type(), pieces.iter().map(|piece| (piece.rows, piece.values.as_ref())))?;
            drop(pieces);
            order.slices(&whole, at_once).try_for_each(|slice| write(slice?))?;
            return writers.into_iter().map(ArrowColumnWriter::close).collect();
        }
        let mut nulls = new_null_array(field.data_type(), 0);
        for Piece { mut rows, values } in pieces {
            if let Some(values) = values {
                write(values.unpack(rows)?)?;
                continue;
            }
            while rows > 0 {
                let some = rows.min(at_once);
                if nulls.len() < some {
                    nulls = new_null_array(field.data_type(), some);
                }
                write(nulls.slice(0, some))?;
                rows -= some;
            }
        }
        writers.into_iter().map(ArrowColumnWriter::close).collect()
    }
}

/// Neighbouring columns, together about `bytes` in memory, for each job. The result in the file does not depend on this.
fn share_out(columns: Vec<Column>, bytes: usize) -> Vec<Vec<Column>> {
    let mut jobs: Vec<Vec<Column>> = Vec::new();
    let mut filled = bytes;
    for column in columns {
        if filled >= bytes {
            jobs.push(Vec::new());
            filled = 0;
        }
        // Nulls take no memory while they wait, but some time.
        filled += column.bytes + column.rows * column.writers.len() / 4;
        jobs.last_mut().expect("the first column opens the first job").push(column);
    }
    jobs
}

/// Encodes and compresses columns; runs in the pool.
fn encode(columns: Vec<Column>) -> Encoded {
    let mut chunks = Vec::new();
    for column in columns {
        chunks.append(&mut column.encode()?);
    }
    Ok(chunks)
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
