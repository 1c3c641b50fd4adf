//! How rows lie in the files where the pipeline or the user says so: sorted, in partitions, in row groups and files of other sizes.

use parquet::file::metadata::RowGroupMetaData;

use super::ahead::{SPREADS, seen, written_ahead};
use super::*;

fn sorted_by(names_of: &[&str]) -> Declared {
    Declared { sort: names(names_of), ..Declared::default() }
}

fn dataset_of(declared: Declared) -> Arc<Targets> {
    let dataset = Dataset { name: "Doc".to_owned(), declared, ..Dataset::default() };
    Arc::new(Targets { datasets: vec![dataset], ..Targets::default() })
}

pub(super) fn row_groups(path: &Path) -> Vec<RowGroupMetaData> {
    SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap().metadata().row_groups().to_vec()
}

/// Writes the items in one chunk, after all were looked at.
fn written_after(dir: &Path, targets: &Arc<Targets>, items: &[Item<'_>], limits: Limits) -> (Vec<String>, Written) {
    let dataset = &targets.datasets[0];
    let mut shape = Shape::of_dataset(dataset);
    for item in items {
        shape.observe(item);
    }
    let sink = sink_for(None, dir, targets).with_limits(limits);
    sink.prepare(Begin::Anew).unwrap();
    let findings = sink.learn(&[shape]).unwrap();
    let mut writer = sink.writer(1).unwrap();
    for chunk in items.chunks(7) {
        writer.write(sink.encoder().encode(&outgoing(&[(0, chunk.to_vec())])).unwrap(), &mut Vec::new()).unwrap();
    }
    let written = writer.finish(&mut Vec::new()).unwrap();
    sink.commit(std::slice::from_ref(&written)).unwrap();
    (findings, written)
}

/// The items of a file as texts of one attribute each, a list a row group.
fn texts_of(path: &Path, attribute: &str) -> Vec<Vec<String>> {
    let file = ParquetFile::open(path).unwrap();
    let group = |group| {
        let mut found = Vec::new();
        file.read(group, &mut |_, item| {
            found.push(item.get(attribute).map_or_else(|| "-".to_owned(), |value| format!("{value:?}")));
            Ok(())
        })
        .unwrap();
        found
    };
    (0..file.row_groups().len()).map(group).collect()
}

#[test]
fn the_rows_of_each_row_group_are_sorted_with_all_their_columns_and_equal_ones_keep_their_order() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let item = |n: usize| {
        let number = |n: usize| Value::N(arena.alloc_str(&n.to_string()));
        let tags = arena.alloc([Value::S(arena.alloc_str(&format!("t{n}")))]);
        let mut attributes = vec![("a", Value::S(["y", "x", ""][n % 3])), ("n", number(n)), ("tags", Value::L(tags))];
        if !n.is_multiple_of(5) {
            attributes.push(("b", number(n * 7 % 4)));
        }
        if n == 30 {
            attributes.push(("m", Value::M(arena.alloc([("k", number(n))]))));
        }
        item(&arena, arena.alloc_slice_copy(&attributes))
    };
    let items: Vec<_> = (0..100).map(item).collect();
    let targets = dataset_of(sorted_by(&["a", "absent", "b", "m", "tags"]));
    let (findings, written) = written_after(dir.path(), &targets, &items, Limits { row_group: 6_000, ..Limits::default() });
    assert_eq!(
        findings,
        [
            "Doc: no item has `absent`, of which something is declared",
            "Doc: rows are not sorted by `m`, since `m` is nested",
            "Doc: rows are not sorted by `tags`, since `tags` is nested"
        ]
    );
    let path = dir.path().join(&written.files[0].path);
    let groups = row_groups(&path);
    assert!((2..20).contains(&groups.len()), "{}", groups.len());
    let mut first = 0;
    let file = ParquetFile::open(&path).unwrap();
    for (at, group) in groups.iter().enumerate() {
        let sorting: Vec<_> = group.sorting_columns().unwrap().iter().map(|column| (column.column_idx, column.descending)).collect();
        assert_eq!(sorting, [(0, false), (1, false)]);
        let rows = usize::try_from(group.num_rows()).unwrap();
        let mut expected: Vec<&Item<'_>> = items[first..first + rows].iter().collect();
        expected.sort_by_key(|item| {
            let text = |name| item.get(name).map(|value| format!("{value:?}"));
            (text("a"), text("b"))
        });
        let expected: Vec<_> = expected.into_iter().map(|item| canonical(item, &Declared::default())).collect();
        let mut found = Vec::new();
        file.read(at, &mut |_, item| {
            found.push(canonical(item, &Declared::default()));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, expected);
        first += rows;
    }
    assert_eq!(first, items.len());
}

#[test]
fn a_mended_file_is_still_sorted_and_one_whose_numbers_become_text_is_written_again() {
    let arena = Arena::new();
    let numbers = |last: &'static str| -> Vec<Item<'_>> {
        ["10", "9", "3", "1", "7", last].map(|number| item(&arena, arena.alloc([("n", Value::N(number))]))).to_vec()
    };
    let targets = dataset_of(sorted_by(&["n"]));
    for (last, again) in [("0.5", false), ("1E-130", true)] {
        for spread in SPREADS {
            let dir = tempfile::tempdir().unwrap();
            let written = written_ahead(dir.path(), None, &targets, &numbers(last), spread, Limits::default());
            let of_several_units = spread.0 * spread.1 < 6;
            assert_eq!(written.is_none(), again && of_several_units, "{last} {spread:?}");
            for file in written.iter().flatten().flat_map(|unit| &unit.files) {
                for texts in texts_of(&dir.path().join(&file.path), "n") {
                    let by_value = ["0.5", "1", "3", "7", "9", "10"];
                    let place =
                        |text: &String| by_value.iter().position(|n| [format!("N(\"{n}\")"), format!("N(\"{n}.0\")")].contains(text));
                    assert!(if again { texts.is_sorted() } else { texts.is_sorted_by_key(place) }, "{texts:?}");
                }
            }
        }
    }
}

#[test]
fn a_dictionary_is_made_where_values_come_again() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let item = |n: u64| {
        let text = |text: String| Value::S(arena.alloc_str(&text));
        let number = |n: u64| Value::N(arena.alloc_str(&n.to_string()));
        // Spread over the whole range of 64 bits, yet the same each time.
        let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1;
        let attributes = [
            ("different", text(format!("id-{mixed}"))),
            ("different_n", number(mixed)),
            ("few", text(format!("user-{}", mixed % 500))),
            ("few_n", number(mixed % 500)),
            ("of_few", text(format!("id-{mixed}"))),
        ];
        item(&arena, arena.alloc_slice_copy(if n.is_multiple_of(3) { &attributes } else { &attributes[..4] }))
    };
    let items: Vec<_> = (0..3000).map(item).collect();
    let targets = dataset_of(Declared::default());
    let (_, written) = written_after(dir.path(), &targets, &items, Limits::default());
    let groups = row_groups(&dir.path().join(&written.files[0].path));
    assert_eq!(groups.len(), 1);
    let with: Vec<_> = groups[0].columns().iter().filter(|column| column.dictionary_page_offset().is_some()).collect();
    let with: Vec<_> = with.iter().map(|column| column.column_path().string()).collect();
    assert_eq!(with, ["few", "few_n", "of_few"], "of the last there are too few to tell");
}

