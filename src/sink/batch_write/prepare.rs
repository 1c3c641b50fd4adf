//! A look at the target tables before anything is written: are they there, have they the keys that the pipeline says, and what else
//! must the user know of them? What is missing may be created; what is there is never changed.
//!
//! A wrong key type would refuse every item; a wrong index key type would refuse batches here and there.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableInputBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, IndexStatus, KeySchemaElement, KeyType as ServiceKeyType, Projection,
    ProjectionType, ProvisionedThroughput, ProvisionedThroughputDescription, ScalarAttributeType, TableDescription, TableStatus, Tag,
};

use crate::aws::dynamodb::DynamoDb;
use crate::error::{Error, Kind, Result};
use crate::limits::thousands;
use crate::model::{Billing, KeySchema, KeyType, Table};

/// How long to wait before the table is asked for again.
const PAUSE: Duration = Duration::from_millis(500);

/// How long the service may take to create a table with its indexes.
const CREATION: Duration = Duration::from_mins(10);

/// The look.
pub(super) struct Preparation<'t> {
    pub(super) service: DynamoDb,
    /// Each with its name in the service.
    pub(super) tables: Vec<(&'t Table, &'t str)>,
    /// How long a table may be on its way to being active.
    pub(super) patience: Duration,
    /// Whether missing tables are created.
    pub(super) create: bool,
    pub(super) most: Option<NonZeroU32>,
}

