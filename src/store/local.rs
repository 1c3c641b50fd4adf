//! Output in a folder of this machine: staged files are moved to their names, durable before they have them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::store::published::{Published, State, in_the_way, missing, named, not_shared, published_name, wrong_size};
use crate::store::{Begin, PUBLISHED, UNFINISHED, io_error};

/// Writes gather in this many bytes; each open staged file holds one such buffer.
const BUFFER_BYTES: usize = 256 * 1024;

/// Output that is not visible yet: a folder inside the final folder.
#[derive(Debug)]
pub struct LocalStaging {
    final_dir: PathBuf,
    folder: PathBuf,
}

impl LocalStaging {
    /// Makes the final folder ready and gives a staging folder in it; see [`OutputFolder::prepare`](crate::store::OutputFolder::prepare).
    ///
    /// # Errors
    /// Kind `Usage` when the folder holds published files and `overwrite` is false, or when it holds anything that
    /// dynamorph did not write; the first such path is named. Kind `Output` when the folder cannot be made, read or written.
    pub fn prepare(final_dir: &Path, overwrite: bool, begin: Begin) -> Result<Self> {
        if begin == Begin::GoOn {
            // The run that was stopped has looked; what it published since is its own.
            return Self::open(final_dir);
        }
        match fs::metadata(final_dir) {
            Ok(found) if !found.is_dir() => {
                return Err(Error::new(Kind::Usage, "the output path is a file, expected a folder").with("path", final_dir.display()));
            }
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Self::open(final_dir),
            Err(cause) => return Err(io_error(Kind::Output, "cannot look into the output folder", final_dir, cause)),
        }
        let published = read_list(final_dir)?.unwrap_or_default();
        published.check_not_replacing(&final_dir.display(), overwrite)?;
        temporary_for(&final_dir.join(PUBLISHED)).map_or(Ok(false), |left| remove_if_there(&left))?;
        if published.state == State::Complete {
            // After a publication that was cut short it may hold the only copy of a file that was about to be moved.
            remove_tree(&final_dir.join(UNFINISHED))?;
        }
        let mut present = Vec::new();
        visit_files(final_dir, &mut |relative| present.push(relative.to_owned()))?;
        present.retain(|relative| !Path::new(relative).starts_with(UNFINISHED));
        published.check_present(&present, &final_dir.display(), overwrite)?;
        Self::open(final_dir)
    }

    /// Makes a folder ready that others write into too; see [`OutputFolder::prepare_shared`](crate::store::OutputFolder::prepare_shared).
    ///
    /// # Errors
    /// Kind `Usage` when the folder is a file, or holds what a sink published that has its folder for itself. Kind `Output` when the
    /// folder cannot be made, read or written.
    pub fn prepare_shared(final_dir: &Path, begin: Begin) -> Result<Self> {
        if begin == Begin::Anew {
            if fs::metadata(final_dir).is_ok_and(|found| !found.is_dir()) {
                return Err(Error::new(Kind::Usage, "the output path is a file, expected a folder").with("path", final_dir.display()));
            }
            if read_list(final_dir)?.is_some() {
                return Err(not_shared(&final_dir.display()));
            }
            remove_tree(&final_dir.join(UNFINISHED))?;
        }
        Self::open(final_dir)
    }

    /// Takes away what is staged in `final_dir`; see [`OutputFolder::forget`](crate::store::OutputFolder::forget).
    ///
    /// # Errors
    /// Kind `Output` when it cannot be removed.
    pub fn forget(final_dir: &Path) -> Result<()> {
        match read_list(final_dir)?.unwrap_or_default().state {
            State::Complete => remove_tree(&final_dir.join(UNFINISHED)),
            State::Filling | State::Replacing => Ok(()),
        }
    }

    /// Opens the staging folder of `final_dir`, and makes both where they are missing. What is staged already stays.
    ///
    /// # Errors
    /// Kind `Output` when the folder cannot be made.
    pub fn open(final_dir: &Path) -> Result<Self> {
        let folder = final_dir.join(UNFINISHED);
        fs::create_dir_all(&folder).map_err(|cause| io_error(Kind::Output, "cannot create the output folder", &folder, cause))?;
        Ok(Self { final_dir: final_dir.to_owned(), folder })
    }

