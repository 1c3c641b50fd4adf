//! The live sink against a server that others wrote, with and without faults on the way: what the sink says was written is
//! there, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dynamorph::aws::{self, StaticCredentials};
use dynamorph::error::{Error, Kind, Stage};
use dynamorph::model::{
    Arena, Creation, DatasetId, EntityId, FileId, Index, Item, KeyAttribute, KeySchema, KeyType, Origin, Raw, Row, Table, TableId, Targets,
    Value,
};
use dynamorph::sink::batch_write::{Condition, DynamoDbSink, Limits, Options};
use dynamorph::sink::{LateReject, Outgoing, Sink, Written};
use dynamorph::store::Begin;

use crate::support::Server;
use crate::support::proxy::{Fault, Proxy};

fn key(partition: &str, sort: Option<(&str, KeyType)>) -> KeySchema {
    let attribute = |name: &str, kind| KeyAttribute { name: name.to_owned(), kind };
    KeySchema { partition: attribute(partition, KeyType::S), sort: sort.map(|(name, kind)| attribute(name, kind)) }
}

fn table(name: &str) -> Table {
    Table {
        name: name.to_owned(),
        key: key("PK", Some(("SK", KeyType::N))),
        indexes: Vec::new(),
        type_attribute: None,
        creation: Creation::default(),
    }
}

const DOCS_KEY: &[(&str, &str)] = &[("PK", "S"), ("SK", "N")];

fn server() -> Server {
    let server = Server::start();
    server.create_table("docs", DOCS_KEY, &[]);
    server
}

fn at(url: &str) -> Options {
    within(url, Duration::from_secs(20))
}

/// An attempt ends after `attempt_timeout`.
fn within(url: &str, attempt_timeout: Duration) -> Options {
    let credentials = StaticCredentials { access_key_id: "test".to_owned(), secret_access_key: "test".to_owned() };
    let aws = aws::Options {
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(url.to_owned()),
        credentials: Some(credentials),
        attempt_timeout,
        ..aws::Options::default()
    };
    Options { aws, ..Options::default() }
}

fn sink(url: &str, tables: Vec<Table>) -> DynamoDbSink {
    sink_of(at(url), tables)
}

fn sink_of(options: Options, tables: Vec<Table>) -> DynamoDbSink {
    DynamoDbSink::new(options, Arc::new(Targets { tables, datasets: Vec::new() }), &BTreeMap::new()).unwrap()
}

/// An item of one dataset: a key and some text.
#[derive(Clone)]
struct Doc {
    partition: String,
    sort: String,
    text: String,
}

fn docs(count: usize) -> Vec<Doc> {
    (0..count).map(|at| Doc { partition: format!("WS#{}", at % 7), sort: at.to_string(), text: format!("text {at} é\u{1}\"") }).collect()
}

fn item<'a>(doc: &'a Doc, arena: &'a Arena) -> Item<'a> {
    let mut item = Item::new_in(arena);
    item.push("PK", Value::S(&doc.partition));
    item.push("SK", Value::N(&doc.sort));
    item.push("text", Value::S(&doc.text));
    item
}

