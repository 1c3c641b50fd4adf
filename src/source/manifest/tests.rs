//! What is accepted as an export, and what each refusal says.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest, Md5};

use super::*;
use crate::source::manifest::read::{Rebased, rebase};

/// Opens a path, with everything compared.
fn open(path: &Path) -> Result<Export> {
    open_with(path, &Options::default())
}

fn open_with(path: &Path, options: &Options) -> Result<Export> {
    super::open(&Location::Local(path.to_owned()), options)
}

/// Opens what was named for one source.
fn open_all(paths: &[PathBuf]) -> Result<Vec<Export>> {
    super::open_all(&paths.iter().cloned().map(Location::Local).collect::<Vec<_>>(), &Options::default())
}

const ID: &str = "01768385930622-efd1a093";

/// An export in `root` with two data files of 2 and 1 items, its keys below `prefix`.
fn export(root: &Path, prefix: &str) -> PathBuf {
    let folder = root.join("AWSDynamoDB").join(ID);
    fs::create_dir_all(folder.join("data")).unwrap();
    let lines = [("bbb.json.gz", 2), ("aaa.json.gz", 1)].map(|(name, items)| {
        fs::write(folder.join("data").join(name), name).unwrap();
        let md5 = BASE64.encode(Md5::digest(name));
        format!(r#"{{"itemCount":{items},"md5Checksum":"{md5}","etag":"x-1","dataFileS3Key":"{prefix}AWSDynamoDB/{ID}/data/{name}"}}"#)
    });
    let list = lines.join("\n") + "\n";
    write_checked(&folder, "manifest-files", &list);
    let summary = format!(
        r#"{{"version":"2020-06-30","exportArn":"arn:x","tableArn":null,"s3Prefix":null,"manifestFilesS3Key":"{prefix}AWSDynamoDB/{ID}/manifest-files.json","billedSizeBytes":0,"itemCount":3,"outputFormat":"DYNAMODB_JSON","later":{{}}}}"#
    );
    write_checked(&folder, "manifest-summary", &summary);
    folder
}

fn write_checked(folder: &Path, stem: &str, text: &str) {
    fs::write(folder.join(format!("{stem}.json")), text).unwrap();
    fs::write(folder.join(format!("{stem}.md5")), BASE64.encode(Md5::digest(text))).unwrap();
}

/// Replaces text in a manifest and makes its checksum right again.
fn edit(folder: &Path, stem: &str, from: &str, to: &str) {
    let text = fs::read_to_string(folder.join(format!("{stem}.json"))).unwrap();
    assert!(text.contains(from), "{text}");
    write_checked(folder, stem, &text.replace(from, to));
}

/// The error's text, which names each of `parts`.
fn refused(path: &Path, parts: &[&str]) {
    let error = open(path).unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    for part in parts {
        assert!(error.to_string().contains(part), "expected `{part}` in: {error}");
    }
}

#[test]
fn an_export_is_found_by_folder_summary_parent_and_grandparent() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "some/prefix/");
    let by_folder = open(&folder).unwrap();
    let names: Vec<_> = by_folder.files.iter().map(|file| (file.name.as_str(), file.items, file.facts.bytes)).collect();
    assert_eq!(names, [("data/bbb.json.gz", Some(2), 11), ("data/aaa.json.gz", Some(1), 11)]);
    assert_eq!(by_folder.files[0].md5, Some(Md5::digest("bbb.json.gz").into()));
    assert_eq!((by_folder.items, by_folder.checked, by_folder.compressed_bytes()), (Some(3), true, 22));
    assert_eq!(by_folder.summary.as_ref().unwrap().export_arn.as_deref(), Some("arn:x"));
    for path in [folder.join(SUMMARY), temp.path().to_owned(), temp.path().join("AWSDynamoDB")] {
        assert_eq!(open(&path).unwrap(), by_folder);
    }
}

