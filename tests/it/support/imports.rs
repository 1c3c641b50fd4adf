//! A `DynamoDB` that answers as a test says: for what no server that others wrote does.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::support::proxy::Cut;

/// What comes back.
pub(crate) enum Answer {
    Json(Value),
    /// An error with this code and message.
    Error(&'static str, &'static str),
    /// The connection is cut.
    Cut,
}

/// An action and its request.
pub(crate) type Asked = (String, Value);

/// Gets the action, its request, and how often this action was asked for before.
type Says = Box<dyn Fn(&str, &Value, usize) -> Answer + Send + Sync>;

/// The server. It ends when it is dropped.
pub(crate) struct Scripted {
    address: SocketAddr,
    shared: Arc<(Says, Mutex<Vec<Asked>>)>,
    _runtime: Runtime,
}

impl Scripted {
    pub(crate) fn start(says: impl Fn(&str, &Value, usize) -> Answer + Send + Sync + 'static) -> Self {
        let runtime = Runtime::new().expect("a runtime for the server");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("the port");
        let says: Says = Box::new(says);
        let shared = Arc::new((says, Mutex::new(Vec::new())));
        let seen = Arc::clone(&shared);
        runtime.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
                    // The error that cuts a connection is one that the test asked for.
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
                });
            }
        });
        Self { address, shared, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.1.lock().expect("no test panics while it holds the list").clone()
    }

    /// The requests of one action.
    pub(crate) fn requests(&self, action: &str) -> Vec<Value> {
        self.asked().into_iter().filter(|(asked, _)| asked == action).map(|(_, request)| request).collect()
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<(Says, Mutex<Vec<Asked>>)>) -> Result<Response<Full<Bytes>>, Cut> {
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok()).expect("a request of DynamoDB").to_owned();
    let action = target.rsplit('.').next().expect("a text has a last part").to_owned();
    let length: usize = request.headers()["content-length"].to_str().expect("headers are text").parse().expect("a length");
    let body = request.into_body().collect().await.map_err(|_| Cut)?.to_bytes();
    assert_eq!(body.len(), length);
    let asked: Value = serde_json::from_slice(&body).expect("a request is JSON");
    let before = {
        let mut list = shared.1.lock().expect("no test panics while it holds the list");
        let before = list.iter().filter(|(other, _)| *other == action).count();
        list.push((action.clone(), asked.clone()));
        before
    };
    let (status, json) = match (shared.0)(&action, &asked, before) {
        Answer::Json(json) => (200, json),
        Answer::Error(code, message) => (400, json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message })),
        Answer::Cut => return Err(Cut),
    };
    let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    Ok(response.body(Full::from(json.to_string())).expect("a response"))
}

/// Asks a `DynamoDB` that checks no signatures.
pub(crate) fn ask(url: &str, action: &str, request: &Value) -> Value {
    let request = Request::post(url)
        .header("x-amz-target", format!("DynamoDB_20120810.{action}"))
        .header("content-type", "application/x-amz-json-1.0")
        .header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
        )
        .body(Full::<Bytes>::from(request.to_string()))
        .expect("a request");
    let client = Client::builder(TokioExecutor::new()).build_http();
    Runtime::new().expect("a runtime for one request").block_on(async {
        let answer = client.request(request).await.expect("an answer");
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice(&body).expect("an answer is JSON")
    })
}
