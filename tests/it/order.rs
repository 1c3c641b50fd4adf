//! The same bytes for any number of workers.

use std::fmt::Write as _;

use crate::program::{Folder, files};

/// An export of several files and enough items that chunks of all of them are under way at once.
fn export(folder: &Folder) -> Vec<String> {
    (0..6)
        .map(|file| {
            let mut lines = String::new();
            for at in 0..6_000 {
                let kind = ["Workspace", "Document", "doc", "Comment"][at % 4];
                let sk = match kind {
                    "Workspace" => format!("META#{file}#{at}"),
                    "Comment" => format!("DOC#{at}#CMT#{file}{at}"),
                    _ => format!("DOC#{file}{at}"),
                };
                let _ = writeln!(
                    lines,
                    r#"{{"Item":{{"PK":{{"S":"WS#{}"}},"SK":{{"S":"{sk}"}},"EntityType":{{"S":"{kind}"}},"title":{{"S":"{}"}},"n":{{"N":"{at}"}},"createdAt":{{"S":"2026-01-{:02}"}}}}}}"#,
                    at % 97,
                    "text ".repeat(at % 60),
                    at % 28 + 1,
                );
            }
            // A few bad lines, so that the rejects are compared too.
            lines.push_str("no item\n{\"Item\":{\"PK\":{\"S\":\"WS#1\"}}}\n");
            let path = folder.join(&format!("{file}.json"));
            std::fs::write(&path, lines).expect("the export can be written");
            path
        })
        .collect()
}

#[test]
fn output_is_the_same_for_one_two_and_eight_workers() {
    let source = Folder::new();
    let paths = export(&source);
    let from: Vec<&str> = paths.iter().map(String::as_str).collect();
    let run = |jobs: &str| {
        let folder = Folder::new();
        let sinks = [folder.sink("parquet", "lake"), folder.sink("import", "import"), folder.sink("batch", "batch")];
        folder.run("tests/pipelines/order.toml", &from, &sinks, &["--jobs", jobs]).expect(3);
        let differ = |path: &std::path::Path| path.ends_with("report.json") || path.ends_with("run.json") || path.starts_with("work/units");
        let found: Vec<_> = files(folder.path()).into_iter().filter(|(path, _)| !differ(path)).collect();
        assert!(found.iter().any(|(path, _)| path.starts_with("work/rejects")));
        assert!(found.iter().filter(|(path, _)| path.starts_with("lake")).count() > 3);
        found
    };
    let one = run("1");
    for jobs in ["2", "8"] {
        let other = run(jobs);
        let names = |found: &[(std::path::PathBuf, Vec<u8>)]| found.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        assert_eq!(names(&one), names(&other), "{jobs} workers");
        for ((path, expected), (_, found)) in one.iter().zip(&other) {
            assert!(expected == found, "{} differs between 1 and {jobs} workers", path.display());
        }
    }
}