#[test]
fn a_data_file_that_the_manifest_does_not_name_is_not_read() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    fs::write(folder.join("data/stray.json.gz"), "x").unwrap();
    assert_eq!(open(&folder).unwrap().files.len(), 2);
}

#[test]
fn several_exports_in_one_folder_are_named_and_none_is_chosen() {
    let temp = tempfile::tempdir().unwrap();
    export(temp.path(), "");
    fs::create_dir_all(temp.path().join("AWSDynamoDB/01768385930999-00000000/data")).unwrap();
    refused(temp.path(), &["several exports", ID, "01768385930999-00000000 (unfinished)", "name one"]);
}

#[test]
fn an_export_without_summary_is_unfinished() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    fs::remove_file(folder.join(SUMMARY)).unwrap();
    for path in [&folder, temp.path()] {
        refused(path, &["unfinished or failed export: no manifest-summary.json", ID]);
    }
}

#[test]
fn a_path_without_an_export_says_what_was_looked_for() {
    let temp = tempfile::tempdir().unwrap();
    refused(temp.path(), &["no export in this folder", "manifest-summary.json"]);
    refused(&temp.path().join("nowhere"), &["no such file or folder", "nowhere"]);
    let folder = export(temp.path(), "");
    refused(&folder.join("data"), &["data folder of an export", ID]);
    refused(&folder.join(LIST), &["list of an export's data files", SUMMARY]);
}

