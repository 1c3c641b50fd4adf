//! Row groups that are encoded in pieces, ahead of their last rows.

use parquet::file::metadata::RowGroupMetaData;

use super::ahead::{canonical_items, written_ahead};
use super::laid_out::row_groups;
use super::*;

/// Everything in one row group: in pieces as small as may be, or as a whole.
const PIECES: Limits =
    Limits { row_group: usize::MAX, buffered: usize::MAX, piece: 1, encoder: 100, file: usize::MAX, in_flight: 1, job: 1 };
const WHOLE: Limits = Limits { piece: usize::MAX, ..PIECES };

/// What the runs staged, in the order in which it was written.
fn files(dir: &Path, written: &[Written]) -> Vec<PathBuf> {
    written.iter().flat_map(|unit| &unit.files).map(|file| dir.join(&file.path)).collect()
}

#[test]
fn a_row_group_in_pieces_is_one_with_all_its_rows_and_what_is_known_of_them() {
    let arena = Arena::new();
    let targets = targets(&[("Doc", &["PK"])]);
    let text = |text: String| -> &str { arena.alloc_str(&text) };
    let items: Vec<_> = (0..6000)
        .map(|n| {
            let tags = arena.alloc([S("x"), S(text(format!("t{}", n % 7)))]);
            let mut attributes = vec![("PK", S(text(format!("P#{n:04}")))), ("n", N(text((n * 37 % 6000).to_string())))];
            attributes.extend((n % 3 == 0).then_some(("tags", Value::L(tags))));
            // Nulls at the start, and over whole pieces.
            attributes.extend((n > 4000).then_some(("late", S("there"))));
            item(&arena, arena.alloc_slice_copy(&attributes))
        })
        .collect();
    let all_at_once = items.len();
    let mut found = Vec::new();
    // Of too few rows at the start it is not known that keys are hardly ever equal.
    let pieces = Limits { piece: 80_000, ..PIECES };
    for (limits, in_chunk, knows_keys) in
        [(WHOLE, 300, true), (pieces, 300, true), (PIECES, 70, false), (PIECES, 300, false), (PIECES, all_at_once, false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let chunks: Chunks<'_> = items.chunks(in_chunk).map(|items| vec![(0, items.to_vec())]).collect();
        let written = run(dir.path(), &targets, &chunks, limits, at_once());
        let paths = files(dir.path(), std::slice::from_ref(&written));
        let [path] = &paths[..] else { panic!("{paths:?}") };
        let groups = row_groups(path);
        assert_eq!(groups.len(), 1);
        let filter = groups[0].column(0).bloom_filter_length();
        assert_eq!(filter.is_some_and(|bytes| bytes < 16 << 10), knows_keys, "{filter:?}");
        let statistics: Vec<_> = groups[0].columns().iter().map(|column| (column.num_values(), column.statistics().cloned())).collect();
        found.push((canonical_items(path, &Declared::default()), statistics));
    }
    assert_eq!(found[0].0.len(), 6000);
    assert!(found.iter().all(|other| *other == found[0]));
}

#[test]
fn columns_that_change_end_the_row_group_that_was_begun() {
    let arena = Arena::new();
    let targets = targets(&[("Doc", &[])]);
    let numbered = |n: usize| ("n", N(arena.alloc_str(&n.to_string())));
    let items: Vec<_> = (0..90)
        .map(|n| match n {
            0..30 => item(&arena, arena.alloc([numbered(n)])),
            30..60 => item(&arena, arena.alloc([numbered(n), ("more", S("x"))])),
            _ => item(&arena, arena.alloc([("n", N("1.5")), ("more", S("x"))])),
        })
        .collect();
    let expected: Vec<_> = items.iter().map(|item| canonical(item, &Declared::default())).collect();
    for (limits, groups) in [(WHOLE, vec![90]), (PIECES, vec![30, 30, 30])] {
        let dir = tempfile::tempdir().unwrap();
        let written = written_ahead(dir.path(), None, &targets, &items, (10, 1000), limits).unwrap();
        let paths = files(dir.path(), &written);
        assert_eq!(paths.iter().flat_map(|path| canonical_items(path, &Declared::default())).collect::<Vec<_>>(), expected);
        assert_eq!(paths.iter().flat_map(|path| row_groups(path)).map(|group| group.num_rows()).collect::<Vec<_>>(), groups);
    }
}

#[test]
fn what_encoders_take_is_counted_and_the_largest_row_group_makes_room() {
    let arena = Arena::new();
    let targets = targets(&[("A", &[]), ("B", &[]), ("C", &[])]);
    let one = |n: usize| vec![item(&arena, arena.alloc([("n", N(arena.alloc_str(&n.to_string())))]))];
    let chunks: Chunks<'_> = (0..60).map(|n| vec![(u32::try_from(n % 3).unwrap(), one(n))]).collect();
    // There is room for the encoders of two.
    for (encoder, row_groups_in_all) in [(100, 3), (1 << 20, 60)] {
        let dir = tempfile::tempdir().unwrap();
        let written = run(dir.path(), &targets, &chunks, Limits { buffered: 1 << 20, encoder, ..PIECES }, at_once());
        let groups: Vec<_> = files(dir.path(), std::slice::from_ref(&written)).iter().flat_map(|path| row_groups(path)).collect();
        assert_eq!(groups.len(), row_groups_in_all);
        assert_eq!(groups.iter().map(RowGroupMetaData::num_rows).sum::<i64>(), 60);
    }
}

#[test]
fn a_piece_whose_job_vanishes_is_an_error_and_no_hang() {
    let arena = Arena::new();
    let targets = targets(&[("Doc", &[])]);
    let chunks: Chunks<'_> = vec![vec![(0, vec![item(&arena, &[("a", S("x"))])])]];
    for in_flight in [1, usize::MAX] {
        let dir = tempfile::tempdir().unwrap();
        let sink =
            ParquetSink::new(dir.path().to_owned(), false, targets.clone(), Arc::new(drop)).with_limits(Limits { in_flight, ..PIECES });
        sink.set_shapes(&shapes_of(1, &chunks)).unwrap();
        let mut writer = sink.writer(1).unwrap();
        let write = |writer: &mut Box<dyn Writer>| writer.write(sink.encoder().encode(&outgoing(&chunks[0])).unwrap(), &mut Vec::new());
        let error = (0..3).find_map(|_| write(&mut writer).err()).unwrap_or_else(|| writer.finish(&mut Vec::new()).unwrap_err());
        assert!(error.message().contains("ended without a result"), "{error}");
    }
}
