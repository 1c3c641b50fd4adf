//! The S3 client against servers that others wrote, with and without faults on the way.

use std::io::{Read, Write as _};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dynamorph::aws::s3::{Bucket, Limits, ObjectFacts, PendingUpload, Receipt, S3};
use dynamorph::aws::{Aws, Options};
use dynamorph::error::{Error, Kind};
use hyper::Method;

use crate::support::s3::{client, ministack, moto, options};
use crate::support::s3_proxy::{Asked, Fault, S3Proxy};

const MIB: usize = 1 << 20;

/// Bytes that hardly repeat, other ones for each seed.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes.div_ceil(8)).flat_map(|_| next()).take(bytes).collect()
}

/// Parts of 1 MiB, and short pauses.
fn small() -> Limits {
    Limits { part: MIB, ahead: 3, stall: Duration::from_millis(400), first_pause: Duration::from_millis(5), ..Limits::default() }
}

/// A proxy before ministack, and a bucket behind it.
fn behind(plan: impl Fn(&Asked) -> Fault + Send + Sync + 'static) -> (S3Proxy, Bucket) {
    let proxy = S3Proxy::start(ministack().address(), plan);
    let bucket = client(&proxy.url(), small()).bucket(&ministack().create_bucket());
    (proxy, bucket)
}

fn facts(bucket: &Bucket, key: &str) -> ObjectFacts {
    bucket.head(key).unwrap().expect("the object is there")
}