fn row(line: u64, item: Item<'_>) -> Row<'_> {
    Row { origin: Origin { file: FileId(3), line }, item, captures: &[], source: Raw::json(b"{\"as\":\"read\"}"), change: None, size: 0 }
}

/// Writes items in chunks of this size, each line of a file of its own.
fn write(sink: &dyn Sink, docs: &[Doc], chunk: usize) -> Result<(Written, Vec<LateReject>), Error> {
    let encoder = sink.encoder();
    let mut writer = sink.writer(1)?;
    let mut late = Vec::new();
    let mut line = 0;
    for docs in docs.chunks(chunk) {
        let arena = Arena::new();
        let mut rows = Vec::new();
        for doc in docs {
            line += 1;
            rows.push(row(line, item(doc, &arena)));
        }
        let outgoing = Outgoing { entity: EntityId(1), dataset: DatasetId(2), table: Some(TableId(0)), rows };
        writer.write(encoder.encode(&[outgoing])?, &mut late)?;
    }
    let written = writer.finish(&mut late)?;
    Ok((written, late))
}

/// Partition key, sort key and text of what the server holds.
fn held(server: &Server) -> BTreeSet<(String, String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    server.items("docs").iter().map(|item| (text(&item["PK"]["S"]), text(&item["SK"]["N"]), text(&item["text"]["S"]))).collect()
}

fn expected(docs: &[Doc]) -> BTreeSet<(String, String, String)> {
    docs.iter().map(|doc| (doc.partition.clone(), doc.sort.clone(), doc.text.clone())).collect()
}

/// Writes 500 items in chunks of this size through a proxy with this plan and checks that exactly those are there.
fn survives(chunk: usize, plan: fn(usize) -> Fault) -> Proxy {
    let server = server();
    let proxy = Proxy::start(server.address(), plan);
    let docs = docs(500);
    let sink = sink(&proxy.url(), vec![table("docs")]);
    sink.prepare(Begin::Anew).unwrap();
    let (written, late) = write(&sink, &docs, chunk).unwrap();
    assert_eq!(held(&server), expected(&docs));
    assert_eq!(written.items, BTreeMap::from([(2, 500)]));
    assert_eq!((written.refused, late), (BTreeMap::new(), Vec::new()));
    proxy
}

#[test]
fn all_items_arrive_in_full_requests_when_nothing_fails() {
    let proxy = survives(500, |_| Fault::None);
    assert_eq!(proxy.calls().iter().map(|call| call.puts).collect::<Vec<_>>(), [25; 20]);
    survives(70, |_| Fault::None);
}

#[test]
fn all_items_arrive_when_some_requests_are_throttled() {
    survives(70, |call| match call % 4 {
        0 => Fault::Code(400, "ProvisionedThroughputExceededException"),
        1 => Fault::Code(400, "ThrottlingException"),
        2 if call < 20 => Fault::Code(400, "RequestLimitExceeded"),
        _ => Fault::None,
    });
}

#[test]
fn all_items_arrive_when_the_service_fails() {
    survives(70, |call| match call % 3 {
        0 => Fault::Code(500, "InternalServerError"),
        1 if call < 20 => Fault::Code(503, "ServiceUnavailable"),
        _ => Fault::None,
    });
}

#[test]
fn all_items_arrive_when_connections_are_cut_before_the_write() {
    survives(70, |call| if call % 3 == 0 { Fault::ResetBefore } else { Fault::None });
}

#[test]
fn all_items_arrive_once_when_connections_are_cut_after_the_write() {
    survives(70, |call| if call % 3 == 0 { Fault::ResetAfter } else { Fault::None });
}

#[test]
fn all_items_arrive_when_puts_are_left_unprocessed() {
    let proxy = survives(500, |call| match call % 3 {
        0 => Fault::Partial(7),
        1 if call < 20 => Fault::Partial(25),
        _ => Fault::None,
    });
    // Unprocessed puts travel with others instead of alone.
    assert!(proxy.calls().len() < 45, "{} calls", proxy.calls().len());
}

#[test]
fn all_items_arrive_when_answers_are_cut_short_or_empty() {
    survives(70, |call| match call % 4 {
        0 => Fault::Truncate(9),
        1 if call < 20 => Fault::Blank(""),
        2 if call < 20 => Fault::Blank("{}"),
        _ => Fault::None,
    });
}

#[test]
fn all_items_arrive_when_answers_come_too_late() {
    let server = server();
    let proxy = Proxy::start(server.address(), |call| if call % 5 == 0 { Fault::Slow(Duration::from_secs(4)) } else { Fault::None });
    let docs = docs(500);
    let sink = sink_of(within(&proxy.url(), Duration::from_secs(2)), vec![table("docs")]);
    let (written, late) = write(&sink, &docs, 70).unwrap();
    assert_eq!(held(&server), expected(&docs));
    assert_eq!((written.items, late), (BTreeMap::from([(2, 500)]), Vec::new()));
}

#[test]
fn a_large_request_that_takes_too_long_is_sent_in_halves() {
    let server = server();
    let proxy = Proxy::start(server.address(), |call| if call == 0 { Fault::Slow(Duration::from_secs(9)) } else { Fault::None });
    let docs: Vec<Doc> = docs(25).into_iter().map(|doc| Doc { text: "\u{1}".repeat(10_000), ..doc }).collect();
    let sink = sink_of(within(&proxy.url(), Duration::from_secs(3)), vec![table("docs")]);
    let (written, late) = write(&sink, &docs, 25).unwrap();
    assert_eq!((written.items, late), (BTreeMap::from([(2, 25)]), Vec::new()));
    let mut puts: Vec<usize> = proxy.calls().iter().map(|call| call.puts).collect();
    puts.sort_unstable();
    assert_eq!(puts, [12, 13], "the slow call has not ended, or the others were not halves");
}

#[test]
fn requests_hold_at_most_25_puts() {
    for (count, requests) in [(0, vec![]), (1, vec![1]), (24, vec![24]), (25, vec![25]), (26, vec![1, 25]), (50, vec![25, 25])] {
        let server = server();
        let proxy = Proxy::start(server.address(), |_| Fault::None);
        let docs = docs(count);
        let (written, late) = write(&sink(&proxy.url(), vec![table("docs")]), &docs, 1000).unwrap();
        assert_eq!(held(&server), expected(&docs));
        assert_eq!((written.items.values().sum::<u64>(), late), (count as u64, Vec::new()));
        let mut puts: Vec<usize> = proxy.calls().iter().map(|call| call.puts).collect();
        puts.sort_unstable();
        assert_eq!(puts, requests);
    }
}

#[test]
fn requests_stay_below_16_mib_on_the_wire() {
    let server = server();
    let proxy = Proxy::start(server.address(), |_| Fault::None);
    // Each item is legal; as JSON each of its characters takes six bytes, so that 25 would be 16.8 MB.
    let docs: Vec<Doc> = docs(25).into_iter().map(|doc| Doc { text: "\u{1}".repeat(112_000), ..doc }).collect();
    let (written, late) = write(&sink(&proxy.url(), vec![table("docs")]), &docs, 25).unwrap();
    assert_eq!((written.items, late), (BTreeMap::from([(2, 25)]), Vec::new()));
    assert_eq!(server.items("docs").len(), 25);
    let calls = proxy.calls();
    assert_eq!(calls.iter().map(|call| call.puts).sum::<usize>(), 25, "nothing was sent twice: {calls:?}");
    assert!(calls.iter().all(|call| call.bytes <= 16 << 20 && call.status == Some(200)), "{calls:?}");
    assert_eq!(calls.len(), 2, "{calls:?}");
}

#[test]
fn an_item_is_sent_alone_up_to_the_size_of_a_request_and_refused_beyond_it() {
    let limit = (16 << 20) - (64 << 10);
    let number = format!("1{}", "0".repeat(125));
    let around = r#"{"docs":[{"PutRequest":{"Item":{"PK":{"S":"WS#a"},"SK":{"N":"1"},"numbers":{"L":[]},"padding":{"S":""}}}}]}"#.len();
    // As an item it has less than 400 KB: a number of many zeros takes few bytes there.
    let one = format!("{{\"N\":\"{number}\"}},").len();
    let count = (limit - around) / one;
    let padding = "x".repeat(limit - around - (count * one - 1));
    let server = server();
    let sink = sink(&server.url(), vec![table("docs")]);
    let arena = Arena::new();
    let numbers = &*arena.alloc_slice_fill_copy(count, Value::N(&number));
    let longer = format!("{padding}x");
    let large = |line, sort, padding| {
        let mut item = Item::new_in(&arena);
        item.push("PK", Value::S("WS#a"));
        item.push("SK", Value::N(sort));
        item.push("numbers", Value::L(numbers));
        item.push("padding", Value::S(padding));
        row(line, item)
    };
    let rows = vec![large(1, "1", &padding), large(2, "2", &longer)];
    let outgoing = Outgoing { entity: EntityId(1), dataset: DatasetId(2), table: Some(TableId(0)), rows };
    let mut late = Vec::new();
    let mut writer = sink.writer(1).unwrap();
    writer.write(sink.encoder().encode(&[outgoing]).unwrap(), &mut late).unwrap();
    let written = writer.finish(&mut late).unwrap();
    assert_eq!((written.items, written.refused), (BTreeMap::from([(2, 1)]), BTreeMap::from([(2, 1)])));
    assert_eq!(server.items("docs").len(), 1);
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].origin, late[0].entity, late[0].dataset), (Origin { file: FileId(3), line: 2 }, EntityId(1), DatasetId(2)));
    let expected = format!("write/request-size: a request with this item alone has {} bytes as JSON, limit {limit}", limit + 1);
    assert!(late[0].reason.to_string().starts_with(&expected), "{}", late[0].reason);
    assert_eq!(late[0].source, b"{\"Item\":{\"as\":\"read\"}}");
}

