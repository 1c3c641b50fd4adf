//! One table exported in several ways: the same pipeline writes the same bytes.

use std::path::Path;

use crate::program::{Folder, files};

/// Runs the split pipeline over an export into all kinds of files.
fn run(export: &str) -> Folder {
    let folder = Folder::new();
    let sinks = ["parquet", "import", "batch"].map(|kind| folder.sink(kind, kind));
    folder.run("pipelines/docs-split-comments.toml", &[export], &sinks, &[]).expect(0);
    folder
}

/// What a file holds, but for the name and the time of the export that it was made from.
fn content(path: &Path, bytes: &[u8]) -> Vec<u8> {
    if !path.ends_with("_dynamorph.json") {
        return bytes.to_vec();
    }
    let mut manifest: serde_json::Value = serde_json::from_slice(bytes).expect("the manifest is JSON");
    manifest.as_object_mut().expect("the manifest is an object").remove("sources");
    manifest.to_string().into_bytes()
}

/// Both runs wrote the same bytes under the same names.
#[track_caller]
pub(crate) fn same_bytes(kinds: &[&str], expected: &Folder, found: &Folder) {
    for kind in kinds {
        let [expected, found] = [expected, found].map(|folder| files(&folder.path().join(kind)));
        let names = |files: &[(std::path::PathBuf, Vec<u8>)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        assert!(!expected.is_empty());
        assert_eq!(names(&found), names(&expected), "{kind}");
        for ((path, expected), (_, found)) in expected.iter().zip(&found) {
            assert!(content(path, expected) == content(path, found), "{kind}: {} differs", path.display());
        }
    }
}

#[test]
fn an_export_that_left_its_prefix_and_its_folders_behind_gives_the_same_bytes() {
    same_bytes(&["parquet", "import", "batch"], &run("sample_exports/docs"), &run("sample_exports/docs-prefixed"));
}

#[test]
fn an_export_in_ion_gives_the_same_bytes() {
    same_bytes(&["parquet", "import", "batch"], &run("sample_exports/docs"), &run("sample_exports/docs-ion"));
}
