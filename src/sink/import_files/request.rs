//! The texts beside the data: the request of `ImportTable`.

use serde::Serialize;

use super::{Compression, Options};
use crate::model::{Format, KeySchema, Table};
use crate::store::OutputFolder;

/// The request of `ImportTable`; field order is the order of the text.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ImportRequest<'t> {
    s3_bucket_source: BucketSource,
    input_format: &'static str,
    input_compression_type: &'static str,
    table_creation_parameters: TableParameters<'t>,
}

#[derive(Serialize)]
pub(super) struct BucketSource {
    #[serde(rename = "S3Bucket")]
    bucket: String,
    #[serde(rename = "S3BucketOwner", skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(rename = "S3KeyPrefix")]
    prefix: String,
}

impl BucketSource {
    /// The data of a table. Where the files will lie in S3 is not known of a folder on this machine.
    pub(super) fn new(within: &OutputFolder, table: &str) -> Self {
        match within {
            OutputFolder::Local(_) => Self { bucket: "REPLACE-WITH-YOUR-BUCKET".to_owned(), owner: None, prefix: format!("{table}/data/") },
            #[cfg(feature = "s3")]
            OutputFolder::S3(folder) => Self {
                bucket: folder.bucket().name().to_owned(),
                owner: folder.bucket().expected_owner().map(str::to_owned),
                prefix: format!("{}{table}/data/", folder.prefix()),
            },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TableParameters<'t> {
    table_name: &'t str,
    attribute_definitions: Vec<AttributeDefinition<'t>>,
    key_schema: Vec<KeyElement<'t>>,
    billing_mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    global_secondary_indexes: Vec<GlobalIndex<'t>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct AttributeDefinition<'t> {
    attribute_name: &'t str,
    attribute_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeyElement<'t> {
    attribute_name: &'t str,
    key_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GlobalIndex<'t> {
    index_name: &'t str,
    key_schema: Vec<KeyElement<'t>>,
    projection: Projection,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Projection {
    projection_type: &'static str,
}

fn key_schema(key: &KeySchema) -> Vec<KeyElement<'_>> {
    key.attributes().zip(["HASH", "RANGE"]).map(|(attribute, key_type)| KeyElement { attribute_name: &attribute.name, key_type }).collect()
}

/// The text of `table.json`. The service refuses a definition that no key uses and one that is there twice.
pub(super) fn table_json(table: &Table, service_name: &str, options: Options, s3_bucket_source: BucketSource) -> String {
    let mut attribute_definitions: Vec<AttributeDefinition<'_>> = Vec::new();
    for attribute in table.key.attributes().chain(table.indexes.iter().flat_map(|index| index.key.attributes())) {
        if attribute_definitions.iter().all(|known| known.attribute_name != attribute.name) {
            attribute_definitions
                .push(AttributeDefinition { attribute_name: &attribute.name, attribute_type: attribute.kind.descriptor() });
        }
    }
    let request = ImportRequest {
        s3_bucket_source,
        input_format: match options.format {
            Format::Json => "DYNAMODB_JSON",
            Format::Ion => "ION",
        },
        input_compression_type: match options.compression {
            Compression::Gzip => "GZIP",
            Compression::Zstd => "ZSTD",
        },
        table_creation_parameters: TableParameters {
            table_name: service_name,
            attribute_definitions,
            key_schema: key_schema(&table.key),
            // The service refuses a request without a billing mode, since it would mean provisioned.
            billing_mode: "PAY_PER_REQUEST",
            global_secondary_indexes: table
                .indexes
                .iter()
                .map(|index| GlobalIndex {
                    index_name: &index.name,
                    key_schema: key_schema(&index.key),
                    projection: Projection { projection_type: "ALL" },
                })
                .collect(),
        },
    };
    let mut text = serde_json::to_string_pretty(&request).expect("the request holds texts and lists only");
    text.push('\n');
    text
}
