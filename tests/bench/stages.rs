//! What each stage of a run costs, on one core: inflate, cut into chunks, decode, route, encode for each file sink, write.
//!
//! `cargo bench --bench stages [-- FILTER]`. The export is made by `make_export.py`, once; `STAGE_ITEMS` in the environment is its number of items, 20,000
//! when not said. Throughput is in bytes of the export's text, for all stages, so that they can be compared with each other: `inflate` is
//! the limit that a run cannot go below.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use dynamorph::Plan;
use dynamorph::codec::{self, Record};
use dynamorph::model::{Arena, Batch, ByAttribute, EntityId, FileId, Origin, Row};
use dynamorph::plan::transform::Classifier;
use dynamorph::shape::Shape;
use dynamorph::sink::batch_files::BatchFiles;
use dynamorph::sink::import_files::{self, ImportFiles};
use dynamorph::sink::parquet::ParquetSink;
use dynamorph::sink::{Outgoing, Sink, Spawn};
use dynamorph::source::Chunk;
use dynamorph::source::chunk::ChunkReader;
use dynamorph::source::manifest::{self, DataFile};
use dynamorph::store::{Begin, Location};
use flate2::read::MultiGzDecoder;

/// Bytes of a chunk in a run.
const CHUNK_BYTES: usize = 512 * 1024;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench");
    let files = data_files(&folder);
    let chunks = chunks(&files);
    let text = chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum();

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("stage");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4)).throughput(Throughput::Bytes(text));
    read(&mut group, &files);
    decode(&mut group, &chunks);
    for pipeline in ["warehouse", "tables"] {
        let plan = fs::read_to_string(folder.join(pipeline).with_extension("toml")).expect("the pipeline is part of the repository");
        let plan = Plan::from_toml(&plan).expect("the pipeline is right");
        group.bench_function(format!("decode and route, {pipeline}"), |bencher| {
            bencher.iter(|| each_chunk(&chunks, |chunk, arena| drop(black_box(route(&plan, chunk, arena)))));
        });
        encode(&mut group, &plan, pipeline, &chunks);
    }
    group.finish();
    criterion.final_summary();
}

/// The data files of the export, which is made where it is missing.
fn data_files(programs: &Path) -> Vec<DataFile> {
    let items = std::env::var("STAGE_ITEMS").unwrap_or_else(|_| "20000".to_owned());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("stages-{items}"));
    let whole = folder.join("whole");
    if !whole.exists() {
        let program = programs.join("make_export.py");
        let made = Command::new("python3").arg(program).arg(&folder).args(["--items", &items, "--files", "4"]).output();
        assert!(made.is_ok_and(|made| made.status.success()), "python3 makes the export");
        fs::write(whole, "").expect("the folder was made a moment ago");
    }
    manifest::open(&Location::Local(folder), &manifest::Options::default()).expect("the export is whole").files
}

/// All chunks of the files.
fn chunks(files: &[DataFile]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (file, id) in files.iter().zip(0..) {
        let mut reader = ChunkReader::open(file, FileId(id), CHUNK_BYTES).expect("the file opens");
        while let Some(chunk) = reader.next().expect("the file is right") {
            chunks.push(chunk);
        }
    }
    chunks
}

/// Inflate alone, as the limit; and what the reader of a run does: MD5 of the file, inflate, cut at line ends.
fn read(group: &mut BenchmarkGroup<'_, WallTime>, files: &[DataFile]) {
    let stored: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file.location.to_string()).expect("the file is there")).collect();
    let mut buffer = vec![0; CHUNK_BYTES];
    group.bench_function("inflate", |bencher| {
        bencher.iter(|| {
            for bytes in &stored {
                let mut text = MultiGzDecoder::new(&bytes[..]);
                while text.read(&mut buffer).expect("the file is gzip") > 0 {
                    black_box(&buffer);
                }
            }
        });
    });
    group.bench_function("inflate and cut into chunks", |bencher| bencher.iter(|| black_box(chunks(files)).len()));
}

/// Calls `work` for each chunk, with an arena that is emptied behind it.
fn each_chunk(chunks: &[Chunk], mut work: impl FnMut(&Chunk, &Arena)) {
    let mut arena = Arena::new();
    for chunk in chunks {
        work(chunk, &arena);
        arena.reset();
    }
}

/// The lines of a chunk.
fn lines(chunk: &Chunk) -> impl Iterator<Item = &str> {
    str::from_utf8(&chunk.bytes).expect("the export is UTF-8").lines()
}

