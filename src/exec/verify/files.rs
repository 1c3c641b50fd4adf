//! Targets that are files of items: those for import, request files, an export of a target table.

use std::collections::{BTreeMap, BTreeSet};

use crate::codec::{self, Record, ddb_json};
use crate::error::{Error, Kind, Result};
use crate::exec::event::{Event, Observer};
use crate::exec::pass::walk;
use crate::exec::route::{lines, with_arena};
use crate::exec::verify::Setting;
use crate::exec::verify::form::{Part, Recorder, View};
use crate::exec::verify::target::{Asked, Content};
use crate::model::{FileId, Origin, TableId};
use crate::source::Chunk;
use crate::source::manifest::{self, DataFile, Export};
use crate::store::Location;

/// Files, each with the table that its items are of.
pub(super) struct Files {
    files: Vec<(TableId, DataFile)>,
    /// Where they are those of an export.
    export: Option<(TableId, Export)>,
}

impl Files {
    /// The files in a folder for each table, or in a folder of this name in it.
    pub(super) fn in_folders(setting: &Setting<'_>, within: &Location, inside: Option<&str>, observer: &mut dyn Observer) -> Result<Self> {
        let tables = &setting.plan.targets.tables;
        let folders = within.folders()?;
        let mut files = Vec::new();
        for (id, table) in (0..).map(TableId).zip(tables) {
            let folder = within.join(&table.name);
            let (folder, prefix) = match inside {
                Some(name) => (folder.join(name), format!("{}/{name}", table.name)),
                None => (folder, table.name.clone()),
            };
            for (name, facts) in folder.files_below()? {
                let location = folder.join(&name);
                files.push((id, DataFile { location, name: format!("{prefix}/{name}"), items: None, md5: None, facts }));
            }
        }
        if files.is_empty() && !folders.iter().any(|folder| tables.iter().any(|table| table.name == *folder)) {
            let names: Vec<_> = tables.iter().map(|table| table.name.as_str()).collect();
            return Err(Error::new(Kind::Input, "there is no folder of a table of the pipeline")
                .with("path", within)
                .with("expected", format_args!("a folder named {}", names.join(" or "))));
        }
        for folder in folders.iter().filter(|folder| !folder.starts_with('.') && !tables.iter().any(|table| table.name == **folder)) {
            observer.event(Event::Warning(format!("{}: no table of the pipeline is called so; it is not compared", within.join(folder))));
        }
        Ok(Self { files, export: None })
    }

    /// The files of a full export.
    pub(super) fn of_export(setting: &Setting<'_>, table: Option<&str>, location: &Location, observer: &mut dyn Observer) -> Result<Self> {
        let tables = &setting.plan.targets.tables;
        let known = || tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
        let id = match (table, tables.as_slice()) {
            (None, [_]) => TableId(0),
            (None, _) => {
                return Err(Error::new(Kind::Usage, "the pipeline has several tables, and the target does not say which was exported")
                    .with("found", format_args!("export:{location}"))
                    .with("known", known())
                    .with("hint", format_args!("write export:TABLE={location}")));
            }
            (Some(name), _) => (0..)
                .map(TableId)
                .zip(tables)
                .find(|(_, table)| table.name == name)
                .map(|(id, _)| id)
                .ok_or_else(|| Error::new(Kind::Usage, format!("no table `{name}` in the pipeline")).with("known", known()))?,
        };
        let reading = &setting.options.reading;
        let export = manifest::open(location, &manifest::Options { choice: None, ..reading.clone() })?;
        if export.window().is_some() {
            return Err(Error::new(Kind::Usage, "the target is an incremental export, which does not hold all items of its table")
                .with("path", location)
                .with("expected", "a full export"));
        }
        if let Some(what) = export.in_words() {
            observer.event(Event::Reading(what));
        }
        export.warnings(reading.verify).for_each(|warning| observer.event(Event::Warning(warning)));
        Ok(Self { files: export.files.iter().map(|file| (id, file.clone())).collect(), export: Some((id, export)) })
    }

    fn ids(&self) -> impl Iterator<Item = (FileId, &DataFile)> {
        (0..).map(FileId).zip(self.files.iter().map(|(_, file)| file))
    }
}

impl Content for Files {
    fn places(&self) -> Option<BTreeSet<u32>> {
        self.export.as_ref().map(|(table, _)| BTreeSet::from([table.0]))
    }