#[test]
fn one_item_that_the_service_refuses_becomes_a_reject_and_the_others_are_written() {
    let server = server();
    let docs = docs(25);
    let sink = sink(&server.url(), vec![table("docs")]);
    let arena = Arena::new();
    let mut rows = Vec::new();
    for (line, doc) in (1..).zip(&docs) {
        let mut item = item(doc, &arena);
        if line == 18 {
            item.push("tags", Value::Ss(&[]));
        }
        rows.push(row(line, item));
    }
    let mut late = Vec::new();
    let mut writer = sink.writer(1).unwrap();
    let outgoing = Outgoing { entity: EntityId(1), dataset: DatasetId(2), table: Some(TableId(0)), rows };
    writer.write(sink.encoder().encode(&[outgoing]).unwrap(), &mut late).unwrap();
    let written = writer.finish(&mut late).unwrap();

    let others: Vec<Doc> = docs.iter().filter(|doc| doc.sort != "17").cloned().collect();
    assert_eq!(held(&server), expected(&others));
    assert_eq!(written.items, BTreeMap::from([(2, 24)]));
    assert_eq!(written.refused, BTreeMap::from([(2, 1)]));
    assert_eq!(late.len(), 1);
    let refused = &late[0];
    assert_eq!(refused.origin, Origin { file: FileId(3), line: 18 });
    assert_eq!((refused.entity, refused.dataset), (EntityId(1), DatasetId(2)));
    assert_eq!((refused.reason.stage, refused.reason.rule), (Stage::Write, "refused"));
    assert!(refused.reason.message.contains("ValidationException"), "{}", refused.reason.message);
    assert_eq!(refused.source, b"{\"Item\":{\"as\":\"read\"}}");
}