#[test]
fn an_export_of_unknown_kind_is_refused() {
    for (from, to, parts) in [
        (r#""version":"2020-06-30""#, r#""version":"2023-08-01""#, &["unknown outputView", "found: nothing"][..]),
        (r#""later":{}"#, r#""exportType":"INCREMENTAL_EXPORT","outputView":"NEW_IMAGES""#, &["unknown outputView", "found: NEW_IMAGES"]),
        (r#""later":{}"#, r#""exportType":"PARTIAL""#, &["unknown exportType", "found: PARTIAL"]),
        (
            r#""version":"2020-06-30""#,
            r#""version":"2031-01-01""#,
            &["unknown version", "expected: 2020-06-30 or 2023-08-01", "found: 2031-01-01"],
        ),
        ("DYNAMODB_JSON", "CSV", &["unknown outputFormat", "found: CSV"]),
        (r#""itemCount":3"#, r#""itemCount":"many""#, &["summary of the export cannot be understood"]),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let folder = export(temp.path(), "");
        edit(&folder, "manifest-summary", from, to);
        refused(&folder, parts);
    }
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-summary", r#""later":{}"#, r#""exportType":"FULL_EXPORT""#);
    edit(&folder, "manifest-summary", "DYNAMODB_JSON", "ION");
    assert_eq!(open(&folder).unwrap().files.len(), 2);
}

#[test]
fn a_manifest_that_was_changed_is_refused() {
    for stem in ["manifest-summary", "manifest-files"] {
        let temp = tempfile::tempdir().unwrap();
        let folder = export(temp.path(), "");
        let path = folder.join(format!("{stem}.json"));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text + " ").unwrap();
        refused(&folder, &["not what its checksum says", stem, "expected: md5 ", "found: md5 "]);
    }
}

#[test]
fn a_checksum_may_be_hexadecimal_end_with_a_line_end_have_another_name_or_be_missing() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    let bytes = fs::read(folder.join(SUMMARY)).unwrap();
    let hexadecimal = Md5::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    fs::write(folder.join("manifest-summary.md5"), hexadecimal + "\n").unwrap();
    fs::rename(folder.join("manifest-files.md5"), folder.join("manifest-files.checksum")).unwrap();
    assert!(open(&folder).unwrap().checked);
    fs::remove_file(folder.join("manifest-files.checksum")).unwrap();
    assert!(!open(&folder).unwrap().checked);
    fs::write(folder.join("manifest-summary.md5"), "no checksum").unwrap();
    refused(&folder, &["holds no MD5"]);
}

#[test]
fn every_missing_data_file_is_counted_and_the_first_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "pre/");
    fs::remove_dir_all(folder.join("data")).unwrap();
    let key = format!("missing: pre/AWSDynamoDB/{ID}/data/aaa.json.gz (looked for ");
    refused(&folder, &["copy the export with its whole data folder"]);
    fs::create_dir(folder.join("data")).unwrap();
    fs::write(folder.join("data/bbb.json"), "").unwrap();
    refused(&folder, &["files lie there without .gz, so somebody decompressed them"]);
    fs::remove_file(folder.join("data/bbb.json")).unwrap();
    refused(&folder, &["2 of 2 data files are missing", &key, "bbb.json.gz"]);

    let lines: Vec<_> = (0..8).map(|n| format!(r#"{{"itemCount":0,"dataFileS3Key":"data/{n}.json.gz"}}"#)).collect();
    write_checked(&folder, "manifest-files", &lines.join("\n"));
    refused(&folder, &["8 of 8 data files are missing", "data/4.json.gz", "and 3 more"]);
}

#[test]
fn counts_of_list_and_summary_must_agree() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-summary", r#""itemCount":3"#, r#""itemCount":4"#);
    refused(&folder, &["another number of items", "expected: 4 items", "found: 3 items in 2 data files"]);
}

#[test]
fn the_summary_counts_where_a_line_of_the_list_does_not() {
    for (summary, found, right) in [(r#""itemCount":3"#, 3, true), (r#""itemCount":3"#, 2, false), (r#""itemCount":null"#, 2, true)] {
        let temp = tempfile::tempdir().unwrap();
        let folder = export(temp.path(), "");
        edit(&folder, "manifest-files", r#""itemCount":2,"#, "");
        edit(&folder, "manifest-summary", r#""itemCount":3"#, summary);
        let result = open(&folder).unwrap().expect_items(found);
        assert_eq!(result.is_ok(), right, "{result:?}");
        if let Err(error) = result {
            assert_eq!(error.kind(), Kind::Input);
            for part in ["the export holds another number of items", "arn:x", "expected: 3 items", "found: 2 items in 2 data files"] {
                assert!(error.to_string().contains(part), "expected `{part}` in: {error}");
            }
        }
    }
    // Without a number in the summary the list's hold.
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-summary", r#""itemCount":3,"#, "");
    let export = open(&folder).unwrap();
    assert!(export.expect_items(3).is_ok() && export.expect_items(4).is_err());
}

#[test]
fn counts_that_no_number_holds_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-files", r#""itemCount":2,"#, r#""itemCount":18446744073709551615,"#);
    refused(&folder, &["more than 64 bits hold", LIST]);
}

#[test]
fn a_folder_or_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let replace_by_folder: fn(&Path) = |path| fs::create_dir(path).unwrap();
    let replace_by_pipe: fn(&Path) = |path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let replacements: &[fn(&Path)] = if cfg!(unix) { &[replace_by_folder, replace_by_pipe] } else { &[replace_by_folder] };
    for replace in replacements {
        let temp = tempfile::tempdir().unwrap();
        let folder = export(temp.path(), "");
        let list = folder.join(LIST);
        let data = folder.join("data/aaa.json.gz");
        fs::remove_file(&data).unwrap();
        replace(&data);
        refused(&folder, &["a data file is no regular file", "aaa.json.gz", "line: 2"]);
        let error = open_all(&[data, folder.join("data/bbb.json.gz")]).unwrap_err();
        // A folder may be an export.
        let told = ["a data file is no regular file", "an export was named together with data files"]
            .iter()
            .any(|told| error.message().contains(told));
        assert!(error.kind() == Kind::Input && told, "{error}");
        fs::remove_file(&list).unwrap();
        replace(&list);
        refused(&folder, &["a manifest is no regular file", LIST]);
    }
}

#[test]
fn a_byte_order_mark_before_a_manifest_is_no_part_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    let plain = open(&folder).unwrap();
    for stem in ["manifest-summary", "manifest-files"] {
        edit(&folder, stem, "{\"", "\u{feff}{\"");
    }
    refused(&folder, &["cannot be understood", "line: 2"]);
    edit(&folder, "manifest-files", "\n\u{feff}", "\n");
    assert_eq!(open(&folder).unwrap(), plain);
}

#[test]
fn a_data_file_that_is_listed_twice_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-files", "bbb.json.gz", "aaa.json.gz");
    refused(&folder, &["names a data file twice", "line: 2"]);
}

