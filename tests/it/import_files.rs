//! Files for `DynamoDB`'s imports, as the program writes them and as others read them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::{Folder, files};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const EXPORT: &str = "sample_exports/docs";

fn import(folder: &Folder, more: &[&str]) {
    folder.run(PIPELINE, &[EXPORT], &[folder.sink("import", "out")], more).expect(0);
}

/// An `aws` that says what it was asked for, and the script run with it.
fn run_script(folder: &Folder, args: &[&str]) -> (Option<i32>, Vec<Vec<String>>) {
    let (bin, log) = (folder.path().join("bin"), folder.path().join("asked"));
    fs::create_dir_all(&bin).unwrap();
    let aws = bin.join("aws");
    fs::write(
        &aws,
        format!("#!/bin/sh\nfor word in \"$@\"; do printf '%s\\0' \"$word\"; done >> '{0}'\nprintf '\\n\\0' >> '{0}'\n", log.display()),
    )
    .unwrap();
    Command::new("chmod").arg("+x").arg(&aws).status().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("sh").arg(folder.path().join("out/import.sh")).args(args).current_dir("/").env("PATH", path).output().unwrap();
    let words = fs::read_to_string(&log).unwrap_or_default();
    let words: Vec<_> = words.split_terminator('\0').map(str::to_owned).collect();
    (ran.status.code(), words.split(|word| word == "\n").filter(|words| !words.is_empty()).map(<[String]>::to_vec).collect())
}

#[test]
fn the_script_sends_the_requests_with_the_bucket_that_it_is_told() {
    for (which, action, file) in [("new", "import-table", "table.json"), ("existing", "start-bulk-put-items", "bulk-put.json")] {
        let folder = Folder::new();
        import(&folder, &["--table", "docs=prod-docs"]);
        let (code, asked) = run_script(&folder, &[which, "my-bucket"]);
        assert_eq!(code, Some(0));
        assert_eq!(asked[0], ["s3", "sync", ".", "s3://my-bucket/"]);
        for (asked, table) in asked[1..3].iter().zip(["docs", "comments"]) {
            assert_eq!(*asked, ["s3", "sync", &format!("{table}/data"), &format!("s3://my-bucket/{table}/data"), "--delete"]);
        }
        for (asked, table) in asked[3..].iter().zip(["docs", "comments"]) {
            assert_eq!(asked[..3], ["dynamodb", action, "--cli-input-json"]);
            let written = fs::read_to_string(folder.path().join("out").join(table).join(file)).unwrap();
            assert_eq!(asked[3], written.replace("REPLACE-WITH-YOUR-BUCKET", "my-bucket").trim_end());
            let sent: Value = serde_json::from_str(&asked[3]).unwrap();
            let name = sent.get("TableName").or_else(|| sent["TableCreationParameters"].get("TableName"));
            assert_eq!(*name.unwrap(), if table == "docs" { "prod-docs" } else { table });
        }
        assert_eq!(asked.len(), 5);
    }
}

#[test]
fn the_script_does_nothing_until_it_is_told_what() {
    for args in [&[][..], &["both"], &["new"], &["new", "s3://bucket"], &["existing", "bucket/prefix"]] {
        let folder = Folder::new();
        import(&folder, &[]);
        let (code, asked) = run_script(&folder, args);
        assert!(code == Some(2) || code == Some(1), "{code:?}");
        assert_eq!(asked, Vec::<Vec<String>>::new());
    }
}

#[test]
fn zstd_files_hold_what_gzip_files_hold_for_any_number_of_workers() {
    let text = |folder: &Folder, path: &Path| {
        let bytes = fs::read(folder.path().join("out").join(path)).unwrap();
        if path.extension().is_some_and(|extension| extension == "zst") {
            zstd::decode_all(&bytes[..]).unwrap()
        } else {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
            text
        }
    };
    let (gzip, zstd, alone) = (Folder::new(), Folder::new(), Folder::new());
    // Objects of a few items each, so that there are many.
    import(&gzip, &["--import-object-size", "1KiB"]);
    import(&zstd, &["--import-object-size", "1KiB", "--import-compression", "zstd"]);
    import(&alone, &["--import-object-size", "1KiB", "--import-compression", "zstd", "--jobs", "1"]);
    let written = |folder: &Folder| files(&folder.path().join("out"));
    assert!(written(&zstd) == written(&alone));
    let data = |folder: &Folder| {
        written(folder)
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.parent().is_some_and(|parent| parent.ends_with("data")))
            .collect::<Vec<_>>()
    };
    let (of_gzip, of_zstd) = (data(&gzip), data(&zstd));
    assert!(of_gzip.len() > 10 && of_gzip.len() == of_zstd.len());
    for (one, other) in of_gzip.iter().zip(&of_zstd) {
        assert_eq!(one.with_extension(""), other.with_extension(""));
        assert!(other.extension().is_some_and(|extension| extension == "zst"), "{}", other.display());
        let text = [text(&gzip, one), text(&zstd, other)];
        assert!(text[0] == text[1] && text[0].len() <= 1024, "{}", one.display());
    }
}
