//! What a command makes before it is sure that it may do its work; one that is refused takes it away again.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files that were not there before.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The outer before the inner.
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Made {
    /// Notes what is missing of a folder and of those it lies in, before it is made.
    pub(super) fn folder(&mut self, path: &Path) {
        let missing: Vec<_> = path.ancestors().take_while(|folder| is_missing(folder)).map(Path::to_owned).collect();
        self.folders.extend(missing.into_iter().rev());
    }

    /// Notes a file that was not there, and that nobody else makes meanwhile.
    pub(super) fn file(&mut self, path: PathBuf) {
        self.files.push(path);
    }

    /// Takes away the files, and the folders that are empty then.
    pub(super) fn remove(&self) {
        // What cannot be removed is in nobody's way, and the error that led here is the one that counts.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.symlink_metadata().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_and_what_holds_anything_stays() {
        let temp = tempfile::tempdir().unwrap();
        let (there, new) = (temp.path().join("there"), temp.path().join("new"));
        fs::create_dir(&there).unwrap();
        let mut made = Made::default();
        for folder in [&there, &new.join("empty/inner"), &new.join("used")] {
            made.folder(folder);
            fs::create_dir_all(folder).unwrap();
        }
        for name in ["mine", "theirs"] {
            fs::write(there.join(name), name).unwrap();
        }
        made.file(there.join("mine"));
        fs::write(new.join("used/file"), "").unwrap();
        made.remove();
        assert!(there.join("theirs").exists() && !there.join("mine").exists());
        assert!(new.join("used/file").exists() && !new.join("empty").exists());
    }
}