#[test]
fn sizes_and_level_are_as_they_were_asked_for_and_others_are_refused() {
    let arena = Arena::new();
    let items: Vec<_> = (0..2000).map(|n: i32| item(&arena, arena.alloc([("n", Value::N(arena.alloc_str(&n.to_string())))]))).collect();
    let targets = dataset_of(Declared::default());
    let files = |options: FileOptions| {
        let dir = tempfile::tempdir().unwrap();
        let sink = sink_for(None, dir.path(), &targets).with_file_options(options).unwrap();
        sink.prepare(Begin::Anew).unwrap();
        let mut shape = Shape::of_dataset(&targets.datasets[0]);
        for item in &items {
            shape.observe(item);
        }
        sink.learn(&[shape]).unwrap();
        let mut writer = sink.writer(1).unwrap();
        for chunk in items.chunks(100) {
            writer.write(sink.encoder().encode(&outgoing(&[(0, chunk.to_vec())])).unwrap(), &mut Vec::new()).unwrap();
        }
        let written = writer.finish(&mut Vec::new()).unwrap();
        sink.commit(std::slice::from_ref(&written)).unwrap();
        written.files.iter().map(|file| row_groups(&dir.path().join(&file.path)).len()).collect::<Vec<_>>()
    };
    let options = FileOptions::default();
    assert_eq!(files(options), [1]);
    assert_eq!(files(FileOptions { row_group: 1024, ..options }), [20]);
    assert!((2..20).contains(&files(FileOptions { row_group: 1024, file: 1024, zstd_level: 9 }).len()));
    let sink = |options| sink_for(None, Path::new("x"), &targets).with_file_options(options).err().map(|error| error.to_string());
    for (wrong, told) in [
        (FileOptions { row_group: 1000, ..options }, "a Parquet row group cannot have this size"),
        (FileOptions { row_group: (1 << 30) + 1, ..options }, "expected: 1KiB to 1GiB"),
        (FileOptions { file: 1, ..options }, "a Parquet file cannot have this size"),
        (FileOptions { zstd_level: 23, ..options }, "zstd has no such level"),
    ] {
        let found = sink(wrong).unwrap();
        assert!(found.contains(told), "{found}");
    }
}