    /// Creates a file that will be `relative` below the final folder. A staged file of that name is replaced, so
    /// that a unit that is run again writes the same names. Costs one buffer of 256 KiB while it is open.
    ///
    /// # Errors
    /// Kind `Output` when `relative` leaves the folder or the file cannot be created.
    pub fn create(&self, relative: &Path) -> Result<LocalFile> {
        let path = self.path(relative)?;
        let parent = parent_of(&path);
        fs::create_dir_all(parent).map_err(|cause| io_error(Kind::Output, "cannot create the output folder", parent, cause))?;
        let file = File::create(&path).map_err(|cause| io_error(Kind::Output, "cannot create the output file", &path, cause))?;
        Ok(LocalFile { out: BufWriter::with_capacity(BUFFER_BYTES, file), path, bytes: 0 })
    }

    /// Stages a small file whole. It is not durable before [`make_durable`](Self::make_durable) has returned: waiting for the
    /// disk once for thousands of files takes seconds, once for each of them minutes.
    ///
    /// # Errors
    /// Kind `Output` when `relative` leaves the folder or the file cannot be written.
    pub fn put_whole(&self, relative: &Path, bytes: &[u8]) -> Result<()> {
        let path = self.path(relative)?;
        let write = || match fs::write(&path, bytes) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(parent_of(&path))?;
                fs::write(&path, bytes)
            }
            written => written,
        };
        write().map_err(|cause| io_error(Kind::Output, "cannot write the output file", &path, cause))
    }

    /// Makes files that were staged whole durable, all at once where the system can.
    ///
    /// # Errors
    /// Kind `Output` when the disk refuses, or a file is missing.
    pub fn make_durable<'f>(&self, mut files: impl Iterator<Item = &'f Path>) -> Result<()> {
        if sync_file_system(&self.folder)? {
            return Ok(());
        }
        files.try_for_each(|relative| {
            let path = self.path(relative)?;
            // Windows flushes only what is open for writing.
            let synced = File::options().write(true).open(&path).and_then(|file| file.sync_all());
            synced.map_err(|cause| io_error(Kind::Output, "cannot make the output file durable", &path, cause))
        })
    }

    /// Gives a staged file the name of another one, which it replaces.
    ///
    /// # Errors
    /// Kind `Output` when one of them is no plain relative path, or the file cannot be moved.
    pub fn replace(&self, relative: &Path, by: &Path) -> Result<()> {
        let (path, by) = (self.path(relative)?, self.path(by)?);
        fs::rename(&by, &path).map_err(|cause| io_error(Kind::Output, "cannot move the output file", &by, cause))?;
        sync_folder(parent_of(&path))
    }

    /// Where the file that will be `relative` lies until it is published.
    ///
    /// # Errors
    /// Kind `Output` when `relative` is no plain relative path.
    pub fn path(&self, relative: &Path) -> Result<PathBuf> {
        Ok(self.folder.join(published_name(relative)?))
    }

    /// Gives the staged files their final names, removes what an earlier run had published and this one did not
    /// replace, and removes the staging folder. When it returns, everything is durable.
    ///
    /// A publication that is cut short is finished by the next one, whose files replace what it left: the list of
    /// published files is written, marked incomplete, before the first file is moved.
    ///
    /// # Errors
    /// Kind `Output` when a file is missing, has another size than reported, or would replace a file that
    /// dynamorph did not write; nothing was moved then. Also when a file cannot be moved.
    pub fn publish(self, files: &[(PathBuf, u64)]) -> Result<()> {
        let names = named(files)?;
        let earlier = read_list(&self.final_dir)?;
        let listed = |name: &String| earlier.as_ref().is_some_and(|list| list.files.contains(name));
        let mut staged = Vec::with_capacity(names.len());
        for (name, bytes) in &names {
            // A publication that was cut short has moved some already.
            let path = self.final_dir.join(name);
            let moved = || listed(name) && fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() == *bytes);
            if self.folder.join(name).exists() || !moved() {
                check_size(&self.folder.join(name), *bytes)?;
                staged.push(name);
            }
        }
        for name in &staged {
            let path = self.final_dir.join(name);
            if !listed(name) && path.symlink_metadata().is_ok() {
                return Err(in_the_way(&path.display()));
            }
        }
        write_list(Published::under_way(earlier.as_ref(), &names), &self.final_dir)?;
        self.give_names(&staged)?;
        self.remove_others(&earlier.unwrap_or_default(), &names)?;
        write_list(Published::complete(&names), &self.final_dir)?;
        remove_tree(&self.folder)
    }

    /// Moves staged files to their final names.
    fn give_names(&self, staged: &[&String]) -> Result<()> {
        let mut folders = BTreeSet::from([self.final_dir.clone()]);
        for name in staged {
            let path = self.final_dir.join(name);
            let mut moved = || {
                // Thousands of files may lie in one folder; it is made once.
                if !folders.contains(parent_of(&path)) {
                    fs::create_dir_all(parent_of(&path))?;
                    folders.extend(path.ancestors().skip(1).take_while(|folder| *folder != self.final_dir).map(Path::to_owned));
                }
                fs::rename(self.folder.join(name), &path)
            };
            moved().map_err(|cause| io_error(Kind::Output, "cannot publish the file", &path, cause))?;
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    /// Gives the staged files their final names beside all that is there, and removes the staging folder.
    ///
    /// # Errors
    /// Kind `Output` when a file is missing or has another size than reported; nothing was moved then. Also when a file cannot be moved.
    pub fn publish_beside(self, files: &[(PathBuf, u64)]) -> Result<()> {
        let names = named(files)?;
        let mut staged = Vec::with_capacity(names.len());
        for (name, bytes) in &names {
            // When the same was cut short, some were moved.
            let moved = || fs::metadata(self.final_dir.join(name)).is_ok_and(|found| found.is_file() && found.len() == *bytes);
            if self.folder.join(name).exists() || !moved() {
                check_size(&self.folder.join(name), *bytes)?;
                staged.push(name);
            }
        }
        self.give_names(&staged)?;
        remove_tree(&self.folder)
    }

    /// Checks that files are staged with these sizes, or are there under their final names where they may be `published` already.
    ///
    /// # Errors
    /// Kind `Output` when a file is missing or has another size than reported.
    pub fn check(&self, files: &[(PathBuf, u64)], published: bool) -> Result<()> {
        files.iter().try_for_each(|(relative, bytes)| check_size(&self.find(relative, published)?, *bytes))
    }

    /// Where the file `relative` lies now, if it lies anywhere.
    ///
    /// # Errors
    /// Kind `Output` when `relative` is no plain relative path.
    pub fn find(&self, relative: &Path, published: bool) -> Result<PathBuf> {
        let staged = self.path(relative)?;
        Ok(if published && !staged.exists() { self.final_dir.join(relative) } else { staged })
    }

    /// Removes the listed files but those to `keep`, and the folders that become empty by it.
    fn remove_others(&self, list: &Published, keep: &BTreeMap<String, u64>) -> Result<()> {
        for file in list.without(keep) {
            let path = self.final_dir.join(file);
            if !remove_if_there(&path)? {
                continue;
            }
            // Fails at the first folder that still holds something, which is where it should stop.
            let mut emptied = path.ancestors().skip(1).take_while(|folder| *folder != self.final_dir);
            let _ = emptied.try_for_each(fs::remove_dir);
        }
        Ok(())
    }
}

/// Checks that a file is there with the size its writer reported.
fn check_size(path: &Path, bytes: u64) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() == bytes => Ok(()),
        Ok(found) => Err(wrong_size(&path.display(), bytes, found.len())),
        Err(cause) => Err(missing(&path.display()).caused_by(cause)),
    }
}

