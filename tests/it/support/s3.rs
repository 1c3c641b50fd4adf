//! S3 that others wrote, with a `DynamoDB` that imports from it. A server is started once for all tests, by the Python of `tests/python`, and ends with this process.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dynamorph::aws::s3::{Bucket, Limits, S3};
use dynamorph::aws::{Aws, Options, StaticCredentials};
use http_body_util::Full;
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Runtime;

use crate::python::{programs, python};

/// A server.
pub(crate) struct S3Server {
    address: SocketAddr,
    buckets: AtomicUsize,
    /// The server ends when the pipe to its standard input breaks, which it does when this process ends, however it ends.
    _child: Child,
}

/// The server whose answers are nearest to those of S3.
pub(crate) fn ministack() -> &'static S3Server {
    static SERVER: OnceLock<S3Server> = OnceLock::new();
    SERVER.get_or_init(|| S3Server::start("ministack"))
}

/// A second opinion; it refuses small parts, as S3 does.
pub(crate) fn moto() -> &'static S3Server {
    static SERVER: OnceLock<S3Server> = OnceLock::new();
    SERVER.get_or_init(|| S3Server::start("moto"))
}

impl S3Server {
    fn start(name: &str) -> Self {
        let mut command = Command::new(python());
        command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(programs()).args(["serve.py", name]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("standard output is a pipe")).read_line(&mut port).expect("the server says its port");
        let port: u16 = port.trim().parse().unwrap_or_else(|_| panic!("{name} has not started: {port:?}"));
        Self { address: ([127, 0, 0, 1], port).into(), buckets: AtomicUsize::new(0), _child: child }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A new bucket, by its name.
    pub(crate) fn create_bucket(&self) -> String {
        let name = format!("bucket-{}", self.buckets.fetch_add(1, Ordering::SeqCst));
        let request = Request::builder().method(Method::PUT).uri(format!("{}/{name}", self.url())).body(Full::<Bytes>::default());
        let client = Client::builder(TokioExecutor::new()).build_http();
        let runtime = Runtime::new().expect("a runtime for one request");
        let answer = runtime.block_on(client.request(request.expect("a request"))).expect("an answer");
        assert!(answer.status().is_success(), "{answer:?}");
        name
    }

    /// A new bucket, as dynamorph sees it.
    pub(crate) fn bucket(&self) -> Bucket {
        client(&self.url(), Limits::default()).bucket(&self.create_bucket())
    }
}

/// What tests say for every client: no region, profile or credentials of whoever runs them.
pub(crate) fn options(url: &str) -> Options {
    let credentials = StaticCredentials { access_key_id: "test".to_owned(), secret_access_key: "test".to_owned() };
    Options {
        region: Some("us-east-1".to_owned()),
        s3_endpoint_url: Some(url.to_owned()),
        credentials: Some(credentials),
        ..Options::default()
    }
}

/// A client of the S3 at this address.
pub(crate) fn client(url: &str, limits: Limits) -> Arc<S3> {
    S3::with_limits(Aws::connect(&options(url)).expect("a region is named"), limits)
}