fn in_partitions(names_of: &[&str]) -> Declared {
    Declared { partition: names(names_of), ..Declared::default() }
}

/// Items with values of every type that names a folder.
fn parted(arena: &Arena) -> Vec<Item<'_>> {
    let states = [
        Some(Value::S("new")),
        Some(Value::S("a/b=c")),
        Some(Value::S("")),
        Some(Value::Null),
        None,
        Some(Value::N("1.50")),
        Some(Value::S("1.5")),
    ];
    let item = |n: usize| {
        let number = Value::N(arena.alloc_str(&n.to_string()));
        let mut attributes =
            vec![("PK", Value::S(arena.alloc_str(&format!("O#{n}")))), ("n", number), ("paid", Value::Bool(n.is_multiple_of(2)))];
        attributes.extend(states[n % states.len()].map(|state| ("state", state)));
        if n == 20 {
            attributes.push(("late", Value::S("x")));
        }
        item(arena, arena.alloc_slice_copy(&attributes))
    };
    (0..28).map(item).collect()
}

#[test]
fn items_lie_in_the_folders_of_their_values_and_each_comes_back_with_them() {
    let arena = Arena::new();
    let items = parted(&arena);
    let declared = Declared {
        nulls: Nulls::All,
        names: BTreeMap::from([("paid".to_owned(), "is_paid".to_owned())]),
        ..in_partitions(&["state", "paid"])
    };
    let targets = dataset_of(declared.clone());
    let in_order = |mut items: Vec<Vec<u8>>| {
        items.sort();
        items
    };
    let expected = in_order(items.iter().map(|item| canonical(item, &declared)).collect());
    let dir = tempfile::tempdir().unwrap();
    let (findings, written) = written_after(dir.path(), &targets, &items, Limits::default());
    assert_eq!(findings, [""; 0]);
    let mut folders: Vec<_> = written.files.iter().map(|file| file.path.parent().unwrap().to_str().unwrap()).collect();
    folders.dedup();
    let default = "__HIVE_DEFAULT_PARTITION__";
    let values = [default, "1.5", "new", "a%2Fb%3Dc"];
    let expected_folders: Vec<_> =
        values.iter().flat_map(|value| ["false", "true"].map(|paid| format!("Doc/state={value}/is_paid={paid}"))).collect();
    assert!(expected_folders.iter().all(|folder| folders.contains(&folder.as_str())), "{folders:#?}");
    // Seven values, each paid and not: those that share a folder have files of their own.
    assert_eq!(written.files.len(), 14);
    let read_all = |dir: &Path, written: &[Written]| {
        let files = written.iter().flat_map(|unit| &unit.files);
        in_order(files.flat_map(|file| ahead::canonical_items(&dir.join(&file.path), &declared)).collect())
    };
    assert_eq!(read_all(dir.path(), std::slice::from_ref(&written)), expected);
    let columns = columns_of(&read(&dir.path().join(&written.files[0].path)));
    assert_eq!(names_of(&columns), ["PK", "late", "n"]);

    let manifest = Manifest::read(&Location::Local(dir.path().to_owned())).unwrap();
    let dataset = &manifest.datasets[0];
    let columns: Vec<_> = dataset.partition.iter().map(|column| (column.name.as_str(), column.attribute.as_str())).collect();
    assert_eq!(columns, [("state", "state"), ("is_paid", "paid")]);
    let of = |state: Option<&str>| dataset.files.iter().filter(|file| file.partition["state"].as_deref() == state).count();
    assert_eq!([of(None), of(Some("a/b=c")), of(Some("1.5"))], [6, 2, 4]);
    assert!(dataset.files.iter().all(|file| matches!(file.partition["is_paid"].as_deref(), Some("true" | "false"))));

    for spread in SPREADS {
        let dir = tempfile::tempdir().unwrap();
        let written = written_ahead(dir.path(), None, &targets, &items, spread, Limits::default()).unwrap();
        assert_eq!(read_all(dir.path(), &written), expected, "{spread:?}");
        for file in written.iter().flat_map(|unit| &unit.files) {
            assert_eq!(names_of(&columns_of(&read(&dir.path().join(&file.path)))), ["PK", "late", "n"]);
        }
    }
}

