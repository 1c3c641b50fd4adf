//! Single items: read by their keys, and put or deleted on a condition.
//!
//! Keys, items and conditions are JSON that the caller has written; the SDK signs and sends it.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};

use crate::aws::dynamodb::{Asker, DynamoDb, FIRST_PAUSE, LAST_PAUSE};
use crate::aws::pauses::Pauses;
use crate::error::{Error, Kind, Result};

/// How often an answer without its parts is asked for again.
const ATTEMPTS: u32 = 10;

/// An item as the SDK gives it.
pub type Attributes = HashMap<String, AttributeValue>;

/// What became of a write on a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Conditional {
    /// It was done.
    Done,
    /// The condition does not hold. The item that is there, where there is one and the request asked for it.
    Refused(Option<Attributes>),
}

impl Asker {
    /// The items that a table has under these keys, in no order; a key without an item gives none. The read is consistent. `keys` are at
    /// most 100 different ones, each an object of key attributes.
    pub(crate) async fn items(&self, table: &str, keys: &[&[u8]]) -> Result<Vec<Attributes>> {
        let mut found = Vec::new();
        let mut body = Some(read_body(table, keys));
        let mut left: Option<HashMap<String, KeysAndAttributes>> = None;
        let mut pauses = Pauses::new(FIRST_PAUSE, LAST_PAUSE);
        let (mut idle, mut cut) = (0, 0);
        loop {
            let send = |client: Client| {
                let (body, left, table) = (body.clone(), left.clone(), table.to_owned());
                async move {
                    let Some(body) = body else { return client.batch_get_item().set_request_items(left).send().await };
                    // The SDK gets an empty list, so that it knows the operation and the table.
                    let none = KeysAndAttributes::builder().set_keys(Some(Vec::new())).build().map_err(SdkError::construction_failure)?;
                    client.batch_get_item().request_items(table, none).customize().mutate_request(replaced(body)).send().await
                }
            };
            let Some(answer) = self.ask("dynamodb:BatchGetItem", table, &[], send).await? else { return Ok(found) };
            // The service always names both, so an answer without them was cut on its way; it must not pass for one that found nothing.
            let (Some(responses), Some(unread)) = (answer.responses, answer.unprocessed_keys) else {
                cut += 1;
                if cut == ATTEMPTS {
                    return Err(Error::new(Kind::Unavailable, "DynamoDB gives no usable answer")
                        .with("action", "dynamodb:BatchGetItem")
                        .with("table", table)
                        .with("at", &*self.place)
                        .with("found", "answers without Responses and UnprocessedKeys"));
                }
                tokio::time::sleep(pauses.after(cut)).await;
                continue;
            };
            let before = found.len();
            found.extend(responses.into_values().flatten());
            if unread.values().all(|keys| keys.keys().is_empty()) {
                return Ok(found);
            }
            (body, left) = (None, Some(unread));
            // An answer ends at 16 MB, and the next one brings the rest; one that brought nothing was throttled.
            if found.len() == before {
                tokio::time::sleep(pauses.after(idle)).await;
                idle += 1;
            } else {
                idle = 0;
            }
        }
    }
}

impl DynamoDb {
    /// The items that a table has under these keys, in no order; a key without an item gives none. The read is consistent. `keys` are at
    /// most 100 different ones, each an object of key attributes in `DynamoDB` JSON.
    ///
    /// # Errors
    /// Kind `Service` when the service refuses; kind `Unavailable` when it gives no usable answer.
    pub fn items(&self, table: &str, keys: &[&[u8]]) -> Result<Vec<Attributes>> {
        self.aws.block_on(self.asker.items(table, keys))
    }

    /// Sends a `PutItem` with this body, which has a condition.
    ///
    /// # Errors
    /// As for [`items`](Self::items).
    pub fn put_if(&self, table: &str, body: &[u8]) -> Result<Conditional> {
        let send = async |client: &Client| {
            let put = client.put_item().table_name(table).set_item(Some(HashMap::new()));
            match put.customize().mutate_request(replaced(body.to_vec())).send().await {
                Ok(_) => Ok(Conditional::Done),
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(refused)) => Ok(Conditional::Refused(refused.item.clone())),
                    _ => Err(error),
                },
            }
        };
        Ok(self.ask("dynamodb:PutItem", table, &[], &send)?.unwrap_or(Conditional::Refused(None)))
    }

    /// Sends a `DeleteItem` with this body, which has a condition.
    ///
    /// # Errors
    /// As for [`items`](Self::items).
    pub fn delete_if(&self, table: &str, body: &[u8]) -> Result<Conditional> {
        let send = async |client: &Client| {
            let delete = client.delete_item().table_name(table).set_key(Some(HashMap::new()));
            match delete.customize().mutate_request(replaced(body.to_vec())).send().await {
                Ok(_) => Ok(Conditional::Done),
                Err(error) => match error.as_service_error() {
                    Some(DeleteItemError::ConditionalCheckFailedException(refused)) => Ok(Conditional::Refused(refused.item.clone())),
                    _ => Err(error),
                },
            }
        };
        Ok(self.ask("dynamodb:DeleteItem", table, &[], &send)?.unwrap_or(Conditional::Refused(None)))
    }
}

/// Puts `body` in place of what the SDK wrote, before it is signed.
fn replaced(body: Vec<u8>) -> impl Fn(&mut HttpRequest) + Send + Sync + 'static {
    move |request| {
        request.headers_mut().insert("content-length", body.len().to_string());
        *request.body_mut() = body.as_slice().into();
    }
}

fn read_body(table: &str, keys: &[&[u8]]) -> Vec<u8> {
    // A table's name holds nothing that JSON escapes.
    let mut body = format!("{{\"RequestItems\":{{\"{table}\":{{\"ConsistentRead\":true,\"Keys\":[").into_bytes();
    for (at, key) in keys.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(key);
    }
    body.extend_from_slice(b"]}}}");
    body
}
