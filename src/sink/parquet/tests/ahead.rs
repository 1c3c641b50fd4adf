//! Runs that write before all items were looked at: the files at the end are those of one schema, and hold the same.

use super::*;

/// How items are spread: items in a chunk, chunks in a unit.
pub(super) const SPREADS: [(usize, usize); 4] = [(1, 1), (1, 1000), (2, 2), (1000, 1)];

fn shape_of(dataset: &Dataset, items: &[Item<'_>]) -> Shape {
    let mut shape = Shape::of_dataset(dataset);
    for item in items {
        shape.observe(item);
        shape.compare(item, &dataset.declared);
    }
    shape
}

fn never_stops() -> GoOn {
    Arc::new(|| Ok(()))
}

/// What is known of the items of a chunk.
pub(super) fn seen<'i, 'a>(shape: Shape, items: &'i [Item<'a>]) -> Seen<'i, 'a> {
    Seen { dataset: DatasetId(0), shape: Arc::new(shape), values: ByAttribute::of(items) }
}

/// Writes the items ahead and settles; `None`: they must be written again.
pub(super) fn written_ahead(
    dir: &Path,
    dialect: Option<Dialect>,
    targets: &Arc<Targets>,
    items: &[Item<'_>],
    (in_chunk, in_unit): (usize, usize),
    limits: Limits,
) -> Option<Vec<Written>> {
    let dataset = &targets.datasets[0];
    let sink = sink_for(dialect, dir, targets).with_limits(limits);
    sink.prepare(Begin::Anew).unwrap();
    let mut written = Vec::new();
    for (unit, items) in (1..).zip(items.chunks(in_chunk.saturating_mul(in_unit))) {
        let mut writer = sink.writer(unit).unwrap();
        for chunk in items.chunks(in_chunk) {
            let seen = [seen(shape_of(dataset, chunk), chunk)];
            let payload = sink.encoder().encode_ahead(&outgoing(&[(0, chunk.to_vec())]), &seen).unwrap();
            writer.write(payload, &mut Vec::new()).unwrap();
        }
        written.push(writer.finish(&mut Vec::new()).unwrap());
    }
    let written = sink.settle(&[shape_of(dataset, items)], written, &never_stops()).unwrap().written?;
    for file in written.iter().flat_map(|unit| &unit.files) {
        let staged = dir.join(crate::store::UNFINISHED).join(&file.path);
        assert_eq!(std::fs::metadata(&staged).unwrap().len(), file.bytes);
    }
    assert_eq!(
        written.iter().map(|unit| unit.bytes).sum::<u64>(),
        written.iter().flat_map(|unit| &unit.files).map(|file| file.bytes).sum::<u64>()
    );
    sink.commit(&written).unwrap();
    Some(written)
}

/// However the items are spread over chunks and units, they become these columns.
pub(super) fn is_settled_as(dialect: Option<Dialect>, targets: &Arc<Targets>, items: &[Item<'_>], columns: &[String]) {
    let shape = shape_of(&targets.datasets[0], items);
    let rest = columns.iter().any(|column| column.starts_with("__rest"));
    let exact = !shape.attributes().values().any(|values| values.has_null_fields() || rest && values.count(crate::model::Type::Null) > 0);
    // Wide ones take long.
    for spread in SPREADS.into_iter().take(if columns.len() > 500 { 2 } else { SPREADS.len() }) {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { row_group: 1, ..Limits::default() };
        let Some(written) = written_ahead(dir.path(), dialect, targets, items, spread, limits) else {
            assert!(!exact, "{spread:?}");
            continue;
        };
        let mut batches = Vec::new();
        let mut found = Vec::new();
        for file in written.iter().flat_map(|unit| &unit.files) {
            let path = dir.path().join(&file.path);
            batches.extend(read(&path));
            found.extend(canonical_items(&path, &targets.datasets[0].declared));
        }
        let expected: Vec<_> = items.iter().map(|item| canonical(item, &targets.datasets[0].declared)).collect();
        assert_eq!(found, expected, "{spread:?}");
        let schema = batches[0].schema();
        assert!(batches.iter().all(|batch| batch.schema() == schema), "{spread:?}");
        assert_eq!(columns_of(&batches), columns, "{spread:?}");
    }
}

/// The items of a file.
pub(super) fn canonical_items(path: &Path, declared: &Declared) -> Vec<Vec<u8>> {
    let file = ParquetFile::open(path).unwrap();
    let mut found = Vec::new();
    for group in 0..file.row_groups().len() {
        file.read(group, &mut |_, item| {
            found.push(canonical(item, declared));
            Ok(())
        })
        .unwrap();
    }
    found
}

proptest! {
    // Each case writes some twenty files.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_items_are_written_ahead_are_those_of_two_passes(attributes in proptest::collection::vec(items(), 1..12)) {
        let arena = Arena::new();
        let dir = tempfile::tempdir().unwrap();
        let items: Vec<Item<'_>> = attributes.iter().map(|attributes| generate::item(attributes, &arena)).collect();
        let targets = targets(&[("Doc", &["PK"])]);
        let dataset = &targets.datasets[0];
        let schema = Layout::of(dataset, &shape_of(dataset, &items), None).schema;
        let expected: Vec<_> = items.iter().map(|item| canonical(item, &dataset.declared)).collect();
        let each = Limits { row_group: 1, ..Limits::default() };
        let pieces = Limits { piece: 1, ..Limits::default() };
        for (spread, limits) in SPREADS.into_iter().flat_map(|spread| [(spread, each), (spread, pieces)]) {
            let dir = dir.path().join(format!("{spread:?}{}", limits.piece));
            let Some(written) = written_ahead(&dir, None, &targets, &items, spread, limits) else { continue };
            let files: Vec<_> = written.iter().flat_map(|unit| &unit.files).map(|file| dir.join(&file.path)).collect();
            let found: Vec<_> = files.iter().flat_map(|path| canonical_items(path, &dataset.declared)).collect();
            prop_assert_eq!(&found, &expected);
            for path in &files {
                let found = read(path)[0].schema();
                prop_assert_eq!(found.fields(), schema.fields());
            }
        }
    }
}

/// Writes each item in a unit of its own.
fn units_of(sink: &dyn Fn() -> ParquetSink, dataset: &Dataset, items: &[Item<'_>]) -> Vec<Written> {
    let unit = |(unit, item)| {
        let first = sink();
        let mut writer = first.writer(unit).unwrap();
        let chunk = std::slice::from_ref(item);
        let seen = [seen(shape_of(dataset, chunk), chunk)];
        writer.write(first.encoder().encode_ahead(&outgoing(&[(0, chunk.to_vec())]), &seen).unwrap(), &mut Vec::new()).unwrap();
        writer.finish(&mut Vec::new()).unwrap()
    };
    (1..).zip(items).map(unit).collect()
}

#[test]
fn a_settlement_that_is_asked_to_stop_begins_no_further_file_and_the_same_call_finishes_it() {
    let arena = Arena::new();
    let targets = targets(&[("Doc", &[])]);
    let wide = item(&arena, &[("a", Value::N("1.5")), ("b", Value::S("x"))]);
    let items: Vec<_> = std::iter::repeat_n(item(&arena, &[("a", Value::N("1"))]), 3).chain([wide]).collect();
    let shape = [shape_of(&targets.datasets[0], &items)];
    let mut ends = Vec::new();
    for asked_after in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let sink = || ParquetSink::new(dir.path().to_owned(), false, targets.clone(), at_once());
        sink().prepare(Begin::Anew).unwrap();
        let written = units_of(&sink, &targets.datasets[0], &items);
        let left = std::sync::atomic::AtomicI32::new(asked_after);
        let go_on: GoOn = Arc::new(move || match left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) {
            1.. => Ok(()),
            _ => Err(Error::new(Kind::Interrupted, "stopped as asked")),
        });
        let ended = sink().settle(&shape, written.clone(), &go_on);
        // What is staged is what was written, or what it was mended to; a run that goes on takes both.
        sink().check(&written, Look::Content, false).unwrap();
        let staged = |at: usize| dir.path().join(crate::store::UNFINISHED).join(&written[at].files[0].path);
        let mended = (0..3).filter(|at| std::fs::metadata(staged(*at)).unwrap().len() != written[*at].files[0].bytes).count();
        let settled = sink().settle(&shape, written.clone(), &never_stops()).unwrap().written.unwrap();
        sink().check(&settled, Look::Content, false).unwrap();
        let mut bytes = std::fs::read(staged(0)).unwrap();
        bytes[6] ^= 1;
        std::fs::write(staged(0), bytes).unwrap();
        for written in [&written, &settled] {
            sink().check(written, Look::Size, false).unwrap();
            let error = sink().check(written, Look::Content, false).unwrap_err();
            assert_eq!(error.message(), "an output file does not hold what was written");
        }
        match ended {
            Err(error) => assert_eq!(error.kind(), Kind::Interrupted),
            Ok(ended) => {
                assert_eq!(ended.written.unwrap(), settled);
                break;
            }
        }
        ends.push(mended);
    }
    // Three are opened, then each is asked about at its begin and at its row group.
    assert_eq!(ends, [0, 0, 0, 0, 0, 1, 1, 2, 2]);
}

