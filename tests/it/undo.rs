//! Live runs that are taken back: the table is as it was before, item for item, whatever happened on the way.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Folder, Ran, command};
use crate::support::Server;
use crate::support::proxy::{Fault, Proxy};

/// Items keep their keys and go to one table.
const COPY: &str = r#"
version = 1
[source]
key = { partition = "PK", sort = "SK" }
[table.copy]
key = { partition = "PK", sort = "SK" }
types = { SK = "N" }
[entity.Any]
classify = "attribute_exists(PK)"
to = "copy"
"#;

/// A table that holds some of the items already, in another state, and some others.
fn server(items: usize) -> Server {
    let server = Server::start();
    server.create_table("prod-copy", &[("PK", "S"), ("SK", "N")], &[]);
    for at in (0..items).step_by(3) {
        // The key is spelt in another way than in the export.
        put(
            &server,
            &json!({ "PK": { "S": format!("P#{}", at % 7) }, "SK": { "N": format!("{at}.0") }, "state": { "S": "before" }, "tags": { "SS": ["b", "a"] } }),
        );
    }
    put(&server, &json!({ "PK": { "S": "P#0" }, "SK": { "N": "-1" }, "others": { "BOOL": true } }));
    server
}

fn put(server: &Server, item: &Value) {
    let request = json!({ "TableName": "prod-copy", "Item": item });
    server.database.put_item(serde_json::from_value(request).expect("a request")).expect("the item is put");
}

fn delete(server: &Server, at: usize) {
    let request = json!({ "TableName": "prod-copy", "Key": key(at) });
    server.database.delete_item(serde_json::from_value(request).expect("a request")).expect("the item is deleted");
}

fn key(at: usize) -> Value {
    json!({ "PK": { "S": format!("P#{}", at % 7) }, "SK": { "N": at.to_string() } })
}

/// The items of the table, in one order.
fn held(server: &Server) -> Vec<String> {
    let mut items: Vec<_> = server.items("prod-copy").into_iter().map(sorted).map(|item| item.to_string()).collect();
    items.sort_unstable();
    items
}

/// Sets have no order of their own.
fn sorted(mut item: Value) -> Value {
    if let Some(tags) = item["tags"]["SS"].as_array_mut() {
        tags.sort_by_key(Value::to_string);
    }
    item
}

/// A run with an undo log, as a command that can be started again and again, and its undo.
struct Run {
    folder: Folder,
    url: String,
    more: Vec<String>,
}

impl Run {
    fn new(items: usize, url: &str, more: &[&str]) -> Self {
        let folder = Folder::new();
        let mut files = [String::new(), String::new(), String::new()];
        for at in 0..items {
            let mut item = key(at);
            // Of every kind that a condition compares; the first has nothing but its key, the second more attributes than a condition holds.
            if at > 0 {
                item["state"] = json!({ "S": format!("\"after\" {at} é") });
                item["number"] = json!({ "N": "1.50E2" });
                item["tags"] = json!({ "SS": ["y", "x"] });
                item["bytes"] = json!({ "B": "AP8=" });
                item["map"] = json!({ "M": { "list": { "L": [{ "NULL": true }, { "NS": ["2", "1.0"] }] } } });
            }
            if at == 1 {
                for attribute in 0..300 {
                    item[format!("attribute{attribute}")] = json!({ "BOOL": true });
                }
            }
            writeln!(files[at % 3], "{}", json!({ "Item": item })).expect("a text takes any text");
        }
        for (at, text) in files.iter().enumerate() {
            fs::write(folder.join(&format!("data-{at}.json")), text).expect("the export can be written");
        }
        fs::write(folder.join("copy.toml"), COPY).expect("the pipeline can be written");
        Self { folder, url: url.to_owned(), more: more.iter().map(|arg| (*arg).to_owned()).collect() }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = with_credentials(command(args));
        command.args(["--endpoint-url", &self.url, "--quiet"]);
        command
    }

    fn run_command(&self) -> Command {
        self.run_command_in("work")
    }