#[test]
fn columns_are_never_called_like_a_folder_and_a_dataset_of_folders_alone_has_rows() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let items = [item(&arena, &[("State", Value::S("x")), ("state", Value::N("1"))])];
    let (_, written) = written_after(dir.path(), &dataset_of(in_partitions(&["State"])), &items, Limits::default());
    let path = dir.path().join(&written.files[0].path);
    assert_eq!(columns_of(&read(&path)), ["state_: Int64 N = 1"]);
    is_read_back(&path, &items);

    let dir = tempfile::tempdir().unwrap();
    let (_, written) = written_after(dir.path(), &dataset_of(in_partitions(&["State", "state"])), &items, Limits::default());
    assert_eq!(written.files[0].path, Path::new("Doc/State=x/state_=1/part-u00001-0000.parquet"));
    let path = dir.path().join(&written.files[0].path);
    assert_eq!(columns_of(&read(&path)), ["__rest: Utf8 json M = -"]);
    is_read_back(&path, &items);
}

#[test]
fn a_value_that_cannot_name_a_folder_ends_the_run() {
    let arena = Arena::new();
    let long = "x".repeat(300);
    let dir = tempfile::tempdir().unwrap();
    let targets = dataset_of(in_partitions(&["state"]));
    let sink = sink_for(None, dir.path(), &targets);
    let with = |value| item(&arena, arena.alloc([("state", value)]));
    let encode = |item: Item<'_>, told: &[&str]| {
        let items = [item];
        let mut shape = Shape::of_dataset(&targets.datasets[0]);
        shape.observe(&items[0]);
        let refused = sink.encoder().encode_ahead(&outgoing(&[(0, items.to_vec())]), &[seen(shape.clone(), &items)]).unwrap_err();
        assert_eq!(refused.kind(), Kind::Input);
        for told in told.iter().chain(&["attribute: state", "dataset: Doc", "line: 7", "hint: "]) {
            assert!(refused.to_string().contains(told), "{told}\n{refused}");
        }
        sink_for(None, dir.path(), &targets).learn(&[shape])
    };
    let told = encode(with(Value::L(&[Value::S("x")])), &["cannot name one", "type: L"]).unwrap_err().to_string();
    assert!(told.contains("found: 1 L"), "{told}");
    encode(with(Value::S(arena.alloc_str(&long))), &["too long for the name of a folder", "found: 306 bytes"]).unwrap();
}

#[test]
fn few_files_are_open_at_a_time_and_too_many_partitions_are_refused() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = dataset_of(in_partitions(&["n"]));
    let of = |n: usize| item(&arena, arena.alloc([("PK", Value::S("x")), ("n", Value::N(arena.alloc_str(&n.to_string())))]));
    // Twice in a row, and once more when others have been written.
    let numbers = (0..100).flat_map(|n| [n, n]).chain([99, 0]);
    let (_, written) =
        written_after(dir.path(), &targets, &numbers.map(of).collect::<Vec<_>>(), Limits { row_group: 1, ..Limits::default() });
    let files = |n: usize| written.files.iter().filter(|file| file.path.starts_with(format!("Doc/n={n}"))).count();
    assert_eq!((files(0), files(50), files(99)), (2, 1, 1));
    let mut names: Vec<_> = written.files.iter().map(|file| file.path.file_name().unwrap()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 101);

    let sink = sink_for(None, dir.path(), &targets);
    let many: Vec<_> = (0..=partition::MOST).map(of).collect();
    let mut shape = Shape::of_dataset(&targets.datasets[0]);
    for item in &many {
        shape.observe(item);
    }
    sink.learn(&[shape]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let staging = OutputFolder::Local(dir.path().to_owned()).staging().unwrap();
    let mut writer =
        write::ParquetWriter::new(staging, 1, sink.layouts.clone(), Limits { buffered: usize::MAX, ..Limits::default() }, at_once());
    let refused = writer.write(sink.encoder().encode(&outgoing(&[(0, many)])).unwrap(), &mut Vec::new()).unwrap_err();
    assert!(refused.to_string().contains("a dataset has too many partitions"), "{refused}");
}