#[test]
fn what_is_settled_already_is_not_touched_again() {
    let arena = Arena::new();
    let dir = tempfile::tempdir().unwrap();
    let targets = targets(&[("Doc", &[])]);
    let sink = || ParquetSink::new(dir.path().to_owned(), false, targets.clone(), at_once());
    sink().prepare(Begin::Anew).unwrap();
    let items = [item(&arena, &[("a", Value::N("1"))]), item(&arena, &[("a", Value::N("1.5")), ("b", Value::S("x"))])];
    let written = units_of(&sink, &targets.datasets[0], &items);
    let shape = shape_of(&targets.datasets[0], &items);
    let settled = sink().settle(std::slice::from_ref(&shape), written.clone(), &never_stops()).unwrap().written.unwrap();
    assert_ne!(settled[0].files[0].schema, written[0].files[0].schema);
    assert_eq!(settled[1], written[1]);
    // A run that was killed before it had kept the new reports finds the file mended, with the same bytes.
    assert_eq!(sink().settle(std::slice::from_ref(&shape), written.clone(), &never_stops()).unwrap().written.unwrap(), settled);
    let staged = dir.path().join(crate::store::UNFINISHED).join("Doc/part-u00001-0000.parquet");
    std::fs::remove_file(staged).unwrap();
    assert_eq!(sink().settle(&[shape], settled.clone(), &never_stops()).unwrap().written.unwrap(), settled);
}

#[test]
fn a_struct_with_nulls_that_must_become_text_is_written_again() {
    let arena = Arena::new();
    let many: Vec<(&str, Value<'_>)> =
        (0..70).map(|n| (&*arena.alloc_str(&format!("k{n}")), Value::L(&[Value::N("1"), Value::S("1")]))).collect();
    let wide = item(&arena, arena.alloc([("m", Value::M(&many))]));
    let targets = targets(&[("Doc", &[])]);
    for (inside, again) in [(Value::Null, true), (Value::N("1"), false)] {
        let narrow = item(&arena, arena.alloc([("m", Value::M(arena.alloc([("k0", inside)])))]));
        for spread in [(1, 1), (1, 1000)] {
            let dir = tempfile::tempdir().unwrap();
            let written = written_ahead(dir.path(), None, &targets, &[narrow.clone(), wide.clone()], spread, Limits::default());
            assert_eq!(written.is_none(), again, "{spread:?}");
        }
    }
}