#[test]
fn a_data_file_that_two_keys_lead_to_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-files", &format!("AWSDynamoDB/{ID}/data/bbb.json.gz"), "AWSDynamoDB/data/aaa.json.gz");
    refused(&folder, &["names a data file twice, by two keys", "line: 2"]);
}

#[test]
fn a_broken_line_of_the_list_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-files", r#"{"itemCount":1,"#, r#"{"itemCount":-1,"#);
    refused(&folder, &["cannot be understood", "line: 2"]);
}

#[test]
fn a_key_is_rebased_to_the_copy() {
    for (key, expected) in [
        ("AWSDynamoDB/0123-abc/data/x.json.gz", Some("data/x.json.gz")),
        ("a/AWSDynamoDB/b/AWSDynamoDB/0123-abc/data/x.json.gz", Some("data/x.json.gz")),
        ("/a//AWSDynamoDB/0123-abc//data/x.json.gz", Some("data/x.json.gz")),
        ("elsewhere/data/x.json.gz", Some("data/x.json.gz")),
        ("data/x.json.gz", Some("data/x.json.gz")),
        ("x.json.gz", Some("x.json.gz")),
        ("AWSDynamoDB/0123-abc/data/../../x", None),
        ("..", None),
        ("data/..\\x", None),
        ("AWSDynamoDB/data/../x", None),
        ("AWSDynamoDB/0123-abc", Some("AWSDynamoDB/0123-abc")),
        ("", None),
        ("/", None),
    ] {
        assert_eq!(rebase(key), expected.map(|name| Rebased::Own(name.to_owned())), "{key}");
    }
}

#[test]
fn a_key_that_leads_out_of_the_export_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    edit(&folder, "manifest-files", "data/aaa.json.gz", "data/../../../aaa.json.gz");
    refused(&folder, &["leads out of the export", "line: 2"]);
}

#[test]
fn data_files_can_be_named_one_by_one() {
    let temp = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = ["b.json.gz", "a.jsonl"].iter().map(|name| temp.path().join(name)).collect();
    for path in &paths {
        fs::write(path, "x").unwrap();
    }
    let export = open_all(&paths).unwrap().remove(0);
    let found: Vec<_> = export.files.iter().map(|file| file.location.local().unwrap()).collect();
    assert_eq!(found, paths.iter().collect::<Vec<_>>());
    assert_eq!((export.items, export.summary, export.checked), (None, None, false));
    assert_eq!(open(&paths[0]).unwrap().files.len(), 1);

    let twice = [paths[0].clone(), temp.path().join("./b.json.gz")];
    assert!(open_all(&twice).unwrap_err().message().contains("named twice"));
}

#[test]
fn an_export_is_named_alone() {
    let temp = tempfile::tempdir().unwrap();
    let folder = self::export(temp.path(), "");
    let bare = temp.path().join("a.json");
    fs::write(&bare, "x").unwrap();
    for export in [folder.clone(), folder.join(SUMMARY)] {
        assert!(open_all(&[bare.clone(), export]).unwrap_err().message().contains("together with data files"));
    }
    let error = open_all(&[folder.clone(), folder]).unwrap_err();
    assert!(error.message().contains("full export was named together with another export"), "{error}");
    assert!(open_all(&[]).unwrap_err().message().contains("no export"));
}

