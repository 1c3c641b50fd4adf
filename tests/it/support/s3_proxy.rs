//! A proxy that hands requests to an S3 server and fails in the ways that S3 and a network fail.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::support::proxy::Cut;

/// What happens to a request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The server is not asked; this status comes back, with this code and message as S3 writes them.
    Error(u16, &'static str, &'static str),
    /// The server is not asked; this status and this header come back, without a body.
    Bare(u16, Option<(&'static str, &'static str)>),
    /// The connection is cut before the server is asked.
    Refuse,
    /// The connection is cut after the server has done what was asked.
    Lose,
    /// So many bytes of the body come back, then the connection is cut.
    Cut(usize),
    /// So many bytes of the body come back, then nothing more.
    Stall(usize),
    /// One byte of the body comes back as another.
    Corrupt(usize),
    /// The server gets an object of these bytes under the same key first.
    Replace(&'static str),
    /// The same at another path.
    ReplaceAt(String, &'static str),
    /// Nothing comes back, as long as the other side waits.
    Hang,
    /// The server sees no condition.
    Heedless,
    /// The server sees no range.
    Rangeless,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// With the query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// How many requests had come before.
    pub(crate) at: usize,
}

impl Asked {
    /// The first and the last byte that are asked for.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        let range = self.headers.get("range")?.to_str().ok()?.strip_prefix("bytes=")?;
        let (first, last) = range.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("headers are text"))
    }

    /// It asks for an object, or a part of one.
    pub(crate) fn is_get(&self) -> bool {
        self.method == Method::GET && !self.path.contains('?') | self.path.contains("x-id=GetObject")
    }
}

type Plan = Box<dyn Fn(&Asked) -> Fault + Send + Sync>;

/// The proxy. It ends when it is dropped.
pub(crate) struct S3Proxy {
    address: SocketAddr,
    seen: Arc<Seen>,
    _runtime: Runtime,
}

