//! Runs that are killed or asked to stop go on by the same command, and end as if nothing had happened.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::fs;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Folder, Ran, command, dynamorph, files};
use crate::support::Server;
use crate::support::proxy::{Fault, Proxy};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";

/// An export in bare files, each a unit of its own under `--unit-size 1`, with collisions, rejects and several types.
fn export(folder: &Folder, files: u64, items: u64) -> Vec<String> {
    let file = |file: u64| {
        let mut lines = String::new();
        for at in 0..items {
            let item = file * items + at;
            let noise = item.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let _ = match at % 7 {
                0 => writeln!(lines, r#"{{"Item":{{"PK":{{"S":"FOLDER#{item}"}},"SK":{{"S":"x"}}}}}}"#),
                // Equal after rekeying with the one before, which is of the same document.
                1 if at % 5 == 0 => writeln!(
                    lines,
                    r#"{{"Item":{{"PK":{{"S":"WS#{file}"}},"SK":{{"S":"DOC#0{}"}},"EntityType":{{"S":"Document"}},"updatedAt":{{"S":"x"}}}}}}"#,
                    item + 1,
                ),
                2 | 3 => writeln!(
                    lines,
                    r#"{{"Item":{{"PK":{{"S":"WS#{file}"}},"SK":{{"S":"DOC#7#CMT#{item}"}},"EntityType":{{"S":"Comment"}},"createdAt":{{"S":"2026-01-07"}},"body":{{"S":"{noise:040}"}}}}}}"#,
                ),
                _ => writeln!(
                    lines,
                    r#"{{"Item":{{"PK":{{"S":"WS#{file}"}},"SK":{{"S":"DOC#{item}"}},"EntityType":{{"S":"Document"}},"title":{{"S":"{noise}"}},"updatedAt":{{"S":"2026-01-07"}}}}}}"#,
                ),
            };
        }
        let path = folder.join(&format!("data-{file}.json"));
        fs::write(&path, lines).expect("the export can be written");
        path
    };
    (0..files).map(file).collect()
}

/// A run, as a command that can be started again and again.
struct Run {
    folder: Folder,
    args: Vec<String>,
}

impl Run {
    fn new(export: &[String], sinks: &[&str], more: &[&str]) -> Self {
        let folder = Folder::new();
        let mut args = ["run", PIPELINE, "--unit-size", "1", "--work", &folder.join("work")].map(str::to_owned).to_vec();
        args.extend(export.iter().flat_map(|file| ["--from".to_owned(), file.clone()]));
        for sink in sinks {
            let sink = match *sink {
                "dynamodb" => "dynamodb".to_owned(),
                kind => folder.sink(kind, kind),
            };
            args.extend(["--to".to_owned(), sink]);
        }
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        Self { folder, args }
    }

    fn command(&self) -> Command {
        let mut command = command(&self.args.iter().map(String::as_str).collect::<Vec<_>>());
        command.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
        command.envs([
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ]);
        command
    }

    fn start(&self) -> Child {
        self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    fn to_its_end(&self) -> Ran {
        Ran::of(self.command().output().expect("the program starts"))
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Starts the run and gives it back when `ready` says so.
    fn until(&self, ready: impl Fn() -> bool) -> Child {
        let mut child = self.start();
        let until = Instant::now() + Duration::from_mins(2);
        while !ready() {
            assert!(child.try_wait().expect("a child can be asked").is_none(), "the run ended too soon");
            assert!(Instant::now() < until, "the run did not come so far in two minutes");
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    }

    fn unit_is_done(&self, unit: u32) -> bool {
        self.work().join(format!("units/unit-{unit:05}.json")).exists()
    }

    /// Whether it came to its end: what only a run that goes on needs is removed last of all.
    fn is_finished(&self) -> bool {
        let has = |name: &str| self.work().join(name).exists();
        has("report.json") && !has("survey.json") && !has("reads-once")
    }

    fn report(&self) -> Value {
        without_times(serde_json::from_slice(&fs::read(self.work().join("report.json")).expect("a report")).expect("it is JSON"), self)
    }

    /// All files but those that hold times.
    fn outcome(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let times = |path: &Path| path.ends_with("report.json") || path.ends_with("run.json") || path.starts_with("work/units");
        files(self.folder.path()).into_iter().filter(|(path, _)| !times(path)).collect()
    }
}

/// The report without what differs from run to run: times, traffic, and the folder.
fn without_times(value: Value, run: &Run) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(name, _)| !matches!(name.as_str(), "seconds" | "nanos" | "traffic"))
                .map(|(name, value)| (name, without_times(value, run)))
                .collect(),
        ),
        Value::Array(elements) => elements.into_iter().map(|element| without_times(element, run)).collect(),
        Value::String(text) => Value::String(text.replace(run.folder.path().to_str().expect("UTF-8"), "TMP")),
        other => other,
    }
}