/// The list of published files in `final_dir`, if there is one.
fn read_list(final_dir: &Path) -> Result<Option<Published>> {
    let path = final_dir.join(PUBLISHED);
    match fs::read(&path) {
        Ok(bytes) => Published::parse(&bytes, &path.display()).map(Some),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(io_error(Kind::Output, "cannot read the list of published files", &path, cause)),
    }
}

fn write_list(list: Published, final_dir: &Path) -> Result<()> {
    write_atomically(&final_dir.join(PUBLISHED), &list.into_json())
}

/// A file on its way; buffered. Dropped without [`finish`](Self::finish) it stays unfinished in the staging folder.
#[derive(Debug)]
pub struct LocalFile {
    out: BufWriter<File>,
    path: PathBuf,
    bytes: u64,
}

impl LocalFile {
    /// Bytes written so far, those in the buffer too.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// Kind `Output`, with the path.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|cause| io_error(Kind::Output, "cannot write the output file", &self.path, cause))
    }

    /// Flushes, makes the content durable and closes; gives the size in bytes.
    ///
    /// # Errors
    /// Kind `Output`, with the path.
    pub fn finish(mut self) -> Result<u64> {
        let durable = self.out.flush().and_then(|()| self.out.get_ref().sync_all());
        durable.map_err(|cause| io_error(Kind::Output, "cannot write the output file", &self.path, cause))?;
        Ok(self.bytes)
    }
}