struct Seen {
    server: SocketAddr,
    plan: Plan,
    asked: Mutex<Vec<Asked>>,
    /// Bodies that have not reached their ends.
    open: AtomicUsize,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl S3Proxy {
    pub(crate) fn start(server: SocketAddr, plan: impl Fn(&Asked) -> Fault + Send + Sync + 'static) -> Self {
        let runtime = Runtime::new().expect("a runtime for the proxy");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("the port");
        let client = Client::builder(TokioExecutor::new()).build_http();
        let seen = Arc::new(Seen { server, plan: Box::new(plan), asked: Mutex::default(), open: AtomicUsize::new(0), client });
        let shared = Arc::clone(&seen);
        runtime.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let seen = Arc::clone(&shared);
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
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

    /// The requests so far, in the order in which they came.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.seen.asked.lock().expect("no test panics while it holds the list").clone()
    }

    /// Those of them that ask for an object.
    pub(crate) fn gets(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(Asked::is_get).collect()
    }

    /// The bodies that have not reached their ends.
    pub(crate) fn open(&self) -> usize {
        self.seen.open.load(Ordering::SeqCst)
    }
}

/// How a body ends.
enum Ending {
    Whole,
    Stall,
    /// So many turns are left in which what was written leaves this process.
    Cut(usize),
}

/// A body that may end in another way than it says.
struct Faulty {
    frames: VecDeque<Bytes>,
    ending: Ending,
    seen: Arc<Seen>,
}

impl Faulty {
    fn new(bytes: &Bytes, ending: Ending, seen: &Arc<Seen>) -> Self {
        seen.open.fetch_add(1, Ordering::SeqCst);
        let frames = (0..bytes.len()).step_by(16 << 10).map(|at| bytes.slice(at..bytes.len().min(at + (16 << 10)))).collect();
        Self { frames, ending, seen: Arc::clone(seen) }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.seen.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Body for Faulty {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        match &mut self.ending {
            Ending::Whole => Poll::Ready(None),
            Ending::Stall => Poll::Pending,
            Ending::Cut(0) => Poll::Ready(Some(Err(Cut))),
            Ending::Cut(turns) => {
                *turns -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

async fn answer(request: Request<Incoming>, seen: Arc<Seen>) -> Result<Response<Faulty>, Cut> {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let asked = {
        let mut list = seen.asked.lock().expect("no test panics while it holds the list");
        let path = head.uri.path_and_query().expect("a request has a path").to_string();
        let asked = Asked { method: head.method.clone(), path, headers: head.headers.clone(), at: list.len() };
        list.push(asked.clone());
        asked
    };
    let without_body = head.method == Method::HEAD;
    match (seen.plan)(&asked) {
        Fault::Error(status, code, message) => {
            let text =
                format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>");
            let text = Bytes::from(if without_body { String::new() } else { text });
            let response = Response::builder().status(status).header("content-type", "application/xml");
            Ok(response.body(Faulty::new(&text, Ending::Whole, &seen)).expect("a response"))
        }
        Fault::Bare(status, header) => {
            let response = Response::builder().status(status);
            let response = header.into_iter().fold(response, |response, (name, value)| response.header(name, value));
            Ok(response.body(Faulty::new(&Bytes::new(), Ending::Whole, &seen)).expect("a response"))
        }
        Fault::Refuse => Err(Cut),
        Fault::Lose => {
            forward(&head, body, &seen, |body| (body, Ending::Whole)).await?;
            Err(Cut)
        }
        Fault::Cut(bytes) => forward(&head, body, &seen, |body| (body.slice(..bytes.min(body.len())), Ending::Cut(100))).await,
        Fault::Stall(bytes) => forward(&head, body, &seen, |body| (body.slice(..bytes.min(body.len())), Ending::Stall)).await,
        Fault::Corrupt(at) => {
            let corrupt = |body: Bytes| {
                let mut body = body.to_vec();
                body[at] ^= 1;
                (Bytes::from(body), Ending::Whole)
            };
            forward(&head, body, &seen, corrupt).await
        }
        Fault::Hang => std::future::pending().await,
        Fault::Replace(text) => {
            put(&seen, &asked.path, text).await;
            forward(&head, body, &seen, |body| (body, Ending::Whole)).await
        }
        Fault::ReplaceAt(path, text) => {
            put(&seen, &path, text).await;
            forward(&head, body, &seen, |body| (body, Ending::Whole)).await
        }
        fault @ (Fault::None | Fault::Heedless | Fault::Rangeless) => {
            match fault {
                Fault::Heedless => drop(head.headers.remove("if-match")),
                Fault::Rangeless => drop(head.headers.remove("range")),
                _ => {}
            }
            forward(&head, body, &seen, |body| (body, Ending::Whole)).await
        }
    }
}

async fn put(seen: &Seen, path: &str, text: &'static str) {
    let request = Request::builder().method(Method::PUT).uri(format!("http://{}{path}", seen.server));
    let put = seen.client.request(request.body(Full::from(text)).expect("a request")).await;
    assert!(put.expect("an answer").status().is_success());
}

/// Asks the server, and changes the body of its answer.
async fn forward(
    head: &Parts,
    body: Bytes,
    seen: &Arc<Seen>,
    change: impl FnOnce(Bytes) -> (Bytes, Ending),
) -> Result<Response<Faulty>, Cut> {
    let path = head.uri.path_and_query().expect("a request has a path");
    let mut request = Request::builder().method(head.method.clone()).uri(format!("http://{}{path}", seen.server));
    for (name, value) in head.headers.iter().filter(|(name, _)| !["host", "content-length"].contains(&name.as_str())) {
        request = request.header(name, value);
    }
    let answer = seen.client.request(request.body(Full::new(body)).expect("a request")).await.map_err(|_| Cut)?;
    let (mut head, body) = answer.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    for name in ["transfer-encoding", "connection", "keep-alive"] {
        head.headers.remove(name);
    }
    let (body, ending) = change(body);
    Ok(Response::from_parts(head, Faulty::new(&body, ending, seen)))
}
