//! Commands that are refused leave nothing behind that they made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Folder, Ran, command};

/// Every file and folder below a folder.
fn all(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

#[test]
fn a_command_that_is_refused_leaves_nothing_that_it_made() {
    let folder = Folder::new();
    let (full, empty) = (folder.join("full"), folder.join("empty"));
    for made in [&full, &empty] {
        fs::create_dir(made).expect("a folder can be made");
    }
    fs::write(folder.join("full/notes.txt"), "mine").expect("a file can be written");
    let sink = |kind: &str, name: &str| folder.sink(kind, name);
    let (lake, occupied, vacant) = (sink("parquet", "new/lake"), sink("batch", "full"), sink("import", "empty"));
    let tables = sink("iceberg", "new/tables");
    let mut refused = vec![
        vec!["--to", &lake, "--only", "Nothing"],
        vec!["--to", &lake, "--from", "sample_exports/nowhere"],
        vec!["--to", &lake, "--schema", "nowhere.json"],
        vec!["--to", &lake, "--to", &occupied],
        vec!["--to", &vacant, "--to", &occupied],
        vec!["--to", &lake, "--to", &vacant, "--to", "dynamodb"],
        vec!["--to", "nonsense"],
    ];
    if cfg!(feature = "iceberg") {
        refused.push(vec!["--to", &tables, "--to", &occupied]);
    }
    let before = all(folder.path());
    // A folder for work that is new, in one that is new as well, and one that is there already.
    for work in ["work/of/it", "empty"] {
        let work = folder.join(work);
        for more in &refused {
            if more.contains(&vacant.as_str()) && work == empty {
                continue;
            }
            let mut args = vec!["run", "pipelines/docs-split-comments.toml", "--work", &work];
            if !more.contains(&"--from") {
                args.extend(["--from", "sample_exports/docs"]);
            }
            args.extend(more);
            let mut command = command(&args);
            // Nothing says a region.
            command.env_remove("AWS_REGION").env_remove("AWS_DEFAULT_REGION").env_remove("AWS_PROFILE");
            command.envs([("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
            command.env("AWS_EC2_METADATA_DISABLED", "true");
            let ran = Ran::of(command.output().expect("the program starts"));
            assert!(matches!(ran.code, 1 | 2), "{more:?}: {} {}", ran.code, ran.stderr);
            assert_eq!(all(folder.path()), before, "{more:?}: {}", ran.stderr);
        }
        for against in [sink("parquet", "nowhere"), sink("import", "nowhere"), "nonsense".to_owned()] {
            let args = ["verify", "pipelines/docs-split-comments.toml", "--from", "sample_exports/docs", "--work", &work, "--against"];
            let ran = Ran::of(command(&args).arg(&against).output().expect("the program starts"));
            assert!(matches!(ran.code, 1 | 2), "{against}: {} {}", ran.code, ran.stderr);
            assert_eq!(all(folder.path()), before, "{against}: {}", ran.stderr);
        }
    }
}
