//! The texts beside the data: requests of `ImportTable` and `StartBulkPutItems`, the commands that send them, and what the data should count.
//!
//! The request of `StartBulkPutItems` follows the API reference ("`StartBulkPutItems`", "`InputS3Configuration`", "`OutputS3Configuration`");
//! it was never sent by this program. Where items that cannot be put are reported is a required field of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Compression, Options};
use crate::model::{Billing, Format, KeySchema, Table};
use crate::sink::import_files::COUNTS;
use crate::store::OutputFolder;

/// Stands for the bucket where it is not known.
const BUCKET: &str = "REPLACE-WITH-YOUR-BUCKET";

/// Where the files of a run lie, or will lie.
pub(super) struct Place<'f> {
    bucket: &'f str,
    owner: Option<&'f str>,
    /// Empty, or with a `/` at its end.
    prefix: &'f str,
    in_s3: bool,
}

impl<'f> Place<'f> {
    /// Where a folder of this machine will lie in S3 is not known.
    pub(super) fn of(folder: &'f OutputFolder) -> Self {
        match folder {
            OutputFolder::Local(_) => Self { bucket: BUCKET, owner: None, prefix: "", in_s3: false },
            #[cfg(feature = "s3")]
            OutputFolder::S3(folder) => {
                let bucket = folder.bucket();
                Self { bucket: bucket.name(), owner: bucket.expected_owner(), prefix: folder.prefix(), in_s3: true }
            }
        }
    }
}

impl Options {
    fn input_format(self) -> &'static str {
        match self.format {
            Format::Json => "DYNAMODB_JSON",
            Format::Ion => "ION",
        }
    }

    fn input_compression(self) -> &'static str {
        match self.compression {
            Compression::Gzip => "GZIP",
            Compression::Zstd => "ZSTD",
        }
    }
}

/// The request of `ImportTable`; field order is the order of the text.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ImportRequest<'t> {
    s3_bucket_source: BucketSource<'t>,
    input_format: &'static str,
    input_compression_type: &'static str,
    table_creation_parameters: TableParameters<'t>,
}

#[derive(Serialize)]
struct BucketSource<'t> {
    #[serde(rename = "S3Bucket")]
    bucket: &'t str,
    #[serde(rename = "S3BucketOwner", skip_serializing_if = "Option::is_none")]
    owner: Option<&'t str>,
    #[serde(rename = "S3KeyPrefix")]
    prefix: String,
}