fn decode(group: &mut BenchmarkGroup<'_, WallTime>, chunks: &[Chunk]) {
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            each_chunk(chunks, |chunk, arena| {
                for line in lines(chunk) {
                    black_box(codec::decode_line(line, chunk.format, arena).expect("the line is an item"));
                }
            });
        });
    });
}

/// What the items of a chunk become, up to their limits: decode, tell apart, carry through the plan.
fn route<'a>(plan: &Plan, chunk: &'a Chunk, arena: &'a Arena) -> Vec<Outgoing<'a>> {
    let classifier = Classifier::new(plan);
    let source = &plan.sources()[0];
    let mut batches: Vec<Batch<'a>> = plan.entities().iter().map(|_| Batch::default()).collect();
    for (line, number) in lines(chunk).zip(chunk.first.line..) {
        let decoded = codec::decode_line(line, chunk.format, arena).expect("the line is an item");
        let Record::Item(item) = decoded.record else { panic!("a full export has no changes") };
        let claim = classifier.claim(source, &item).expect("the pipeline knows all items");
        let origin = Origin { line: number, ..chunk.first };
        let row = Row { origin, item, captures: claim.captures, source: decoded.source, change: None, size: 0 };
        batches[claim.entity.index()].rows.push(row);
    }
    let carried = (0..).map(EntityId).zip(plan.entities()).zip(batches).map(|((entity, kind), mut batch)| {
        let output = &kind.outputs[0];
        output.carry(plan, source, &mut batch);
        Outgoing { entity, dataset: output.dataset, table: output.table, rows: batch.rows }
    });
    carried.filter(|outgoing| !outgoing.rows.is_empty()).collect()
}

fn by_attribute<'r, 'a>(outgoing: &'r Outgoing<'a>) -> ByAttribute<'r, 'a> {
    ByAttribute::of(outgoing.rows.iter().map(|row| &row.item))
}

/// Encodes what leaves, for each sink that takes it; and writes it, which compresses and makes it durable.
fn encode(group: &mut BenchmarkGroup<'_, WallTime>, plan: &Plan, pipeline: &str, chunks: &[Chunk]) {
    let targets = Arc::new(plan.targets().clone());
    let at_once: Spawn = Arc::new(|job: Box<dyn FnOnce() + Send>| job());
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let arena = Arena::new();
    let routed: Vec<_> = chunks.iter().map(|chunk| route(plan, chunk, &arena)).collect();
    let sinks: Vec<Box<dyn Sink>> = if targets.tables.is_empty() {
        let parquet = ParquetSink::new(folder.path().join("parquet"), true, targets.clone(), at_once);
        let mut shapes: Vec<_> = targets.datasets.iter().map(Shape::of_dataset).collect();
        for outgoing in routed.iter().flatten() {
            shapes[outgoing.dataset.index()].observe_all(&by_attribute(outgoing));
        }
        parquet.set_shapes(&shapes).expect("the shapes are those of the items");
        group.bench_function(format!("values by attribute, {pipeline}"), |bencher| {
            bencher.iter(|| routed.iter().flatten().for_each(|outgoing| drop(black_box(by_attribute(outgoing)))));
        });
        group.bench_function(format!("values by attribute and their shapes, {pipeline}"), |bencher| {
            bencher.iter(|| {
                let mut shapes: Vec<_> = targets.datasets.iter().map(Shape::of_dataset).collect();
                for outgoing in routed.iter().flatten() {
                    shapes[outgoing.dataset.index()].observe_all(&by_attribute(outgoing));
                }
                shapes
            });
        });
        vec![Box::new(parquet)]
    } else {
        let import = folder.path().join("import");
        vec![
            Box::new(ImportFiles::new(import, true, targets.clone(), BTreeMap::new(), import_files::Options::default(), at_once)),
            Box::new(BatchFiles::new(folder.path().join("batch"), true, targets, BTreeMap::new())),
        ]
    };
    for sink in sinks {
        let kind = sink.name().split(':').next().unwrap_or_default().to_owned();
        sink.prepare(Begin::Anew).expect("the folder is empty");
        let encoder = sink.encoder();
        group.bench_function(format!("encode for {kind}"), |bencher| {
            bencher.iter(|| routed.iter().for_each(|outgoing| drop(black_box(encoder.encode(outgoing).expect("the items fit")))));
        });
        group.bench_function(format!("encode for {kind} and write"), |bencher| {
            bencher.iter(|| {
                let mut writer = sink.writer(1).expect("a file can be made");
                for outgoing in &routed {
                    writer.write(encoder.encode(outgoing).expect("the items fit"), &mut Vec::new()).expect("it can be written");
                }
                writer.finish(&mut Vec::new()).expect("it can be written")
            });
        });
    }
}
