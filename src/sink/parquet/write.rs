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
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use sha2::{Digest as _, Sha256};

use super::Layouts;
use super::convert::{Way, convert};
use super::encode::{Batch, rows_at_once};
use super::form::Form;
use super::layout::Layout;
use super::sparse::Packed;
use crate::error::{Error, Kind, Result};
use crate::model::DatasetId;
use crate::shape::Shape;
use crate::sink::{LateReject, Payload as AnyPayload, Spawn, Writer, Written, WrittenFile};
use crate::store::{StagedFile, Staging};

/// Sizes that decide where row groups and files end, and how much waits in memory.
///
/// The memory of a writer is at most `buffered`, one payload, `in_flight` row groups and what the encoders of those hold.
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

/// Writes the files of one unit.
pub(super) struct ParquetWriter {
    staging: Staging,
    unit: u32,
    layouts: Arc<Layouts>,
    limits: Limits,
    spawn: Spawn,
    datasets: BTreeMap<DatasetId, Dataset>,
    /// Bytes of all batches that wait for their row group.
    buffered: usize,
    /// Row groups in the pool, the oldest first.
    in_flight: VecDeque<RowGroup>,
    written: Written,
}

/// A file ends with the row group that brings it to so many column chunks: until then it holds some 500 bytes of metadata for each.
const COLUMN_CHUNKS: usize = 32 * 1024;

#[derive(Default)]
struct Dataset {
    batches: Vec<Batch>,
    bytes: usize,
    /// That of all items of the unit so far, where the layouts are made on the way.
    shape: Option<Shape>,
    file: Option<OpenFile>,
    /// Files begun so far.
    files: u32,
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
    dataset: DatasetId,
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
        let Batch { dataset, bytes, .. } = batch;
        let waiting = self.datasets.entry(dataset).or_default();
        if let Some(shape) = &batch.shape {
            match &mut waiting.shape {
                Some(all) => all.merge(shape),
                None => waiting.shape = Some(Shape::clone(shape)),
            }
        }
        waiting.batches.push(batch);
        waiting.bytes += bytes;
        self.buffered += bytes;
        if waiting.bytes >= self.limits.row_group {
            self.send(dataset)?;
        }
        while self.buffered > self.limits.buffered {
            // Of equally large ones the first, so that the choice does not depend on anything else.
            let largest = self.datasets.iter().rev().max_by_key(|(_, dataset)| dataset.bytes).map(|(id, _)| *id);
            self.send(largest.expect("what is buffered is buffered for a dataset"))?;
        }
        Ok(())
    }

    /// Gives what a dataset has gathered to the pool, as one row group.
    fn send(&mut self, dataset: DatasetId) -> Result<()> {
        let waiting = self.datasets.entry(dataset).or_default();
        let batches = std::mem::take(&mut waiting.batches);
        self.buffered -= std::mem::take(&mut waiting.bytes);
        if batches.is_empty() {
            return Ok(());
        }
        while self.in_flight.len() >= self.limits.in_flight.max(1) {
            self.append_oldest()?;
        }
        let (layout, batches) = self.as_one(dataset, batches)?;
        let rows = batches.iter().map(|batch| batch.rows as u64).sum();
        let jobs = share_out(columns_of(&layout, batches)?, self.limits.job);
        let (sender, finished) = channel();
        self.in_flight.push_back(RowGroup { dataset, layout, rows, jobs: jobs.len(), finished });
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
        let Some(RowGroup { dataset, layout, rows, jobs, finished }) = self.in_flight.pop_front() else { return Ok(()) };
        let mut parts: Vec<_> = finished.iter().take(jobs).collect();
        if parts.len() < jobs {
            return Err(Error::new(Kind::Bug, "a job that encodes a row group ended without a result").with("dataset", &layout.dataset));
        }
        parts.sort_by_key(|(at, _)| *at);

        if self.datasets.get(&dataset).and_then(|state| state.file.as_ref()).is_some_and(|file| file.layout.schema != layout.schema) {
            self.close(dataset)?;
        }
        let state = self.datasets.entry(dataset).or_default();
        if state.file.is_none() {
            let stem = layout.stem.clone().unwrap_or_else(|| format!("{}/part", folder(&layout.dataset)));
            let path = PathBuf::from(format!("{stem}-u{:05}-{:04}.parquet", self.unit, state.files));
            let file = self.staging.create(&path)?;
            state.file = Some(OpenFile { writer: file_writer(file, &layout)?, layout: layout.clone(), path, items: 0 });
            state.files += 1;
        }
        let file = state.file.as_mut().expect("the file was opened above");
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
        *self.written.items.entry(dataset.0).or_default() += rows;
        if file.writer.bytes_written() >= self.limits.file || file.writer.flushed_row_groups().len() * layout.leaves >= COLUMN_CHUNKS {
            self.close(dataset)?;
        }
        Ok(())
    }

    /// Ends the open file of a dataset, if there is one.
    fn close(&mut self, dataset: DatasetId) -> Result<()> {
        let Some(OpenFile { layout, path, items, writer }) = self.datasets.get_mut(&dataset).and_then(|state| state.file.take()) else {
            return Ok(());
        };
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
        let datasets: Vec<_> = self.datasets.keys().copied().collect();
        datasets.iter().try_for_each(|dataset| self.send(*dataset))?;
        while !self.in_flight.is_empty() {
            self.append_oldest()?;
        }
        datasets.iter().try_for_each(|dataset| self.close(*dataset))?;
        Ok(self.written)
    }
}

/// A writer of a file of this layout.
pub(super) fn file_writer(file: StagedFile, layout: &Layout) -> Result<SerializedFileWriter<Lent>> {
    let settings = layout.file()?;
    let lent = Lent { file: Some(file), sha256: Sha256::new() };
    SerializedFileWriter::new(lent, settings.schema.clone(), settings.properties.clone()).map_err(|cause| cannot_write(layout, cause))
}

/// Ends a file; gives its size in bytes, and its SHA-256.
pub(super) fn finish(mut writer: SerializedFileWriter<Lent>, layout: &Layout) -> Result<(u64, String)> {
    writer.finish().map_err(|cause| cannot_write(layout, cause))?;
    let Lent { file, sha256 } = writer.inner_mut();
    let bytes = file.take().expect("the file is taken back once").finish()?;
    let digest = std::mem::take(sha256).finalize();
    Ok((bytes, hexadecimal(&digest)))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The columns of a row group with fresh writers for their leaves.
pub(super) fn columns_of(layout: &Layout, batches: Vec<Batch>) -> Result<Vec<Column>> {
    // The number of the row group matters for encryption only, which is not used.
    let mut writers = layout.file()?.row_groups.create_column_writers(0).map_err(|cause| cannot_write(layout, cause))?.into_iter();
    let column = |(field, form): (&FieldRef, &Form)| {
        let writers = writers.by_ref().take(form.leaves()).collect();
        Column { field: field.clone(), pieces: Vec::new(), writers, rows: 0, bytes: 0 }
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
        let Column { field, pieces, mut writers, .. } = self;
        let nulls_at_once = rows_at_once(writers.len());
        let mut write = |array| {
            for (leaf, writer) in compute_leaves(&field, &array)?.iter().zip(&mut writers) {
                writer.write(leaf)?;
            }
            Ok::<_, ParquetError>(())
        };
        let mut nulls = new_null_array(field.data_type(), 0);
        for Piece { mut rows, values } in pieces {
            if let Some(values) = values {
                write(values.unpack(rows)?)?;
                continue;
            }
            while rows > 0 {
                let some = rows.min(nulls_at_once);
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