#[track_caller]
fn same_outcome(expected: &Run, found: &Run, about: &str) {
    let (expected_files, found_files) = (expected.outcome(), found.outcome());
    assert_eq!(found_files.keys().collect::<Vec<_>>(), expected_files.keys().collect::<Vec<_>>(), "{about}");
    for (path, bytes) in &expected_files {
        assert!(found_files[path] == *bytes, "{about}: {} differs from that of an undisturbed run", path.display());
    }
    assert_eq!(found.report(), expected.report(), "{about}");
}

/// Points in time for kills, from a seed that is printed with every failure.
struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    fn new() -> Self {
        let seed = std::env::var("KILL_SEED").map_or_else(|_| RandomState::new().hash_one(0), |seed| seed.parse().expect("a number"));
        Self { seed, state: seed | 1 }
    }

    /// A moment before `end`.
    fn moment(&mut self, end: Duration) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        end.mul_f64(f64::from(u32::try_from(self.state >> 32).expect("32 bits are left")) / f64::from(u32::MAX))
    }
}

/// Kills a run at this moment of its life, unless it has ended by then.
fn kill_after(mut child: Child, moment: Duration) {
    // Not to wait for anything: the moment itself is what is tested.
    std::thread::sleep(moment);
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
}

#[test]
fn files_are_the_same_byte_for_byte_wherever_a_run_is_killed() {
    let source = Folder::new();
    let export = export(&source, 6, 300);
    let sinks = ["parquet", "import", "batch"];
    let undisturbed = Run::new(&export, &sinks, &[]);
    let started = Instant::now();
    undisturbed.to_its_end().expect(3);
    let life = started.elapsed();
    let mut dice = Dice::new();
    for round in 0..20 {
        let about = format!("KILL_SEED={} round {round}", dice.seed);
        let run = Run::new(&export, &sinks, &[]);
        // Two kills, since going on is a run that may be killed as well.
        for _ in 0..2 {
            if !run.is_finished() {
                kill_after(run.start(), dice.moment(life));
            }
        }
        if !run.is_finished() {
            let ran = run.to_its_end();
            assert_eq!(ran.code, 3, "{about}: {}", ran.stderr);
        }
        same_outcome(&undisturbed, &run, &about);
    }
}

fn tables() -> Server {
    let server = Server::start();
    let recent: (&str, &[(&str, &str)]) = ("recent", &[("GSI1PK", "S"), ("GSI1SK", "S")]);
    server.create_table("docs", &[("EntityRef", "S"), ("Detail", "S")], &[recent]);
    server.create_table("comments", &[("DocRef", "S"), ("Detail", "S")], &[]);
    server
}

fn held(server: &Server) -> Vec<String> {
    let mut items: Vec<_> = ["docs", "comments"].iter().flat_map(|table| server.items(table)).map(|item| item.to_string()).collect();
    items.sort_unstable();
    items
}

#[test]
fn a_table_is_the_same_item_for_item_wherever_a_run_is_killed() {
    let source = Folder::new();
    let export = export(&source, 6, 300);
    let expected_in = tables();
    let undisturbed = Run::new(&export, &["dynamodb"], &["--endpoint-url", &expected_in.url()]);
    let started = Instant::now();
    undisturbed.to_its_end().expect(3);
    let life = started.elapsed();
    let expected = held(&expected_in);
    let mut dice = Dice::new();
    for round in 0..20 {
        let about = format!("KILL_SEED={} round {round}", dice.seed);
        let server = tables();
        let run = Run::new(&export, &["dynamodb"], &["--endpoint-url", &server.url()]);
        kill_after(run.start(), dice.moment(life));
        if !run.is_finished() {
            let ran = run.to_its_end();
            assert_eq!(ran.code, 3, "{about}: {}", ran.stderr);
        }
        assert!(held(&server) == expected, "{about}: the table differs from that of an undisturbed run");
        same_outcome(&undisturbed, &run, &about);
    }
}