/// An incremental export of the window beside others in `root`, with one data file in the folder that all share.
fn window(root: &Path, id: &str, from: &str, to: &str, table_id: &str) -> PathBuf {
    let all = root.join("AWSDynamoDB");
    let folder = all.join(id);
    fs::create_dir_all(all.join("data")).unwrap();
    fs::create_dir_all(&folder).unwrap();
    let name = format!("{id}.json.gz");
    fs::write(all.join("data").join(&name), &name).unwrap();
    write_checked(&folder, "manifest-files", &format!("{{\"itemCount\":1,\"dataFileS3Key\":\"p/AWSDynamoDB/data/{name}\"}}\n"));
    let summary = format!(
        r#"{{"version":"2023-08-01","exportArn":"arn:{id}","tableArn":"arn:t","tableId":"{table_id}","exportFromTime":"{from}","exportToTime":"{to}","manifestFilesS3Key":"p/AWSDynamoDB/{id}/manifest-files.json","itemCount":1,"outputFormat":"DYNAMODB_JSON","outputView":"NEW_IMAGE","exportType":"INCREMENTAL_EXPORT"}}"#
    );
    write_checked(&folder, "manifest-summary", &summary);
    folder
}

#[test]
fn an_incremental_export_has_its_data_beside_its_folder_and_only_what_its_manifest_names() {
    let temp = tempfile::tempdir().unwrap();
    let first = window(temp.path(), "01-a", "2026-01-14T10:20:00.000Z", "2026-01-14T10:35:00.000Z", "t1");
    window(temp.path(), "02-b", "2026-01-14T10:35:00.000Z", "2026-01-14T10:50:00.000Z", "t1");
    let export = open(&first).unwrap();
    assert_eq!(export.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["data/01-a.json.gz"]);
    let window =
        Window { from: Some("2026-01-14T10:20:00.000Z".to_owned()), to: Some("2026-01-14T10:35:00.000Z".to_owned()), view: View::New };
    assert_eq!(export.window(), Some(&window));
    refused(&temp.path().join("AWSDynamoDB/data"), &["data folder that all incremental exports share"]);
    refused(
        temp.path(),
        &[
            "several exports",
            "01-a (incremental export of table arn:t from 2026-01-14T10:20:00.000Z until before 2026-01-14T10:35:00.000Z), 02-b (",
            "--export",
        ],
    );

    // A copy may hold its data in its own folder.
    let own = first.join("data");
    fs::create_dir(&own).unwrap();
    fs::rename(temp.path().join("AWSDynamoDB/data/01-a.json.gz"), own.join("01-a.json.gz")).unwrap();
    assert_eq!(open(&first).unwrap().files[0].location, Location::Local(own.join("01-a.json.gz")));
    fs::remove_file(own.join("01-a.json.gz")).unwrap();
    refused(&first, &["1 of 1 data files are missing", "p/AWSDynamoDB/data/01-a.json.gz"]);
}