impl Write for LocalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a small file whole and durably: a temporary file beside it, fsync, rename. Missing parent folders are made.
///
/// # Errors
/// Kind `Output`, with the path; the file then is as it was before.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |cause| io_error(Kind::Output, "cannot write the file", path, cause);
    let temporary = temporary_for(path).ok_or_else(|| failed(io::Error::other("the path has no file name")))?;
    let parent = parent_of(path);
    fs::create_dir_all(parent).map_err(failed)?;
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    if let Err(cause) = write() {
        // The first cause is what the user must see; a temporary file that stays behind harms nobody.
        let _ = fs::remove_file(&temporary);
        return Err(failed(cause));
    }
    sync_folder(parent)
}

/// The temporary file beside `path`.
fn temporary_for(path: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(".tmp");
    Some(path.with_file_name(name))
}

/// Calls `found` with the path below `folder` of every entry that is no folder, in the order of the names.
/// Symbolic links are not followed.
fn visit_files(folder: &Path, found: &mut dyn FnMut(&str)) -> Result<()> {
    let mut waiting = vec![String::new()];
    while let Some(relative) = waiting.pop() {
        let path = folder.join(&relative);
        let failed = |cause| io_error(Kind::Output, "cannot look into the output folder", &path, cause);
        let mut entries = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let name = if relative.is_empty() { name } else { format!("{relative}/{name}") };
            entries.push((name, entry.file_type().map_err(failed)?.is_dir()));
        }
        entries.sort_unstable();
        for (name, _) in entries.iter().filter(|(_, is_folder)| !is_folder) {
            found(name);
        }
        waiting.extend(entries.into_iter().rev().filter(|(_, is_folder)| *is_folder).map(|(name, _)| name));
    }
    Ok(())
}

/// Removes a file; gives false where there was none.
fn remove_if_there(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(io_error(Kind::Output, "cannot remove a file of an earlier run", path, cause)),
    }
}

/// Removes a folder and what is in it, where there is one.
fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(io_error(Kind::Output, "cannot remove the folder of unfinished output", path, cause))
        }
        _ => Ok(()),
    }
}

/// Makes names in a folder durable. Only Unix needs it, and only Unix can open a folder for it.
fn sync_folder(folder: &Path) -> Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let synced = File::open(folder).and_then(|opened| opened.sync_all());
    synced.map_err(|cause| io_error(Kind::Output, "cannot make the output folder durable", folder, cause))
}

