//! The live writer against a bare loop of `BatchWriteItem` with requests that were built before: what do order, retries, ledger and rate cost?
//!
//! `cargo bench --bench live [-- ITEMS]`, 200,000 when not said. Both write the same items to the same server in a process of its own, in turn; printed are
//! items a second while requests are under way, and the ratio of the medians. Two servers: one that only answers, and one that others wrote
//! and that stores.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

type Anything<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 5;
/// Requests under way at a time, as many as the live writer has.
const REQUESTS: usize = 16;

const PIPELINE: &str = "version = 1\n[source]\nkey = { partition = \"PK\", sort = \"SK\" }\nentity = \"Document\"\n\
    [table.docs]\nkey = { partition = \"PK\", sort = \"SK\" }\n[entity.Document]\nto = \"docs\"\n";

fn main() -> Anything<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    match args.next().as_deref() {
        Some("serve") => serve(args.next().as_deref() == Some("dynoxide")),
        items => compare(items.map_or(Ok(200_000), str::parse)?),
    }
}

fn compare(items: usize) -> Anything<()> {
    let folder = tempfile::tempdir()?;
    let (export, pipeline) = (folder.path().join("items.json"), folder.path().join("pipeline.toml"));
    std::fs::write(&pipeline, PIPELINE)?;
    let mut lines = String::new();
    for at in 0..items {
        writeln!(
            lines,
            r#"{{"Item":{{"PK":{{"S":"{}"}},"SK":{{"S":"{}"}},"n":{{"N":"{at}"}},"title":{{"S":"{}"}}}}}}"#,
            partition(at),
            sort(at),
            title(at)
        )?;
    }
    std::fs::write(&export, lines)?;
    for server in ["answers", "dynoxide"] {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            // A server that stores is new for each, so that nobody writes over what the other wrote.
            let running = Server::start(server)?;
            ours.push(run(&pipeline, &export, folder.path(), &running.url, items)?);
            drop(running);
            let running = Server::start(server)?;
            bare.push(loop_of_requests(&running.url, items)?);
        }
        let (ours, bare) = (median(ours), median(bare));
        println!("{server}: dynamorph {ours:.0} items/s, bare loop {bare:.0} items/s, ratio {:.2}", ours / bare);
    }
    Ok(())
}

fn partition(at: usize) -> String {
    format!("WS#{}", at % 997)
}

fn sort(at: usize) -> String {
    format!("DOC#{at:08}")
}

fn title(at: usize) -> String {
    format!("{:0120}", at.wrapping_mul(0x9e37_79b9))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Items a second of the program's live sink, while requests are under way.
fn run(pipeline: &Path, export: &Path, folder: &Path, url: &str, items: usize) -> Anything<f64> {
    let output = Command::new(env!("CARGO_BIN_EXE_dynamorph"))
        .args(["run", "--to", "dynamodb", "--quiet", "--output", "json", "--restart", "--endpoint-url", url])
        .arg(pipeline)
        .arg("--from")
        .arg(export)
        .arg("--work")
        .arg(folder.join("work"))
        .envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")])
        .stderr(Stdio::inherit())
        .output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(report["sinks"][0]["items"]["Document"], json!(items), "{report}");
    let seconds = report["sinks"][0]["traffic"]["seconds"].as_f64().ok_or("no seconds in the report")?;
    Ok(count(items) / seconds)
}

#[expect(clippy::cast_precision_loss, reason = "a number of items for a rate")]
fn count(items: usize) -> f64 {
    items as f64
}

/// Items a second of a loop that sends requests which lie ready, and does nothing else.
fn loop_of_requests(url: &str, items: usize) -> Anything<f64> {
    let runtime = Runtime::new()?;
    let client = client(&runtime, url);
    let put = |at: usize| -> Anything<WriteRequest> {
        let put = PutRequest::builder()
            .item("PK", AttributeValue::S(partition(at)))
            .item("SK", AttributeValue::S(sort(at)))
            .item("n", AttributeValue::N(at.to_string()))
            .item("title", AttributeValue::S(title(at)));
        Ok(WriteRequest::builder().put_request(put.build()?).build())
    };
    let places: Vec<usize> = (0..items).collect();
    let requests =
        places.chunks(25).map(|chunk| chunk.iter().map(|at| put(*at)).collect()).collect::<Anything<Vec<Vec<WriteRequest>>>>()?;
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let started = Instant::now();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..REQUESTS {
            let (client, requests, next) = (client.clone(), Arc::clone(&requests), Arc::clone(&next));
            tasks.spawn(async move {
                while let Some(puts) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let answer = client.batch_write_item().request_items("docs", puts.clone()).send().await?;
                    assert!(answer.unprocessed_items().is_none_or(HashMap::is_empty));
                }
                Anything::Ok(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Anything::Ok(())
    })?;
    Ok(count(items) / started.elapsed().as_secs_f64())
}

fn client(runtime: &Runtime, url: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .credentials_provider(aws_credential_types::Credentials::new("test", "test", None, None, "bench"))
        .region(aws_sdk_dynamodb::config::Region::new("us-east-1"))
        .endpoint_url(url)
        .build();
    runtime.block_on(async { Client::from_conf(config) })
}

/// A server in a process of its own; it ends when it is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(kind: &str) -> Anything<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).args(["serve", kind]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn serve(stores: bool) -> Anything<()> {
    let runtime = Runtime::new()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    println!("http://{}", listener.local_addr()?);
    if stores {
        let database = dynoxide::Database::memory()?;
        database.create_table(serde_json::from_value(table())?)?;
        runtime.spawn(dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()));
    } else {
        runtime.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                drop(connection.set_nodelay(true));
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service_fn(answer)));
            }
        });
    }
    // Whoever started it holds the other end.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn table() -> Value {
    json!({
        "TableName": "docs",
        "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": "SK", "KeyType": "RANGE" }],
        "AttributeDefinitions": [{ "AttributeName": "PK", "AttributeType": "S" }, { "AttributeName": "SK", "AttributeType": "S" }],
        "BillingMode": "PAY_PER_REQUEST",
    })
}

/// Takes everything and keeps nothing.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default().to_owned();
    drop(request.into_body().collect().await);
    let answer = if target.ends_with("BatchWriteItem") {
        "{\"UnprocessedItems\":{}}".to_owned()
    } else {
        let mut description = table();
        description["TableStatus"] = "ACTIVE".into();
        json!({ "Table": description }).to_string()
    };
    let response = Response::builder().header("content-type", "application/x-amz-json-1.0");
    Ok(response.body(Full::from(answer)).unwrap_or_default())
}