impl Preparation<'_> {
    /// Looks at every table; `None` for one that is missing and will be created.
    pub(super) fn look(&self) -> Result<Vec<Option<TableDescription>>> {
        let look = |(table, name): &(&Table, &str)| match self.service.describe_table(name)? {
            Some(_) => self.checked(table, name, false).map(Some),
            None if self.create => Ok(None),
            None => Err(self.missing(table, name)),
        };
        self.tables.iter().map(look).collect()
    }

    /// Creates the missing ones, side by side, and waits until they are active; gives their names.
    pub(super) fn create_missing(&self, found: &mut [Option<TableDescription>]) -> Result<Vec<String>> {
        let missing: Vec<_> = found.iter_mut().zip(&self.tables).filter(|(found, _)| found.is_none()).collect();
        for (_, (table, name)) in &missing {
            self.create(table, name)?;
        }
        let created = missing.into_iter().map(|(found, (table, name))| {
            *found = Some(self.checked(table, name, true)?);
            Ok((*name).to_owned())
        });
        created.collect()
    }

    /// What the user should know of the tables that are there.
    pub(super) fn all_findings(&self, found: &[Option<TableDescription>]) -> Vec<String> {
        let there = found.iter().zip(&self.tables).filter_map(|(found, known)| Some((found.as_ref()?, known)));
        there.flat_map(|(found, (table, name))| self.findings(table, name, found)).collect()
    }

    fn about(&self, name: &str, error: Error) -> Error {
        error.with("table", name).with("at", self.service.place())
    }

    fn missing(&self, table: &Table, name: &str) -> Error {
        self.about(name, Error::new(Kind::Usage, "the target table does not exist")).with(
            "hint",
            format_args!("create it first, or let --create-tables do it, or give the name it has there: --table {}=NAME", table.name),
        )
    }

    /// Waits until a table is active and compares it with the pipeline's. Indexes that the pipeline does not know are no mistake.
    fn checked(&self, table: &Table, name: &str, created: bool) -> Result<TableDescription> {
        let until = Instant::now() + if created { CREATION.max(self.patience) } else { self.patience };
        loop {
            let last = Instant::now() >= until;
            match self.service.describe_table(name)? {
                Some(found) => match found.table_status() {
                    Some(TableStatus::Active | TableStatus::Updating) if !created || indexes_are_active(&found) => {
                        compare(table, &found).map_err(|error| self.about(name, error))?;
                        return Ok(found);
                    }
                    Some(TableStatus::Active | TableStatus::Creating | TableStatus::Updating) if !last => {}
                    status => {
                        let status = status.map_or("unknown", TableStatus::as_str);
                        return Err(self.about(name, Error::new(Kind::Service, "the table is not active")).with("found", status));
                    }
                },
                // A table that was created just now may not be seen at once.
                None if created && !last => {}
                None => return Err(self.missing(table, name)),
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks for the creation of a table. One that another has created meanwhile is checked like any other.
    fn create(&self, table: &Table, name: &str) -> Result<()> {
        let request = request(table, name)
            .map_err(|cause| Error::new(Kind::Bug, "a table that was bound cannot be created").with("table", name).caused_by(cause))?;
        self.service.create_table(name, &request)
    }

    /// The first line: which account and region, and which tables under which names.
    pub(super) fn place(&self, found: &[Option<TableDescription>]) -> String {
        let account = found
            .iter()
            .flatten()
            .next()
            .and_then(TableDescription::table_arn)
            .and_then(|arn| arn.split(':').nth(4))
            .filter(|account| !account.is_empty());
        let tables = self
            .tables
            .iter()
            .map(|(table, name)| if table.name == *name { table.name.clone() } else { format!("{} as {name}", table.name) });
        let tables = tables.collect::<Vec<_>>().join(", ");
        let account = account.map(|account| format!("account {account}, ")).unwrap_or_default();
        format!("table{} {tables} in {account}{}", if self.tables.len() == 1 { "" } else { "s" }, self.service.place())
    }

    /// What the user should know of a table although it stands in no way.
    fn findings(&self, table: &Table, name: &str, found: &TableDescription) -> Vec<String> {
        let mut findings = Vec::new();
        if let Some(stream) = found.stream_specification().filter(|stream| stream.stream_enabled()) {
            let view = stream.stream_view_type().map(|view| format!(" ({})", view.as_str())).unwrap_or_default();
            findings.push(format!("table {name} has a stream{view}: its consumers and triggers will see every write"));
        }
        let replicas: Vec<_> = found.replicas().iter().filter_map(|replica| replica.region_name()).collect();
        if !replicas.is_empty() {
            findings.push(format!("table {name} has replicas in {}: every write is made there too", replicas.join(", ")));
        }
        if let Some(attribute) = self.service.time_to_live(name) {
            findings.push(format!("table {name} deletes items when the time in `{attribute}` is past (TimeToLive)"));
        }
        let local: Vec<_> = found.local_secondary_indexes().iter().filter_map(|index| index.index_name()).collect();
        if !local.is_empty() {
            findings.push(format!("table {name} has local indexes ({}): the items of one partition key end at 10 GB", local.join(", ")));
        }
        let global = found.global_secondary_indexes().iter().filter_map(|index| index.index_name());
        let unknown: Vec<_> = global.chain(local).filter(|index| table.indexes.iter().all(|known| known.name != *index)).collect();
        if !unknown.is_empty() {
            findings.push(format!(
                "table {name} has indexes that the pipeline does not know ({}): no value is checked against their keys",
                unknown.join(", ")
            ));
        }
        let own = [(format!("table {name}"), found.provisioned_throughput())];
        let indexes = found.global_secondary_indexes().iter();
        let of_index = |index: &str| format!("index {index} of table {name}");
        let indexes = indexes.map(|index| (of_index(index.index_name().unwrap_or_default()), index.provisioned_throughput()));
        for (what, capacity) in own.into_iter().chain(indexes) {
            findings.extend(self.too_small(&what, capacity));
        }
        findings
    }

    /// Whether a capacity is far below the rate that is asked for. By request there is none, or one of 0.
    fn too_small(&self, what: &str, capacity: Option<&ProvisionedThroughputDescription>) -> Option<String> {
        let most = self.most?.get();
        let units = capacity?.write_capacity_units().filter(|units| (1..i64::from(most / 2)).contains(units))?;
        let (units, most) = (thousands(units), thousands(most));
        Some(format!("{what} has a capacity of {units} write units a second, far below --max-write-units {most}: it will throttle"))
    }
}

fn indexes_are_active(found: &TableDescription) -> bool {
    found.global_secondary_indexes().iter().all(|index| index.index_status().is_none_or(|status| *status == IndexStatus::Active))
}

/// The request that makes a table as the pipeline says.
fn request(table: &Table, name: &str) -> std::result::Result<CreateTableInputBuilder, BuildError> {
    let capacity = match table.creation.billing {
        Billing::OnDemand => None,
        Billing::Provisioned { read, write } => {
            Some(ProvisionedThroughput::builder().read_capacity_units(i64::from(read)).write_capacity_units(i64::from(write)).build()?)
        }
    };
    let mut request = CreateTableInputBuilder::default()
        .table_name(name)
        .set_key_schema(Some(key_schema(&table.key)?))
        .billing_mode(if capacity.is_some() { BillingMode::Provisioned } else { BillingMode::PayPerRequest })
        .set_provisioned_throughput(capacity.clone());
    for attribute in table.key_attributes() {
        let kind = match attribute.kind {
            KeyType::S => ScalarAttributeType::S,
            KeyType::N => ScalarAttributeType::N,
            KeyType::B => ScalarAttributeType::B,
        };
        request =
            request.attribute_definitions(AttributeDefinition::builder().attribute_name(&attribute.name).attribute_type(kind).build()?);
    }
    for index in &table.indexes {
        request = request.global_secondary_indexes(
            GlobalSecondaryIndex::builder()
                .index_name(&index.name)
                .set_key_schema(Some(key_schema(&index.key)?))
                .projection(Projection::builder().projection_type(ProjectionType::All).build())
                .set_provisioned_throughput(capacity.clone())
                .build()?,
        );
    }
    for (key, value) in &table.creation.tags {
        request = request.tags(Tag::builder().key(key).value(value).build()?);
    }
    Ok(request)
}

fn key_schema(key: &KeySchema) -> std::result::Result<Vec<KeySchemaElement>, BuildError> {
    key.attributes()
        .zip([ServiceKeyType::Hash, ServiceKeyType::Range])
        .map(|(attribute, role)| KeySchemaElement::builder().attribute_name(&attribute.name).key_type(role).build())
        .collect()
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
