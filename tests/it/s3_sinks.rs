//! Whole runs that write to S3: what is there at the end, and what is there when a run is stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dynamorph::aws::s3::{Bucket, Limits};
use hyper::Method;
use serde_json::{Value, json};

use crate::declared::folder_of;
use crate::program::{Folder, Ran, command, files};
use crate::support::s3::{client, ministack, moto};
use crate::support::s3_proxy::{Asked, Fault, S3Proxy};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";
const EXPORT: &str = "sample_exports/docs";

/// The program with these sinks and the S3 at this address, and nothing of whoever runs the tests.
fn start(folder: &Folder, url: &str, sinks: &[&str], more: &[&str]) -> Command {
    let work = folder.join("work");
    let mut command = alone(&["run", PIPELINE, "--from", EXPORT, "--work", &work, "--quiet", "--s3-endpoint-url", url]);
    command.args(sinks.iter().flat_map(|sink| ["--to", *sink])).args(more);
    command
}

/// The program with keys for the S3 of the tests.
fn alone(args: &[&str]) -> Command {
    let mut command = command(args);
    command.env_clear().envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    command
}

fn run(folder: &Folder, url: &str, sinks: &[&str], more: &[&str]) -> Ran {
    Ran::of(start(folder, url, sinks, more).output().expect("the program starts"))
}

/// A new bucket of ministack, as the tests see it whatever stands between it and the program.
fn bucket() -> Bucket {
    ministack().bucket()
}

fn place(kind: &str, bucket: &Bucket, prefix: &str) -> String {
    format!("{kind}:s3://{}/{prefix}", bucket.name())
}

/// What lies below a prefix, by the name below it.
fn objects(bucket: &Bucket, prefix: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let keys: Vec<_> = bucket.list(prefix, None).unwrap().objects.into_iter().map(|object| object.key).collect();
    let contents = bucket.get_all(&keys).unwrap();
    let name = |key: String| PathBuf::from(key.strip_prefix(prefix).expect("it is below the prefix"));
    keys.into_iter().map(name).zip(contents.into_iter().map(|bytes| bytes.expect("it was listed"))).collect()
}

/// The names of what has a final name.
fn visible(bucket: &Bucket, prefix: &str) -> Vec<PathBuf> {
    objects(bucket, prefix).into_keys().filter(|name| !name.starts_with(".dynamorph-unfinished")).collect()
}

/// What a run writes into folders.
fn in_folders(kind: &str) -> &'static BTreeMap<PathBuf, Vec<u8>> {
    static WRITTEN: OnceLock<[BTreeMap<PathBuf, Vec<u8>>; 2]> = OnceLock::new();
    let [lake, import] = WRITTEN.get_or_init(|| {
        let folder = Folder::new();
        let sinks = [folder.sink("parquet", "lake"), folder.sink("import", "import")];
        folder.run(PIPELINE, &[EXPORT], &sinks, &[]).expect(0);
        ["lake", "import"].map(|name| files(&folder.path().join(name)).into_iter().collect())
    });
    if kind == "parquet" { lake } else { import }
}

/// The prefix holds what a folder would, and nothing else; nothing is under way.
#[track_caller]
fn holds_what_a_folder_would(bucket: &Bucket, prefix: &str, kind: &str) {
    let mut found = objects(bucket, prefix);
    let mut expected = in_folders(kind).clone();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    if kind == "import" {
        let mut both = |name: PathBuf| [found.remove(&name).unwrap(), expected.remove(&name).unwrap()];
        for table in ["docs", "comments"] {
            let mut requests =
                |name: &str| both(PathBuf::from(table).join(name)).map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap());
            let data = json!({ "S3Bucket": bucket.name(), "S3KeyPrefix": format!("{prefix}{table}/data/") });
            let [found, mut expected] = requests("table.json");
            expected["S3BucketSource"] = data.clone();
            assert_eq!(found, expected);
            let [found, mut expected] = requests("bulk-put.json");
            expected["InputS3Configuration"]["S3Bucket"] = data["S3Bucket"].clone();
            expected["InputS3Configuration"]["S3KeyPrefix"] = data["S3KeyPrefix"].clone();
            expected["OutputS3Configuration"]["S3Bucket"] = data["S3Bucket"].clone();
            let beside = prefix.strip_suffix('/').map(|prefix| format!("{prefix}-")).unwrap_or_default();
            expected["OutputS3Configuration"]["S3KeyPrefix"] = format!("{beside}bulk-put-errors/{table}/").into();
            assert_eq!(found, expected);
        }
        let [script, _] = both("import.sh".into()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(script.contains(&format!("aws s3 cp 's3://{}/{prefix}'\"$1\" -", bucket.name())), "{script}");
        assert!(!script.contains("sync") && !script.contains("REPLACE"), "{script}");
    }
    for (name, bytes) in &expected {
        assert!(found[name] == *bytes, "{} differs", name.display());
    }
    assert_eq!(bucket.list_uploads(prefix).unwrap(), []);
}