fn read(bucket: &Bucket, key: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    bucket.reader(key, &facts(bucket, key)).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The error inside an error of reading or writing.
fn inside(error: std::io::Error) -> Error {
    error.downcast().expect("the error says what S3 said")
}

fn upload(bucket: &Bucket, key: &str, bytes: &[u8]) -> Receipt {
    let mut upload = bucket.upload(key).unwrap();
    // Pieces that end nowhere near the ends of parts.
    for piece in bytes.chunks(3 * MIB + 17) {
        upload.write_all(piece).unwrap();
    }
    let receipt = upload.finish().unwrap();
    assert_eq!(receipt.bytes, bytes.len() as u64);
    receipt
}

#[track_caller]
fn says(error: &Error, kind: Kind, parts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn objects_come_back_as_they_were_written_whatever_their_size() {
    for server in [ministack(), moto()] {
        let bucket = server.bucket();
        for (size, parts) in [(0, 1), (1, 1), (8 * MIB - 1, 1), (8 * MIB, 1), (8 * MIB + 1, 2), (20 * MIB, 3)] {
            let bytes = noise(size as u64, size);
            let receipt = upload(&bucket, "a/large", &bytes);
            assert_eq!(receipt.parts.iter().map(|part| part.number).collect::<Vec<_>>(), (1..=parts).collect::<Vec<_>>());
            bucket.complete(&receipt).unwrap();
            assert_eq!(facts(&bucket, "a/large").bytes, size as u64);
            assert!(read(&bucket, "a/large") == bytes, "{size}");
            bucket.put_whole("a/small", bytes.clone()).unwrap();
            assert!(read(&bucket, "a/small") == bytes, "{size}");
            assert!(bucket.get_whole("a/small").unwrap().unwrap() == bytes, "{size}");
        }
        assert_eq!(bucket.list_uploads("").unwrap(), []);
    }
}

#[test]
fn an_upload_is_visible_when_it_is_completed_and_not_before() {
    for server in [ministack(), moto()] {
        let bucket = server.bucket();
        bucket.put_whole("key", b"old".to_vec()).unwrap();
        let receipt = upload(&bucket, "key", b"new, and longer");
        assert_eq!(bucket.get_whole("key").unwrap().unwrap(), b"old");
        let pending = PendingUpload { key: "key".to_owned(), upload_id: receipt.upload_id.clone() };
        assert_eq!(bucket.list_uploads("").unwrap(), std::slice::from_ref(&pending));
        assert_eq!(bucket.list_uploads("ke").unwrap(), [pending]);
        assert_eq!(bucket.list_uploads("other").unwrap(), []);

        // The receipt may be kept in a file meanwhile.
        let kept = serde_json::to_string(&receipt).unwrap();
        bucket.complete(&serde_json::from_str(&kept).unwrap()).unwrap();
        assert_eq!(bucket.get_whole("key").unwrap().unwrap(), b"new, and longer");
        assert_eq!(bucket.list_uploads("").unwrap(), []);
        // Whoever commits again after a crash completes again.
        bucket.complete(&receipt).unwrap();
    }
}

#[test]
fn many_uploads_are_completed_or_aborted_together() {
    for server in [ministack(), moto()] {
        let bucket = server.bucket();
        let receipts: Vec<_> = (0..70).map(|at| upload(&bucket, &format!("{at:02}"), format!("number {at}").as_bytes())).collect();
        let (completed, aborted) = receipts.split_at(40);
        bucket.complete_all(completed).unwrap();
        let pending = bucket.list_uploads("").unwrap();
        assert_eq!(pending.len(), aborted.len());
        bucket.abort_all(&pending).unwrap();
        assert_eq!(bucket.list_uploads("").unwrap(), []);
        let keys: Vec<_> = receipts.iter().map(|receipt| receipt.key.as_str()).collect();
        let there = bucket.get_all(&keys).unwrap();
        let expected = (0..70).map(|at| (at < 40).then(|| format!("number {at}").into_bytes()));
        assert_eq!(there, expected.collect::<Vec<_>>());
    }
}

#[test]
fn an_upload_that_is_aborted_leaves_nothing() {
    for server in [ministack(), moto()] {
        let bucket = server.bucket();
        let receipt = upload(&bucket, "key", &noise(1, 9 * MIB));
        bucket.abort(&receipt.key, &receipt.upload_id).unwrap();
        assert_eq!(bucket.list_uploads("").unwrap(), []);
        assert_eq!(bucket.head("key").unwrap(), None);
        bucket.abort(&receipt.key, &receipt.upload_id).unwrap();
        if std::ptr::eq(server, moto()) {
            // It answers with an internal error.
            continue;
        }
        let error = bucket.complete(&receipt).unwrap_err();
        says(&error, Kind::Output, &["the upload does not exist any more", "s3:PutObject", &format!("arn:aws:s3:::{}/key", bucket.name())]);
    }
}

#[test]
fn an_upload_that_was_completed_by_an_attempt_whose_answer_was_lost_is_told_from_one_that_is_gone() {
    let (_proxy, bucket) = behind(|asked| match asked.method {
        Method::POST if asked.path.contains("uploadId=") => Fault::Error(404, "NoSuchUpload", "The specified upload does not exist."),
        _ => Fault::None,
    });
    let receipt = upload(&bucket, "key", b"what was uploaded");
    says(&bucket.complete(&receipt).unwrap_err(), Kind::Output, &["the upload does not exist any more"]);
    let direct = client(&ministack().url(), small()).bucket(bucket.name());
    direct.complete(&receipt).unwrap();
    bucket.complete(&receipt).unwrap();
    direct.put_whole("key", b"what another put".to_vec()).unwrap();
    says(&bucket.complete(&receipt).unwrap_err(), Kind::Output, &["the upload does not exist any more"]);
}

#[test]
fn an_upload_of_which_a_part_is_refused_fails_from_then_on_and_is_aborted() {
    let denied = Fault::Error(403, "AccessDenied", "Access Denied");
    let (proxy, bucket) = behind(move |asked| if asked.path.contains("partNumber=2") { denied.clone() } else { Fault::None });
    let mut upload = bucket.upload("key").unwrap();
    upload.put(&noise(1, 16 * MIB)).unwrap();
    let error = inside(upload.write_all(&noise(2, 16 * MIB)).unwrap_err());
    says(&error, Kind::Service, &["S3 denies access", "s3:PutObject"]);
    assert!(upload.put(b"more").is_err());
    assert!(upload.finish().is_err());
    eventually(|| proxy.asked().iter().any(|asked| asked.method == Method::DELETE));
    eventually(|| bucket.list_uploads("").unwrap().is_empty());
}

#[test]
fn an_upload_that_is_dropped_before_its_end_is_aborted() {
    let bucket = ministack().bucket();
    let mut upload = bucket.upload("key").unwrap();
    upload.write_all(&noise(1, 9 * MIB)).unwrap();
    assert_eq!(bucket.list_uploads("").unwrap().len(), 1);
    drop(upload);
    eventually(|| bucket.list_uploads("").unwrap().is_empty());
}

/// Waits for what happens by itself, and soon.
#[track_caller]
fn eventually(mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !happened() {
        assert!(Instant::now() < until, "it has not happened in a minute");
        std::thread::yield_now();
    }
}

#[test]
fn more_than_a_thousand_objects_are_listed_looked_at_and_removed() {
    let bucket = ministack().bucket();
    let keys: Vec<_> = (0..1005).map(|at| format!("data/{at:04}")).collect();
    std::thread::scope(|scope| {
        for keys in keys.chunks(126) {
            let bucket = &bucket;
            scope.spawn(move || keys.iter().for_each(|key| bucket.put_whole(key, key.clone().into_bytes()).unwrap()));
        }
    });
    bucket.put_whole("other", Vec::new()).unwrap();
    let listing = bucket.list("data/", None).unwrap();
    assert_eq!(listing.objects.iter().map(|object| &object.key).collect::<Vec<_>>(), keys.iter().collect::<Vec<_>>());
    assert_eq!(listing.folders, Vec::<String>::new());

    let found = bucket.heads(&[keys.as_slice(), &["missing".to_owned()]].concat()).unwrap();
    let listed = listing.objects.into_iter().map(|object| Some(object.facts)).chain([None]);
    assert_eq!(found, listed.collect::<Vec<_>>());
    assert!(found.iter().flatten().all(|facts| facts.bytes == 9));

    let contents = bucket.get_all(&keys).unwrap();
    assert_eq!(contents, keys.iter().map(|key| Some(key.clone().into_bytes())).collect::<Vec<_>>());
    assert_eq!((bucket.any("data/").unwrap(), bucket.any("data/2").unwrap()), (true, false));

    let listing = bucket.list("", Some("/")).unwrap();
    assert_eq!(listing.objects.iter().map(|object| object.key.as_str()).collect::<Vec<_>>(), ["other"]);
    assert_eq!(listing.folders, ["data/"]);

    bucket.delete(&keys).unwrap();
    bucket.delete(&["missing"]).unwrap();
    let left = bucket.list("", None).unwrap();
    assert_eq!(left.objects.iter().map(|object| object.key.as_str()).collect::<Vec<_>>(), ["other"]);
}

#[test]
fn keys_keep_blanks_and_signs() {
    for server in [ministack(), moto()] {
        let bucket = server.bucket();
        let keys = ["a b/c+d", "a b/é", "a b/100%", "a b/x%20y", "a b/=?&#;:,@", "a b/<\"'>"];
        for key in keys {
            bucket.put_whole(key, key.as_bytes().to_vec()).unwrap();
            assert_eq!(read(&bucket, key), key.as_bytes(), "{key}");
            bucket.complete(&upload(&bucket, key, b"uploaded")).unwrap();
            assert_eq!(bucket.get_whole(key).unwrap().unwrap(), b"uploaded", "{key}");
        }
        let mut sorted = keys;
        sorted.sort_unstable();
        let listed = bucket.list("a b/", Some("/")).unwrap();
        assert_eq!(listed.objects.iter().map(|object| object.key.as_str()).collect::<Vec<_>>(), sorted);
        bucket.delete(&keys).unwrap();
        assert_eq!(bucket.list("", None).unwrap().objects, []);
    }
}

#[test]
fn a_body_that_is_cut_is_read_on_from_where_it_was_cut() {
    // The answers for the 2nd and the 5th part end early; so does the first that resumes the 2nd.
    let part = |at: usize| at as u64 * MIB as u64;
    let resumed = AtomicBool::new(false);
    let (proxy, bucket) = behind(move |asked| match asked.range() {
        Some((first, _)) if [part(1), part(4)].contains(&first) => Fault::Cut(300_000),
        Some((first, _)) if (part(1)..part(2)).contains(&first) && !resumed.swap(true, Ordering::SeqCst) => Fault::Cut(300_000),
        _ => Fault::None,
    });
    let bytes = noise(2, 6 * MIB + 5);
    bucket.put_whole("key", bytes.clone()).unwrap();
    assert!(read(&bucket, "key") == bytes);
    let etag = format!("\"{}\"", facts(&bucket, "key").etag);
    let gets = proxy.gets();
    assert!(gets.iter().all(|get| get.header("if-match") == Some(&etag)));
    let ranges: Vec<_> = gets.iter().filter_map(Asked::range).collect();
    assert_eq!(ranges.len(), 7 + 3, "{ranges:?}");
    let resumed: Vec<_> = ranges.iter().filter(|(first, _)| *first % MIB as u64 != 0).collect();
    assert_eq!(resumed.len(), 3, "{ranges:?}");
    for (first, last) in resumed {
        // A part is asked for to its end, by whoever resumes it too.
        assert!((last + 1) % MIB as u64 == 0 || last + 1 == bytes.len() as u64, "{ranges:?}");
        assert!(first % MIB as u64 <= 900_000, "{ranges:?}");
    }
}

#[test]
fn an_object_of_one_part_is_one_request_and_is_resumed_too() {
    let gets = AtomicUsize::new(0);
    let (proxy, bucket) = behind(move |asked| match asked.is_get().then(|| gets.fetch_add(1, Ordering::SeqCst)) {
        Some(1 | 3) => Fault::Cut(1000),
        _ => Fault::None,
    });
    let bytes = noise(3, 300_000);
    bucket.put_whole("key", bytes.clone()).unwrap();
    for _ in 0..2 {
        assert!(read(&bucket, "key") == bytes);
    }
    assert!(bucket.get_whole("key").unwrap().unwrap() == bytes);
    let ranges: Vec<_> = proxy.gets().iter().map(Asked::range).collect();
    assert_eq!(ranges, [None, None, Some((1000, 299_999)), None, Some((1000, 299_999))]);
}

#[test]
fn a_body_that_stalls_is_read_on_from_where_it_stalled() {
    let gets = AtomicUsize::new(0);
    let (_proxy, bucket) = behind(move |asked| match asked.is_get().then(|| gets.fetch_add(1, Ordering::SeqCst)) {
        Some(0) => Fault::Stall(0),
        Some(2) => Fault::Stall(200_000),
        _ => Fault::None,
    });
    let bytes = noise(4, 3 * MIB);
    bucket.put_whole("key", bytes.clone()).unwrap();
    assert!(read(&bucket, "key") == bytes);
}

#[test]
fn everything_survives_a_service_that_fails_two_times_out_of_three() {
    let (_proxy, bucket) = behind(|asked| match asked.at % 9 {
        0 => Fault::Error(503, "SlowDown", "Please reduce your request rate."),
        1 => Fault::Error(500, "InternalError", "We encountered an internal error. Please try again."),
        3 => Fault::Lose,
        4 => Fault::Bare(503, None),
        6 => Fault::Refuse,
        7 => Fault::Cut(5),
        _ => Fault::None,
    });
    let bytes = noise(5, 3 * MIB + 1);
    bucket.put_whole("data/small", bytes.clone()).unwrap();
    let receipt = upload(&bucket, "data/large", &noise(6, 17 * MIB));
    bucket.complete(&receipt).unwrap();
    assert!(read(&bucket, "data/small") == bytes);
    assert!(bucket.get_whole("data/small").unwrap().unwrap() == bytes);
    assert!(read(&bucket, "data/large") == noise(6, 17 * MIB));
    assert_eq!(bucket.list("data/", None).unwrap().objects.len(), 2);
    assert_eq!(bucket.heads(&["data/small", "nothing"]).unwrap()[1], None);
    // Creating an upload is the one request that leaves something when its answer is lost.
    for PendingUpload { key, upload_id } in bucket.list_uploads("").unwrap() {
        bucket.abort(&key, &upload_id).unwrap();
    }
    assert_eq!(bucket.list_uploads("").unwrap(), []);
    bucket.delete(&["data/small", "data/large"]).unwrap();
    assert_eq!(bucket.list("", None).unwrap().objects, []);
}

#[test]
fn a_service_that_only_fails_ends_the_request_after_some_attempts() {
    let few = |proxy: &S3Proxy, bucket: &Bucket| client(&proxy.url(), Limits { attempts: 4, ..small() }).bucket(bucket.name());
    let (proxy, bucket) = behind(|_| Fault::Error(503, "SlowDown", "Please reduce your request rate."));
    let bucket = few(&proxy, &bucket);
    let error = bucket.get_whole("key").unwrap_err();
    let on = format!("on: arn:aws:s3:::{}/key", bucket.name());
    says(
        &error,
        Kind::Unavailable,
        &["S3 gives no usable answer", "s3:GetObject", &on, "SlowDown: Please reduce", "attempts: 4", &proxy.url()],
    );
    assert_eq!(proxy.asked().len(), 4);

    let (proxy, bucket) = behind(|asked| if asked.is_get() { Fault::Stall(0) } else { Fault::None });
    let bucket = few(&proxy, &bucket);
    bucket.put_whole("key", noise(7, 10)).unwrap();
    let error = inside(bucket.reader("key", &facts(&bucket, "key")).read_to_end(&mut Vec::new()).unwrap_err());
    says(&error, Kind::Unavailable, &["S3 gives no usable answer", "s3:GetObject", "no byte for 0.4 s"]);
    assert_eq!(proxy.gets().len(), 4);
}

#[test]
fn an_object_that_changes_while_it_is_read_is_an_error_and_never_a_mix() {
    // Between two parts.
    for server in [ministack(), moto()] {
        let limits = Limits { ahead: 0, ..small() };
        let bucket = client(&server.url(), limits).bucket(&server.create_bucket());
        let bytes = noise(8, 3 * MIB);
        bucket.put_whole("key", bytes.clone()).unwrap();
        let mut reader = bucket.reader("key", &facts(&bucket, "key"));
        let mut start = vec![0; MIB];
        reader.read_exact(&mut start).unwrap();
        assert!(start == bytes[..MIB]);
        bucket.put_whole("key", noise(9, 3 * MIB)).unwrap();
        let error = inside(reader.read(&mut start).unwrap_err());
        says(&error, Kind::Input, &["the object changed while it was read", "s3:GetObject"]);
        // What follows an error does not look like the end of the object.
        assert!(reader.read(&mut start).is_err());
    }
    // In the middle of a part.
    let gets = AtomicUsize::new(0);
    let (proxy, bucket) = behind(move |asked| match asked.is_get().then(|| gets.fetch_add(1, Ordering::SeqCst)) {
        Some(0) => Fault::Cut(1000),
        Some(1) => Fault::Replace("another"),
        _ => Fault::None,
    });
    bucket.put_whole("key", noise(10, 2000)).unwrap();
    let error = inside(bucket.reader("key", &facts(&bucket, "key")).read_to_end(&mut Vec::new()).unwrap_err());
    says(&error, Kind::Input, &["the object changed while it was read"]);
    assert_eq!(proxy.gets().len(), 2);
}

#[test]
fn a_server_that_heeds_no_condition_is_found_out_by_the_tag() {
    let (_proxy, bucket) = behind(|_| Fault::Heedless);
    bucket.put_whole("key", noise(11, 2000)).unwrap();
    let before = facts(&bucket, "key");
    bucket.put_whole("key", noise(12, 2000)).unwrap();
    let error = inside(bucket.reader("key", &before).read_to_end(&mut Vec::new()).unwrap_err());
    says(&error, Kind::Input, &["the object changed while it was read", &format!("in place of {}", before.etag)]);
}

#[test]
fn a_server_that_gives_no_ranges_is_told_and_not_believed() {
    let (_proxy, bucket) = behind(|asked| if asked.is_get() { Fault::Rangeless } else { Fault::None });
    bucket.put_whole("key", noise(11, 2 * MIB)).unwrap();
    let error = inside(bucket.reader("key", &facts(&bucket, "key")).read_to_end(&mut Vec::new()).unwrap_err());
    says(&error, Kind::Service, &["an answer that cannot be used", "not the part that was asked for"]);
}

#[test]
fn a_part_that_arrives_damaged_is_found_by_its_checksum_and_read_again() {
    for server in [ministack(), moto()] {
        let gets = AtomicUsize::new(0);
        let proxy = S3Proxy::start(server.address(), move |asked| match asked.is_get().then(|| gets.fetch_add(1, Ordering::SeqCst)) {
            Some(0 | 2) => Fault::Corrupt(77),
            _ => Fault::None,
        });
        let bucket = client(&proxy.url(), small()).bucket(&server.create_bucket());
        let bytes = noise(13, 2000);
        bucket.put_whole("key", bytes.clone()).unwrap();
        assert!(bucket.get_whole("key").unwrap().unwrap() == bytes);
        assert!(read(&bucket, "key") == bytes);
        assert_eq!(proxy.gets().len(), 4);
    }
}

/// The bucket behind a proxy that answers everything in this way.
fn always(fault: &Fault) -> (S3Proxy, Bucket) {
    let fault = fault.clone();
    behind(move |_| fault.clone())
}

/// What each of the operations says.
fn errors(bucket: &Bucket) -> Vec<(&'static str, Error)> {
    let facts = ObjectFacts { bytes: 10, etag: "tag".to_owned() };
    let receipt = Receipt { key: "a key".to_owned(), upload_id: "id".to_owned(), ..Receipt::default() };
    vec![
        ("s3:GetObject", bucket.head("a key").unwrap_err()),
        ("s3:GetObject", bucket.heads(&["a key"]).unwrap_err()),
        ("s3:GetObject", bucket.get_whole("a key").unwrap_err()),
        ("s3:GetObject", inside(bucket.reader("a key", &facts).read(&mut [0]).unwrap_err())),
        ("s3:GetObject", bucket.get_all(&["a key"]).unwrap_err()),
        ("s3:ListBucket", bucket.list("a", None).unwrap_err()),
        ("s3:ListBucket", bucket.any("a").unwrap_err()),
        ("s3:PutObject", bucket.put_whole("a key", vec![1]).unwrap_err()),
        ("s3:PutObject", bucket.upload("a key").unwrap_err()),
        ("s3:PutObject", bucket.complete(&receipt).unwrap_err()),
        ("s3:PutObject", bucket.complete_all(std::slice::from_ref(&receipt)).unwrap_err()),
        ("s3:AbortMultipartUpload", bucket.abort("a key", "id").unwrap_err()),
        ("s3:ListBucketMultipartUploads", bucket.list_uploads("a").unwrap_err()),
        ("s3:DeleteObject", bucket.delete(&["a key"]).unwrap_err()),
    ]
}

#[test]
fn a_denial_names_the_action_and_what_it_was_denied_on() {
    let message = "User: arn:aws:iam::111122223333:user/eva is not authorized to perform this action";
    for fault in [Fault::Error(403, "AccessDenied", message), Fault::Bare(403, None)] {
        let (proxy, bucket) = always(&fault);
        for (action, error) in errors(&bucket) {
            let name = bucket.name();
            let on = match action {
                "s3:ListBucket" | "s3:ListBucketMultipartUploads" => format!("on: arn:aws:s3:::{name}\n"),
                "s3:DeleteObject" => format!("on: arn:aws:s3:::{name}"),
                _ => format!("on: arn:aws:s3:::{name}/a key\n"),
            };
            let found = if matches!(fault, Fault::Bare(..)) { "found: HTTP status 403" } else { message };
            says(&error, Kind::Service, &["S3 denies access", &format!("action: {action}\n"), &on, found, &format!("allow {action}")]);
            assert!(!error.to_string().contains("attempts"), "{error}");
        }
        // Nothing is asked twice, but for HEAD, which has no words of its own.
        assert_eq!(proxy.asked().len(), errors(&bucket).len() + 2);
    }
}

#[test]
fn a_denial_by_the_key_of_the_encryption_names_what_the_key_must_allow() {
    let by_the_key = "User: eva is not authorized to perform: kms:Decrypt on the resource associated with this ciphertext";
    let (_proxy, bucket) = always(&Fault::Error(403, "AccessDenied", by_the_key));
    says(&bucket.get_whole("key").unwrap_err(), Kind::Service, &["allow kms:Decrypt on the KMS key too"]);
    says(&bucket.upload("key").unwrap_err(), Kind::Service, &["allow kms:GenerateDataKey and kms:Decrypt on the KMS key too"]);

    let (_proxy, bucket) = always(&Fault::Error(403, "AccessDenied", "Access Denied"));
    says(&bucket.get_whole("key").unwrap_err(), Kind::Service, &["encrypted with a KMS key takes kms:Decrypt on the key too"]);
    let bucket = bucket.encrypted_with("arn:aws:kms:us-east-1:111122223333:key/1");
    let parts = ["encrypted with the KMS key arn:aws:kms:us-east-1:111122223333:key/1, which takes kms:Decrypt too"];
    says(&bucket.get_whole("key").unwrap_err(), Kind::Service, &parts);
}

#[test]
fn a_bucket_in_another_region_is_said_with_the_region_to_name() {
    let malformed = "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'";
    for fault in [
        Fault::Bare(301, Some(("x-amz-bucket-region", "eu-west-1"))),
        Fault::Bare(307, Some(("x-amz-bucket-region", "eu-west-1"))),
        Fault::Bare(400, Some(("x-amz-bucket-region", "eu-west-1"))),
        Fault::Error(400, "AuthorizationHeaderMalformed", malformed),
    ] {
        let (_proxy, bucket) = always(&fault);
        for (action, error) in errors(&bucket) {
            says(&error, Kind::Usage, &["the bucket is in another region", action, "hint: --region eu-west-1", "region us-east-1"]);
        }
    }
    let (_proxy, bucket) = always(&Fault::Error(301, "PermanentRedirect", "Use the right endpoint."));
    for (action, error) in errors(&bucket) {
        says(&error, Kind::Usage, &["the bucket is in another region", action, "--region"]);
    }
}

#[test]
fn credentials_that_s3_does_not_accept_are_said_to_be_the_reason() {
    for (code, part) in [
        ("InvalidAccessKeyId", "S3 does not accept the credentials"),
        ("SignatureDoesNotMatch", "S3 does not accept the credentials"),
        ("ExpiredToken", "the credentials have expired"),
    ] {
        let (_proxy, bucket) = always(&Fault::Error(403, code, "as it says"));
        for (action, error) in errors(&bucket) {
            says(&error, Kind::Service, &[part, action, code]);
        }
    }
}

#[test]
fn a_bucket_that_does_not_exist_is_said_by_every_operation() {
    for server in [ministack(), moto()] {
        let bucket = client(&server.url(), small()).bucket("no-such-bucket");
        for (action, error) in errors(&bucket) {
            // An upload of no bucket may be an upload that does not exist.
            if error.kind() != Kind::Output && action != "s3:AbortMultipartUpload" {
                says(&error, Kind::Usage, &["the bucket does not exist", action, "arn:aws:s3:::no-such-bucket", "NoSuchBucket"]);
            }
        }
    }
}

#[test]
fn an_object_that_does_not_exist_is_none_to_who_asks_and_an_error_to_who_reads() {
    for server in [ministack(), moto()] {
        let bucket = server.bucket();
        assert_eq!(bucket.head("key").unwrap(), None);
        assert_eq!(bucket.get_whole("key").unwrap(), None);
        let facts = ObjectFacts { bytes: 10, etag: "tag".to_owned() };
        let error = inside(bucket.reader("key", &facts).read(&mut [0]).unwrap_err());
        says(&error, Kind::Input, &["the object does not exist", "NoSuchKey"]);
    }
}

/// Says that this process runs one test, with variables of its own.
const ALONE: &str = "DYNAMORPH_TEST_ALONE";

fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Runs a test again in a process of its own, with these variables and no others of AWS.
fn run_alone(test: &str, variables: &[(&str, &str)]) {
    let mut again = Command::new(std::env::current_exe().expect("the tests are a program"));
    again.args(["--exact", &format!("s3::{test}")]).env_clear().env(ALONE, "1").envs(variables.iter().copied());
    again.envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")]);
    let done = again.output().expect("the tests start again");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
fn without_credentials_the_error_says_where_to_set_them() {
    if !is_alone() {
        return run_alone("without_credentials_the_error_says_where_to_set_them", &[]);
    }
    let aws = Aws::connect(&Options { credentials: None, ..options("http://127.0.0.1:1") }).unwrap();
    for (_, error) in errors(&S3::connect(aws).bucket("bucket")) {
        says(&error, Kind::Service, &["no AWS credentials", "AWS_PROFILE"]);
    }
}

#[test]
fn the_address_of_s3_may_come_from_the_environment() {
    if is_alone() {
        let aws = Aws::connect(&Options { s3_endpoint_url: None, ..options("") }).unwrap();
        let bucket = S3::with_limits(aws, small()).bucket(&std::env::var("BUCKET").unwrap());
        assert!(bucket.head("key").unwrap().is_some());
        return;
    }
    let bucket = ministack().bucket();
    bucket.put_whole("key", vec![1]).unwrap();
    let proxy = S3Proxy::start(ministack().address(), |_| Fault::None);
    let (name, url) = (("BUCKET", bucket.name()), proxy.url());
    run_alone("the_address_of_s3_may_come_from_the_environment", &[name, ("AWS_ENDPOINT_URL", &url)]);
    assert_eq!(proxy.asked().len(), 1);
    let nowhere = "http://127.0.0.1:1";
    run_alone("the_address_of_s3_may_come_from_the_environment", &[name, ("AWS_ENDPOINT_URL_S3", &url), ("AWS_ENDPOINT_URL", nowhere)]);
    assert_eq!(proxy.asked().len(), 2);
}

#[test]
fn the_owner_that_was_named_is_sent_with_every_request() {
    let proxy = S3Proxy::start(ministack().address(), |_| Fault::None);
    let aws = Aws::connect(&Options { bucket_owner: Some("111122223333".to_owned()), ..options(&proxy.url()) }).unwrap();
    let bucket = S3::with_limits(aws, small()).bucket(&ministack().create_bucket());
    bucket.put_whole("small", noise(14, 3 * MIB)).unwrap();
    bucket.complete(&upload(&bucket, "large", &noise(15, 9 * MIB))).unwrap();
    bucket.get_whole("small").unwrap();
    bucket.head("missing").unwrap();
    read(&bucket, "large");
    bucket.list("", None).unwrap();
    drop(bucket.upload("key").unwrap());
    eventually(|| proxy.asked().last().is_some_and(|asked| asked.method == Method::DELETE));
    bucket.list_uploads("").unwrap();
    bucket.delete(&["small", "large"]).unwrap();
    let owner = |asked: &Asked| asked.header("x-amz-expected-bucket-owner") == Some("111122223333");
    assert!(proxy.asked().iter().all(owner), "{:#?}", proxy.asked());
}

#[test]
fn the_host_names_the_bucket_only_at_s3s_own_address() {
    let proxy = S3Proxy::start(ministack().address(), |_| Fault::None);
    let bucket = client(&proxy.url(), small()).bucket(&ministack().create_bucket());
    bucket.put_whole("key", vec![1]).unwrap();
    assert!(proxy.asked()[0].path.starts_with(&format!("/{}/key", bucket.name())));

    // The address of S3 alone wins over the one for all services, which is used without it.
    let everything = Options { endpoint_url: Some(proxy.url()), s3_endpoint_url: None, ..options("") };
    let nowhere = Options { endpoint_url: Some("http://127.0.0.1:1".to_owned()), ..options(&proxy.url()) };
    for options in [everything, nowhere] {
        let bucket = S3::with_limits(Aws::connect(&options).unwrap(), small()).bucket(bucket.name());
        assert!(bucket.head("key").unwrap().is_some());
    }
}

#[test]
fn readers_ask_ahead_within_one_allowance_and_none_starves() {
    let proxy = S3Proxy::start(ministack().address(), |_| Fault::None);
    let limits = Limits { read_ahead: 2 * MIB, ..small() };
    let bucket = client(&proxy.url(), limits).bucket(&ministack().create_bucket());
    let bytes = noise(16, 5 * MIB + 3);
    bucket.put_whole("key", bytes.clone()).unwrap();
    let facts = facts(&bucket, "key");
    let mut readers: Vec<_> = (0..4).map(|_| bucket.reader("key", &facts)).collect();
    let mut first = [0; 1];
    for reader in &mut readers {
        reader.read_exact(&mut first).unwrap();
        assert_eq!(first[0], bytes[0]);
    }
    // One part for each reader, and two ahead in all.
    assert!(proxy.gets().len() <= 6, "{}", proxy.gets().len());
    // The first reader holds what was asked ahead, and is left alone meanwhile.
    let idle = readers.remove(0);
    for mut reader in readers {
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest == bytes[1..]);
    }
    drop(idle);
    // What they held is there again for others.
    let mut reader = bucket.reader("key", &facts);
    let before = proxy.gets().len();
    reader.read_exact(&mut first).unwrap();
    eventually(|| proxy.gets().len() == before + 3);
}

#[test]
fn a_reader_that_is_dropped_asks_for_nothing_more() {
    let (proxy, bucket) = behind(|asked| match asked.range() {
        Some((0, _)) | None => Fault::None,
        _ => Fault::Stall(1000),
    });
    bucket.put_whole("key", noise(17, 8 * MIB)).unwrap();
    let mut reader = bucket.reader("key", &facts(&bucket, "key"));
    reader.read_exact(&mut [0; 1]).unwrap();
    eventually(|| proxy.open() == 3);
    drop(reader);
    eventually(|| proxy.open() == 0);
    let asked = proxy.gets().len();
    bucket.list("", None).unwrap();
    assert_eq!(proxy.gets().len(), asked);
}

#[test]
fn several_threads_share_one_client() {
    let bucket = ministack().bucket();
    let bucket = &bucket;
    std::thread::scope(|scope| {
        for at in 0..4 {
            scope.spawn(move || {
                let (key, bytes) = (format!("{at}"), noise(18 + at, 17 * MIB));
                bucket.complete(&upload(bucket, &key, &bytes)).unwrap();
                assert!(read(bucket, &key) == bytes);
            });
        }
    });
}
