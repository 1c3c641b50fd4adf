//! Servers for the tests: a `DynamoDB` that others wrote, in this process, S3 that others wrote, beside it, and proxies in front of them
//! that fail on purpose.

pub(crate) mod imports;
pub(crate) mod proxy;
pub(crate) mod s3;
pub(crate) mod s3_proxy;

use std::net::SocketAddr;

use dynoxide::Database;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// A `DynamoDB` of its own, empty, on a port of its own. It ends when it is dropped.
pub(crate) struct Server {
    pub(crate) database: Database,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    _runtime: Runtime,
}

impl Server {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime for the server");
        let database = Database::memory().expect("a database in memory");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("the port");
        let (stop, stopped) = oneshot::channel();
        let served = database.clone();
        runtime.spawn(async move {
            dynoxide::server::serve_with_shutdown(listener, served, async {
                let _ = stopped.await;
            })
            .await
        });
        Self { database, address, stop: Some(stop), _runtime: runtime }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Creates a table with string keys and, by name, indexes with string keys.
    pub(crate) fn create_table(&self, name: &str, key: &[(&str, &str)], indexes: &[(&str, &[(&str, &str)])]) {
        let schema = |key: &[(&str, &str)]| -> Value {
            key.iter().zip(["HASH", "RANGE"]).map(|((attribute, _), role)| json!({ "AttributeName": attribute, "KeyType": role })).collect()
        };
        let mut attributes: Vec<_> = key.iter().chain(indexes.iter().flat_map(|(_, key)| *key)).collect();
        attributes.sort_unstable();
        attributes.dedup();
        let definitions: Value = attributes.iter().map(|(name, kind)| json!({ "AttributeName": name, "AttributeType": kind })).collect();
        let mut request = json!({
            "TableName": name,
            "KeySchema": schema(key),
            "AttributeDefinitions": definitions,
            "BillingMode": "PAY_PER_REQUEST",
        });
        if !indexes.is_empty() {
            request["GlobalSecondaryIndexes"] = indexes
                .iter()
                .map(|(name, key)| json!({ "IndexName": name, "KeySchema": schema(key), "Projection": { "ProjectionType": "ALL" } }))
                .collect();
        }
        self.database.create_table(serde_json::from_value(request).expect("a request for a table")).expect("a new table");
    }

    /// All items of a table as `DynamoDB` JSON, in no order.
    pub(crate) fn items(&self, table: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut start = Value::Null;
        loop {
            let mut request = json!({ "TableName": table });
            if !start.is_null() {
                request["ExclusiveStartKey"] = start;
            }
            let page = self.database.scan(serde_json::from_value(request).expect("a request for a scan")).expect("a page");
            let mut page = serde_json::to_value(page).expect("a page as JSON");
            if let Some(found) = page["Items"].as_array_mut() {
                items.append(found);
            }
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return items;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}
