//! The end of a run that wrote before it had seen all items: files whose schema turned out too narrow are written once more.
//!
//! Column chunks that stay as they are are copied, not decoded. A file of the final schema is not touched, so the call may be repeated.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::SchemaDescriptor;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Layouts;
use super::convert::{Way, convert};
use super::encode::{Batch, rows_at_once};
use super::layout::Layout;
use super::read::partition_of;
use super::row_group::{Rows, columns, to_encode};
use super::sparse::Packed;
use super::write::{Lent, cannot_write, file_writer, finish, folder};
use crate::codec::hexadecimal;
use crate::error::{Error, Kind, Result};
use crate::model::DatasetId;
use crate::shape::Shape;
use crate::sink::{GoOn, Look, Spawn, Written, WrittenFile};
use crate::store::{LocalStaging, OutputFolder, StagedFile, Staging, write_atomically};

/// Brings all files to the final schemas; `None` where they must be written again from the items. Where `go_on` fails, no further file is
/// begun, and all that were begun have ended when this returns.
///
/// # Errors
/// When a file cannot be read or written, and what `go_on` says.
pub(super) fn mend(
    output: &OutputFolder,
    layouts: &Layouts,
    shapes: &[Shape],
    mut written: Vec<Written>,
    spawn: &Spawn,
    go_on: &GoOn,
) -> Result<Option<Vec<Written>>> {
    if written.iter().any(|unit| unit.inexact) {
        return Ok(None);
    }
    let mut narrow = Vec::new();
    let datasets = (0..).map(DatasetId).zip(&layouts.targets.datasets).zip(shapes);
    for ((id, dataset), shape) in datasets {
        let Some(layout) = layouts.layout(id) else { continue };
        let fingerprint = layout.fingerprint()?;
        let folder = folder(&dataset.name);
        for (unit, written) in written.iter().enumerate() {
            let files = written.files.iter().enumerate().filter(|(_, file)| file.path.starts_with(&folder));
            let files = files.filter(|(_, file)| file.schema != Some(fingerprint));
            narrow.extend(files.map(|(at, file)| (unit, at, file.path.clone(), layout.clone(), (shape, &dataset.declared.sort))));
        }
    }
    if narrow.is_empty() {
        return Ok(Some(written));
    }
    // What is on its way to a bucket cannot be read back.
    #[cfg_attr(not(feature = "s3"), expect(irrefutable_let_patterns, reason = "then all output is on this machine"))]
    let Staging::Local(staging) = output.staging()? else { return Ok(None) };
    let staging = Arc::new(staging);
    let mut jobs = Vec::new();
    for (unit, at, path, to, (shape, sort)) in narrow {
        go_on()?;
        let source = Source::open(&staging.path(&path)?, sort)?;
        let way = Way::new(&source.layout, &to);
        if !way.is_exact(&source.layout, &to, shape) || !way.keeps_order(&source.layout, &to) {
            return Ok(None);
        }
        jobs.push((unit, at, path, to, source));
    }
    let (sender, mended) = channel();
    let failed = Arc::new(AtomicBool::new(false));
    for (unit, at, path, to, source) in jobs {
        let (sender, staging, go_on, failed) = (sender.clone(), staging.clone(), go_on.clone(), failed.clone());
        spawn(Box::new(move || {
            // When another file has failed, its error is the one that counts.
            if failed.load(Ordering::Acquire) {
                return;
            }
            let mended = source.rewrite(&staging, &path, &to, &go_on);
            failed.fetch_or(mended.is_err(), Ordering::AcqRel);
            drop(sender.send((unit, at, mended)));
        }));
    }
    drop(sender);
    let mut cause = None;
    for (unit, at, mended) in mended {
        let Mended { bytes, schema, sha256 } = match mended {
            Ok(mended) => mended,
            Err(error) => {
                cause.get_or_insert(error);
                continue;
            }
        };
        let unit = &mut written[unit];
        let file = &mut unit.files[at];
        unit.bytes = unit.bytes - file.bytes + bytes;
        *file = WrittenFile { path: std::mem::take(&mut file.path), items: file.items, bytes, schema: Some(schema), sha256: Some(sha256) };
    }
    match cause {
        // Where somebody asked to stop, what else failed can wait until the run goes on.
        Some(error) => go_on().and(Err(error)),
        None => Ok(Some(written)),
    }
}

