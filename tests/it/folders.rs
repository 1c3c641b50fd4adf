//! Folders that are not a run's own are left alone, and two runs never share one.

use std::fs;

use crate::program::{Folder, dynamorph};

const PIPELINE: &str = "tests/pipelines/order.toml";

fn export(folder: &Folder) -> String {
    let path = folder.join("a.json");
    fs::write(&path, r#"{"Item":{"PK":{"S":"WS#a"},"SK":{"S":"META"},"EntityType":{"S":"Workspace"}}}"#).unwrap();
    path
}

#[test]
fn a_work_folder_with_other_peoples_files_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let from = export(&folder);
    let work = folder.join("mine");
    fs::create_dir_all(folder.path().join("mine/keys")).unwrap();
    fs::write(folder.path().join("mine/keys/id_rsa"), "secret").unwrap();
    let sink = folder.sink("batch", "out");
    let ran = dynamorph(&["run", PIPELINE, "--from", &from, "--to", &sink, "--work", &work, "--quiet"]).expect(2);
    assert!(ran.stderr.contains("the work folder holds files that are not of a run"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(folder.path().join("mine/keys/id_rsa")).unwrap(), "secret");
}

#[test]
fn a_second_run_into_the_same_output_folder_is_refused_while_the_first_lives() {
    let folder = Folder::new();
    let from = export(&folder);
    fs::create_dir_all(folder.path().join("out")).unwrap();
    // What a run does with its output folder, as long as it lives.
    let held = fs::File::open(folder.path().join("out")).unwrap();
    held.try_lock().unwrap();
    let ran = folder.run(PIPELINE, &[&from], &[folder.sink("import", "out")], &[]).expect(2);
    assert!(ran.stderr.contains("another run writes to this output folder"), "{}", ran.stderr);
    drop(held);
    folder.run(PIPELINE, &[&from], &[folder.sink("import", "out")], &[]).expect(0);
}

#[test]
fn two_tables_never_have_one_real_name() {
    let folder = Folder::new();
    let from = export(&folder);
    for (renames, message) in [
        (&["docs=prod", "comments=prod"][..], "would be the one table `prod`"),
        (&["docs=comments"], "would be the one table `comments`"),
        (&["docs=../../x"], "cannot be the name of a table"),
        (&["docs=one", "docs=two"], "names `docs` twice"),
        (&["dcs=one"], "no table of the pipeline"),
    ] {
        let more: Vec<&str> = renames.iter().flat_map(|rename| ["--table", rename]).collect();
        let ran = folder.run(PIPELINE, &[&from], &[folder.sink("batch", "out")], &more).expect(2);
        assert!(ran.stderr.contains(message), "{renames:?}: {}", ran.stderr);
    }
}

#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let out = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = crate::program::command(&["check", PIPELINE]).stdout(out).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the result to stdout"));
}