    fn run_command_in(&self, work: &str) -> Command {
        let (pipeline, work) = (self.folder.join("copy.toml"), self.folder.join(work));
        let files = [0, 1, 2].map(|at| self.folder.join(&format!("data-{at}.json")));
        let mut args = vec!["run", &pipeline, "--to", "dynamodb", "--table", "copy=prod-copy", "--undo-log", "--work", &work];
        args.extend(files.iter().flat_map(|file| ["--from", file.as_str()]));
        // Each file is a unit.
        args.extend(["--unit-size", "1"]);
        args.extend(self.more.iter().map(String::as_str));
        self.command(&args)
    }

    fn run(&self) -> Ran {
        Ran::of(self.run_command().output().expect("the program starts"))
    }

    fn undo_command(&self, more: &[&str]) -> Command {
        let work = self.folder.join("work");
        self.command(&[&["undo", &work][..], more].concat())
    }

    /// Where the run wrote, as its log says it.
    fn target(&self) -> Value {
        json!({ "region": "us-east-1", "endpoint": self.url, "tables": [{ "name": "prod-copy", "arn": null, "id": null }] })
    }

    /// Writes another place down than the run wrote to.
    fn say_another(&self, target: &Value) {
        fs::write(self.work().join("undo/target.json"), target.to_string()).expect("a file can be written");
    }

    /// An undo with nothing on the command line but the folder, and another region in the environment.
    fn undo_elsewhere(&self, more: &[&str]) -> Ran {
        let work = self.folder.join("work");
        let mut command = with_credentials(command(&[&["undo", &work][..], more].concat()));
        Ran::of(command.env("AWS_REGION", "eu-west-3").output().expect("the program starts"))
    }

    fn undo(&self, more: &[&str]) -> Ran {
        Ran::of(self.undo_command(more).output().expect("the program starts"))
    }

    /// What `undo` counts, by name.
    fn counts(&self, code: i32, more: &[&str]) -> Value {
        let ran = self.undo(&[&["--output", "json"], more].concat()).expect(code);
        let undone: Value = serde_json::from_str(&ran.stdout).expect("the counts are JSON");
        undone["tables"]["prod-copy"].clone()
    }

    /// Bytes of the undo log.
    fn logged(&self) -> u64 {
        let Ok(entries) = fs::read_dir(self.work().join("undo")) else { return 0 };
        let lines = entries.filter_map(Result::ok).filter(|entry| entry.path().extension().is_some_and(|extension| extension == "jsonl"));
        lines.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
    }
}

fn with_credentials(mut command: Command) -> Command {
    command.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    command
}