/// Checks that files are as their units wrote them, or as a stopped run mended them.
///
/// # Errors
/// Kind `Output` for the first that is missing or another.
pub(super) fn check(output: &OutputFolder, written: &[Written], look: Look, published: bool) -> Result<()> {
    let files = written.iter().flat_map(|unit| &unit.files);
    let staging = output.staging()?;
    // What is on its way to a bucket cannot be read back, and is never mended.
    #[cfg_attr(not(feature = "s3"), expect(irrefutable_let_patterns, reason = "then all output is on this machine"))]
    let Staging::Local(local) = &staging else {
        let sizes: Vec<_> = files.map(|file| (file.path.clone(), file.bytes)).collect();
        return staging.check(&sizes, published);
    };
    let check = |path: &Path, bytes, sha256: Option<&String>| {
        local.check(&[(path.to_owned(), bytes)], published)?;
        let Some(expected) = sha256.filter(|_| look == Look::Content) else { return Ok(()) };
        let found = local.find(path, published)?;
        let (_, sha256) = checksum(&found).map_err(|cause| unreadable(&found).caused_by(cause))?;
        if sha256 == *expected { Ok(()) } else { Err(changed(&found, expected, &sha256)) }
    };
    for file in files {
        if let Err(error) = check(&file.path, file.bytes, file.sha256.as_ref()) {
            match Mended::read(local, &file.path) {
                Some(mended) => check(&file.path, mended.bytes, Some(&mended.sha256))?,
                None => return Err(error),
            }
        }
    }
    Ok(())
}

/// What a file is now.
#[derive(Serialize, Deserialize)]
struct Mended {
    bytes: u64,
    schema: u64,
    sha256: String,
}

impl Mended {
    /// Where it is kept that a file is about to become this: the report of its unit says it only when all files are mended.
    fn kept(staging: &LocalStaging, path: &Path) -> Result<PathBuf> {
        staging.path(&path.with_extension("mended.json"))
    }

    fn keep(&self, staging: &LocalStaging, path: &Path) -> Result<()> {
        let json = serde_json::to_vec(self).expect("texts and numbers can be written as JSON");
        write_atomically(&Self::kept(staging, path)?, &json)
    }

    /// What a stopped run kept; it may not have come to replace the file.
    fn read(staging: &LocalStaging, path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::kept(staging, path).ok()?).ok()?).ok()
    }
}

/// A file of a schema that is too narrow.
struct Source {
    path: PathBuf,
    file: File,
    metadata: ArrowReaderMetadata,
    layout: Arc<Layout>,
}

impl Source {
    fn open(path: &Path, sort: &[String]) -> Result<Self> {
        let file = File::open(path).map_err(|cause| unreadable(path).caused_by(cause))?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(|cause| unreadable(path).caused_by(cause))?;
        let layout = Layout::of_file(metadata.schema(), sort).ok_or_else(|| unreadable(path))?;
        Ok(Self { path: path.to_owned(), file, metadata, layout: Arc::new(layout) })
    }

