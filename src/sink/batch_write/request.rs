//! One request: its bytes, and what the answer means for each of its puts.
//!
//! When to send, and when to send again, is decided elsewhere.

use std::collections::HashMap;
use std::error::Error as StdError;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ConsumedCapacity, WriteRequest};

use crate::aws::dynamodb::{Class, classify};
use crate::codec::attributes::item_of;
use crate::error::Error;
use crate::limits;
use crate::model::{Arena, KeySchema};
use crate::sink::batch_write::condition;
use crate::sink::put_requests::{TAIL, head};

/// A target table as the service knows it.
#[derive(Debug)]
pub(super) struct ServiceTable {
    pub(super) name: String,
    pub(super) key: KeySchema,
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The service took the request.
    Done {
        /// The places of the puts that were left unprocessed; the others are durable.
        left: Vec<usize>,
        /// The write units that the service counted, where it says so.
        units: Option<f64>,
    },
    /// The put was not taken, since another item is under its key.
    Kept,
    /// The service says that it is too much; nothing was written.
    Throttled,
    /// The service, or the way to it, failed; what was written is not known, and puts may be sent again.
    Failed(Failure),
    /// The service will never take this request as it is; nothing was written.
    Refused(String),
    /// The service takes no request like this.
    Fatal(Failure),
    /// What the request would replace could not be written down, so it was not sent.
    Unlogged(Error),
}

/// An error in words, with its cause.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) what: String,
    /// It took too long.
    pub(super) late: bool,
    pub(super) cause: Option<Box<dyn StdError + Send + Sync>>,
}

/// The body of a request for one table.
pub(super) fn body<'p>(table: &ServiceTable, puts: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut body = b"{\"RequestItems\":".to_vec();
    body.extend_from_slice(&head(&table.name));
    for (at, put) in puts.enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(put);
    }
    body.extend_from_slice(TAIL);
    body.extend_from_slice(b",\"ReturnConsumedCapacity\":\"INDEXES\"}");
    body
}

/// Sends a request of several puts once. `keys` are the canonical keys of its puts, in order.
pub(super) async fn send_batch<'p>(
    client: &Client,
    table: &ServiceTable,
    body: Vec<u8>,
    keys: impl Iterator<Item = &'p [u8]> + Clone,
) -> Outcome {
    // The SDK gets an empty list, so that it knows the operation and the table; its body is replaced before it is signed.
    let sent = client
        .batch_write_item()
        .request_items(&table.name, Vec::new())
        .customize()
        .mutate_request(move |request| {
            request.headers_mut().insert("content-length", body.len().to_string());
            *request.body_mut() = body.as_slice().into();
        })
        .send()
        .await;
    match sent {
        Ok(output) => match output.unprocessed_items() {
            Some(left) => {
                let units = output.consumed_capacity().iter().filter_map(ConsumedCapacity::capacity_units).reduce(|all, one| all + one);
                Outcome::Done { left: unprocessed(table, left.values().flatten(), keys), units }
            }
            // The service always names the unprocessed items, so an answer without them was cut on its way, and says nothing.
            None => cut("UnprocessedItems"),
        },
        Err(error) => failed(error),
    }
}

/// Sends a put under a condition once. `hash` is the canonical hash of its item.
pub(super) async fn send_put(client: &Client, table: &ServiceTable, body: Vec<u8>, hash: u128) -> Outcome {
    // As for several puts.
    let sent = client
        .put_item()
        .table_name(&table.name)
        .set_item(Some(HashMap::new()))
        .customize()
        .mutate_request(move |request| {
            request.headers_mut().insert("content-length", body.len().to_string());
            *request.body_mut() = body.as_slice().into();
        })
        .send()
        .await;
    match sent {
        Ok(output) => match output.consumed_capacity() {
            Some(consumed) => Outcome::Done { left: Vec::new(), units: consumed.capacity_units() },
            // The request asks for it.
            None => cut("ConsumedCapacity"),
        },
        Err(error) => match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(refused)) => match refused.item().and_then(condition::hash) {
                // An attempt before this one, or a run before this one, has put it there.
                Some(there) if there == hash => Outcome::Done { left: Vec::new(), units: None },
                _ => Outcome::Kept,
            },
            _ => failed(error),
        },
    }
}

fn cut(missing: &str) -> Outcome {
    Outcome::Failed(Failure { what: format!("an answer without {missing}"), late: false, cause: None })
}

