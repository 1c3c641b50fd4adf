//! Parquet datasets as a target: the files below a folder, whatever folders they lie in; each says whose items it holds.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::codec::ddb_json;
use crate::error::{Error, Kind, Result};
use crate::exec::verify::Setting;
use crate::exec::verify::form::{OTHER, Part, Recorder, View};
use crate::exec::verify::gather::gather;
use crate::exec::verify::target::{Asked, Content};
use crate::exec::work;
use crate::model::{DatasetId, FileId, Item, Origin};
use crate::sink::parquet::{MANIFEST, ParquetFile};
use crate::store::{Facts, Location};

/// Rows that are recorded together.
const ROWS: u64 = 4096;

/// The files of the datasets.
pub(super) struct Rows {
    files: Vec<RowsFile>,
}

struct RowsFile {
    location: Location,
    /// Below the folder.
    name: String,
    facts: Facts,
    /// Where it is one of this machine.
    opened: Option<ParquetFile>,
}

impl Rows {
    pub(super) fn open(setting: &Setting<'_>, folder: &Location) -> Result<Self> {
        let is_data = |name: &str| name.ends_with(".parquet") && !name.split('/').any(|part| part.starts_with('.'));
        let mut files = Vec::new();
        let all = folder.files_below()?;
        let is_of_a_run = all.iter().any(|(name, _)| name == MANIFEST);
        for (name, facts) in all.into_iter().filter(|(name, _)| is_data(name)) {
            let location = folder.join(&name);
            let opened = location.local().map(ParquetFile::open).transpose()?;
            files.push(RowsFile { location, name, facts, opened });
        }
        let folders = folder.folders()?;
        if files.is_empty()
            && !is_of_a_run
            && !folders.iter().any(|name| setting.plan.targets.datasets.iter().any(|dataset| dataset.name == *name))
        {
            return Err(Error::new(Kind::Input, "there is no Parquet file")
                .with("path", folder)
                .with("expected", "the folder of a run with --to parquet:"));
        }
        Ok(Self { files })
    }

    /// Lends a file; one in S3 is copied into the work folder meanwhile.
    fn with_file<T>(&self, setting: &Setting<'_>, id: FileId, work: impl FnOnce(&ParquetFile) -> Result<T>) -> Result<T> {
        let file = &self.files[id.index()];
        if let Some(opened) = &file.opened {
            return work(opened);
        }
        let copy = setting.folder.join(format!("copy-{}.parquet", id.0));
        copy_of(file, &copy)?;
        let done = ParquetFile::open(&copy).map_err(|error| error.with("copy of", &file.location)).and_then(|opened| work(&opened));
        fs::remove_file(&copy).map_err(|error| work::failed(&copy, error))?;
        done
    }
}

impl Content for Rows {
    fn view(&self) -> View {
        View::Datasets
    }

    fn items(&self) -> Option<u64> {
        let rows = |file: &RowsFile| Some(file.opened.as_ref()?.row_groups().iter().sum::<u64>());
        self.files.iter().try_fold(0_u64, |all, file| all.checked_add(rows(file)?))
    }

    fn place(&self, origin: Origin) -> Option<String> {
        Some(format!("{}:{}", self.files.get(origin.file.index())?.name, origin.line))
    }

    fn read(&self, setting: &Setting<'_>, take: &mut dyn FnMut(Part) -> Result<()>) -> Result<()> {
        let mut tasks = Vec::new();
        for (id, file) in (0..).map(FileId).zip(&self.files) {
            match &file.opened {
                // Several threads read one file.
                Some(opened) => tasks.extend((0..opened.row_groups().len()).map(|group| (id, Some(group)))),
                None => tasks.push((id, None)),
            }
        }
        let read = |(id, group): &(FileId, Option<usize>), send: &mut dyn FnMut(Part) -> bool| {
            self.with_file(setting, *id, |file| match group {
                Some(group) => record(setting, file, *id, *group..*group + 1, send),
                None => record(setting, file, *id, 0..file.row_groups().len(), send),
            })
        };
        gather(setting.options.jobs, &tasks, read, take)
    }

    fn again(&self, setting: &Setting<'_>, asked: &[Asked<'_>]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; asked.len()];
        for (id, _) in (0..).map(FileId).zip(&self.files) {
            let of_file: Vec<_> = asked.iter().enumerate().filter(|(_, asked)| asked.origin.file == id).collect();
            if of_file.is_empty() {
                continue;
            }
            self.with_file(setting, id, |file| {
                for (at, asked) in &of_file {
                    file.read_row(asked.origin.line, &mut |item| {
                        let mut json = Vec::new();
                        ddb_json::write_item(&setting.forms.seen(View::Datasets, asked.place, item), &mut json);
                        found[*at] = Some(json);
                        Ok(())
                    })?;
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

fn copy_of(file: &RowsFile, copy: &Path) -> Result<()> {
    let mut from = file.location.open(&file.facts)?;
    let mut to = File::create(copy).map_err(|error| work::failed(copy, error))?;
    io::copy(&mut from, &mut to).map(drop).map_err(|error| match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::new(Kind::Input, "cannot copy the Parquet file").with("file", &file.location).caused_by(error),
    })
}

/// Records the rows of row groups.
fn record(
    setting: &Setting<'_>,
    file: &ParquetFile,
    id: FileId,
    groups: std::ops::Range<usize>,
    send: &mut dyn FnMut(Part) -> bool,
) -> Result<()> {
    let datasets = &setting.plan.targets.datasets;
    let dataset = (0..).zip(datasets).find(|(_, dataset)| dataset.name == file.entity()).map_or(OTHER, |(at, _)| at);
    let new = || Recorder::new(&setting.forms, setting.how(View::Datasets));
    let mut recorder = new();
    let mut wanted = true;
    for group in groups {
        file.read(group, &mut |row, item: &Item<'_>| {
            recorder.part.items += 1;
            recorder.add(
                dataset,
                Some(DatasetId(dataset)),
                &setting.forms.seen(View::Datasets, dataset, item),
                Origin { file: id, line: row },
            );
            if recorder.part.items >= ROWS && wanted {
                wanted = send(std::mem::replace(&mut recorder, new()).part);
            }
            Ok(())
        })?;
        if !wanted {
            return Ok(());
        }
    }
    send(recorder.part);
    Ok(())
}
