//! A proxy that hands requests to a server and fails in the ways that a service and a network fail.
//!
//! Writes of items fail, and where a test says so, `BatchGetItem`; everything else passes.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The server is not asked; this status and code come back.
    Code(u16, &'static str),
    /// The server has written; this status and code come back in place of its answer.
    CodeAfter(u16, &'static str),
    /// The connection is cut before the server is asked.
    ResetBefore,
    /// The connection is cut after the server has written.
    ResetAfter,
    /// The server has written, and its answer comes this late.
    Slow(Duration),
    /// The last so many puts are kept from the server, and come back as unprocessed.
    Partial(usize),
    /// The server is not asked; this comes back with status 200.
    Blank(&'static str),
    /// The server has written, and only so many bytes of its answer come back.
    Truncate(usize),
}

/// The proxy. It ends when it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    seen: Arc<Seen>,
    _runtime: Runtime,
}

/// What passed.
#[derive(Default)]
struct Seen {
    calls: AtomicUsize,
    reads: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    requests: Mutex<Vec<Call>>,
}

/// A `BatchWriteItem` or `PutItem` that passed.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) bytes: usize,
    pub(crate) puts: usize,
    /// Different values of `PK` in them.
    pub(crate) partitions: usize,
    pub(crate) status: Option<u16>,
}

/// What happens to the nth `BatchWriteItem` or `PutItem`, from 0.
pub(crate) type Plan = fn(usize) -> Fault;

impl Proxy {
    pub(crate) fn start(server: SocketAddr, plan: Plan) -> Self {
        Self::start_with(server, plan, |_| Fault::None)
    }

    /// A proxy in which the nth `BatchGetItem` fails too, as `reads` says.
    pub(crate) fn start_with(server: SocketAddr, plan: Plan, reads: Plan) -> Self {
        let runtime = Runtime::new().expect("a runtime for the proxy");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("the port");
        let seen = Arc::new(Seen::default());
        let client = Client::builder(TokioExecutor::new()).build_http();
        let shared = Arc::clone(&seen);
        runtime.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                // A connection that is dropped early is reset, not closed.
                let _ = connection.set_zero_linger();
                let (client, seen) = (client.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, server, client.clone(), Arc::clone(&seen), (plan, reads)));
                    // The error that cuts a connection is one that the test asked for.
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
                });
            }
        });
        Self { address, seen, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The `BatchWriteItem` and `PutItem` calls so far, in the order of their ends.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.seen.requests.lock().expect("no test panics while it holds the list").clone()
    }

    /// The most of them that were under way at a time.
    pub(crate) fn most_under_way(&self) -> usize {
        self.seen.most_under_way.load(Ordering::SeqCst)
    }
}

/// The connection is to be cut.
#[derive(Debug)]
pub(crate) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut on purpose")
    }
}

impl std::error::Error for Cut {}

impl From<Infallible> for Cut {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

type Http = Client<HttpConnector, Full<Bytes>>;

async fn answer(
    request: Request<Incoming>,
    server: SocketAddr,
    client: Http,
    seen: Arc<Seen>,
    (plan, reads): (Plan, Plan),
) -> Result<Response<Full<Bytes>>, Cut> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let action = head.headers.get("x-amz-target").and_then(|target| target.to_str().ok()?.strip_prefix("DynamoDB_20120810."));
    if action == Some("BatchGetItem") {
        let call = seen.reads.fetch_add(1, Ordering::SeqCst);
        return read(&head, body, server, &client, reads(call)).await;
    }
    if !matches!(action, Some("BatchWriteItem" | "PutItem" | "DeleteItem")) {
        return forward(&head, body, server, &client).await;
    }
    let call = seen.calls.fetch_add(1, Ordering::SeqCst);
    let now = seen.under_way.fetch_add(1, Ordering::SeqCst) + 1;
    seen.most_under_way.fetch_max(now, Ordering::SeqCst);
    let bytes = body.len();
    let (puts, partitions) = puts(&body);
    let answered = write(&head, body, server, &client, plan(call)).await;
    seen.under_way.fetch_sub(1, Ordering::SeqCst);
    let status = answered.as_ref().ok().map(|answer| answer.status().as_u16());
    seen.requests.lock().expect("no test panics while it holds the list").push(Call { bytes, puts, partitions, status });
    answered
}

fn puts(body: &[u8]) -> (usize, usize) {
    let body: Value = serde_json::from_slice(body).expect("a request is JSON");
    let Some(tables) = body["RequestItems"].as_object() else { return (1, 1) };
    let puts: Vec<_> = tables.values().filter_map(Value::as_array).flatten().collect();
    let partitions: BTreeSet<_> = puts.iter().map(|put| put["PutRequest"]["Item"]["PK"].to_string()).collect();
    (puts.len(), partitions.len())
}

