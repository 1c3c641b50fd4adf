//! One table exported in several ways: the same pipeline writes the same bytes.

use crate::program::{Folder, files};

/// Runs the split pipeline over a sample into all kinds of files.
fn run(sample: &str) -> Folder {
    let folder = Folder::new();
    let sinks = ["parquet", "import", "batch"].map(|kind| folder.sink(kind, kind));
    folder.run("pipelines/docs-split-comments.toml", &[&format!("sample_exports/{sample}")], &sinks, &[]).expect(0);
    folder
}

/// The sample, which holds the same items in the same order as `docs`, gives the same files.
#[track_caller]
fn gives_what_docs_gives(sample: &str) {
    let (docs, other) = (run("docs"), run(sample));
    for kind in ["parquet", "import", "batch"] {
        let (expected, found) = (files(&docs.path().join(kind)), files(&other.path().join(kind)));
        assert!(!expected.is_empty());
        let names = |files: &[(std::path::PathBuf, Vec<u8>)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{kind}");
        for ((path, expected), (_, found)) in expected.iter().zip(&found) {
            assert!(expected == found, "{kind}: {} differs", path.display());
        }
    }
}

#[test]
fn an_export_that_left_its_prefix_and_its_folders_behind_gives_the_same_bytes() {
    gives_what_docs_gives("docs-prefixed");
}