#[test]
fn s3_gets_the_same_bytes_under_the_same_names_as_folders() {
    for server in [ministack(), moto()] {
        let (folder, bucket) = (Folder::new(), server.bucket());
        let sinks = [place("parquet", &bucket, "a b/lake"), place("import", &bucket, "import/")];
        let ran = run(&folder, &server.url(), &sinks.each_ref().map(String::as_str), &[]).expect(0);
        holds_what_a_folder_would(&bucket, "a b/lake/", "parquet");
        holds_what_a_folder_would(&bucket, "import/", "import");
        assert!(ran.stdout.contains(&place("parquet", &bucket, "a b/lake ")), "{}", ran.stdout);
    }
}

#[test]
fn the_folders_of_partitions_are_in_the_names_of_objects_and_verify_finds_every_item_there() {
    let (server, bucket) = (ministack(), bucket());
    let declared = "partition = [\"state\"]\n";
    let states = ["new", "a/b=c: 50%", "", "naïve +&x"];
    let order = |(n, state)| format!(r#"{{"Item":{{"PK":{{"S":"O#{n}"}},"state":{{"S":"{state}"}}}}}}"#);
    let orders: Vec<_> = states.iter().enumerate().map(order).collect();
    let (folder, pipeline, from) = folder_of(declared, &orders.iter().map(String::as_str).collect::<Vec<_>>());
    let (work, there, url) = (folder.join("work"), place("parquet", &bucket, "lake"), server.url());
    folder.run(&pipeline, &[&from], &[folder.sink("parquet", "lake")], &[]).expect(0);
    for args in [["run", "--to", "--restart"], ["verify", "--against", "--quiet"]] {
        let [command, sink, more] = args;
        let args = [command, &pipeline, "--from", &from, sink, &there, "--work", &work, more, "--s3-endpoint-url", &url];
        Ran::of(alone(&args).output().expect("the program starts")).expect(0);
    }
    let data = |name: &PathBuf| name.extension().is_some_and(|end| end == "parquet");
    let local: BTreeMap<_, _> = files(&folder.path().join("lake")).into_iter().filter(|(name, _)| data(name)).collect();
    assert_eq!(local.len(), 4);
    assert!(local == objects(&bucket, "lake/").into_iter().filter(|(name, _)| data(name)).collect());
}

#[test]
fn a_bucket_of_its_own_needs_no_prefix() {
    let (folder, bucket) = (Folder::new(), bucket());
    run(&folder, &ministack().url(), &[&format!("import:s3://{}", bucket.name())], &[]).expect(0);
    holds_what_a_folder_would(&bucket, "", "import");
}

#[test]
fn the_owner_that_was_named_is_in_the_request_for_the_import() {
    let (folder, bucket) = (Folder::new(), bucket());
    run(&folder, &ministack().url(), &[&place("import", &bucket, "out")], &["--bucket-owner", "111122223333"]).expect(0);
    let request: Value = serde_json::from_slice(&bucket.get_whole("out/docs/table.json").unwrap().unwrap()).unwrap();
    assert_eq!(request["S3BucketSource"]["S3BucketOwner"], "111122223333");
}

#[test]
fn a_prefix_that_holds_something_is_refused_and_replaced_only_with_overwrite() {
    let (folder, bucket, url) = (Folder::new(), bucket(), ministack().url());
    let sink = place("parquet", &bucket, "out");
    run(&folder, &url, &[&sink], &["--only", "Workspace"]).expect(0);
    let before = objects(&bucket, "out/");
    assert_eq!(before.len(), 3, "{:?}", before.keys());

    let ran = run(&folder, &url, &[&sink], &["--only", "Comment"]).expect(2);
    for part in
        ["the output folder is not empty", &format!("folder: s3://{}/out\n", bucket.name()), "found: .dynamorph-output.json", "--overwrite"]
    {
        assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
    }
    assert_eq!(objects(&bucket, "out/"), before);

    run(&folder, &url, &[&sink], &["--only", "Comment", "--overwrite"]).expect(0);
    let names: Vec<_> = objects(&bucket, "out/").into_keys().collect();
    assert_eq!(names, [".dynamorph-output.json", "Comment/part-u00001-0000.parquet", "_dynamorph.json"].map(PathBuf::from));
    // The whole run replaces that one, and gives what a folder would hold.
    run(&folder, &url, &[&sink], &["--overwrite"]).expect(0);
    holds_what_a_folder_would(&bucket, "out/", "parquet");
}

#[test]
fn what_others_wrote_is_named_and_never_removed() {
    let (folder, bucket, url) = (Folder::new(), bucket(), ministack().url());
    let sink = place("parquet", &bucket, "out");
    // A folder of the console, and neighbours that only begin like the prefix.
    for (key, text) in [("out/", ""), ("out2/x", "mine"), ("outer", "mine")] {
        bucket.put_whole(key, text.into()).unwrap();
    }
    run(&folder, &url, &[&sink], &[]).expect(0);
    bucket.put_whole("out/Comment/notes.txt", b"mine".to_vec()).unwrap();
    let foreign = bucket.upload("out/large").unwrap().finish().unwrap();
    let before = objects(&bucket, "");
    for (more, message) in [(&[][..], "the output folder is not empty"), (&["--overwrite"], "holds a file that dynamorph did not write")] {
        let ran = run(&folder, &url, &[&sink], more).expect(2);
        assert!(ran.stderr.contains(message) && ran.stderr.contains("found: Comment/notes.txt"), "{}", ran.stderr);
    }
    assert_eq!(objects(&bucket, ""), before);
    bucket.complete(&foreign).unwrap();
}

#[test]
fn what_comes_while_the_run_writes_is_not_replaced() {
    let bucket = bucket();
    let (name, direct) = ("out/Comment/part-u00001-0000.parquet", bucket.clone());
    let proxy = S3Proxy::start(ministack().address(), move |asked| {
        // Once the first file is written.
        if asked.method == Method::PUT && asked.path.contains(".dynamorph-unfinished") {
            return Fault::ReplaceAt(format!("/{}/{name}", direct.name()), "mine");
        }
        Fault::None
    });
    let folder = Folder::new();
    let ran = run(&folder, &proxy.url(), &[&place("parquet", &bucket, "out")], &[]).expect(1);
    for part in ["a file that dynamorph did not write is in the way", &format!("s3://{}/{name}", bucket.name())] {
        assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
    }
    assert_eq!(visible(&bucket, "out/"), [PathBuf::from("Comment/part-u00001-0000.parquet")]);
    assert_eq!(bucket.get_whole(name).unwrap().unwrap(), b"mine");
}

#[test]
fn a_run_that_is_killed_leaves_nothing_visible_and_the_same_command_makes_it_good() {
    let bucket = bucket();
    // The second file is under way when the program is killed.
    let (stored, reached) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&reached);
    let proxy = S3Proxy::start(ministack().address(), move |asked| {
        if asked.path.contains("partNumber=") && stored.fetch_add(1, Ordering::SeqCst) == 2 {
            seen.store(true, Ordering::SeqCst);
            return Fault::Hang;
        }
        Fault::None
    });
    let folder = Folder::new();
    let sinks = [place("parquet", &bucket, "lake"), place("import", &bucket, "import")];
    let sinks = sinks.each_ref().map(String::as_str);
    let mut child =
        start(&folder, &proxy.url(), &sinks, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let until = Instant::now() + Duration::from_mins(2);
    while !reached.load(Ordering::SeqCst) {
        assert!(child.try_wait().expect("a child can be asked").is_none(), "the run ended before it could be killed");
        assert!(Instant::now() < until, "the run wrote nothing in two minutes");
        std::thread::yield_now();
    }
    child.kill().expect("a child can be killed");
    assert_eq!(child.wait().expect("a child ends").code(), None, "the run ended by itself");
    assert_eq!([visible(&bucket, "lake/"), visible(&bucket, "import/")], [Vec::<PathBuf>::new(), Vec::new()]);
    assert!(!bucket.list_uploads("").unwrap().is_empty(), "nothing was under way");

    run(&folder, &ministack().url(), &sinks, &[]).expect(0);
    holds_what_a_folder_would(&bucket, "lake/", "parquet");
    holds_what_a_folder_would(&bucket, "import/", "import");
}

/// A kind of request.
type Which = fn(&Asked) -> bool;

/// A proxy that denies the requests of this kind, as S3 denies them.
fn denying(which: Which) -> S3Proxy {
    S3Proxy::start(
        ministack().address(),
        move |asked| {
            if which(asked) { Fault::Error(403, "AccessDenied", "Access Denied") } else { Fault::None }
        },
    )
}

#[test]
fn a_denial_says_action_and_object_and_leaves_nothing() {
    let cases: [(Which, &str, &str); 5] = [
        (|asked| asked.method == Method::GET && asked.path.contains("list-type=2"), "s3:ListBucket", "\n"),
        (|asked| asked.method == Method::POST && asked.path.contains("uploads"), "s3:PutObject", "/out/"),
        (|asked| asked.path.contains("partNumber="), "s3:PutObject", "/out/"),
        (
            |asked| asked.method == Method::PUT && asked.path.contains(".dynamorph-unfinished"),
            "s3:PutObject",
            "/out/.dynamorph-unfinished/",
        ),
        (|asked| asked.path.contains("?uploads&") || asked.path.contains("&uploads"), "s3:ListBucketMultipartUploads", "\n"),
    ];
    for kind in ["parquet", "import"] {
        for (which, action, on) in cases {
            let (folder, bucket, proxy) = (Folder::new(), bucket(), denying(which));
            let ran = run(&folder, &proxy.url(), &[&place(kind, &bucket, "out")], &[]).expect(1);
            for part in ["S3 denies access", &format!("action: {action}\n"), &format!("on: arn:aws:s3:::{}{on}", bucket.name())] {
                assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
            }
            assert_eq!(visible(&bucket, "out/"), Vec::<PathBuf>::new());
        }
    }
}

/// Lets some files become visible and then fails, a service that is down from one moment to the next.
fn publishing_so_many(files: usize) -> S3Proxy {
    let visible = AtomicUsize::new(0);
    S3Proxy::start(ministack().address(), move |asked| {
        let completes = asked.method == Method::POST && asked.path.contains("uploadId=");
        if completes && visible.fetch_add(1, Ordering::SeqCst) >= files {
            Fault::Error(403, "AccessDenied", "Access Denied")
        } else {
            Fault::None
        }
    })
}

#[test]
fn a_publication_that_is_cut_short_is_made_good_by_the_same_command() {
    for kind in ["parquet", "import"] {
        let (folder, bucket, proxy) = (Folder::new(), bucket(), publishing_so_many(1));
        let sink = place(kind, &bucket, "out");
        let ran = run(&folder, &proxy.url(), &[&sink], &[]).expect(1);
        assert!(ran.stderr.contains("S3 denies access") && ran.stderr.contains("s3:PutObject"), "{}", ran.stderr);
        // The list, and the one file.
        assert_eq!(visible(&bucket, "out/").len(), 2, "{:?}", visible(&bucket, "out/"));
        assert!(bucket.any("out/.dynamorph-unfinished/").unwrap());

        // One that fails before it publishes changes nothing.
        let left = objects(&bucket, "out/");
        let denied = denying(|asked| asked.path.contains("partNumber="));
        run(&folder, &denied.url(), &[&sink], &["--restart"]).expect(1);
        assert_eq!(objects(&bucket, "out/"), left);

        run(&folder, &ministack().url(), &[&sink], &[]).expect(0);
        holds_what_a_folder_would(&bucket, "out/", kind);
    }
}

#[test]
fn a_replacement_that_is_cut_short_is_finished_with_overwrite_only() {
    let (folder, bucket, url) = (Folder::new(), bucket(), ministack().url());
    let sink = place("parquet", &bucket, "out");
    run(&folder, &url, &[&sink], &["--only", "Comment"]).expect(0);
    let proxy = publishing_so_many(1);
    run(&folder, &proxy.url(), &[&sink], &["--overwrite"]).expect(1);
    let ran = run(&folder, &url, &[&sink], &["--restart"]).expect(2);
    assert!(ran.stderr.contains("an earlier run was stopped while it replaced the output"), "{}", ran.stderr);
    run(&folder, &url, &[&sink], &["--overwrite"]).expect(0);
    holds_what_a_folder_would(&bucket, "out/", "parquet");
}

#[test]
fn places_that_cannot_be_written_are_usage_errors() {
    let (folder, bucket) = (Folder::new(), bucket());
    let url = ministack().url();
    let own = |kind: &str, prefix: &str| place(kind, &bucket, prefix);
    for (sinks, parts) in [
        (vec![own("batch", "out")], ["request files are not written to S3", "write them to a folder"]),
        (vec!["parquet:s3://".to_owned()], ["the bucket is missing", "s3://BUCKET/PREFIX"]),
        (vec!["import:s3:///out".to_owned()], ["the bucket is missing", "s3://BUCKET/PREFIX"]),
        (vec![own("parquet", "out"), own("import", "out/")], ["two sinks have the same folder", "a folder of its own"]),
        (vec![own("parquet", "out"), own("import", "out/import")], ["two sinks have the same folder", "a folder of its own"]),
        (vec![own("import", "out/import"), own("parquet", "")], ["two sinks have the same folder", "a folder of its own"]),
        (vec!["parquet:s3://no-such-bucket/out".to_owned()], ["the bucket does not exist", "no-such-bucket"]),
    ] {
        let sinks: Vec<_> = sinks.iter().map(String::as_str).collect();
        let ran = run(&folder, &url, &sinks, &[]).expect(2);
        for part in parts {
            assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
        }
    }
    assert_eq!(bucket.list("", None).unwrap().objects, []);
    // A neighbour that only begins like the other is no part of it.
    run(&folder, &url, &[&own("parquet", "out"), &own("import", "out2")], &[]).expect(0);
}

#[test]
fn without_credentials_or_region_nothing_is_read_and_the_error_says_what_to_set() {
    let (folder, bucket) = (Folder::new(), bucket());
    let sink = place("parquet", &bucket, "out");
    for (variable, code, parts) in
        [("AWS_ACCESS_KEY_ID", 1, ["no AWS credentials", "AWS_PROFILE"]), ("AWS_REGION", 2, ["no AWS region is known", "--region"])]
    {
        let mut command = start(&folder, &ministack().url(), &[&sink], &[]);
        let ran = Ran::of(command.env_remove(variable).output().expect("the program starts")).expect(code);
        for part in parts {
            assert!(ran.stderr.contains(part), "`{part}` is not in: {}", ran.stderr);
        }
    }
    assert!(!fs::exists(folder.path().join("work/report.json")).unwrap());
}

#[test]
fn a_run_survives_a_service_that_fails_now_and_then() {
    let proxy = S3Proxy::start(ministack().address(), |asked| match asked.at % 7 {
        1 => Fault::Error(503, "SlowDown", "Please reduce your request rate."),
        3 => Fault::Error(500, "InternalError", "We encountered an internal error. Please try again."),
        5 => Fault::Lose,
        _ => Fault::None,
    });
    let (folder, bucket) = (Folder::new(), client(&proxy.url(), Limits::default()).bucket(&ministack().create_bucket()));
    let sinks = [place("parquet", &bucket, "lake"), place("import", &bucket, "import")];
    run(&folder, &proxy.url(), &sinks.each_ref().map(String::as_str), &[]).expect(0);
    holds_what_a_folder_would(&bucket, "lake/", "parquet");
    holds_what_a_folder_would(&bucket, "import/", "import");
}