/// Waits until `ready`, or until the program has ended.
fn wait_for(child: &mut Child, ready: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_mins(2);
    while !ready() && child.try_wait().expect("a child can be asked").is_none() {
        assert!(Instant::now() < until, "the program did not come so far in two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

fn kill(mut child: Child) {
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
}

#[test]
fn a_run_that_is_taken_back_leaves_the_table_as_it_was() {
    let server = server(200);
    let before = held(&server);
    let run = Run::new(200, &server.url(), &[]);
    run.run().expect(0);
    let after = held(&server);
    assert_eq!(after.len(), 201);
    assert_ne!(after, before);

    let expected = json!({
        "keys": 200, "restored": 67, "removed": 133, "unchanged": 0, "as_before": 0, "not_there": 0, "changed_since": 0, "already_gone": 0
    });
    assert_eq!(run.counts(0, &["--dry-run"]), expected);
    assert_eq!(held(&server), after, "a dry run changed something");
    let ran = run.undo(&[]).expect(0);
    assert_eq!(held(&server), before);
    assert!(ran.stdout.contains("prod-copy   200        67      133"), "{}", ran.stdout);
    assert!(!run.work().join("undo/left.jsonl").exists());

    assert!(ran.stdout.contains("\n200 items taken back; the tables themselves stay\n"), "{}", ran.stdout);
}

#[test]
fn a_run_that_was_taken_back_whole_is_not_taken_back_again() {
    let server = server(30);
    let before = held(&server);
    let run = Run::new(30, &server.url(), &[]);
    run.run().expect(0);
    let after = held(&server);
    // One table of all, or a look, is not the whole.
    run.undo(&["--dry-run"]).expect(0);
    run.undo(&["--table", "prod-copy"]).expect(0);
    assert_eq!(held(&server), before);
    let again = run.counts(0, &[]);
    assert_eq!([&again["as_before"], &again["not_there"], &again["restored"], &again["removed"]], [10, 20, 0, 0]);

    // The same items come again, from a run that has a folder of its own.
    Ran::of(run.run_command_in("other").output().expect("the program starts")).expect(0);
    assert_eq!(held(&server), after);
    for more in [&[][..], &["--dry-run"], &["--table", "prod-copy"]] {
        let ran = run.undo(more).expect(2);
        assert!(ran.stderr.contains("was taken back already") && ran.stderr.contains("undo/taken-back"), "{}", ran.stderr);
    }
    assert_eq!(held(&server), after);
}

#[test]
fn an_undo_acts_only_where_the_run_wrote() {
    let server = server(10);
    let before = held(&server);
    let run = Run::new(10, &server.url(), &[]);
    run.run().expect(0);
    let after = held(&server);
    let ran = run.undo_elsewhere(&["--region", "eu-west-3"]).expect(2);
    let shown = |place: &str| ran.stderr.contains(&format!("{place} at {}", run.url));
    assert!(shown("the run: region us-east-1") && shown("the command line: region eu-west-3"), "{}", ran.stderr);
    let ran = run.undo_elsewhere(&["--endpoint-url", "http://127.0.0.1:9"]).expect(2);
    assert!(ran.stderr.contains("at http://127.0.0.1:9") && !ran.stderr.contains("goes on with"), "{}", ran.stderr);
    assert_eq!(held(&server), after);

    // A look says where as well.
    let look = run.undo_elsewhere(&["--dry-run"]).expect(0);
    let ran = run.undo_elsewhere(&[]).expect(0);
    assert_eq!(look.stderr, ran.stderr);
    assert!(look.stdout.contains("nothing was changed (--dry-run): 10 items would be taken back"), "{}", look.stdout);
    let place = format!("taking back table prod-copy in account 000000000000, {} (region us-east-1)\n", run.url);
    assert!(ran.stderr.starts_with(&place), "{}", ran.stderr);
    assert_eq!(held(&server), before);
}

#[test]
fn an_undo_acts_only_on_the_tables_that_the_run_wrote_to() {
    let server = server(10);
    let before = held(&server);
    let run = Run::new(10, &server.url(), &[]);
    run.run().expect(0);
    let after = held(&server);
    let request = json!({ "TableName": "prod-copy" });
    let there = server.database.describe_table(serde_json::from_value(request).expect("a request")).expect("the table is there");
    let there = serde_json::to_value(there).expect("an answer is JSON")["Table"].clone();
    let table = |arn: &Value, id: &Value| {
        let mut target = run.target();
        target["tables"][0] = json!({ "name": "prod-copy", "arn": arn, "id": id });
        target
    };
    let (arn, id) = (&there["TableArn"], &there["TableId"]);
    assert!(arn.is_string() && id.is_string(), "{there}");
    let other = json!(arn.as_str().expect("an ARN is text").replace("000000000000", "123456789012"));
    for (target, shown) in [(table(&other, id), &other), (table(arn, &json!("another-id")), &json!("another-id"))] {
        run.say_another(&target);
        let ran = run.undo_elsewhere(&[]).expect(2);
        let says = |what: &Value| ran.stderr.contains(what.as_str().expect("it is text"));
        assert!(ran.stderr.contains("the table is another one than the run wrote to"), "{}", ran.stderr);
        assert!(says(shown) && says(arn) && says(id) && !ran.stderr.contains("goes on with"), "{}", ran.stderr);
    }

    // A second table that is gone, while the first is still as it was.
    let mut target = table(arn, id);
    let gone = json!({ "name": "prod-gone", "arn": null, "id": null });
    target["tables"].as_array_mut().expect("the tables are a list").push(gone);
    run.say_another(&target);
    let ran = run.undo_elsewhere(&[]).expect(2);
    assert!(ran.stderr.contains("the target table does not exist") && ran.stderr.contains("prod-gone"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--table") && !ran.stderr.contains("goes on with"), "{}", ran.stderr);
    assert_eq!(held(&server), after);
    run.undo_elsewhere(&["--table", "prod-copy"]).expect(0);
    assert_eq!(held(&server), before);
}

#[test]
fn a_log_that_does_not_say_where_the_run_wrote_is_taken_back_where_the_command_line_says() {
    let server = server(10);
    let before = held(&server);
    let run = Run::new(10, &server.url(), &[]);
    run.run().expect(0);
    fs::remove_file(run.work().join("undo/target.json")).expect("a file can be removed");
    let ran = run.undo_elsewhere(&["--endpoint-url", &run.url]).expect(2);
    assert!(ran.stderr.contains("the undo log does not say where the run wrote") && ran.stderr.contains("--region"), "{}", ran.stderr);
    assert_ne!(held(&server), before);
    let ran = run.undo_elsewhere(&["--endpoint-url", &run.url, "--region", "us-east-1"]).expect(0);
    assert!(ran.stderr.contains("taking back table prod-copy in account"), "{}", ran.stderr);
    assert_eq!(held(&server), before);
}

#[test]
fn what_others_changed_since_is_left_alone_and_named() {
    let server = server(60);
    let run = Run::new(60, &server.url(), &[]);
    run.run().expect(0);
    // Changed, deleted, and one that the run created deleted too.
    for (at, name) in [(3, "state"), (4, "state"), (5, "added")] {
        let mut item = server.items("prod-copy").into_iter().find(|item| item["SK"] == key(at)["SK"]).expect("the item is there");
        item[name] = json!({ "S": "of others" });
        put(&server, &item);
    }
    delete(&server, 6);
    delete(&server, 7);
    let counts = run.counts(3, &[]);
    let expected = json!({
        "keys": 60, "restored": 18, "removed": 37, "unchanged": 0, "as_before": 0, "not_there": 1, "changed_since": 3, "already_gone": 1
    });
    assert_eq!(counts, expected);
    let kept: Vec<_> = server.items("prod-copy").into_iter().filter(|item| item.to_string().contains("of others")).collect();
    assert_eq!(kept.len(), 3);
    let left = fs::read_to_string(run.work().join("undo/left.jsonl")).expect("there is a list");
    let mut left: Vec<Value> = left.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    left.sort_by_key(|line| line["key"]["SK"]["N"].as_str().map(str::len).zip(line["key"]["SK"]["N"].as_str().map(str::to_owned)));
    let named = |at: usize, why: &str| json!({ "table": "prod-copy", "key": key(at), "why": why });
    let since = "changed since";
    assert_eq!(left, [named(3, since), named(4, since), named(5, since), named(6, "already gone")]);
    let ran = run.undo(&[]).expect(3);
    assert!(!run.work().join("undo/taken-back").exists());
    assert!(ran.stdout.contains("0 items taken back;"), "{}", ran.stdout);
    assert!(ran.stdout.contains("4 items were left alone") && ran.stdout.contains("left.jsonl"), "{}", ran.stdout);
}

#[test]
fn a_run_that_was_killed_anywhere_and_went_on_is_taken_back_whole() {
    let items = 300;
    let full = {
        let server = server(items);
        let run = Run::new(items, &server.url(), &[]);
        run.run().expect(0);
        run.logged()
    };
    for percent in [1, 35, 65, 95] {
        let server = server(items);
        let before = held(&server);
        let run = Run::new(items, &server.url(), &["--max-write-units", "900"]);
        // Two kills, since going on is a run that may be killed as well.
        for percent in [percent, percent + 3] {
            let mut child = start(run.run_command());
            wait_for(&mut child, || run.logged() >= full * percent / 100);
            kill(child);
        }
        run.run().expect(0);
        assert_eq!(held(&server).len(), items + 1);
        let counts = run.counts(0, &[]);
        assert_eq!(counts["keys"], items, "{percent} %: {counts}");
        assert!(held(&server) == before, "killed at {percent} %: the table is not as it was; {counts}");
    }
}

#[test]
fn what_a_run_wrote_before_it_was_killed_is_taken_back() {
    let server = server(300);
    let before = held(&server);
    let run = Run::new(300, &server.url(), &["--max-write-units", "600"]);
    let mut child = start(run.run_command());
    // More than a request's puts have been logged, so the first request was sent.
    wait_for(&mut child, || run.logged() > 20_000);
    kill(child);
    run.undo(&[]).expect(0);
    assert!(held(&server) == before);
}

#[test]
fn an_undo_that_was_killed_is_run_again() {
    let server = server(300);
    let before = held(&server);
    let run = Run::new(300, &server.url(), &[]);
    run.run().expect(0);
    for removed in [1, 90] {
        let mut child = start(run.undo_command(&["--jobs", "1"]));
        wait_for(&mut child, || server.items("prod-copy").len() <= 301 - removed);
        kill(child);
    }
    let counts = run.counts(0, &[]);
    assert_eq!([&counts["keys"], &counts["changed_since"], &counts["already_gone"]], [300, 0, 0]);
    assert_eq!(held(&server), before);
}

#[test]
fn faults_on_the_way_change_nothing() {
    let server = server(90);
    let before = held(&server);
    let plan = |call: usize| match call % 11 {
        0 => Fault::CodeAfter(500, "InternalServerError"),
        1 => Fault::ResetAfter,
        2 => Fault::Code(400, "ProvisionedThroughputExceededException"),
        _ => Fault::None,
    };
    let reads = |call: usize| match call % 7 {
        0 => Fault::Partial(9),
        1 => Fault::Partial(1000),
        2 => Fault::Blank("{}"),
        3 => Fault::ResetBefore,
        4 => Fault::Code(400, "ThrottlingException"),
        _ => Fault::None,
    };
    let proxy = Proxy::start_with(server.address(), plan, reads);
    let run = Run::new(90, &proxy.url(), &[]);
    run.run().expect(0);
    assert_eq!(held(&server).len(), 91);
    let counts = run.counts(0, &[]);
    assert_eq!([&counts["restored"], &counts["removed"]], [30, 60], "{counts}");
    assert_eq!(held(&server), before);
}

#[test]
fn items_that_a_condition_kept_are_no_business_of_the_undo() {
    let server = server(60);
    let before = held(&server);
    let run = Run::new(60, &server.url(), &["--if-absent"]);
    run.run().expect(0);
    let counts = run.counts(0, &[]);
    assert_eq!([&counts["keys"], &counts["removed"], &counts["as_before"]], [60, 40, 20]);
    assert_eq!(held(&server), before);
}

#[test]
fn a_table_is_taken_back_alone_and_an_unknown_one_is_refused() {
    let server = server(10);
    let before = held(&server);
    let run = Run::new(10, &server.url(), &[]);
    run.run().expect(0);
    let ran = run.undo(&["--table", "copy"]).expect(2);
    assert!(ran.stderr.contains("the undo log names no table `copy`"), "{}", ran.stderr);
    assert_ne!(held(&server), before);
    run.undo(&["--table", "prod-copy"]).expect(0);
    assert_eq!(held(&server), before);
}

#[test]
fn an_undo_needs_a_log_and_a_folder_that_no_run_uses() {
    let server = server(10);
    let run = Run::new(10, &server.url(), &[]);
    let ran = run.undo(&[]).expect(2);
    assert!(ran.stderr.contains("there is no undo log") && ran.stderr.contains("--undo-log"), "{}", ran.stderr);

    // A log that was set aside is named.
    fs::create_dir_all(run.work().join("undo.1")).expect("a folder can be made");
    let ran = run.undo(&[]).expect(2);
    assert!(ran.stderr.contains("found: undo.1") && ran.stderr.contains("--log"), "{}", ran.stderr);
    fs::remove_dir_all(run.work()).expect("a folder can be removed");
    let ran = run.undo(&["--log", "undo/"]).expect(2);
    assert!(ran.stderr.contains("no undo log has such a name"), "{}", ran.stderr);

    run.run().expect(0);
    let lock = fs::File::open(run.work().join("dynamorph.lock")).expect("the folder has a lock");
    lock.lock().expect("the lock can be taken");
    let ran = run.undo(&[]).expect(2);
    assert!(ran.stderr.contains("another run uses this work folder"), "{}", ran.stderr);
    drop(lock);

    let path = run.work().join("undo/unit-00001.jsonl");
    let text = fs::read_to_string(&path).expect("there is a log");
    fs::write(&path, text.replacen("\"wrote\"", "\"written\"", 1)).expect("a file can be written");
    let ran = run.undo(&[]).expect(1);
    assert!(ran.stderr.contains("a line of the undo log cannot be read") && ran.stderr.contains("line: 1"), "{}", ran.stderr);
}

#[test]
fn the_log_of_an_earlier_run_is_kept_and_can_be_taken_back_after_the_later_one() {
    let server = server(30);
    let before = held(&server);
    let run = Run::new(30, &server.url(), &[]);
    run.run().expect(0);
    let between = held(&server);
    let file = run.folder.join("data-0.json");
    let text = fs::read_to_string(&file).expect("there is an export");
    fs::write(&file, text.replace("after", "later")).expect("a file can be written");
    run.run().expect(0);
    assert_ne!(held(&server), between);
    // The later run put most items as they were.
    let counts = run.counts(0, &[]);
    assert_eq!([&counts["restored"], &counts["unchanged"]], [9, 21], "{counts}");
    assert_eq!(held(&server), between);
    run.undo(&["--log", "undo.1"]).expect(0);
    assert_eq!(held(&server), before);
}

#[test]
fn a_stopped_run_does_not_go_on_when_an_earlier_one_was_taken_back() {
    let server = server(0);
    let run = Run::new(30, &server.url(), &["--max-write-units", "40"]);
    run.run().expect(0);
    let loaded = held(&server);
    let mut child = start(run.run_command());
    wait_for(&mut child, || run.work().join("undo.1").exists() && run.work().join("units/unit-00001.json").exists());
    kill(child);
    run.undo(&["--log", "undo.1"]).expect(0);
    assert_ne!(held(&server), loaded);
    run.run().expect(0);
    assert_eq!(held(&server), loaded);
}

#[test]
fn a_log_that_lost_records_takes_nothing_back() {
    let server = server(0);
    let empty = held(&server);
    let run = Run::new(30, &server.url(), &[]);
    run.run().expect(0);
    let before = held(&server);
    let log = run.work().join("undo/unit-00001.jsonl");
    let text = fs::read_to_string(&log).expect("there is a log");
    let half: String = text.lines().skip(5).flat_map(|line| [line, "\n"]).collect();
    fs::write(&log, half).expect("it can be written");
    for _ in 0..2 {
        let ran = run.undo(&[]).expect(1);
        assert!(ran.stderr.contains("lacks records") && ran.stderr.contains("expected: 10 keys at least"), "{}", ran.stderr);
        assert_eq!(held(&server), before);
        drop(fs::remove_file(&log));
    }
    fs::write(&log, text).expect("it can be written");
    run.undo(&[]).expect(0);
    assert_eq!(held(&server), empty);
}

#[test]
fn a_run_whose_log_cannot_be_written_sends_nothing() {
    let server = server(300);
    let run = Run::new(300, &server.url(), &["--max-write-units", "600"]);
    let mut child = start(run.run_command());
    wait_for(&mut child, || run.logged() > 0);
    kill(child);
    let log = run.work().join("undo/unit-00001.jsonl");
    fs::remove_file(&log).expect("there is a log");
    fs::create_dir(&log).expect("a folder can be made");
    // The server may still be at work for the run that was killed; it is not after this one, which is refused too.
    run.run().expect(1);
    let before = held(&server);
    let ran = run.run().expect(1);
    assert!(ran.stderr.contains("cannot write the undo log") && ran.stderr.contains("unit-00001.jsonl"), "{}", ran.stderr);
    assert_eq!(held(&server), before);
}
