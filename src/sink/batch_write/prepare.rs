//! A look at a target table before anything is written: is it there, and has it the keys that the pipeline says?
//!
//! A wrong key type would refuse every item; a wrong index key type would refuse batches here and there. Nothing is changed.

use std::fmt::Write as _;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeDefinition, KeySchemaElement, KeyType as ServiceKeyType, TableDescription, TableStatus};
use tokio::time::Instant;

use crate::aws::dynamodb::{Class, classify};
use crate::error::{Error, Kind, Result};
use crate::model::{KeySchema, Table};

/// How long to wait before the table is asked for again.
const PAUSE: Duration = Duration::from_millis(500);

/// Checks that the table is there, active (it gets until `patience` is over), and has the pipeline's keys and indexes. Indexes
/// that the pipeline does not know are no mistake.
pub(super) async fn check_table(client: &Client, table: &Table, name: &str, place: &str, patience: Duration) -> Result<()> {
    let until = Instant::now() + patience;
    let about = |error: Error| error.with("table", name).with("at", place);
    loop {
        let last = Instant::now() >= until;
        match client.describe_table().table_name(name).send().await {
            Ok(output) => {
                let Some(found) = output.table() else {
                    return Err(about(Error::new(Kind::Service, "an answer to DescribeTable without a table")));
                };
                match found.table_status() {
                    Some(TableStatus::Active | TableStatus::Updating) => return compare(table, found).map_err(about),
                    Some(TableStatus::Creating) if !last => {}
                    status => {
                        let status = status.map_or("unknown", TableStatus::as_str);
                        return Err(about(Error::new(Kind::Service, "the table is not active")).with("found", status));
                    }
                }
            }
            Err(error) => {
                let status = error.raw_response().map(|response| response.status().as_u16());
                if error.code() == Some("ResourceNotFoundException") {
                    return Err(about(Error::new(Kind::Usage, "the target table does not exist"))
                        .with("hint", format_args!("create it first, or give the name it has there: --table {}=NAME", table.name)));
                }
                let unsendable = matches!(error, SdkError::ConstructionFailure(_));
                let passing = matches!(classify(error.code(), status, unsendable), Class::Throttled | Class::Failed);
                if last || !passing {
                    let what = match (error.code(), error.message()) {
                        (Some(code), Some(message)) => format!("{code}: {message}"),
                        (Some(code), None) => code.to_owned(),
                        (None, _) => "no usable answer".to_owned(),
                    };
                    return Err(about(Error::new(Kind::Service, "cannot look at the target table"))
                        .with("action", "dynamodb:DescribeTable")
                        .with("found", what)
                        .caused_by(error));
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Compares the keys of the table and of every index of the pipeline.
fn compare(table: &Table, found: &TableDescription) -> Result<()> {
    let definitions = found.attribute_definitions();
    same_key("the table", &table.key, found.key_schema(), definitions)?;
    for index in &table.indexes {
        let global = found.global_secondary_indexes().iter().map(|index| (index.index_name(), index.key_schema()));
        let local = found.local_secondary_indexes().iter().map(|index| (index.index_name(), index.key_schema()));
        let Some((_, key)) = global.chain(local).find(|(name, _)| *name == Some(index.name.as_str())) else {
            return Err(Error::new(Kind::Usage, "the target table lacks an index that the pipeline declares")
                .with("index", &index.name)
                .with("hint", "create the index, or take it out of the pipeline"));
        };
        same_key(&format!("index {}", index.name), &index.key, key, definitions)?;
    }
    Ok(())
}

fn same_key(of: &str, expected: &KeySchema, found: &[KeySchemaElement], definitions: &[AttributeDefinition]) -> Result<()> {
    let expected = in_words(
        expected
            .attributes()
            .zip(["partition", "sort"])
            .map(|(attribute, role)| (attribute.name.as_str(), attribute.kind.descriptor(), role)),
    );
    let found = in_words(found.iter().map(|element| {
        let kind = definitions
            .iter()
            .find(|definition| definition.attribute_name() == element.attribute_name())
            .map_or("?", |definition| definition.attribute_type().as_str());
        let role = if *element.key_type() == ServiceKeyType::Hash { "partition" } else { "sort" };
        (element.attribute_name(), kind, role)
    }));
    if expected == found {
        return Ok(());
    }
    Err(Error::new(Kind::Usage, format!("{of} has another key than the pipeline says"))
        .with("expected", expected)
        .with("found", found)
        .with("hint", "correct the pipeline's `key` and `types`, or create the table anew"))
}

/// A key in words: `PK (S, partition), SK (S, sort)`.
fn in_words<'k>(attributes: impl Iterator<Item = (&'k str, &'k str, &'k str)>) -> String {
    let mut words = String::new();
    for (name, kind, role) in attributes {
        let separator = if words.is_empty() { "" } else { ", " };
        write!(words, "{separator}{name} ({kind}, {role})").expect("a text takes any text");
    }
    words
}