#[test]
fn windows_of_one_table_must_follow_each_other() {
    let temp = tempfile::tempdir().unwrap();
    let at = |minute: u32| format!("2026-01-14T10:{minute}:00.000Z");
    let first = window(temp.path(), "01-a", &at(20), &at(35), "t1");
    let second = window(temp.path(), "02-b", &at(35), &at(50), "t1");
    // In whatever order they are named.
    let exports = open_all(&[second.clone(), first.clone()]).unwrap();
    assert_eq!(exports.iter().map(|export| export.files[0].name.as_str()).collect::<Vec<_>>(), ["data/01-a.json.gz", "data/02-b.json.gz"]);
    for (id, from, to, table, parts) in [
        ("03-c", 51, 59, "t1", ["leave a gap", "which ends: 2026-01-14T10:50:00.000Z", "which starts: 2026-01-14T10:51:00.000Z"]),
        ("03-c", 45, 59, "t1", ["overlap", "arn:02-b", "arn:03-c"]),
        ("03-c", 50, 59, "t2", ["the table was made anew in between", "arn:t (t1)", "arn:t (t2)"]),
    ] {
        let third = window(temp.path(), id, &at(from), &at(to), table);
        let error = open_all(&[first.clone(), second.clone(), third]).unwrap_err();
        for part in parts {
            assert!(error.to_string().contains(part), "expected `{part}` in: {error}");
        }
    }
    // A summary without the table's id says nothing of it, but its neighbours do.
    let without = window(temp.path(), "03-c", &at(50), &at(55), "gone");
    let summary = fs::read_to_string(without.join(SUMMARY)).unwrap().replace(r#""tableId":"gone","#, "");
    write_checked(&without, "manifest-summary", &summary);
    let exports = open_all(&[first.clone(), second.clone(), without.clone()]).unwrap();
    assert!(exports[2].notes.iter().any(|note| note.contains("no tableId") && note.ends_with("arn:02-b and arn:03-c")), "{exports:?}");
    let anew = window(temp.path(), "04-d", &at(55), &at(59), "t2");
    let error = open_all(&[first.clone(), second.clone(), without, anew]).unwrap_err();
    assert!(error.to_string().contains("made anew"), "{error}");
    for (id, from, to) in [("04-d", at(50), at(50)), ("05-e", "soon".to_owned(), at(59)), ("06-f", at(59), at(50))] {
        let odd = window(temp.path(), id, &from, &to, "t1");
        let error = open_all(&[first.clone(), second.clone(), odd]).unwrap_err();
        assert!(error.to_string().contains("does not say its window") && error.to_string().contains(&format!("arn:{id}")), "{error}");
    }
    // The same moment written in another way.
    let third = window(temp.path(), "07-g", "2026-01-14T10:50:00Z", &at(59), "t1");
    assert_eq!(open_all(&[first.clone(), second, third]).unwrap().len(), 3);
    // Named twice, a window overlaps with itself.
    assert!(open_all(&[first.clone(), first]).unwrap_err().message().contains("overlap"));
}

#[test]
fn one_of_several_exports_is_chosen() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    let all = temp.path().join("AWSDynamoDB");
    let (list, summary) = (fs::read_to_string(folder.join(LIST)).unwrap(), fs::read_to_string(folder.join(SUMMARY)).unwrap());
    for (id, time) in [(ID, "2026-01-14T10:18:50.622Z"), ("01768385930999-00000000", "2026-01-10T00:00:00.000Z")] {
        let copy = all.join(id);
        fs::create_dir_all(copy.join("data")).unwrap();
        for name in ["aaa.json.gz", "bbb.json.gz"] {
            fs::write(copy.join("data").join(name), name).unwrap();
        }
        write_checked(&copy, "manifest-files", &list);
        let summary = summary.replace(r#""later":{}"#, &format!(r#""exportTime":"{time}""#)).replace("arn:x", &format!("arn:{id}"));
        write_checked(&copy, "manifest-summary", &summary);
    }
    window(temp.path(), "01768385930999-11111111", "2026-02-01T00:00:00.000Z", "2026-02-01T01:00:00.000Z", "t1");
    fs::create_dir_all(all.join("01768385939999-00000000/data")).unwrap();
    let chosen = |choice: &str| {
        let export = open_with(temp.path(), &Options { choice: Some(choice.parse().unwrap()), ..Options::default() })?;
        Ok::<_, Error>((export.summary.unwrap().export_arn.unwrap(), export.notes))
    };
    let unfinished = format!("{} is unfinished or failed, and passed over", all.join("01768385939999-00000000").display());
    // The full export, although a window ends later.
    assert_eq!(chosen("latest").unwrap(), (format!("arn:{ID}"), vec![unfinished]));
    assert_eq!(chosen("as-of 2026-01-12").unwrap().0, "arn:01768385930999-00000000");
    assert_eq!(chosen("as-of=2026-01-14T10:18:50.622Z").unwrap().0, format!("arn:{ID}"));
    assert_eq!(chosen("01768385930999-11111111").unwrap().0, "arn:01768385930999-11111111");
    for (choice, part) in [
        ("as-of 2025-01-01", "there is no such export"),
        ("0-nothing", "there is no export of this id"),
        ("01768385939999-00000000", "unfinished or failed export"),
    ] {
        let error = chosen(choice).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(
        "as-of 2024-02-29T23:59:59.999Z".parse::<Choice>().map(|choice| choice.to_string()).unwrap(),
        "as-of 2024-02-29T23:59:59.999Z"
    );
    assert!("as-of 2000-02-29".parse::<Choice>().is_ok());
    for wrong in [
        "as-of soon",
        "as-of",
        "",
        "a/b",
        "as-of 2026-1-1",
        "as-of 2026-13-01",
        "as-of 2026-02-31",
        "as-of 2026-02-29",
        "as-of 1900-02-29",
        "as-of 2026-04-31",
        "as-of 0000-00-00",
        "as-of 2026-01-00",
        "as-of 2026-01-01T99:99:99",
        "as-of 2026-01-01T24:00",
        "as-of 2026-01-01T23:60",
        "as-of 2026-01-01T23:59:60Z",
    ] {
        assert!(wrong.parse::<Choice>().is_err(), "{wrong}");
    }
    let error = open_with(&folder.join(SUMMARY), &Options { choice: Some(Choice::Latest), ..Options::default() }).unwrap_err();
    assert!(error.message().contains("a file is named"), "{error}");
}

#[test]
fn exports_of_several_tables_are_not_chosen_from() {
    let temp = tempfile::tempdir().unwrap();
    window(temp.path(), "01-a", "2026-01-14T10:20:00.000Z", "2026-01-14T10:35:00.000Z", "t1");
    let other = window(temp.path(), "02-b", "2026-01-14T10:35:00.000Z", "2026-01-14T10:50:00.000Z", "t1");
    let latest = Options { choice: Some(Choice::Latest), ..Options::default() };
    assert_eq!(open_with(temp.path(), &latest).unwrap().files[0].name, "data/02-b.json.gz");
    edit(&other, "manifest-summary", "arn:t", "arn:u");
    let error = open_with(temp.path(), &latest).unwrap_err();
    assert!(
        error.to_string().contains("of several tables")
            && error.to_string().contains("incremental export of table arn:u from 2026-01-14T10:35:00.000Z"),
        "{error}"
    );
}

#[test]
fn how_much_is_compared_can_be_chosen() {
    let temp = tempfile::tempdir().unwrap();
    let folder = export(temp.path(), "");
    let text = fs::read_to_string(folder.join(SUMMARY)).unwrap();
    fs::write(folder.join(SUMMARY), text.replace("arn:x", "arn:redacted")).unwrap();
    refused(&folder, &["not what its checksum says", "--verify data"]);
    let data = open_with(&folder, &Options { verify: Verify::Data, ..Options::default() }).unwrap();
    assert_eq!(data.notes, [format!("{} is not what its checksum says; it was changed or damaged", folder.join(SUMMARY).display())]);
    assert!(!data.checked && data.files[0].md5.is_some() && data.items == Some(3));

    edit(&folder, "manifest-summary", r#""itemCount":3"#, r#""itemCount":4"#);
    fs::write(folder.join("manifest-files.md5"), "no checksum").unwrap();
    let off = open_with(&folder, &Options { verify: Verify::Off, ..Options::default() }).unwrap();
    assert_eq!((off.items, off.checked, off.notes.len()), (None, false, 0));
    assert!(off.files.iter().all(|file| file.md5.is_none() && file.items.is_none()));
}
