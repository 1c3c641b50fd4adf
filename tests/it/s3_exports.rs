//! Exports in S3: the program reads them from servers that others wrote, with and without faults on the way.

use std::fs;

use dynamorph::aws::s3::Bucket;

use crate::copies::same_bytes;
use crate::program::{Folder, Ran, command, files, root};
use crate::python::run_program;
use crate::samples::sample;
use crate::support::s3::{S3Server, ministack, moto};
use crate::support::s3_proxy::{Asked, Fault, S3Proxy};

const PIPELINE: &str = "pipelines/docs-split-comments.toml";

/// A new bucket that holds a sample export below `prefix`.
pub(crate) fn uploaded(server: &S3Server, name: &str, prefix: &str) -> Bucket {
    let bucket = server.bucket();
    for (path, bytes) in files(&sample(name)) {
        let path = path.to_str().expect("samples have plain names");
        bucket.put_whole(&format!("{prefix}{path}"), bytes).expect("the server takes objects");
    }
    bucket
}

/// Runs the program with S3 at `url`, and with no other configuration of whoever runs the tests.
pub(crate) fn dynamorph(url: &str, args: &[&str]) -> Ran {
    let mut command = command(args);
    for (name, value) in [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL_S3", url),
        ("AWS_CONFIG_FILE", "/nowhere"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"),
    ] {
        command.env(name, value);
    }
    Ran::of(command.output().expect("the program starts"))
}

/// Runs the split pipeline over an export into all kinds of files.
fn run(folder: &Folder, url: &str, from: &str, more: &[&str]) -> Ran {
    let work = folder.join("work");
    let sinks = ["parquet", "import", "batch"].map(|kind| folder.sink(kind, kind));
    let mut args = vec!["run", PIPELINE, "--work", &work, "--quiet", "--from", from];
    args.extend(sinks.iter().flat_map(|sink| ["--to", sink.as_str()]));
    args.extend(more);
    dynamorph(url, &args)
}

#[test]
fn one_table_gives_the_same_bytes_as_json_and_ion_from_a_folder_and_from_s3() {
    let local = Folder::new();
    run(&local, "http://127.0.0.1:1", "sample_exports/docs", &[]).expect(0);
    for server in [ministack(), moto()] {
        for (name, prefix) in [("docs", ""), ("docs-ion", "a folder/é+%/"), ("docs-prefixed", "moved/")] {
            let bucket = uploaded(server, name, prefix);
            let folder = Folder::new();
            run(&folder, &server.url(), &format!("s3://{}/{prefix}", bucket.name()), &[]).expect(0);
            same_bytes(&["parquet", "import", "batch"], &local, &folder);
        }
    }
}

#[test]
fn an_export_in_s3_is_found_by_folder_summary_and_choice_and_described_as_one_in_a_folder() {
    let bucket = uploaded(ministack(), "docs", "x/");
    let listing = bucket.list("x/AWSDynamoDB/", Some("/")).expect("the server lists");
    let folder = listing.folders[0].trim_end_matches('/');
    let id = folder.rsplit_once('/').expect("an export has a folder").1;
    let all = format!("s3://{}/x/AWSDynamoDB", bucket.name());
    let local = dynamorph("http://127.0.0.1:1", &["inspect", "sample_exports/docs", "--quiet"]).expect(0);
    for args in [
        vec![all.clone()],
        vec![format!("{all}/{id}/")],
        vec![format!("{all}/{id}/manifest-summary.json")],
        vec![all.clone(), "--export".to_owned(), "latest".to_owned()],
        vec![all.clone(), "--export".to_owned(), id.to_owned()],
    ] {
        let args: Vec<&str> = ["inspect", "--quiet"].into_iter().chain(args.iter().map(String::as_str)).collect();
        let found = dynamorph(&ministack().url(), &args).expect(0);
        assert_eq!(found.stdout, local.stdout, "{args:?}");
    }
    let unfinished = format!("{folder}/manifest-summary.json");
    bucket.delete(&[unfinished]).expect("the server removes");
    let ran = dynamorph(&ministack().url(), &["inspect", &all]).expect(1);
    assert!(ran.stderr.contains("unfinished or failed export"), "{}", ran.stderr);
}

#[test]
fn where_nothing_lies_in_s3_it_is_said_so() {
    let bucket = ministack().bucket();
    for place in [format!("s3://{}/", bucket.name()), format!("s3://{}/no/such/", bucket.name())] {
        let ran = dynamorph(&ministack().url(), &["inspect", &place]).expect(1);
        let at = if place.ends_with("such/") { place.trim_end_matches('/') } else { &place };
        assert!(ran.stderr.contains(&format!("error: nothing lies at {at}\n")), "{}", ran.stderr);
    }
}

#[test]
fn changes_in_the_shared_folder_of_s3_are_those_of_the_manifests() {
    let bucket = uploaded(ministack(), "docs-incremental", "p/");
    let rows = |url: &str, base: &str| {
        let folder = Folder::new();
        let all = root().join("sample_exports/docs-incremental/AWSDynamoDB");
        let mut windows: Vec<_> = fs::read_dir(all).expect("the sample is there").map(|entry| entry.expect("a name").file_name()).collect();
        windows.sort();
        let work = folder.join("work");
        let sink = folder.sink("parquet", "parquet");
        let from: Vec<String> = windows[1..].iter().map(|id| format!("{base}/AWSDynamoDB/{}", id.to_str().expect("an id"))).collect();
        let args = ["run", PIPELINE, "--work", &work, "--quiet", "--from", &from[0], "--from", &from[1], "--to", &sink];
        dynamorph(url, &args).expect(3);
        folder
    };
    let local = rows("http://127.0.0.1:1", "sample_exports/docs-incremental");
    let remote = rows(&ministack().url(), &format!("s3://{}/p", bucket.name()));
    same_bytes(&["parquet"], &local, &remote);
}

#[test]
fn connections_that_break_in_the_middle_of_a_data_file_cost_nothing() {
    let local = Folder::new();
    run(&local, "http://127.0.0.1:1", "sample_exports/docs", &[]).expect(0);
    let bucket = uploaded(ministack(), "docs", "");
    // Every other answer breaks off, each at another place; some requests meet a server that is busy.
    let proxy = S3Proxy::start(ministack().address(), |asked: &Asked| match asked.at % 6 {
        1 if asked.is_get() => Fault::Cut(asked.at * 7 % 300),
        2 => Fault::Error(503, "SlowDown", "Please reduce your request rate."),
        3 if asked.is_get() => Fault::Lose,
        4 => Fault::Refuse,
        _ => Fault::None,
    });
    let folder = Folder::new();
    run(&folder, &proxy.url(), &format!("s3://{}/", bucket.name()), &[]).expect(0);
    same_bytes(&["parquet", "import", "batch"], &local, &folder);
    let resumed = proxy.gets().iter().filter_map(Asked::range).filter(|(first, _)| *first > 0).count();
    assert!(resumed > 0, "no request went on in the middle");
}

/// Runs behind a proxy that does `fault` to each request for a data file; gives the messages.
fn refused(code: i32, name: &str, prepare: impl Fn(&Bucket), fault: impl Fn(&Asked) -> Fault + Send + Sync + 'static) -> String {
    let bucket = uploaded(ministack(), name, "");
    prepare(&bucket);
    let proxy = S3Proxy::start(ministack().address(), fault);
    let folder = Folder::new();
    let ran = run(&folder, &proxy.url(), &format!("s3://{}/", bucket.name()), &[]).expect(code);
    assert!(!folder.path().join("parquet/Comment").exists(), "something was published");
    ran.stderr
}

fn is_data(asked: &Asked) -> bool {
    asked.is_get() && asked.path.contains("/data/")
}

#[test]
fn an_object_that_changes_between_the_passes_ends_the_run() {
    let stderr = refused(1, "docs", |_| (), |asked| if is_data(asked) && asked.at > 12 { Fault::Replace("other") } else { Fault::None });
    assert!(stderr.contains("changed while it was read") || stderr.contains("replaced"), "{stderr}");
    assert!(stderr.contains("/data/"), "{stderr}");
}

/// Makes an export say that it is encrypted by a key of KMS.
pub(crate) fn encrypt(bucket: &Bucket) {
    let listing = bucket.list("", None).expect("the server lists");
    let key = &listing.objects.iter().find(|object| object.key.ends_with("manifest-summary.json")).expect("a summary").key;
    let text = String::from_utf8(bucket.get_whole(key).expect("the server reads").expect("the summary is there")).expect("JSON");
    let changed = text
        .replace(r#""s3SseAlgorithm":"AES256""#, r#""s3SseAlgorithm":"KMS""#)
        .replace(r#""s3SseKmsKeyId":null"#, r#""s3SseKmsKeyId":"arn:aws:kms:us-east-1:111122223333:key/k1""#);
    assert_ne!(text, changed);
    bucket.put_whole(key, changed.into_bytes()).expect("the server takes objects");
    bucket.delete(&[key.replace(".json", ".md5")]).expect("the server removes");
}

#[test]
fn a_denial_of_a_data_file_names_action_and_object_and_the_key_of_kms() {
    let denied = |asked: &Asked| if is_data(asked) { Fault::Error(403, "AccessDenied", "Access Denied") } else { Fault::None };
    let stderr = refused(1, "docs", encrypt, denied);
    for part in ["s3:GetObject", "arn:aws:s3:::bucket-", "/data/", "kms:Decrypt", "arn:aws:kms:us-east-1:111122223333:key/k1"] {
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
}

#[test]
fn a_bucket_in_another_region_says_which() {
    let elsewhere = |_: &Asked| Fault::Bare(301, Some(("x-amz-bucket-region", "eu-west-3")));
    let stderr = refused(2, "docs", |_| (), elsewhere);
    assert!(stderr.contains("--region eu-west-3"), "{stderr}");
}

#[test]
fn a_data_file_that_is_missing_in_s3_is_named() {
    let remove = |bucket: &Bucket| {
        let listing = bucket.list("", None).expect("the server lists");
        let key = &listing.objects.iter().find(|object| object.key.contains("/data/")).expect("a data file").key;
        bucket.delete(&[key]).expect("the server removes");
    };
    let stderr = refused(1, "docs", remove, |_| Fault::None);
    assert!(stderr.contains("data files are missing") && stderr.contains("looked for s3://bucket-"), "{stderr}");
}

#[test]
fn a_real_export_of_moto_is_read_whole() {
    let bucket = moto().create_bucket();
    let url = moto().url();
    let expected = run_program("moto_export.py", &[&url, &bucket], &[]);
    assert_eq!(expected.len(), 200);
    let folder = Folder::new();
    let pipeline = folder.join("copy.toml");
    let text = r#"
version = 1
[source]
key = { partition = "PK", sort = "SK" }
[table.copy]
key = { partition = "PK", sort = "SK" }
[entity.Any]
classify = "attribute_exists(PK)"
to = "copy"
"#;
    fs::write(&pipeline, text).expect("a file can be written");
    let (work, sink, from) = (folder.join("work"), folder.sink("import", "import"), format!("s3://{bucket}/exports"));
    dynamorph(&url, &["run", &pipeline, "--from", &from, "--to", &sink, "--work", &work, "--quiet"]).expect(0);
    let found = run_program("read_items.py", &[], &[&folder.path().join("import/copy/data")]);
    assert_eq!(found, expected);
}
