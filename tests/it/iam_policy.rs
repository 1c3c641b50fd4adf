//! `iam-policy`: what it prints, and that it leaves out nothing that the program calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Ran, command, golden, root};
use crate::s3_exports::{dynamorph, encrypt, uploaded};
use crate::support::s3::ministack;

const PIPELINE: &str = "pipelines/docs-split-comments.toml";

/// The program without any credentials or region.
fn alone(args: &[&str]) -> Ran {
    let mut command = command(args);
    command.env_clear().envs([
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ]);
    Ran::of(command.output().expect("the program starts"))
}

fn seen(ran: &Ran) -> String {
    format!("exit code {}\n--- stdout\n{}--- stderr\n{}", ran.code, ran.stdout, ran.stderr)
}

#[test]
fn a_live_run_from_an_export_on_disk_is_allowed_its_tables_and_nothing_in_s3() {
    let args = ["iam-policy", PIPELINE, "--from", "sample_exports/docs", "--to", "dynamodb", "--to", "parquet:out"];
    let more = ["--table", "docs=prod-docs", "--region", "eu-west-1", "--undo-log", "--create-tables"];
    golden("iam/live.txt", &seen(&alone(&[&args[..], &more].concat()).expect(0)));
}

#[test]
fn without_credentials_the_addresses_must_do() {
    let from = "s3://exports/prod/AWSDynamoDB/01768385930622-efd1a093";
    let args = ["iam-policy", PIPELINE, "--from", from, "--to", "import:s3://loads/2026/", "--to", "parquet:s3://lake"];
    let more = ["--start-import", "--kms-key", "1234abcd-12ab-34cd-56ef-1234567890ab", "--region", "cn-north-1"];
    golden("iam/by-address.txt", &seen(&alone(&[&args[..], &more].concat()).expect(0)));
}

#[test]
fn an_encrypted_export_in_s3_is_allowed_by_what_its_manifest_says() {
    let bucket = uploaded(ministack(), "docs", "prod/");
    encrypt(&bucket);
    let from = format!("s3://{}/prod/", bucket.name());
    let args = ["iam-policy", PIPELINE, "--from", &from, "--to", "dynamodb", "--if-newer", "updatedAt", "--verify-against", "dynamodb"];
    let ran = dynamorph(&ministack().url(), &args).expect(0);
    golden("iam/encrypted.txt", &seen(&ran).replace(bucket.name(), "BUCKET"));
}

#[test]
fn the_flags_of_a_run_are_taken_also_where_no_permission_depends_on_them() {
    let args = ["iam-policy", PIPELINE, "--from", "sample_exports/docs", "--region", "eu-west-1", "--to", "dynamodb", "--to", "import:out"];
    let more = "--max-write-units 500 --ramp 5m --work w --unit-size 1MiB --max-rejects 3 --overwrite --restart --only Document --limit 5 --dialect athena --schema a --schema-out b \
                --jobs 2 --import-format ion --import-compression zstd --import-object-size 1GiB --row-group-size 8MiB --file-size 1GiB --zstd-level 3 --verify data --max-line 1MB";
    let all: Vec<_> = args.into_iter().chain(more.split_whitespace()).collect();
    assert_eq!(alone(&all).expect(0).stdout, alone(&args).expect(0).stdout);
    let ran = alone(&[&args[..], &["--max-write-units", "0"]].concat()).expect(2);
    assert!(ran.stderr.contains("expected a whole number from 1 to"), "{}", ran.stderr);
}

#[test]
fn a_region_of_the_environment_wins_over_the_manifest_and_says_so() {
    let mut command = command(&["iam-policy", PIPELINE, "--from", "sample_exports/docs", "--to", "dynamodb"]);
    command.env("AWS_REGION", "ap-southeast-2").env("AWS_CONFIG_FILE", "/dev/null");
    let ran = Ran::of(command.output().expect("the program starts")).expect(0);
    assert!(ran.stdout.contains("arn:aws:dynamodb:ap-southeast-2:"), "{}", ran.stdout);
    assert!(ran.stderr.contains("note: region ap-southeast-2 comes from the environment or the profile, and wins over "), "{}", ran.stderr);
}

