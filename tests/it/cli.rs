//! What the command line says: messages, exit codes, tables and JSON, and that the README shows what the program does.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::program::{Folder, Ran, command, dynamorph, files, golden, root};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const DOCS: &str = "sample_exports/docs";

/// Everything that the user sees.
fn seen(folder: &Folder, ran: &Ran) -> String {
    folder.stable(&format!("exit code {}\n--- stdout\n{}--- stderr\n{}", ran.code, ran.stdout, ran.stderr))
}

/// A run of the split pipeline with these further arguments, in which `TMP` stands for the folder.
fn run(folder: &Folder, args: &[&str]) -> Ran {
    let args: Vec<String> = args.iter().map(|arg| arg.replace("TMP", folder.path().to_str().expect("temporary paths are UTF-8"))).collect();
    let work = folder.join("work");
    let mut all = vec!["run", PIPELINE, "--quiet"];
    if !args.iter().any(|arg| arg == "--work") {
        all.extend(["--work", &work]);
    }
    all.extend(args.iter().map(String::as_str));
    dynamorph(&all)
}

/// The run is refused with code 2, this golden text, and before anything is written.
#[track_caller]
fn refused(name: &str, args: &[&str]) {
    let folder = Folder::new();
    let ran = run(&folder, args).expect(2);
    golden(&format!("cli/{name}.txt"), &seen(&folder, &ran));
    let left: Vec<_> = files(folder.path()).into_iter().map(|(path, _)| path).filter(|path| !path.ends_with("lock")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn wrong_usage_is_refused_with_what_was_found_and_expected() {
    refused("unknown-sink", &["--from", DOCS, "--to", "csv:TMP/out"]);
    refused("sink-without-folder", &["--from", DOCS, "--to", "import:"]);
    refused("missing-from", &["--to", "import:TMP/out"]);
    refused("missing-to", &["--from", DOCS]);
    refused("unknown-entity", &["--from", DOCS, "--to", "import:TMP/out", "--only", "Docment"]);
    refused("unknown-table", &["--from", DOCS, "--to", "import:TMP/out", "--table", "doc=prod-docs"]);
    refused("table-without-name", &["--from", DOCS, "--to", "import:TMP/out", "--table", "docs"]);
    refused("unknown-argument", &["--from", DOCS, "--to", "import:TMP/out", "--overwite"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_messages_cannot_be_written_is_a_good_run() {
    let folder = Folder::new();
    let (work, import) = (folder.join("work"), folder.sink("import", "import"));
    let export = folder.join("copy.json");
    // A data file without a manifest gives no warning, an export without checksums does.
    fs::write(&export, "").expect("a file can be written");
    let unchecked = folder.path().join("export");
    fs::create_dir_all(unchecked.join("data")).expect("a folder can be made");
    fs::write(unchecked.join("manifest-files.json"), "").expect("a file can be written");
    let summary = r#"{"version":"2020-06-30","outputFormat":"DYNAMODB_JSON","itemCount":0}"#;
    fs::write(unchecked.join("manifest-summary.json"), summary).expect("a file can be written");
    for from in [&export, unchecked.to_str().expect("temporary paths are UTF-8")] {
        let program = env!("CARGO_BIN_EXE_dynamorph");
        let run = "exec \"$0\" \"$@\" 2>/dev/full";
        let args = ["run", PIPELINE, "--overwrite", "--from", from, "--to", &import, "--work", &work];
        let output = std::process::Command::new("sh").args(["-c", run, program]).args(args).current_dir(root()).output();
        Ran::of(output.expect("a shell starts")).expect(0);
    }
}

#[test]
fn sinks_and_the_work_folder_need_places_of_their_own() {
    refused("same-folder", &["--from", DOCS, "--to", "parquet:TMP/out", "--to", "import:TMP/out"]);
    refused("same-folder-in-other-words", &["--from", DOCS, "--to", "batch:TMP/out", "--to", "import:TMP/a/.././out/"]);
    refused("folder-in-folder", &["--from", DOCS, "--to", "parquet:TMP/out", "--to", "import:TMP/out/import"]);
    refused("work-in-sink", &["--from", DOCS, "--to", "import:TMP/out", "--work", "TMP/out/work"]);
    refused("sink-in-work", &["--from", DOCS, "--to", "import:TMP/state/rejects", "--work", "TMP/state"]);
    refused("live-twice", &["--from", DOCS, "--to", "dynamodb", "--to", "dynamodb"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_is_that_folder() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("out")).expect("a folder can be made");
    std::os::unix::fs::symlink(folder.path().join("out"), folder.path().join("link")).expect("a link can be made");
    let ran = run(&folder, &["--from", DOCS, "--to", "import:TMP/out", "--to", "batch:TMP/link"]).expect(2);
    assert!(ran.stderr.contains("two sinks have the same folder"), "{}", ran.stderr);
}

#[test]
fn an_export_that_is_not_there_ends_the_run() {
    let folder = Folder::new();
    let ran = run(&folder, &["--from", "TMP/nothing", "--to", "import:TMP/out"]).expect(1);
    golden("cli/missing-export.txt", &seen(&folder, &ran));
}

#[test]
fn a_folder_that_holds_something_is_overwritten_only_when_a_run_wrote_all_of_it_and_the_user_says_so() {
    let folder = Folder::new();
    run(&folder, &["--from", DOCS, "--to", "import:TMP/out"]).expect(0);
    let first = files(&folder.path().join("out"));
    let again = run(&folder, &["--from", DOCS, "--to", "import:TMP/out"]).expect(2);
    golden("cli/not-empty.txt", &seen(&folder, &again));
    assert!(files(&folder.path().join("out")) == first, "a refused run changed the folder");

    run(&folder, &["--from", DOCS, "--to", "import:TMP/out", "--overwrite", "--only", "Document"]).expect(0);
    let names: BTreeSet<_> = files(&folder.path().join("out")).into_iter().map(|(path, _)| path.display().to_string()).collect();
    assert!(names.iter().any(|name| name.starts_with("docs/data/")), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("comments/data/")), "what the run before wrote is gone: {names:?}");

    fs::write(folder.path().join("out/notes.txt"), "mine").expect("a file can be written");
    let foreign = run(&folder, &["--from", DOCS, "--to", "import:TMP/out", "--overwrite"]).expect(2);
    golden("cli/foreign-file.txt", &seen(&folder, &foreign));
    assert_eq!(fs::read(folder.path().join("out/notes.txt")).expect("the file is still there"), b"mine");
}

#[test]
fn only_carries_the_named_entities_and_counts_the_others_as_dropped() {
    let folder = Folder::new();
    let ran = run(&folder, &["--from", DOCS, "--to", "batch:TMP/out", "--only", "Comment", "--only", "Workspace"]).expect(0);
    golden("cli/only.txt", &folder.stable(&ran.stdout));
}

#[test]
fn limit_reads_the_first_items_only() {
    let folder = Folder::new();
    let ran = run(&folder, &["--from", DOCS, "--to", "batch:TMP/out", "--limit", "40"]).expect(0);
    golden("cli/limit.txt", &folder.stable(&ran.stdout));
    let nothing = Folder::new();
    let ran = run(&nothing, &["--from", DOCS, "--to", "batch:TMP/out", "--limit", "0"]).expect(0);
    assert!(ran.stdout.contains("read 0 = written 0 + dropped 0 + rejected 0"), "{}", ran.stdout);
}

#[test]
fn rejects_up_to_the_allowed_number_are_no_failure() {
    let sample = "sample_exports/broken/same-key";
    for (allowed, code) in [("0", 3), ("1", 3), ("2", 0)] {
        let folder = Folder::new();
        let ran = run(&folder, &["--from", sample, "--to", "import:TMP/out", "--max-rejects", allowed]).expect(code);
        assert!(ran.stdout.contains("2 rejects:"), "{}", ran.stdout);
    }
}

/// The names of a JSON object, sorted.
fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("an object, found {value}")).keys().map(String::as_str).collect()
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

#[test]
fn the_json_of_a_run_has_stable_fields_and_is_the_report() {
    let folder = Folder::new();
    let ran = run(&folder, &["--from", DOCS, "--to", "import:TMP/out", "--output", "json"]).expect(0);
    assert_eq!(ran.stderr, "");
    let found = json(&ran);
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path().join("work/report.json")).expect("there is a report")).expect("JSON");
    assert_eq!(found, report);
    let top = [
        "dynamorph",
        "entities",
        "exports",
        "limit",
        "manifest_items",
        "read",
        "rejects",
        "replication_attributes_dropped",
        "seconds",
        "sinks",
        "total",
    ];
    assert_eq!(names(&found), top);
    assert_eq!(
        names(&found["exports"][0]),
        [
            "compressed_bytes",
            "export_arn",
            "export_time",
            "files",
            "from_time",
            "items",
            "kind",
            "md5_checked",
            "source",
            "table_arn",
            "to_time",
            "view"
        ]
    );
    assert_eq!(names(&found["sinks"][0]), ["bytes", "files", "items", "kept", "refused", "sink"]);
    assert_eq!(names(&found["rejects"]), ["by_rule", "count", "files"]);
    let entity = names(&found["entities"][0]).into_iter().collect::<BTreeSet<_>>();
    let documented = ["entity", "read", "written", "dropped", "rejected", "bytes", "fanned_out", "backfilled", "retyped"];
    assert!(documented.iter().all(|name| entity.contains(name)), "{entity:?}");
    assert_eq!([&found["read"], &found["manifest_items"], &found["total"]["written"]], [109, 109, 109]);
}

#[test]
fn the_json_of_check_says_what_is_in_the_file_or_every_mistake() {
    let fine = json(&dynamorph(&["check", PIPELINE, "--output", "json"]).expect(0));
    assert_eq!(fine, serde_json::json!({"ok": true, "entities": 3, "tables": 2, "examples": 4}));

    let folder = Folder::new();
    let path = pipeline(&folder, FIVE_MISTAKES);
    let wrong = json(&dynamorph(&["check", &path, "--output", "json"]).expect(2));
    assert_eq!(wrong["ok"], false);
    let mistakes = wrong["mistakes"].as_array().expect("the mistakes are a list");
    assert_eq!(mistakes.len(), 5);
    for mistake in mistakes {
        assert_eq!(names(mistake), ["column", "file", "help", "line", "message"]);
        assert_eq!(mistake["file"], path);
        assert!(mistake["line"].as_u64() > Some(0) && mistake["column"].as_u64() > Some(0), "{mistake}");
    }

    let missing = json(&dynamorph(&["check", &folder.join("nothing.toml"), "--output", "json"]).expect(2));
    assert_eq!([&missing["ok"], &missing["error"]["kind"]], [&Value::Bool(false), &Value::from("usage")]);
    assert_eq!(missing["error"]["context"]["file"], folder.join("nothing.toml"));
}

#[test]
fn the_json_of_a_failed_run_holds_the_error() {
    let folder = Folder::new();
    let ran = run(&folder, &["--from", "sample_exports/broken/bad-md5", "--to", "import:TMP/out", "--output", "json"]).expect(1);
    let found = json(&ran);
    assert_eq!([&found["ok"], &found["error"]["kind"]], [&Value::Bool(false), &Value::from("input")]);
    assert!(found["error"]["message"].as_str().is_some_and(|message| message.contains("is not what the manifest says")), "{found}");
}

#[test]
fn inspect_describes_the_sample_as_text_and_as_json() {
    let text = dynamorph(&["inspect", DOCS, "--quiet"]).expect(0);
    golden("cli/inspect-docs.txt", &text.stdout);
    let json = json(&dynamorph(&["inspect", DOCS, "--output", "json"]).expect(0));
    let top = [
        "always_present",
        "drift",
        "entities",
        "exports",
        "files",
        "first_unreadable",
        "hot_partitions",
        "item_bytes",
        "items",
        "key",
        "line_bytes",
    ];
    assert_eq!(names(&json), [top.as_slice(), &["type_attribute", "type_candidates", "unreadable"]].concat());
    assert_eq!([&json["items"], &json["unreadable"]], [109, 0]);
    // Every spelling that the sample has in place of the right one.
    let drift = json["drift"].as_array().expect("drift is a list").iter().map(|drift| {
        let variants = drift["variants"].as_array().expect("variants are a list").iter().filter_map(|variant| variant["name"].as_str());
        (drift["name"].as_str().expect("drift has a name"), variants.collect::<Vec<_>>())
    });
    assert_eq!(drift.collect::<Vec<_>>(), [("Comment", vec!["COMMENT"]), ("Document", vec!["Doc", "document"])]);
}

#[test]
fn inspect_takes_the_key_and_the_type_from_the_user() {
    let args = ["inspect", "sample_exports/sql-style/projects", "--quiet", "--partition-key", "id", "--type-attribute", "status"];
    golden("cli/inspect-projects.txt", &dynamorph(&args).expect(0).stdout);
    let half = dynamorph(&["inspect", DOCS, "--sort-key", "SK"]).expect(2);
    assert!(half.stderr.contains("--sort-key needs --partition-key"), "{}", half.stderr);
}

#[test]
fn inspect_counts_lines_that_are_no_items() {
    let ran = dynamorph(&["inspect", "sample_exports/broken/bad-line", "--quiet"]).expect(0);
    let expected = "\n1 line is no item: data/5ewfq24uzwy4xzwnql63myhwyz.json.gz:3: column 236, ";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
}

fn pipeline(folder: &Folder, text: &str) -> String {
    let path = folder.join("pipeline.toml");
    fs::write(&path, text).expect("the pipeline can be written");
    path
}

const FIVE_MISTAKES: &str = r#"version = 1

[source]
key  = { partition = "PK", sort = "SK" }
typ  = "EntityType"

[table.docs]
key  = { partition = "EntityRef", sort = "Detail" }

[entity.Document]
match = { PK = "WS#{ws}", SK = "DOC#{doc" }
steps = [{ renam = { title = "name" } }]
when  = "attribute_exists(title) AND"
to    = "dcos"
key   = { EntityRef = "WS#{ws}", Detail = "DOC#{doc | pad(10)}" }
"#;

#[test]
fn check_reports_every_mistake_at_once_with_its_place() {
    let folder = Folder::new();
    let ran = dynamorph(&["check", &pipeline(&folder, FIVE_MISTAKES)]).expect(2);
    golden("cli/five-mistakes.txt", &seen(&folder, &ran));
    let run = folder.run(&folder.join("pipeline.toml"), &[DOCS], &[folder.sink("import", "out")], &[]).expect(2);
    assert_eq!(run.stderr, ran.stderr, "run finds what check finds");
}

#[test]
fn check_shows_what_an_example_expects_and_what_comes_out() {
    let folder = Folder::new();
    let text = fs::read_to_string(root().join(PIPELINE)).expect("the pipeline is there");
    let mended = |from: &str, to: &str| {
        assert!(text.contains(from), "the pipeline holds {from}");
        text.replace(from, to)
    };
    let value = pipeline(&folder, &mended(r#"Detail = { S = "DOC#0000000007" }"#, r#"Detail = { S = "DOC#7" }"#));
    golden("cli/example-other-value.txt", &seen(&folder, &dynamorph(&["check", &value]).expect(2)));
    let reject = pipeline(&folder, &mended("rejects = \"key/key-part-missing\"", "dropped = true"));
    golden("cli/example-other-outcome.txt", &seen(&folder, &dynamorph(&["check", &reject]).expect(2)));
}

#[test]
fn a_pipeline_file_that_cannot_be_read_is_named() {
    let folder = Folder::new();
    let missing = dynamorph(&["check", &folder.join("nothing.toml")]).expect(2);
    golden("cli/missing-pipeline.txt", &seen(&folder, &missing));
    let path = folder.join("latin1.toml");
    fs::write(&path, b"version = 1 # caf\xe9\n").expect("the file can be written");
    let not_utf8 = dynamorph(&["check", &path]).expect(2);
    golden("cli/pipeline-not-utf8.txt", &seen(&folder, &not_utf8));
    let empty = dynamorph(&["check", &pipeline(&folder, "")]).expect(2);
    golden("cli/empty-pipeline.txt", &seen(&folder, &empty));
}

#[test]
fn help_says_what_there_is() {
    for (name, args) in [
        ("help", &["--help"][..]),
        ("help-check", &["check", "--help"]),
        ("help-run", &["run", "--help"]),
        ("help-inspect", &["inspect", "--help"]),
        ("help-verify", &["verify", "--help"]),
        ("help-iam-policy", &["iam-policy", "--help"]),
        ("help-undo", &["undo", "--help"]),
        ("help-schema-ddl", &["schema", "ddl", "--help"]),
    ] {
        // The width of the text would follow the terminal.
        let ran = Ran::of(command(args).env_remove("COLUMNS").output().expect("the program starts")).expect(0);
        golden(&format!("cli/{name}.txt"), &ran.stdout);
    }
    assert_eq!(dynamorph(&["--version"]).expect(0).stdout, format!("dynamorph {}\n", env!("CARGO_PKG_VERSION")));
    dynamorph(&[]).expect(2);
}

/// A fenced block of the README.
struct Block<'t> {
    language: &'t str,
    text: String,
}

/// The README before and after the line `marker`, as fenced blocks.
fn readme(marker: &str) -> (Vec<Block<'static>>, Vec<Block<'static>>) {
    static README: &str = include_str!("../../README.md");
    let (before, after) = README
        .split_once(&format!("\n{marker}\n"))
        .unwrap_or_else(|| panic!("README.md has no line `{marker}`, which says that the block after it is compared with the program"));
    (blocks(before), blocks(after))
}

fn blocks(text: &'static str) -> Vec<Block<'static>> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(Block { language, text: inside.join("\n") + "\n" });
        }
    }
    found
}

#[test]
fn the_run_in_the_readme_gives_the_table_in_the_readme() {
    let (before, after) = readme("<!-- run: docs-split-comments -->");
    let shell = before.iter().rev().find(|block| block.language == "sh").expect("a block of shell stands before the marker");
    let line = shell.text.replace("\\\n", " ");
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "--").skip(1).collect();
    assert_eq!(words[..2], ["run", PIPELINE], "the block before the marker runs the pipeline that the marker names: {line}");
    // The command runs elsewhere, so that its relative output folders are not in the repository.
    let folder = Folder::new();
    let args: Vec<String> = words
        .iter()
        .map(|word| {
            let input = root().join(word);
            if input.exists() { input.to_str().expect("the repository's path is UTF-8").to_owned() } else { (*word).to_owned() }
        })
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = Ran::of(command(&args).current_dir(folder.path()).output().expect("the program starts")).expect(0);
    let shown = &after.first().expect("a block stands after the marker").text;
    assert_eq!(folder.stable(shown), folder.stable(&ran.stdout), "README.md shows another table");
    assert!(folder.path().join("out").is_dir(), "the run of the README writes below out/");
}