/// The request of `StartBulkPutItems`.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct BulkPutRequest<'t> {
    table_name: &'t str,
    #[serde(rename = "InputS3Configuration")]
    input: BulkInput<'t>,
    #[serde(rename = "OutputS3Configuration")]
    output: BulkOutput<'t>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct BulkInput<'t> {
    #[serde(flatten)]
    source: BucketSource<'t>,
    input_format: &'static str,
    input_compression_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct BulkOutput<'t> {
    #[serde(flatten)]
    place: BucketSource<'t>,
    output_type: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TableParameters<'t> {
    table_name: &'t str,
    attribute_definitions: Vec<AttributeDefinition<'t>>,
    key_schema: Vec<KeyElement<'t>>,
    billing_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisioned_throughput: Option<Capacity>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    provisioned_throughput: Option<Capacity>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Capacity {
    read_capacity_units: u32,
    write_capacity_units: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Projection {
    projection_type: &'static str,
}

fn key_schema(key: &KeySchema) -> Vec<KeyElement<'_>> {
    key.attributes().zip(["HASH", "RANGE"]).map(|(attribute, key_type)| KeyElement { attribute_name: &attribute.name, key_type }).collect()
}

fn pretty(json: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(json).expect("it holds texts, numbers, lists and maps with keys that are texts");
    text.push('\n');
    text
}

/// The text of `table.json`. The service refuses a definition that no key uses and one that is there twice.
pub(super) fn table_json(table: &Table, service_name: &str, options: Options, place: &Place<'_>) -> String {
    let attributes = table.key_attributes().into_iter();
    let provisioned_throughput = match table.creation.billing {
        Billing::OnDemand => None,
        Billing::Provisioned { read, write } => Some(Capacity { read_capacity_units: read, write_capacity_units: write }),
    };
    pretty(&ImportRequest {
        s3_bucket_source: place.data(table),
        input_format: options.input_format(),
        input_compression_type: options.input_compression(),
        table_creation_parameters: TableParameters {
            table_name: service_name,
            attribute_definitions: attributes
                .map(|attribute| AttributeDefinition { attribute_name: &attribute.name, attribute_type: attribute.kind.descriptor() })
                .collect(),
            key_schema: key_schema(&table.key),
            // The service refuses a request without a billing mode, since it would mean provisioned.
            billing_mode: if provisioned_throughput.is_some() { "PROVISIONED" } else { "PAY_PER_REQUEST" },
            provisioned_throughput,
            global_secondary_indexes: table
                .indexes
                .iter()
                .map(|index| GlobalIndex {
                    index_name: &index.name,
                    key_schema: key_schema(&index.key),
                    projection: Projection { projection_type: "ALL" },
                    provisioned_throughput,
                })
                .collect(),
        },
    })
}

/// The text of `bulk-put.json`.
pub(super) fn bulk_put_json(table: &Table, service_name: &str, options: Options, place: &Place<'_>) -> String {
    pretty(&BulkPutRequest {
        table_name: service_name,
        input: BulkInput {
            source: place.data(table),
            input_format: options.input_format(),
            input_compression_type: options.input_compression(),
        },
        output: BulkOutput { place: place.bulk_put_errors(table), output_type: ["ERROR"] },
    })
}

impl Place<'_> {
    fn at(&self, prefix: String) -> BucketSource<'_> {
        BucketSource { bucket: self.bucket, owner: self.owner, prefix }
    }

    fn data(&self, table: &Table) -> BucketSource<'_> {
        self.at(format!("{}{}/data/", self.prefix, table.name))
    }

    /// Beside the run's folder, since nothing but what a run wrote may be in it when another one replaces it.
    fn bulk_put_errors(&self, table: &Table) -> BucketSource<'_> {
        let beside = self.prefix.strip_suffix('/').map(|prefix| format!("{prefix}-")).unwrap_or_default();
        self.at(format!("{beside}bulk-put-errors/{}/", table.name))
    }

    /// The text of `import.sh`. Each table with its folder and its name in the service.
    pub(super) fn import_sh<'t>(&self, tables: impl Iterator<Item = (&'t Table, &'t str)> + Clone) -> String {
        let mut text = "#!/bin/sh\n".to_owned();
        let (usage, how) = if self.in_s3 {
            ("sh import.sh new|existing", String::new())
        } else {
            ("sh import.sh new|existing BUCKET", ", after they were copied to s3://BUCKET/".to_owned())
        };
        text.push_str(&format!("# Loads these files with the AWS CLI{how}: {usage}\n"));
        text.push_str("#   new       into tables that do not exist yet: ImportTable, which makes them\n");
        text.push_str("#   existing  into tables that exist: StartBulkPutItems; an item with the same key is replaced\n");
        text.push_str("# `dynamorph load` does the former too, follows the imports and compares the counts.\n");
        text.push_str("set -eu\n\n");
        text.push_str("case \"${1-}\" in\n    new | existing) ;;\n");
        text.push_str(&format!("    *) echo 'usage: {usage}' >&2; exit 2 ;;\nesac\n"));
        if self.in_s3 {
            text.push_str(&format!("text() {{ aws s3 cp {}\"$1\" -; }}\n", quoted(&format!("s3://{}/{}", self.bucket, self.prefix))));
        } else {
            text.push_str("bucket=${2:?the bucket is missing}\n");
            text.push_str("case \"$bucket\" in\n");
            text.push_str(
                "    *[!a-z0-9.-]*) echo 'the bucket is a name alone, without s3:// and without a prefix' >&2; exit 2 ;;\nesac\n",
            );
            text.push_str("CDPATH= cd -- \"$(dirname -- \"$0\")\"\n");
            text.push_str(&format!(
                "[ -f {COUNTS} ] || {{ echo 'run the file itself: it loads the folder that it lies in' >&2; exit 2; }}\n"
            ));
            text.push_str(&format!("text() {{ sed \"s/{BUCKET}/$bucket/\" \"$1\"; }}\n\n"));
            text.push_str("aws s3 sync . \"s3://$bucket/\"\n# An import reads all that lies there, so nothing of an earlier run may.\n");
            for (table, _) in tables.clone() {
                let data = format!("{}/data", table.name);
                text.push_str(&format!("aws s3 sync {} \"s3://$bucket/\"{} --delete\n", quoted(&data), quoted(&data)));
            }
        }
        for (table, service_name) in tables {
            let request = |file: &str| quoted(&format!("{}/{file}", table.name));
            text.push_str(&format!("\n# {} is {} in the service\n", table.name.escape_debug(), service_name.escape_debug()));
            let send = |action: &str, file: &str| {
                format!("    request=$(text {})\n    aws dynamodb {action} --cli-input-json \"$request\"\n", request(file))
            };
            text.push_str("if [ \"$1\" = new ]; then\n");
            text.push_str(&send("import-table", "table.json"));
            text.push_str("else\n");
            text.push_str(&send("start-bulk-put-items", "bulk-put.json"));
            text.push_str("fi\n");
        }
        text
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What lies in the data of all tables: `counts.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// A table a row, in the order of the pipeline.
    pub tables: Vec<TableCounts>,
}

/// What lies in the data of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCounts {
    /// The table's name in the pipeline, which is its folder's.
    pub table: String,
    /// Items.
    pub items: u64,
    /// Items by entity.
    pub entities: BTreeMap<String, u64>,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes before compression, which is what an import is billed by.
    pub text_bytes: u64,
}

impl Counts {
    /// The text of `counts.json`.
    pub(super) fn json(&self) -> String {
        pretty(self)
    }
}