/// Makes everything on the file system of `folder` durable; gives false where the system has no call for it.
///
/// Linux tells of writes that failed since 5.8, which is of 2020; publishing checks the sizes of all files besides.
#[cfg(target_os = "linux")]
fn sync_file_system(folder: &Path) -> Result<bool> {
    use rustix::io::Errno;

    let failed = |cause| io_error(Kind::Output, "cannot make the output folder durable", folder, cause);
    match rustix::fs::syncfs(File::open(folder).map_err(failed)?) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => Ok(false),
        Err(cause) => Err(failed(cause.into())),
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the call can fail where there is one")]
fn sync_file_system(_folder: &Path) -> Result<bool> {
    Ok(false)
}

/// The folder a path lies in; `.` for a bare name.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(staging: &LocalStaging, relative: &str, text: &str) -> (PathBuf, u64) {
        let mut file = staging.create(Path::new(relative)).unwrap();
        file.put(text.as_bytes()).unwrap();
        (relative.into(), file.finish().unwrap())
    }

    fn publish(folder: &Path, overwrite: bool, files: &[(&str, &str)]) {
        let staging = LocalStaging::prepare(folder, overwrite, Begin::Anew).unwrap();
        let written: Vec<_> = files.iter().map(|(relative, text)| stage(&staging, relative, text)).collect();
        staging.publish(&written).unwrap();
    }

    fn files_in(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        visit_files(folder, &mut |relative| found.push(relative.to_owned())).unwrap();
        found
    }

    #[test]
    fn nothing_has_a_final_name_before_publish() {
        let temp = tempfile::tempdir().unwrap();
        let out = temp.path().join("out");
        let staging = LocalStaging::prepare(&out, false, Begin::Anew).unwrap();
        let written = stage(&staging, "docs/data/a.json", "one");
        assert_eq!(files_in(&out), [".dynamorph-unfinished/docs/data/a.json"]);
        staging.publish(&[written]).unwrap();
        assert_eq!(files_in(&out), [PUBLISHED, "docs/data/a.json"]);
        assert_eq!(fs::read_to_string(out.join("docs/data/a.json")).unwrap(), "one");
        assert!(!out.join(UNFINISHED).exists());
    }

    #[test]
    fn a_folder_with_anything_in_it_is_refused_without_overwrite() {
        let temp = tempfile::tempdir().unwrap();
        publish(temp.path(), false, &[("a", "1")]);
        let error = LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap_err();
        assert_eq!((error.kind(), error.message()), (Kind::Usage, "the output folder is not empty"));
        assert!(error.to_string().contains("--overwrite"), "{error}");
    }

    #[test]
    fn overwrite_removes_what_an_earlier_run_wrote_and_only_at_publish() {
        let temp = tempfile::tempdir().unwrap();
        publish(temp.path(), false, &[("old/x", "1"), ("same", "1")]);
        let staging = LocalStaging::prepare(temp.path(), true, Begin::Anew).unwrap();
        assert_eq!(files_in(temp.path()), [PUBLISHED, "same", "old/x"]);
        let written = [stage(&staging, "same", "22"), stage(&staging, "new/y", "2")];
        staging.publish(&written).unwrap();
        assert_eq!(files_in(temp.path()), [PUBLISHED, "same", "new/y"]);
        assert!(!temp.path().join("old").exists());
        assert_eq!(fs::read_to_string(temp.path().join("same")).unwrap(), "22");
    }

    #[test]
    fn overwrite_names_a_file_that_dynamorph_did_not_write() {
        let temp = tempfile::tempdir().unwrap();
        publish(temp.path(), false, &[("a", "1")]);
        fs::write(temp.path().join("notes.txt"), "mine").unwrap();
        let error = LocalStaging::prepare(temp.path(), true, Begin::Anew).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains("notes.txt"), "{error}");
        assert_eq!(files_in(temp.path()), [PUBLISHED, "a", "notes.txt"]);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_at_the_next_start() {
        let temp = tempfile::tempdir().unwrap();
        let staging = LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap();
        stage(&staging, "a", "half");
        drop(staging);
        fs::write(temp.path().join("..dynamorph-output.json.tmp"), "{").unwrap();
        LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap();
        assert!(files_in(temp.path()).is_empty());
    }

    /// A folder in which the publication of `d/new` and `d/same` was cut short after the first file; `d/old` was there before.
    fn cut_short(overwriting: bool) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        let publication = if overwriting {
            publish(temp.path(), false, &[("d/old", "1"), ("d/same", "1")]);
            r#"{"complete":false,"overwriting":true,"files":["d/new","d/old","d/same"]}"#
        } else {
            r#"{"complete":false,"files":["d/new","d/same"]}"#
        };
        let staging = LocalStaging::open(temp.path()).unwrap();
        stage(&staging, "d/same", "2");
        fs::create_dir_all(temp.path().join("d")).unwrap();
        fs::write(temp.path().join("d/new"), "2").unwrap();
        fs::write(temp.path().join(PUBLISHED), publication).unwrap();
        temp
    }

    #[test]
    fn a_first_publication_that_was_cut_short_is_replaced_by_the_next_one_and_not_before() {
        for overwrite in [false, true] {
            let temp = cut_short(false);
            let left = files_in(temp.path());
            let staging = LocalStaging::prepare(temp.path(), overwrite, Begin::Anew).unwrap();
            assert_eq!(files_in(temp.path()), left);
            drop(staging);
            // A run that failed in between changes nothing.
            let staging = LocalStaging::prepare(temp.path(), overwrite, Begin::Anew).unwrap();
            let written = [stage(&staging, "d/new", "333"), stage(&staging, "d/third", "3")];
            staging.publish(&written).unwrap();
            assert_eq!(files_in(temp.path()), [PUBLISHED, "d/new", "d/third"]);
            assert_eq!(fs::read_to_string(temp.path().join("d/new")).unwrap(), "333");
            assert_eq!(fs::read_to_string(temp.path().join(PUBLISHED)).unwrap(), r#"{"complete":true,"files":["d/new","d/third"]}"#);
        }
    }

    #[test]
    fn a_replacement_that_was_cut_short_is_finished_with_overwrite_only() {
        let temp = cut_short(true);
        let left = files_in(temp.path());
        assert_eq!(left, [PUBLISHED, ".dynamorph-unfinished/d/same", "d/new", "d/old", "d/same"]);
        let error = LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap_err();
        assert_eq!((error.kind(), error.message()), (Kind::Usage, "an earlier run was stopped while it replaced the output"));
        assert!(error.to_string().contains("--overwrite finishes the replacement"), "{error}");
        assert_eq!(files_in(temp.path()), left);
        let staging = LocalStaging::prepare(temp.path(), true, Begin::Anew).unwrap();
        assert_eq!(files_in(temp.path()), left);
        let written = stage(&staging, "d/same", "3");
        staging.publish(&[written]).unwrap();
        assert_eq!(files_in(temp.path()), [PUBLISHED, "d/same"]);
        LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap_err();
    }

    #[test]
    fn a_publication_that_cannot_move_a_file_says_in_its_list_whether_it_was_replacing_output() {
        for (overwriting, expected) in [(false, State::Filling), (true, State::Replacing)] {
            let temp = tempfile::tempdir().unwrap();
            if overwriting {
                publish(temp.path(), false, &[("old", "1")]);
            }
            // The second time, the list that was left is carried on.
            for _ in 0..2 {
                let staging = LocalStaging::prepare(temp.path(), overwriting, Begin::Anew).unwrap();
                let written = [stage(&staging, "a", "2"), stage(&staging, "b/c", "2")];
                fs::write(temp.path().join("b"), "in the way of a folder").unwrap();
                assert!(staging.publish(&written).unwrap_err().message().contains("cannot publish"));
                fs::remove_file(temp.path().join("b")).unwrap();
                let list = read_list(temp.path()).unwrap().unwrap();
                assert_eq!(list.state, expected);
                assert_eq!(list.files.contains("old"), overwriting);
                assert_eq!(temp.path().join("old").exists(), overwriting);
                assert!(temp.path().join("a").exists());
            }
        }
    }

    #[test]
    fn a_file_in_no_list_is_never_removed_after_a_publication_that_was_cut_short() {
        for overwriting in [false, true] {
            let temp = cut_short(overwriting);
            fs::write(temp.path().join("d/mine"), "mine").unwrap();
            let left = files_in(temp.path());
            for overwrite in [false, true] {
                assert_eq!(LocalStaging::prepare(temp.path(), overwrite, Begin::Anew).unwrap_err().kind(), Kind::Usage);
                assert_eq!(files_in(temp.path()), left);
            }
            let staging = LocalStaging::open(temp.path()).unwrap();
            let written = stage(&staging, "d/new", "3");
            staging.publish(&[written]).unwrap();
            assert_eq!(files_in(temp.path()), [PUBLISHED, "d/mine", "d/new"]);
        }
    }

    #[test]
    fn publish_moves_nothing_when_a_file_is_missing_or_has_another_size() {
        for (name, bytes, part) in [("b", 1, "is missing"), ("a", 2, "not the size")] {
            let temp = tempfile::tempdir().unwrap();
            let staging = LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap();
            let good = stage(&staging, "good", "1");
            stage(&staging, "a", "1");
            let error = staging.publish(&[good, (name.into(), bytes)]).unwrap_err();
            assert_eq!(error.kind(), Kind::Output);
            assert!(error.message().contains(part), "{error}");
            assert!(!temp.path().join("good").exists());
        }
    }

    #[test]
    fn publish_never_replaces_a_file_that_came_in_the_meantime() {
        let temp = tempfile::tempdir().unwrap();
        let staging = LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap();
        let written = stage(&staging, "a", "ours");
        fs::write(temp.path().join("a"), "theirs").unwrap();
        let error = staging.publish(&[written]).unwrap_err();
        assert!(error.message().contains("in the way"), "{error}");
        assert_eq!(fs::read_to_string(temp.path().join("a")).unwrap(), "theirs");
    }

    #[test]
    fn a_path_that_leaves_the_folder_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let staging = LocalStaging::open(temp.path()).unwrap();
        for path in ["../a", "a/../../b", "/etc/x", "", ".", ".dynamorph-unfinished/a"] {
            assert!(staging.create(Path::new(path)).is_err(), "{path}");
        }
        fs::write(temp.path().join(PUBLISHED), r#"{"complete":false,"files":["../a"]}"#).unwrap();
        assert!(LocalStaging::prepare(temp.path(), true, Begin::Anew).unwrap_err().message().contains("leads out"));
    }

    #[test]
    fn a_staged_file_counts_its_bytes_and_a_unit_that_runs_again_replaces_it() {
        let temp = tempfile::tempdir().unwrap();
        let staging = LocalStaging::open(temp.path()).unwrap();
        stage(&staging, "a", "a longer text");
        let (name, bytes) = stage(&staging, "a", "short");
        assert_eq!(bytes, 5);
        assert_eq!(fs::read_to_string(staging.path(&name).unwrap()).unwrap(), "short");
    }

    #[test]
    fn files_staged_whole_are_made_durable_together_and_published() {
        let temp = tempfile::tempdir().unwrap();
        let staging = LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap();
        let names = ["docs/a.json", "docs/b.json"].map(Path::new);
        for name in names {
            staging.put_whole(name, b"{}").unwrap();
        }
        staging.make_durable(names.into_iter()).unwrap();
        staging.publish(&names.map(|name| (name.to_owned(), 2))).unwrap();
        assert_eq!(files_in(temp.path()), [PUBLISHED, "docs/a.json", "docs/b.json"]);
    }

    #[test]
    fn an_atomic_write_replaces_the_whole_file_and_leaves_no_temporary_one() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("new/report.json");
        write_atomically(&path, b"first, and longer").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(files_in(temp.path()), ["new/report.json"]);
    }

    #[test]
    fn a_publication_that_was_cut_short_anywhere_is_finished_by_the_same_call() {
        let names = ["a/1", "a/2", "b"].map(PathBuf::from);
        let files: Vec<_> = names.iter().map(|name| (name.clone(), 3)).collect();
        let earlier = || {
            let temp = tempfile::tempdir().unwrap();
            // An earlier run, whose file of the same name has another size.
            let staging = LocalStaging::prepare(temp.path(), false, Begin::Anew).unwrap();
            staging.put_whole(Path::new("b"), b"older").unwrap();
            staging.publish(&[(PathBuf::from("b"), 5)]).unwrap();
            let staging = LocalStaging::prepare(temp.path(), true, Begin::Anew).unwrap();
            for name in &names {
                staging.put_whole(name, b"new").unwrap();
            }
            temp
        };
        for moved in 0..=names.len() {
            let temp = earlier();
            let list = read_list(temp.path()).unwrap();
            write_list(Published::under_way(list.as_ref(), &named(&files).unwrap()), temp.path()).unwrap();
            for name in &names[..moved] {
                fs::create_dir_all(parent_of(&temp.path().join(name))).unwrap();
                fs::rename(temp.path().join(UNFINISHED).join(name), temp.path().join(name)).unwrap();
            }
            for _ in 0..2 {
                LocalStaging::prepare(temp.path(), true, Begin::GoOn).unwrap().publish(&files).unwrap();
                assert!(names.iter().all(|name| fs::read(temp.path().join(name)).unwrap() == b"new"));
                assert!(!temp.path().join(UNFINISHED).exists());
            }
        }
        // What is missing and was never moved stays missing.
        let temp = earlier();
        fs::remove_file(temp.path().join(UNFINISHED).join("b")).unwrap();
        let error = LocalStaging::open(temp.path()).unwrap().publish(&files).unwrap_err();
        assert!(error.message().contains("missing"), "{error}");
    }
}