#[test]
fn puts_of_one_key_arrive_in_order_whatever_fails() {
    let server = server();
    let proxy = Proxy::start(server.address(), |call| match call % 3 {
        0 => Fault::ResetAfter,
        1 => Fault::Partial(3),
        _ => Fault::None,
    });
    let version = |version: usize| {
        let renew = move |(at, doc): (usize, Doc)| {
            // The same number, spelt in another way, is the same key.
            let sort = if version.is_multiple_of(2) { doc.sort } else { format!("{at}.0") };
            Doc { sort, text: format!("version {version}"), ..doc }
        };
        docs(40).into_iter().enumerate().map(renew)
    };
    let all: Vec<Doc> = (0..5).flat_map(version).collect();
    let (written, late) = write(&sink(&proxy.url(), vec![table("docs")]), &all, 33).unwrap();
    assert_eq!((written.items, late), (BTreeMap::from([(2, 200)]), Vec::new()));
    let last: Vec<Doc> = version(4).collect();
    assert_eq!(held(&server), expected(&last));
}

#[test]
fn several_tables_are_written_side_by_side_under_their_names_in_the_service() {
    let server = server();
    server.create_table("prod-notes", DOCS_KEY, &[]);
    let targets = Targets { tables: vec![table("docs"), table("notes")], datasets: Vec::new() };
    let names = BTreeMap::from([("notes".to_owned(), "prod-notes".to_owned())]);
    let sink = DynamoDbSink::new(at(&server.url()), Arc::new(targets), &names).unwrap();
    sink.prepare(Begin::Anew).unwrap();
    let (docs, notes) = (docs(60), docs(33));
    let arena = Arena::new();
    let outgoing = |table, dataset, docs: &[Doc]| -> Outgoing<'_> {
        let rows = docs.iter().map(|doc| {
            let mut item = Item::new_in(&arena);
            item.push("PK", Value::S(arena.alloc_str(&doc.partition)));
            item.push("SK", Value::N(arena.alloc_str(&doc.sort)));
            item.push("text", Value::S(arena.alloc_str(&doc.text)));
            row(1, item)
        });
        Outgoing { entity: EntityId(0), dataset: DatasetId(dataset), table: Some(TableId(table)), rows: rows.collect() }
    };
    let mut late = Vec::new();
    let mut writer = sink.writer(1).unwrap();
    let chunk = [outgoing(0, 0, &docs), outgoing(1, 1, &notes)];
    writer.write(sink.encoder().encode(&chunk).unwrap(), &mut late).unwrap();
    let written = writer.finish(&mut late).unwrap();
    assert_eq!(written.items, BTreeMap::from([(0, 60), (1, 33)]));
    assert_eq!((server.items("docs").len(), server.items("prod-notes").len()), (60, 33));
}