fn failed<E>(error: SdkError<E>) -> Outcome
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    let (code, message) = (error.code().map(str::to_owned), error.message().map(str::to_owned));
    let what = match (&code, &message, status) {
        (Some(code), Some(message), _) => format!("{code}: {message}"),
        (Some(code), None, _) => code.clone(),
        (None, _, Some(status)) if !(200..300).contains(&status) => format!("HTTP status {status}"),
        (None, _, Some(_)) => "an answer that cannot be read".to_owned(),
        (None, _, None) => "no answer".to_owned(),
    };
    match classify(code.as_deref(), status, matches!(error, SdkError::ConstructionFailure(_))) {
        Class::Throttled => Outcome::Throttled,
        Class::Refused => Outcome::Refused(what),
        Class::Failed => Outcome::Failed(Failure { what, late: matches!(error, SdkError::TimeoutError(_)), cause: Some(error.into()) }),
        Class::Fatal => Outcome::Fatal(Failure { what, late: false, cause: Some(error.into()) }),
    }
}

/// The places of the puts that the service gave back. Where one cannot be told, all count as unprocessed: a put that is sent
/// twice does no harm, one that is not sent at all does.
fn unprocessed<'p, 'r>(
    table: &ServiceTable,
    left: impl Iterator<Item = &'r WriteRequest>,
    keys: impl Iterator<Item = &'p [u8]> + Clone,
) -> Vec<usize> {
    let mut places = Vec::new();
    for request in left {
        let place = request
            .put_request()
            .and_then(|put| canonical_key(put.item(), &table.key))
            .and_then(|key| keys.clone().position(|known| known == key));
        match place {
            Some(place) => places.push(place),
            None => return (0..keys.count()).collect(),
        }
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// The canonical key of an item as the SDK gives it.
fn canonical_key(attributes: &HashMap<String, AttributeValue>, schema: &KeySchema) -> Option<Vec<u8>> {
    let arena = Arena::new();
    let item = item_of(attributes, &arena)?;
    let mut key = Vec::new();
    limits::canonical_key(&item, schema, &mut key).then_some(key)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::PutRequest;

    use super::*;
    use crate::model::{Item, KeyAttribute, KeyType, Value};

    fn table() -> ServiceTable {
        let attribute = |name: &str, kind| KeyAttribute { name: name.to_owned(), kind };
        ServiceTable {
            name: "docs".to_owned(),
            key: KeySchema { partition: attribute("PK", KeyType::S), sort: Some(attribute("SK", KeyType::N)) },
        }
    }

    #[test]
    fn a_body_is_a_whole_request() {
        let puts: [&[u8]; 2] = [b"{\"PutRequest\":1}", b"{\"PutRequest\":2}"];
        assert_eq!(
            String::from_utf8(body(&table(), puts.into_iter())).unwrap(),
            r#"{"RequestItems":{"docs":[{"PutRequest":1},{"PutRequest":2}]},"ReturnConsumedCapacity":"INDEXES"}"#
        );
    }

    fn key<'k>(partition: &'k str, sort: &'k str) -> Vec<u8> {
        let arena = Arena::new();
        let mut item = Item::new_in(&arena);
        item.push("SK", Value::N(sort));
        item.push("PK", Value::S(partition));
        let mut key = Vec::new();
        assert!(limits::canonical_key(&item, &table().key, &mut key));
        key
    }

    fn put(partition: &str, sort: &str) -> WriteRequest {
        let item = PutRequest::builder()
            .item("PK", AttributeValue::S(partition.to_owned()))
            .item("SK", AttributeValue::N(sort.to_owned()))
            .item("text", AttributeValue::Null(true))
            .build()
            .unwrap();
        WriteRequest::builder().put_request(item).build()
    }

    #[test]
    fn unprocessed_puts_are_found_by_key_and_in_doubt_all_are_sent_again() {
        let keys = [key("a", "1"), key("a", "2.0"), key("b", "1")];
        let keys = || keys.iter().map(Vec::as_slice);
        let places = |left: &[WriteRequest]| unprocessed(&table(), left.iter(), keys());
        assert_eq!(places(&[]), Vec::<usize>::new());
        assert_eq!(places(&[put("b", "1.0"), put("a", "2")]), [1, 2]);
        assert_eq!(places(&[put("b", "1"), put("b", "1")]), [2]);
        assert_eq!(places(&[put("c", "1")]), [0, 1, 2]);
        assert_eq!(places(&[WriteRequest::builder().build()]), [0, 1, 2]);
    }
}
