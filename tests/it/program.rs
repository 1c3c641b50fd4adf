//! Runs the real program, and compares what users see with golden files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program with these arguments, started in the repository's folder, so that messages show short paths.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dynamorph"));
    command.current_dir(root()).args(args);
    command
}

/// The repository's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        Self { code: output.status.code().expect("the program ends by itself"), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The result, after a check of the exit code that shows everything when it is another.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Runs the program.
pub(crate) fn dynamorph(args: &[&str]) -> Ran {
    Ran::of(command(args).output().expect("the program starts"))
}

/// A folder for one test's output: `out` for sinks, `work` for the run.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path below the folder, as text.
    pub(crate) fn join(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// `KIND:FOLDER/NAME`
    pub(crate) fn sink(&self, kind: &str, name: &str) -> String {
        format!("{kind}:{}", self.join(name))
    }

    /// Runs a pipeline over an export with these sinks and more arguments; the work folder is `work`.
    pub(crate) fn run(&self, pipeline: &str, from: &[&str], to: &[String], more: &[&str]) -> Ran {
        let work = self.join("work");
        let mut args = vec!["run", pipeline, "--work", &work, "--quiet"];
        args.extend(from.iter().flat_map(|export| ["--from", *export]));
        args.extend(to.iter().flat_map(|sink| ["--to", sink.as_str()]));
        args.extend(more);
        dynamorph(&args)
    }

    /// What the program printed, with this folder's path and all durations made the same for every run.
    pub(crate) fn stable(&self, text: &str) -> String {
        let text = text.replace(self.path().to_str().expect("temporary paths are UTF-8"), "TMP");
        let line = |line: &str| match line.rsplit_once("  ") {
            Some((head, seconds)) if seconds.len() == 4 && seconds.as_bytes()[1] == b'.' => format!("{head}  0.00"),
            _ => line.to_owned(),
        };
        text.lines().map(|text| line(text) + "\n").collect()
    }
}

/// Compares with `tests/golden/NAME`; `UPDATE_GOLDEN=1` writes it.
#[track_caller]
pub(crate) fn golden(name: &str, found: &str) {
    let path = root().join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("a golden file has a folder")).expect("the golden folder can be made");
        std::fs::write(&path, found).expect("the golden file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}; UPDATE_GOLDEN=1 writes it", path.display()));
    assert!(expected == found, "{} differs; UPDATE_GOLDEN=1 writes it\n--- expected\n{expected}\n--- found\n{found}", path.display());
}

/// Every file below a folder with its bytes, sorted by path; hidden files too.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("a file can be read");
                found.push((path.strip_prefix(folder).expect("it is below").to_owned(), bytes));
            }
        }
    }
    found.sort();
    found
}