#[test]
fn the_help_in_the_readme_is_the_programs() {
    let (_, after) = readme("<!-- help -->");
    let block = &after.first().expect("a block stands after the marker").text;
    let (first, shown) = block.split_once('\n').expect("the block has lines");
    let args: Vec<&str> = first.strip_prefix("$ dynamorph ").expect("the block begins with its command").split(' ').collect();
    let ran = Ran::of(command(&args).env_remove("COLUMNS").output().expect("the program starts")).expect(0);
    assert_eq!(shown, ran.stdout, "README.md shows another help");
}

#[test]
fn the_pipeline_in_the_readme_is_fine() {
    let (_, after) = readme("<!-- run: docs-split-comments -->");
    let block = after.iter().find(|block| block.language == "toml").expect("the README shows a pipeline");
    let folder = Folder::new();
    let ran = dynamorph(&["check", &pipeline(&folder, &block.text)]).expect(0);
    assert!(ran.stdout.ends_with(": fine; 2 entities, 2 tables, 1 example passes\n"), "{}", ran.stdout);
}

#[test]
fn an_export_as_of_a_time_that_does_not_exist_is_a_usage_error() {
    for time in ["2026-13-01", "2026-02-31", "2026-01-01T99:99:99", "0000-00-00"] {
        let ran = dynamorph(&["inspect", DOCS, "--export", &format!("as-of {time}")]).expect(2);
        assert!(ran.stderr.contains("does not exist"), "{}", ran.stderr);
    }
}