#[test]
fn units_that_are_done_are_not_done_again() {
    let source = Folder::new();
    let export = export(&source, 4, 2_000);
    let run = Run::new(&export, &["import"], &[]);
    let mut child = run.until(|| run.unit_is_done(2));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
    let done = fs::read(run.work().join("units/unit-00001.json")).expect("the report of a unit");
    let status = dynamorph(&["status", run.work().to_str().expect("UTF-8")]).expect(0);
    assert!(status.stdout.starts_with("stopped; the same command goes on\nto: import:"), "{}", status.stdout);
    assert!(status.stdout.contains(" of 4 units done: read "), "{}", status.stdout);
    let ran = run.to_its_end().expect(3);
    assert!(ran.stderr.contains(" of 4 units are done already"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("survey"), "{}", ran.stderr);
    assert_eq!(fs::read(run.work().join("units/unit-00001.json")).expect("the report of a unit"), done, "it holds when it was done");
    let status = dynamorph(&["status", run.work().to_str().expect("UTF-8"), "--output", "json"]).expect(0);
    let status: Value = serde_json::from_str(&status.stdout).expect("it is JSON");
    assert_eq!((&status["state"], &status["units_done"], &status["total"]["read"]), (&"done".into(), &4.into(), &8_000.into()));
}

#[cfg(unix)]
#[test]
fn a_signal_stops_a_run_which_says_how_it_goes_on_and_does() {
    let source = Folder::new();
    let export = export(&source, 4, 2_000);
    let undisturbed = Run::new(&export, &["import"], &[]);
    undisturbed.to_its_end().expect(3);
    for signal in ["INT", "TERM"] {
        let run = Run::new(&export, &["import"], &[]);
        let child = run.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let until = Instant::now() + Duration::from_mins(2);
        while !run.unit_is_done(1) {
            assert!(Instant::now() < until, "the run did not come so far in two minutes");
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().expect("kill starts");
        assert!(sent.success(), "the run ended too soon");
        let ran = Ran::of(child.wait_with_output().expect("a child ends")).expect(5);
        let goes_on = ran.stderr.lines().find(|line| line.contains("goes on with: ")).unwrap_or_else(|| panic!("{}", ran.stderr));
        assert!(goes_on.contains("run pipelines/docs-split-comments.toml --unit-size 1 --work "), "{goes_on}");
        assert!(!run.folder.path().join("import/docs").exists(), "something was published");
        run.to_its_end().expect(3);
        same_outcome(&undisturbed, &run, signal);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_stops_a_live_run_that_is_throttled_and_waits_for_nothing_but_its_requests() {
    static THROTTLES: AtomicBool = AtomicBool::new(true);
    let source = Folder::new();
    let export = export(&source, 2, 300);
    let (server, expected_in) = (tables(), tables());
    Run::new(&export, &["dynamodb"], &["--endpoint-url", &expected_in.url()]).to_its_end().expect(3);
    let proxy = Proxy::start(server.address(), |call| {
        if call > 2 && THROTTLES.load(Ordering::Acquire) { Fault::Code(400, "ProvisionedThroughputExceededException") } else { Fault::None }
    });
    let run = Run::new(&export, &["dynamodb"], &["--endpoint-url", &proxy.url()]);
    let child = run.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let until = Instant::now() + Duration::from_mins(2);
    while proxy.calls().len() < 20 {
        assert!(Instant::now() < until, "nothing was sent in two minutes");
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = Command::new("kill").args(["-INT".to_owned(), child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success(), "the run ended too soon");
    let ran = Ran::of(child.wait_with_output().expect("a child ends")).expect(5);
    assert!(ran.stderr.contains("stopped as asked") && ran.stderr.contains("goes on with: "), "{}", ran.stderr);
    THROTTLES.store(false, Ordering::Release);
    run.to_its_end().expect(3);
    assert_eq!(held(&server), held(&expected_in));
}

#[test]
fn another_pipeline_or_export_or_option_does_not_go_on_with_a_stopped_run() {
    let source = Folder::new();
    let export = export(&source, 3, 2_000);
    let stopped = || {
        let run = Run::new(&export, &["import"], &[]);
        let mut child = run.until(|| run.unit_is_done(1));
        child.kill().expect("a child can be killed");
        child.wait().expect("a child ends");
        run
    };
    let text = fs::read_to_string(crate::program::root().join(PIPELINE)).expect("the pipeline");
    let (other, commented) = (source.join("other.toml"), source.join("commented.toml"));
    fs::write(&other, text.replacen("aliases = [", "aliases = [\"Paper\", ", 1)).expect("it can be written");
    fs::write(&commented, format!("# A comment changes nothing.\n{text}")).expect("it can be written");
    let run_with = |run: &Run, pipeline: &str, export: &[String], more: &[&str]| {
        let (work, sink) = (run.folder.join("work"), run.folder.sink("import", "import"));
        let mut args = vec!["run", pipeline, "--unit-size", "1", "--work", &work, "--to", &sink];
        args.extend(export.iter().flat_map(|file| ["--from", file.as_str()]));
        args.extend(more);
        dynamorph(&args)
    };
    let run = stopped();
    for (pipeline, export, more, differs) in [
        (other.as_str(), &export[..], &[][..], "differs: the pipeline\n"),
        (PIPELINE, &export[..2], &[][..], "differs: the exports\n"),
        (PIPELINE, &export[..], &["--only", "Document"][..], "differs: --only\n"),
    ] {
        let ran = run_with(&run, pipeline, export, more).expect(2);
        assert!(ran.stderr.contains("the work folder holds a run that was stopped, and this is another one"), "{}", ran.stderr);
        assert!(ran.stderr.contains(differs) && ran.stderr.contains("--restart"), "{}", ran.stderr);
    }
    // More workers and comments in the pipeline make no other run.
    let ran = run_with(&run, &commented, &export, &["--jobs", "1"]).expect(3);
    assert!(ran.stderr.contains("going on"), "{}", ran.stderr);
    // Anew, and another one, on purpose.
    let ran = run_with(&stopped(), &other, &export, &["--restart"]).expect(3);
    assert!(!ran.stderr.contains("going on"), "{}", ran.stderr);
}

#[test]
fn another_dialect_does_not_go_on_with_a_stopped_run() {
    let source = Folder::new();
    let export = export(&source, 3, 2_000);
    let run = Run::new(&export, &["parquet"], &["--dialect", "athena"]);
    let mut child = run.until(|| run.unit_is_done(1));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
    let args = |dialect: &str| run.args.iter().map(|arg| arg.replace("athena", dialect)).collect::<Vec<_>>();
    let other = args("spark");
    let ran = dynamorph(&other.iter().map(String::as_str).collect::<Vec<_>>()).expect(2);
    assert!(ran.stderr.contains("differs: --dialect\n"), "{}", ran.stderr);
    let ran = run.to_its_end().expect(3);
    assert!(ran.stderr.contains("going on"), "{}", ran.stderr);
}

#[test]
fn a_run_does_not_go_on_in_a_folder_that_another_one_has_used_since() {
    let source = Folder::new();
    let export = export(&source, 3, 2_000);
    for kind in ["parquet", "import", "batch"] {
        let run = Run::new(&export, &[kind], &[]);
        let mut child = run.until(|| run.unit_is_done(1));
        child.kill().expect("a child can be killed");
        child.wait().expect("a child ends");
        let work = run.work();
        let other: Vec<_> =
            run.args.iter().map(|arg| if Path::new(arg) == work { format!("{arg}-of-another") } else { arg.clone() }).collect();
        let mut other: Vec<_> = other.iter().map(String::as_str).collect();
        other.extend(["--limit", "100"]);
        dynamorph(&other).expect(3);
        let published = files(&run.folder.path().join(kind));
        let ran = run.to_its_end().expect(2);
        assert!(ran.stderr.contains("the unfinished files of the stopped run are not in the output folder any more"), "{}", ran.stderr);
        assert!(published == files(&run.folder.path().join(kind)), "{kind}");
    }
}

#[test]
fn a_finished_run_is_not_gone_on_with() {
    let source = Folder::new();
    let export = export(&source, 1, 10);
    let run = Run::new(&export, &["import"], &[]);
    run.to_its_end().expect(3);
    let ran = run.to_its_end().expect(2);
    assert!(ran.stderr.contains("the output folder is not empty"), "{}", ran.stderr);
    assert!(run.work().join("report.json").exists(), "what was done stays");
    let nothing = dynamorph(&["status", source.path().to_str().expect("UTF-8")]).expect(2);
    assert!(nothing.stderr.contains("the folder holds no run"), "{}", nothing.stderr);
}

/// A live run that is killed when its first unit is done.
fn stopped_live(export: &[String], url: &str, more: &[&str]) -> Run {
    let mut all = vec!["--endpoint-url", url];
    all.extend(more);
    let run = Run::new(export, &["dynamodb"], &all);
    let mut child = run.until(|| run.unit_is_done(1));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
    run
}

#[test]
fn a_run_does_not_go_on_in_tables_that_were_made_anew_or_lie_elsewhere() {
    let source = Folder::new();
    let export = export(&source, 3, 1_000);
    let server = tables();
    let run = stopped_live(&export, &server.url(), &["--create-tables"]);
    for table in ["docs", "comments"] {
        let request = serde_json::json!({ "TableName": table });
        server.database.delete_table(serde_json::from_value(request).expect("a request")).expect("it is deleted");
    }
    let ran = run.to_its_end().expect(2);
    assert!(ran.stderr.contains("the tables are not those that the stopped run wrote to"), "{}", ran.stderr);
    let gone = serde_json::from_value(serde_json::json!({ "TableName": "docs" })).expect("a request");
    assert!(server.database.describe_table(gone).is_err(), "nothing was created");

    let server = tables();
    let run = stopped_live(&export, &server.url(), &[]);
    let ran = Ran::of(run.command().env("AWS_REGION", "eu-west-1").output().expect("the program starts")).expect(2);
    assert!(ran.stderr.contains("us-east-1") && ran.stderr.contains("eu-west-1") && ran.stderr.contains("--restart"), "{}", ran.stderr);
    run.to_its_end().expect(3);
}

#[test]
fn a_run_that_was_taken_back_begins_anew() {
    let source = Folder::new();
    let export = export(&source, 3, 1_000);
    let (server, expected_in) = (tables(), tables());
    Run::new(&export, &["dynamodb"], &["--endpoint-url", &expected_in.url()]).to_its_end().expect(3);
    let run = stopped_live(&export, &server.url(), &["--undo-log"]);
    let work = run.folder.join("work");
    let mut undo = command(&["undo", &work, "--endpoint-url", &server.url()]);
    undo.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    undo.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    Ran::of(undo.output().expect("the program starts")).expect(0);
    assert_eq!(held(&server), Vec::<String>::new());
    let status = dynamorph(&["status", &work]).expect(0);
    assert!(status.stdout.starts_with("taken back"), "{}", status.stdout);
    let ran = run.to_its_end().expect(3);
    assert!(!ran.stderr.contains("going on"), "{}", ran.stderr);
    assert_eq!(held(&server), held(&expected_in));
}

/// An export in which each file has an attribute of its own, so that no unit's Parquet file has all columns; too much to lie in a buffer.
fn uneven(folder: &Folder, files: u64, items: u64) -> Vec<String> {
    let file = |file: u64| {
        let mut noise = file + 1;
        let mut lines = String::new();
        for item in 0..items {
            let mut body = String::new();
            for _ in 0..12 {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                let _ = write!(body, "{noise:016x}");
            }
            let _ = writeln!(
                lines,
                r#"{{"Item":{{"PK":{{"S":"WS#{file}"}},"SK":{{"S":"DOC#{item:06}"}},"EntityType":{{"S":"Document"}},"updatedAt":{{"S":"2026-01-07"}},"body":{{"S":"{body}"}},"own{file}":{{"N":"{}"}}}}}}"#,
                item % 10,
            );
        }
        let path = folder.join(&format!("data-{file}.json"));
        fs::write(&path, lines).expect("the export can be written");
        path
    };
    (0..files).map(file).collect()
}

/// A run that is killed when its first unit is done.
fn stopped(export: &[String], sinks: &[&str], more: &[&str]) -> Run {
    let run = Run::new(export, sinks, more);
    let mut child = run.until(|| run.unit_is_done(1));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
    run
}

/// Whether no signal waits for the process any more.
#[cfg(target_os = "linux")]
fn has_its_signals(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process lives");
    let pending = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:").or_else(|| line.strip_prefix("SigPnd:")));
    pending.map(str::trim).all(|signals| signals.chars().all(|digit| digit == '0'))
}

/// The run stands still in the middle of the second of three files, since it writes it into a pipe that nobody reads.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_stops_a_run_that_mends_narrower_parquet_files_and_the_same_command_goes_on_to_the_same_bytes() {
    let source = Folder::new();
    let export = uneven(&source, 3, 3_000);
    let more = ["--row-group-size", "128KiB", "--jobs", "1"];
    let undisturbed = Run::new(&export, &["parquet"], &more);
    undisturbed.to_its_end().expect(0);
    for signal in ["INT", "TERM"] {
        let run = stopped(&export, &["parquet"], &more);
        let staged = |name: &str| run.folder.path().join("parquet/.dynamorph-unfinished/Document").join(name);
        let pipe = staged("part-u00002-0000.mended");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
        let child = run.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let (sender, opened) = std::sync::mpsc::channel();
        let reading = pipe.clone();
        std::thread::spawn(move || sender.send(fs::File::open(reading)));
        // Opens as soon as the run does.
        let mut reader = opened.recv_timeout(Duration::from_mins(2)).expect("the run mends files").expect("the pipe can be read");
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().expect("kill starts");
        assert!(sent.success(), "the run ended too soon");
        while !has_its_signals(child.id()) {
            std::thread::yield_now();
        }
        std::io::copy(&mut reader, &mut std::io::sink()).expect("the pipe can be read");
        let ran = Ran::of(child.wait_with_output().expect("a child ends")).expect(5);
        assert!(ran.stderr.contains("stopped as asked") && ran.stderr.contains("goes on with: "), "{}", ran.stderr);
        assert!(!run.folder.path().join("parquet/Document").exists(), "something was published");
        let mended = [1, 2, 3].map(|unit| staged(&format!("part-u{unit:05}-0000.mended.json")).exists());
        assert_eq!(mended, [true, false, false], "no further file is begun");
        fs::remove_file(&pipe).expect("the pipe can be removed");
        run.to_its_end().expect(0);
        same_outcome(&undisturbed, &run, signal);
    }
}

#[test]
fn a_staged_file_that_is_missing_or_was_changed_ends_a_run_that_goes_on_and_is_named() {
    let source = Folder::new();
    let export = uneven(&source, 3, 1_000);
    for kind in ["parquet", "import", "batch"] {
        let run = stopped(&export, &[kind], &[]);
        let unfinished = run.folder.path().join(kind).join(".dynamorph-unfinished");
        let first: Value = serde_json::from_slice(&fs::read(run.work().join("units/unit-00001.json")).expect("a report")).expect("JSON");
        let file = unfinished.join(first["written"][0]["files"][0]["path"].as_str().expect("a path"));
        let bytes = fs::read(&file).expect("the file is staged");
        let ends_with = |said: &str| {
            let ran = run.to_its_end().expect(1);
            assert!(ran.stderr.contains(said) && ran.stderr.contains(file.to_str().expect("UTF-8")), "{kind}: {}", ran.stderr);
            assert!(ran.stderr.contains("begin anew with --restart"), "{kind}: {}", ran.stderr);
            assert!(unfinished.exists() && !run.work().join("report.json").exists(), "{kind}");
        };
        // Only Parquet files have a checksum in the report.
        if kind == "parquet" {
            let mut changed = bytes.clone();
            changed[bytes.len() / 2] ^= 1;
            fs::write(&file, changed).expect("the file can be changed");
            ends_with("an output file does not hold what was written");
        }
        fs::write(&file, [&bytes[..], b"x"].concat()).expect("the file can be changed");
        ends_with("an output file has not the size that was written");
        fs::remove_file(&file).expect("the file can be removed");
        ends_with("an output file that was written is missing");
        // What is as it was is gone on with; anew it goes anyway.
        if kind == "parquet" {
            fs::write(&file, &bytes).expect("the file can be put back");
            run.to_its_end().expect(0);
        } else {
            Ran::of(run.command().arg("--restart").output().expect("the program starts")).expect(0);
        }
    }
}

#[test]
fn a_report_that_is_missing_or_of_another_unit_ends_a_run_that_goes_on_and_is_named() {
    let source = Folder::new();
    let export = uneven(&source, 3, 1_000);
    let run = stopped(&export, &["parquet"], &[]);
    let report = |unit: u32| run.work().join(format!("units/unit-{unit:05}.json"));
    let ends_with = |file: PathBuf| {
        let ran = run.to_its_end().expect(1);
        assert!(ran.stderr.contains("the report of a unit is missing or of another unit"), "{}", ran.stderr);
        assert!(ran.stderr.contains(file.to_str().expect("UTF-8")) && ran.stderr.contains("--restart"), "{}", ran.stderr);
    };
    let (first, last) = (report(1), report(3));
    assert!(first.exists() && !last.exists(), "the run was stopped between");
    let second = fs::read(report(2)).ok();
    fs::copy(&first, report(2)).expect("the report can be copied");
    ends_with(report(2));
    fs::remove_file(&first).expect("the report can be removed");
    ends_with(first.clone());
    fs::rename(report(2), &first).expect("the report can be put back");
    if let Some(second) = second {
        fs::write(report(2), second).expect("the report can be put back");
    }
    run.to_its_end().expect(0);
}

#[test]
fn a_mixed_type_that_cannot_be_text_leaves_no_stopped_run_and_the_corrected_pipeline_runs() {
    let source = Folder::new();
    let pipeline = source.join("pipeline.toml");
    let write = |mixed: &str| {
        let text = format!(
            "version = 1\n[source]\nkey = {{ partition = \"PK\" }}\n[entity.Order]\nmatch = {{ PK = \"O#{{id}}\" }}\n[entity.Order.parquet]\nmixed = \"{mixed}\"\n"
        );
        fs::write(&pipeline, text).expect("the pipeline can be written");
    };
    let file = |name: &str, value: &str| {
        let lines: Vec<_> = (0..1_000).map(|at| format!(r#"{{"Item":{{"PK":{{"S":"O#{name}{at:04}"}},"v":{value}}}}}"#)).collect();
        fs::write(source.join(name), lines.join("\n")).expect("the data can be written");
        source.join(name)
    };
    let export = [file("a", r#"{"S":"x"}"#), file("b", r#"{"L":[]}"#)];
    let sinks: &[&str] = if cfg!(feature = "iceberg") { &["parquet", "iceberg"] } else { &["parquet"] };
    for kind in sinks {
        for stops in [false, true] {
            let mut run = Run::new(&export, &[kind], &[]);
            run.args[1].clone_from(&pipeline);
            write("text");
            // One that reads twice has not begun to write by then.
            if stops && *kind == "parquet" {
                let mut child = run.until(|| run.unit_is_done(1));
                child.kill().expect("a child can be killed");
                child.wait().expect("a child ends");
            }
            let ran = run.to_its_end().expect(1);
            assert!(ran.stderr.contains("has values that have no text"), "{}", ran.stderr);
            assert!(!run.folder.path().join(kind).join(".dynamorph-unfinished").exists(), "{kind}");
            if !stops {
                assert_eq!(fs::read_dir(run.folder.path()).expect("a folder").count(), 0, "{kind}: nothing stays");
            }
            write("json");
            let ran = run.to_its_end().expect(0);
            assert!(!ran.stderr.contains("going on"), "{}", ran.stderr);
        }
    }
}