    /// Writes the file once more, for another layout; what an earlier attempt mended stays as that left it.
    fn rewrite(&self, staging: &LocalStaging, path: &Path, to: &Arc<Layout>, go_on: &GoOn) -> Result<Mended> {
        go_on()?;
        if self.layout.schema == to.schema {
            let (bytes, sha256) = checksum(&self.path).map_err(|cause| unreadable(&self.path).caused_by(cause))?;
            return Ok(Mended { bytes, schema: to.fingerprint()?, sha256 });
        }
        let way = Way::new(&self.layout, to);
        let copied = self.copied(&way, to)?;
        let beside = path.with_extension("mended");
        let mut writer = file_writer(StagedFile::Local(staging.create(&beside)?), to, partition_of(&self.metadata))?;
        let failed = |cause| cannot_write(to, cause);
        for group in 0..self.metadata.metadata().num_row_groups() {
            go_on()?;
            let batches = self.decode(group, &way, &copied, to)?;
            let mut out = writer.next_row_group().map_err(failed)?;
            let columns = columns(to, &batches, batches.iter().map(|batch| batch.rows).sum())?;
            for (place, encode) in to_encode(columns, Rows::of(to, batches)?).enumerate() {
                match copied.iter().find(|(_, target, _)| *target == place) {
                    Some((_, _, leaves)) => leaves.clone().try_for_each(|leaf| self.copy(group, leaf, &mut out)),
                    None => encode().and_then(|chunks| chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut out))),
                }
                .map_err(failed)?;
            }
            out.close().map_err(failed)?;
        }
        let (bytes, sha256) = finish(writer, to)?;
        let mended = Mended { bytes, schema: to.fingerprint()?, sha256 };
        mended.keep(staging, path)?;
        staging.replace(path, &beside)?;
        Ok(mended)
    }

    /// The columns whose chunks are copied as they are: the column here, the column there, the leaves here.
    fn copied(&self, way: &Way, to: &Layout) -> Result<Vec<(usize, usize, Range<usize>)>> {
        let here = self.metadata.metadata().file_metadata().schema_descr();
        let there = SchemaDescriptor::new(to.file()?.schema.clone());
        let first_leaves = |layout: &Layout| -> Vec<usize> {
            let ends = layout.forms.iter().scan(0, |end, form| {
                *end += form.leaves();
                Some(*end)
            });
            std::iter::once(0).chain(ends).collect()
        };
        let (mine, theirs) = (first_leaves(&self.layout), first_leaves(to));
        let straight = way.straight.iter().enumerate().filter_map(|(place, target)| Some((place, (*target)?)));
        let same = |(place, target): &(usize, usize)| {
            let (leaves, others) = (mine[*place]..mine[place + 1], theirs[*target]..theirs[target + 1]);
            leaves.len() == others.len() && leaves.zip(others).all(|(leaf, other)| here.column(leaf) == there.column(other))
        };
        Ok(straight.filter(same).map(|(place, target)| (place, target, mine[place]..mine[place + 1])).collect())
    }

    /// The rows of a row group in the other layout, without the columns that are copied.
    fn decode(&self, group: usize, way: &Way, copied: &[(usize, usize, Range<usize>)], to: &Arc<Layout>) -> Result<Vec<Batch>> {
        let failed = |cause| Error::new(Kind::Output, "cannot read back a Parquet file").with("dataset", &to.dataset).caused_by(cause);
        let batch = |rows, columns| {
            let batch = Batch { dataset: DatasetId(0), rows, columns, bytes: 0, layout: self.layout.clone(), partition: None, shape: None };
            convert(batch, way, to)
        };
        let is_copied = |place: &usize| copied.iter().any(|(known, ..)| known == place);
        let wanted = |place: &usize| (way.straight[*place].is_some() || way.anew.contains(place)) && !is_copied(place);
        let wanted: Vec<_> = (0..self.layout.forms.len()).filter(wanted).collect();
        let rows = self.metadata.metadata().row_group(group).num_rows();
        if wanted.is_empty() {
            let rows = usize::try_from(rows).expect("a row group has far fewer rows than 2^32");
            return Ok(vec![batch(rows, Vec::new())?]);
        }
        let file = self.file.try_clone().map_err(|cause| failed(cause.into()))?;
        let mask = ProjectionMask::roots(self.metadata.metadata().file_metadata().schema_descr(), wanted.iter().copied());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(vec![group])
            .with_batch_size(rows_at_once(to.leaves))
            .build()
            .map_err(failed)?;
        reader
            .map(|read| {
                let read = read.map_err(|cause| failed(cause.into()))?;
                let columns = wanted.iter().copied().zip(read.columns().iter().cloned().map(Packed::Whole)).collect();
                batch(read.num_rows(), columns)
            })
            .collect()
    }

    fn copy(&self, group: usize, leaf: usize, out: &mut SerializedRowGroupWriter<'_, Lent>) -> std::result::Result<(), ParquetError> {
        let row_group = self.metadata.metadata().row_group(group);
        let chunk = row_group.column(leaf);
        let pages = self.metadata.metadata().page_index_for_row_group(group);
        out.append_column(
            &self.file,
            ColumnCloseResult {
                bytes_written: u64::try_from(chunk.compressed_size())?,
                rows_written: u64::try_from(row_group.num_rows())?,
                metadata: chunk.clone(),
                bloom_filter: Sbbf::read_from_column_chunk(chunk, &self.file)?,
                column_index: pages.column_index(leaf).cloned(),
                offset_index: pages.offset_index(leaf).cloned(),
            },
        )
    }
}

/// The size of a file, and its SHA-256.
fn checksum(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut sha256 = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, hexadecimal(&sha256.finalize()))),
            read => {
                bytes += read as u64;
                sha256.update(&buffer[..read]);
            }
        }
    }
}

fn changed(path: &Path, expected: &str, found: &str) -> Error {
    Error::new(Kind::Output, "an output file does not hold what was written")
        .with("file", path.display())
        .with("expected", format_args!("SHA-256 {expected}"))
        .with("found", found)
        .with("hint", "it was changed since the run was stopped; begin anew with --restart")
}

fn unreadable(path: &Path) -> Error {
    Error::new(Kind::Output, "cannot read back the Parquet file")
        .with("file", path.display())
        .with("hint", "where the output of the stopped run is gone, begin anew with --restart")
}