#[test]
fn options_that_nothing_heeds_are_refused() {
    let from = ["iam-policy", PIPELINE, "--from", "sample_exports/docs", "--region", "eu-west-1"];
    for (args, expected) in [
        (&["--to", "import:out", "--undo-log"][..], "--undo-log says how live tables are written"),
        (&["--to", "import:out", "--start-import"], "--start-import needs files in S3"),
        (&["--to", "csv:out"], "unknown sink"),
        (&["--to", "dynamodb:docs"], "hint: write dynamodb; the pipeline says which tables, and --table NAME=docs"),
        (&["--to", "s3://lake/docs"], "hint: say what the files are: parquet:s3://lake/docs or import:s3://lake/docs"),
        (&["--to", "dynamodb", "--account", "12"], "expected 12 digits"),
        (&["--to", "dynamodb", "--table", "doc=prod-docs"], "which is no table of the pipeline"),
    ] {
        let ran = alone(&[&from[..], args].concat()).expect(2);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

/// What each request of the two SDKs takes.
const ACTIONS: &[(&str, &str)] = &[
    ("abort_multipart_upload", "s3:AbortMultipartUpload"),
    ("batch_get_item", "dynamodb:BatchGetItem"),
    ("batch_write_item", "dynamodb:BatchWriteItem"),
    ("complete_multipart_upload", "s3:PutObject"),
    ("create_multipart_upload", "s3:PutObject"),
    ("create_table", "dynamodb:CreateTable"),
    ("delete_item", "dynamodb:DeleteItem"),
    ("delete_objects", "s3:DeleteObject"),
    ("describe_import", "dynamodb:DescribeImport"),
    ("describe_table", "dynamodb:DescribeTable"),
    ("describe_time_to_live", "dynamodb:DescribeTimeToLive"),
    ("get_item", "dynamodb:GetItem"),
    ("get_object", "s3:GetObject"),
    ("head_object", "s3:GetObject"),
    ("import_table", "dynamodb:ImportTable"),
    ("list_imports", "dynamodb:ListImports"),
    ("list_multipart_uploads", "s3:ListBucketMultipartUploads"),
    ("list_objects_v2", "s3:ListBucket"),
    ("put_item", "dynamodb:PutItem"),
    ("put_object", "s3:PutObject"),
    ("scan", "dynamodb:Scan"),
    ("tag_resource", "dynamodb:TagResource"),
    ("upload_part", "s3:PutObject"),
];

/// The requests that the program makes: what follows `client.` and takes nothing.
fn requests() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the sources can be listed") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // A call may stand on a line of its own.
            let text: String = fs::read_to_string(&path).expect("a source can be read").split_whitespace().collect();
            for after in text.split("client.").skip(1) {
                let name: String = after.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
                if after[name.len()..].starts_with("()") && name != "clone" {
                    found.insert(name, path.clone());
                }
            }
        }
    }
    found
}

#[test]
fn every_request_that_the_program_makes_is_allowed_by_some_policy() {
    let from = "s3://exports/prod/AWSDynamoDB";
    let all =
        ["iam-policy", PIPELINE, "--from", from, "--region", "eu-west-1", "--start-import", "--undo-log", "--undo", "--create-tables"];
    let sinks = ["--to", "dynamodb", "--to", "import:s3://out", "--verify-against", "dynamodb"];
    let mut allowed = BTreeSet::new();
    for condition in [&[][..], &["--if-absent"]] {
        let policy: Value = serde_json::from_str(&alone(&[&all[..], &sinks, condition].concat()).expect(0).stdout).expect("JSON");
        let statements = policy["Statement"].as_array().expect("a policy has statements");
        let actions = statements.iter().flat_map(|statement| statement["Action"].as_array().expect("a list"));
        allowed.extend(actions.map(|action| action.as_str().expect("a text").to_owned()));
    }
    let requests = requests();
    assert!(requests.len() >= 12, "the requests were not found: {requests:?}");
    for (request, path) in requests {
        let path = path.strip_prefix(root()).unwrap_or(Path::new("?")).display();
        let Some((_, action)) = ACTIONS.iter().find(|(known, _)| *known == request) else {
            panic!("{path} sends `{request}`: add what it takes to the list, and to the policy");
        };
        assert!(allowed.contains(*action), "{path} sends `{request}`, and no policy allows {action}");
    }
}