/// A sink that writes under a condition.
fn under(condition: Condition, url: &str) -> DynamoDbSink {
    sink_of(Options { condition, ..at(url) }, vec![table("docs")])
}

/// Puts these attributes beside the key under a condition, each a line; gives the counts and the refused.
fn put_texts(sink: &DynamoDbSink, texts: &[(&str, &[(&str, Value<'_>)])]) -> (Written, Vec<LateReject>) {
    let arena = Arena::new();
    let rows = (1..).zip(texts).map(|(line, (sort, attributes))| {
        let mut item = Item::new_in(&arena);
        item.push("PK", Value::S("WS#a"));
        item.push("SK", Value::N(sort));
        attributes.iter().for_each(|(name, value)| item.push(name, *value));
        row(line, item)
    });
    let outgoing = Outgoing { entity: EntityId(1), dataset: DatasetId(2), table: Some(TableId(0)), rows: rows.collect() };
    let mut late = Vec::new();
    let mut writer = sink.writer(1).unwrap();
    writer.write(sink.encoder().encode(&[outgoing]).unwrap(), &mut late).unwrap();
    (writer.finish(&mut late).unwrap(), late)
}

/// The text of each item by its sort key.
fn texts(server: &Server) -> BTreeMap<String, String> {
    held(server).into_iter().map(|(_, sort, text)| (sort, text)).collect()
}

fn by_sort(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    texts.iter().map(|(sort, text)| ((*sort).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn an_item_whose_key_is_taken_is_kept_out_and_one_that_is_there_already_counts_as_written() {
    let server = server();
    let first = sink(&server.url(), vec![table("docs")]);
    put_texts(&first, &[("1", &[("text", Value::S("old"))]), ("2", &[("text", Value::S("same")), ("n", Value::N("1.0"))])]);
    let absent = under(Condition::IfAbsent, &server.url());
    let ours: [(&str, &[(&str, Value<'_>)]); 3] = [
        ("1", &[("text", Value::S("new"))]),
        ("2", &[("n", Value::N("1")), ("text", Value::S("same"))]),
        ("3", &[("text", Value::S("new"))]),
    ];
    let (written, late) = put_texts(&absent, &ours);
    assert_eq!((written.items, written.kept, late), (BTreeMap::from([(2, 2)]), BTreeMap::from([(2, 1)]), Vec::new()));
    assert_eq!(texts(&server), by_sort(&[("1", "old"), ("2", "same"), ("3", "new")]));
    // The same once more counts the same.
    let (written, _) = put_texts(&absent, &ours);
    assert_eq!((written.items, written.kept), (BTreeMap::from([(2, 2)]), BTreeMap::from([(2, 1)])));
}

#[test]
fn only_an_older_item_is_replaced_by_a_newer_one() {
    let server = server();
    let text = |text| ("text", Value::S(text));
    let first = sink(&server.url(), vec![table("docs")]);
    put_texts(
        &first,
        &[
            ("1", &[text("older"), ("v", Value::N("9"))]),
            ("2", &[text("newer"), ("v", Value::N("11"))]),
            ("3", &[text("as old"), ("v", Value::N("1E1"))]),
            ("4", &[text("without")]),
            ("5", &[text("of another type"), ("v", Value::S("0"))]),
        ],
    );
    let ours = [text("ours"), ("v", Value::N("10"))];
    let unfit = [text("ours"), ("v", Value::Bool(true))];
    let lines: [(&str, &[(&str, Value<'_>)]); 8] =
        [("1", &ours), ("2", &ours), ("3", &ours), ("4", &ours), ("5", &ours), ("6", &ours), ("7", &ours[..1]), ("8", &unfit)];
    let (written, late) = put_texts(&under(Condition::IfNewer("v".to_owned()), &server.url()), &lines);
    assert_eq!(
        texts(&server),
        by_sort(&[("1", "ours"), ("2", "newer"), ("3", "as old"), ("4", "ours"), ("5", "of another type"), ("6", "ours")])
    );
    assert_eq!((written.items, written.kept, written.refused), counts(3, 3, 2));
    let lines: Vec<_> = late.iter().map(|late| (late.origin.line, late.reason.rule)).collect();
    assert_eq!(lines, [(7, "if-newer"), (8, "if-newer")]);
}

/// Items, kept and refused of the one dataset.
fn counts(items: u64, kept: u64, refused: u64) -> (BTreeMap<u32, u64>, BTreeMap<u32, u64>, BTreeMap<u32, u64>) {
    let of = |count| BTreeMap::from([(2, count)]);
    (of(items), of(kept), of(refused))
}

#[test]
fn conditional_puts_arrive_once_and_are_counted_right_whatever_fails() {
    let server = server();
    let docs = docs(200);
    let (theirs, ours) = docs.split_at(50);
    let others: Vec<Doc> = theirs.iter().map(|doc| Doc { text: "theirs".to_owned(), ..doc.clone() }).collect();
    write(&sink(&server.url(), vec![table("docs")]), &others, 50).unwrap();
    for condition in [Condition::IfAbsent, Condition::IfNewer("text".to_owned())] {
        let proxy = Proxy::start(server.address(), |call| match call % 20 {
            0 => Fault::CodeAfter(500, "InternalServerError"),
            1 => Fault::ResetAfter,
            2 => Fault::Code(400, "ThrottlingException"),
            3 => Fault::ResetBefore,
            4 => Fault::Truncate(9),
            5 => Fault::Blank("{}"),
            _ => Fault::None,
        });
        // `text` of theirs is greater than that of ours.
        let (written, late) = write(&under(condition, &proxy.url()), &docs, 70).unwrap();
        assert_eq!((written.items, written.kept, late), (BTreeMap::from([(2, 150)]), BTreeMap::from([(2, 50)]), Vec::new()));
        let mut all = expected(&others);
        all.extend(expected(ours));
        assert_eq!(held(&server), all);
    }
}

#[test]
fn a_time_of_nothing_but_throttling_is_waited_out() {
    let proxy = survives(500, |call| if call < 60 { Fault::Code(400, "ThrottlingException") } else { Fault::None });
    assert!(proxy.calls().len() >= 60 + 20);
}

#[test]
fn all_items_arrive_once_when_the_service_fails_after_it_has_written() {
    survives(70, |call| match call % 6 {
        0 => Fault::CodeAfter(500, "InternalServerError"),
        3 => Fault::CodeAfter(503, "ServiceUnavailable"),
        _ => Fault::None,
    });
}

#[test]
fn a_request_has_puts_of_as_many_partition_keys_as_there_are() {
    let server = server();
    let proxy = Proxy::start(server.address(), |_| Fault::None);
    // As an export has them: the items of a partition key follow each other.
    let docs: Vec<Doc> =
        (0..1000).map(|at| Doc { partition: format!("WS#{}", at / 25), sort: at.to_string(), text: "x".to_owned() }).collect();
    write(&sink(&proxy.url(), vec![table("docs")]), &docs, 1000).unwrap();
    assert_eq!(held(&server), expected(&docs));
    assert_eq!(proxy.calls().iter().map(|call| (call.puts, call.partitions)).collect::<Vec<_>>(), [(25, 25); 40]);
}

/// A sink with a limited rate.
fn limited(most: u32, url: &str) -> DynamoDbSink {
    sink_of(Options { max_write_units: NonZeroU32::new(most), ..at(url) }, vec![table("docs")])
}

#[test]
fn a_limited_rate_is_never_exceeded_and_holds_for_all_units_of_work_together() {
    let server = server();
    let sink = limited(400, &server.url());
    let docs = docs(300);
    let start = Instant::now();
    let (first, second) = docs.split_at(150);
    let traffic = [first, second].map(|docs| write(&sink, docs, 70).unwrap().0.traffic.unwrap());
    // The bucket is empty at first, and an item costs a unit.
    assert!(start.elapsed() >= Duration::from_millis(745), "{:?}", start.elapsed());
    assert!(traffic.iter().all(|traffic| (traffic.write_units - 150.0).abs() < 1e-9), "{traffic:?}");
    assert_eq!(held(&server), expected(&docs));
}

#[test]
fn all_items_arrive_at_a_limited_rate_whatever_fails() {
    let server = server();
    let proxy = Proxy::start(server.address(), |call| match call % 5 {
        0 => Fault::Partial(3),
        1 => Fault::ResetAfter,
        2 if call < 20 => Fault::Code(400, "ThrottlingException"),
        _ => Fault::None,
    });
    // One partition key, which gets less than the rate.
    let docs: Vec<Doc> = docs(400).into_iter().map(|doc| Doc { partition: "WS#0".to_owned(), ..doc }).collect();
    let (written, late) = write(&limited(2000, &proxy.url()), &docs, 130).unwrap();
    assert_eq!(held(&server), expected(&docs));
    assert_eq!((written.items, late), (BTreeMap::from([(2, 400)]), Vec::new()));
}

#[test]
fn an_error_for_good_stops_all_requests() {
    let server = server();
    let proxy = Proxy::start(server.address(), |call| match call {
        5 => Fault::Code(400, "AccessDeniedException"),
        _ => Fault::Slow(Duration::from_millis(20)),
    });
    let error = write(&sink(&proxy.url(), vec![table("docs")]), &docs(5000), 500).unwrap_err();
    assert_eq!(error.kind(), Kind::Service);
    let most = Limits::default().requests * 2;
    assert!(proxy.calls().len() < 5 + most, "{} of 200 calls were made", proxy.calls().len());
}

#[test]
fn conditional_puts_of_one_key_arrive_in_order_whatever_fails() {
    let server = server();
    let proxy = Proxy::start(server.address(), |call| match call % 9 {
        2 => Fault::CodeAfter(500, "InternalServerError"),
        5 => Fault::Code(400, "ThrottlingException"),
        _ => Fault::None,
    });
    // Each version is newer than the one before it, and would be kept out by the one behind it.
    let version = |version| docs(20).into_iter().map(move |doc| Doc { text: format!("version {version}"), ..doc });
    let all: Vec<Doc> = (0..4).flat_map(version).collect();
    let (written, _) = write(&under(Condition::IfNewer("text".to_owned()), &proxy.url()), &all, 33).unwrap();
    assert_eq!((written.items, written.kept), (BTreeMap::from([(2, 80)]), BTreeMap::new()));
    assert_eq!(held(&server), expected(&version(3).collect::<Vec<_>>()));
}

#[test]
fn a_conditional_put_that_the_service_does_not_allow_names_its_action() {
    let server = server();
    let proxy = Proxy::start(server.address(), |_| Fault::Code(400, "AccessDeniedException"));
    let error = write(&under(Condition::IfAbsent, &proxy.url()), &docs(5), 5).unwrap_err();
    assert!(error.to_string().contains("dynamodb:PutItem"), "{error}");
}

#[test]
fn what_went_over_the_wire_is_counted() {
    let server = server();
    let proxy = Proxy::start(server.address(), |call| match call {
        0 => Fault::Partial(7),
        1 => Fault::Code(400, "ThrottlingException"),
        2 => Fault::CodeAfter(500, "InternalServerError"),
        _ => Fault::None,
    });
    let (written, _) = write(&sink(&proxy.url(), vec![table("docs")]), &docs(100), 100).unwrap();
    let traffic = written.traffic.unwrap();
    let calls = proxy.calls();
    assert_eq!((traffic.requests, traffic.puts), (calls.len() as u64, calls.iter().map(|call| call.puts as u64).sum()));
    assert_eq!((traffic.sent_again, traffic.throttled, traffic.failed), (7 + 25 + 25, 2, 1));
    assert_eq!(traffic.puts, 100 + traffic.sent_again);
    assert!(traffic.seconds > 0.0);
}

#[test]
fn a_chunk_that_is_larger_than_the_memory_limit_passes_alone() {
    let server = server();
    let docs = docs(500);
    let limits = Limits { memory: 2048, requests: 2, ..Limits::default() };
    let (written, late) = write(&sink(&server.url(), vec![table("docs")]).with_limits(limits), &docs, 70).unwrap();
    assert_eq!((written.items, late), (BTreeMap::from([(2, 500)]), Vec::new()));
    assert_eq!(held(&server), expected(&docs));
}

#[test]
fn no_more_requests_are_under_way_than_allowed() {
    let server = server();
    let proxy = Proxy::start(server.address(), |_| Fault::Slow(Duration::from_millis(20)));
    let limits = Limits { requests: 3, ..Limits::default() };
    let (written, _) = write(&sink(&proxy.url(), vec![table("docs")]).with_limits(limits), &docs(500), 500).unwrap();
    assert_eq!(written.items, BTreeMap::from([(2, 500)]));
    assert_eq!(proxy.most_under_way(), 3);
}

#[test]
fn a_missing_table_is_named_with_its_place_before_anything_is_written() {
    let server = server();
    let error = sink(&server.url(), vec![table("docs"), table("comments")]).prepare(Begin::Anew).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    let text = error.to_string();
    for part in ["target table does not exist", "table: comments", "us-east-1", &server.url(), "--table comments=NAME"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_wrong_key_of_table_or_index_is_told_before_anything_is_written() {
    let recent = |partition: &str| Index { name: "recent".to_owned(), key: key(partition, None) };
    let docs = |sort, indexes| vec![Table { key: key("PK", sort), indexes, ..table("docs") }];
    for (tables, parts) in [
        (docs(Some(("SK", KeyType::S)), vec![]), ["the table has another key", "SK (S, sort)", "SK (N, sort)"]),
        (docs(None, vec![]), ["the table has another key", "PK (S, partition)", "SK (N, sort)"]),
        (docs(Some(("Detail", KeyType::N)), vec![]), ["the table has another key", "Detail (N, sort)", "SK (N, sort)"]),
        (docs(Some(("SK", KeyType::N)), vec![recent("GSI2PK")]), ["index recent", "GSI2PK (S, partition)", "GSI1PK (S, partition)"]),
        (
            docs(Some(("SK", KeyType::N)), vec![Index { name: "feed".to_owned(), key: key("GSI1PK", None) }]),
            ["lacks an index", "index: feed", "create the index"],
        ),
    ] {
        let server = Server::start();
        server.create_table("docs", DOCS_KEY, &[("recent", &[("GSI1PK", "S")])]);
        let error = sink(&server.url(), tables).prepare(Begin::Anew).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        for part in parts {
            assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
        }
        sink(&server.url(), docs(Some(("SK", KeyType::N)), vec![recent("GSI1PK")])).prepare(Begin::Anew).unwrap();
    }
}

#[test]
fn a_service_that_does_not_let_us_write_ends_the_run_with_action_and_table() {
    for code in ["AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "ResourceNotFoundException"] {
        let server = server();
        let plan: fn(usize) -> Fault = match code {
            "AccessDeniedException" => |_| Fault::Code(400, "AccessDeniedException"),
            "UnrecognizedClientException" => |_| Fault::Code(400, "UnrecognizedClientException"),
            "ExpiredTokenException" => |_| Fault::Code(400, "ExpiredTokenException"),
            _ => |_| Fault::Code(400, "ResourceNotFoundException"),
        };
        let proxy = Proxy::start(server.address(), plan);
        let error = write(&sink(&proxy.url(), vec![table("docs")]), &docs(500), 70).unwrap_err();
        assert_eq!(error.kind(), Kind::Service);
        for part in ["dynamodb:BatchWriteItem", "table: docs", code] {
            assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
        }
    }
}

#[test]
fn a_service_that_is_gone_ends_the_run_when_patience_is_over() {
    let url = server().url();
    let patience = Duration::from_millis(600);
    let sink = sink(&url, vec![table("docs")]).with_limits(Limits { patience, ..Limits::default() });
    let start = Instant::now();
    let error = write(&sink, &docs(500), 70).unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.to_string().contains("no usable answer"), "{error}");
    assert!(start.elapsed() >= patience);
    assert_eq!(sink.prepare(Begin::Anew).unwrap_err().kind(), Kind::Unavailable);
}

#[test]
fn a_writer_that_is_dropped_sends_nothing_more() {
    let server = server();
    let proxy = Proxy::start(server.address(), |_| Fault::Code(500, "InternalServerError"));
    let sink = sink(&proxy.url(), vec![table("docs")]);
    let docs = docs(100);
    let arena = Arena::new();
    let rows = docs.iter().map(|doc| row(1, item(doc, &arena))).collect();
    let outgoing = Outgoing { entity: EntityId(1), dataset: DatasetId(2), table: Some(TableId(0)), rows };
    let mut writer = sink.writer(1).unwrap();
    writer.write(sink.encoder().encode(&[outgoing]).unwrap(), &mut Vec::new()).unwrap();
    drop(writer);
    std::thread::sleep(Duration::from_millis(50));
    let calls = proxy.calls().len();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(proxy.calls().len(), calls);
}