    fn items(&self) -> Option<u64> {
        self.export.as_ref()?.1.items
    }

    fn place(&self, origin: Origin) -> Option<String> {
        let (_, file) = self.files.get(origin.file.index())?;
        Some(format!("{}:{}", file.name, origin.line))
    }

    fn read(&self, setting: &Setting<'_>, take: &mut dyn FnMut(Part) -> Result<()>) -> Result<()> {
        let files: Vec<_> = self.ids().collect();
        let mut counts = vec![0; files.len()];
        let work = |chunk: &Chunk| {
            let (table, _) = self.files[chunk.first.file.index()];
            let mut recorder = Recorder::new(&setting.forms, setting.how(View::Tables));
            record(chunk, table, &mut recorder);
            (chunk.first.file, recorder.part)
        };
        walk(&setting.workers, &files, setting.walk(), work, |(file, part)| {
            counts[file.index()] += part.items;
            take(part)
        })?;
        for (found, (_, file)) in counts.iter().zip(&files) {
            file.expect_items(*found)?;
        }
        self.export.as_ref().map_or(Ok(()), |(_, export)| export.expect_items(counts.iter().sum()))
    }

    fn again(&self, setting: &Setting<'_>, asked: &[Asked<'_>]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; asked.len()];
        let files: Vec<_> = self.ids().collect();
        let origins = asked.iter().enumerate().map(|(at, asked)| (asked.origin, at));
        each_line(setting, &files, origins, |line| {
            with_arena(|arena| {
                let (_, text) = lines(line, arena).next()?;
                let Record::Item(item) = codec::decode_line(text.ok()?, line.format, arena).ok()?.record else { return None };
                let mut json = Vec::new();
                ddb_json::write_item(&item, &mut json);
                Some(json)
            })
        })?
        .into_iter()
        .for_each(|(at, json)| found[at] = json);
        Ok(found)
    }
}

/// Records the items of lines.
pub(super) fn record(chunk: &Chunk, table: TableId, recorder: &mut Recorder<'_, '_>) {
    with_arena(|arena| {
        for (origin, line) in lines(chunk, arena) {
            recorder.part.items += 1;
            let decoded = match line {
                Ok(text) => codec::decode_line(text, chunk.format, arena).map_err(|reason| reason.message),
                Err(_) => Err("not UTF-8".to_owned()),
            };
            match decoded.map(|decoded| decoded.record) {
                Ok(Record::Item(item)) => recorder.add(table.0, None, &item, origin),
                Ok(Record::Change(_)) => recorder.part.unreadable.push((origin, "a change record, which is no item".to_owned())),
                Err(message) => recorder.part.unreadable.push((origin, message)),
            }
        }
    });
    recorder.part.bytes += chunk.bytes.len() as u64;
}

/// Reads single lines of files again, each with the number it was asked under, and gives what `work` makes of it.
pub(super) fn each_line<T: Send>(
    setting: &Setting<'_>,
    files: &[(FileId, &DataFile)],
    origins: impl Iterator<Item = (Origin, usize)>,
    work: impl Fn(&Chunk) -> T + Sync,
) -> Result<Vec<(usize, T)>> {
    let mut wanted: BTreeMap<FileId, BTreeSet<(u64, usize)>> = BTreeMap::new();
    for (origin, at) in origins {
        wanted.entry(origin.file).or_default().insert((origin.line, at));
    }
    let files: Vec<_> = files.iter().filter(|(id, _)| wanted.contains_key(id)).copied().collect();
    let mut done = Vec::new();
    let pick = |chunk: &Chunk| {
        let Some(wanted) = wanted.get(&chunk.first.file) else { return Vec::new() };
        let mut asked = wanted.range((chunk.first.line, 0)..).peekable();
        let mut done = Vec::new();
        for (line, bytes) in (chunk.first.line..).zip(chunk.bytes.split_inclusive(|byte| *byte == b'\n')) {
            while let Some((_, at)) = asked.next_if(|(asked, _)| *asked == line) {
                let first = Origin { line, ..chunk.first };
                done.push((*at, work(&Chunk { first, format: chunk.format, lines: chunk.lines, bytes: bytes.to_vec() })));
            }
            if asked.peek().is_none() {
                break;
            }
        }
        done
    };
    walk(&setting.workers, &files, setting.walk(), pick, |lines| {
        done.extend(lines);
        Ok(())
    })?;
    Ok(done)
}