async fn write(
    head: &hyper::http::request::Parts,
    body: Bytes,
    server: SocketAddr,
    client: &Http,
    fault: Fault,
) -> Result<Response<Full<Bytes>>, Cut> {
    match fault {
        Fault::None => forward(head, body, server, client).await,
        Fault::Code(status, code) => Ok(error(status, code)),
        Fault::CodeAfter(status, code) => {
            forward(head, body, server, client).await?;
            Ok(error(status, code))
        }
        Fault::ResetBefore => Err(Cut),
        Fault::ResetAfter => {
            forward(head, body, server, client).await?;
            Err(Cut)
        }
        Fault::Slow(pause) => {
            let answer = forward(head, body, server, client).await;
            tokio::time::sleep(pause).await;
            answer
        }
        Fault::Partial(count) => {
            let mut request: Value = serde_json::from_slice(&body).expect("a request is JSON");
            let tables = request["RequestItems"].as_object_mut().expect("a request names tables");
            let (table, all) = tables.iter_mut().next().expect("a request names a table");
            let all = all.as_array_mut().expect("a table has a list");
            let kept = all.split_off(all.len().saturating_sub(count));
            let (table, nothing_left) = (table.clone(), all.is_empty());
            if !nothing_left {
                let sent = Bytes::from(serde_json::to_vec(&request).expect("JSON"));
                let answer = forward(head, sent, server, client).await?;
                if answer.status() != StatusCode::OK {
                    return Ok(answer);
                }
            }
            Ok(response(StatusCode::OK, &json!({ "UnprocessedItems": { table: kept } })))
        }
        Fault::Blank(body) => Ok(Response::new(Full::new(Bytes::from_static(body.as_bytes())))),
        Fault::Truncate(bytes) => {
            let answer = forward(head, body, server, client).await?;
            let whole = answer.into_body().collect().await.unwrap_or_else(|never| match never {}).to_bytes();
            let part = whole.slice(..bytes.min(whole.len()));
            Ok(Response::builder().header("content-type", "application/x-amz-json-1.0").body(Full::new(part)).expect("a response"))
        }
    }
}

/// A `BatchGetItem`; of a partial one the last so many keys are kept from the server, and come back as unprocessed.
async fn read(
    head: &hyper::http::request::Parts,
    body: Bytes,
    server: SocketAddr,
    client: &Http,
    fault: Fault,
) -> Result<Response<Full<Bytes>>, Cut> {
    let Fault::Partial(count) = fault else { return write(head, body, server, client, fault).await };
    let mut request: Value = serde_json::from_slice(&body).expect("a request is JSON");
    let tables = request["RequestItems"].as_object_mut().expect("a request names tables");
    let (table, asked) = tables.iter_mut().next().expect("a request names a table");
    let all = asked["Keys"].as_array_mut().expect("a table has keys");
    let kept = all.split_off(all.len().saturating_sub(count));
    let (table, nothing_left) = (table.clone(), all.is_empty());
    let mut found = json!({ "Responses": {} });
    if !nothing_left {
        let sent = Bytes::from(serde_json::to_vec(&request).expect("JSON"));
        let answer = forward(head, sent, server, client).await?;
        if answer.status() != StatusCode::OK {
            return Ok(answer);
        }
        let whole = answer.into_body().collect().await.unwrap_or_else(|never| match never {}).to_bytes();
        found = serde_json::from_slice(&whole).expect("an answer is JSON");
    }
    found["UnprocessedKeys"] = json!({ table: { "Keys": kept, "ConsistentRead": true } });
    Ok(response(StatusCode::OK, &found))
}

/// Asks the server. The check sum of its answer is left out, since the answer may be changed on its way.
async fn forward(head: &hyper::http::request::Parts, body: Bytes, server: SocketAddr, client: &Http) -> Result<Response<Full<Bytes>>, Cut> {
    let mut request = Request::builder().method(head.method.clone()).uri(format!("http://{server}{}", head.uri.path()));
    for (name, value) in &head.headers {
        if name != "content-length" && name != "host" {
            request = request.header(name, value);
        }
    }
    let answer = client.request(request.body(Full::new(body)).expect("a request")).await.map_err(|_| Cut)?;
    let status = answer.status();
    let body = answer.into_body().collect().await.map_err(|_| Cut)?.to_bytes();
    let answer = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    Ok(answer.body(Full::new(body)).expect("a response"))
}

fn error(status: u16, code: &str) -> Response<Full<Bytes>> {
    let error = json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "on purpose" });
    response(StatusCode::from_u16(status).expect("a status"), &error)
}

fn response(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let body = Full::new(Bytes::from(body.to_string()));
    Response::builder().status(status).header("content-type", "application/x-amz-json-1.0").body(body).expect("a response")
}
