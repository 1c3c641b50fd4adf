//! The plan: what `bind` made of a pipeline file. A plan that exists is valid.
//!
//! All names are resolved: entities, tables and datasets are ids, attribute names are paths, capture names
//! are slots. Nothing here touches a file, a clock or the network.

pub mod transform;

use std::cmp::Reverse;

use crate::error::{Diagnostics, nearest};
use crate::expr::{Condition, Template};
use crate::model::{DatasetId, Declared, EntityId, SourceId, TableId, Targets};
use crate::ops::Op;

mod bind;
mod explain;

/// A bound pipeline.
#[derive(Debug)]
pub struct Plan {
    pub(crate) sources: Vec<Source>,
    pub(crate) targets: Targets,
    pub(crate) entities: Vec<Entity>,
    pub(crate) unclassified: Unclassified,
    pub(crate) examples: Vec<Example>,
    /// Drop `aws:rep:*` attributes of old global tables; the default.
    pub(crate) drop_replication: bool,
}

impl Plan {
    /// Binds the text of a pipeline file. Pure: no file, no clock, no environment.
    ///
    /// # Errors
    /// Every mistake in the file, each with its place.
    pub fn from_toml(text: &str) -> Result<Self, Diagnostics> {
        bind::bind(text)
    }

    /// The exports it reads, by [`SourceId`].
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The tables and datasets it writes.
    #[must_use]
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The entities, by [`EntityId`].
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// What happens to an item that no entity claims.
    #[must_use]
    pub fn unclassified(&self) -> Unclassified {
        self.unclassified
    }

    /// The examples in the file.
    #[must_use]
    pub fn examples(&self) -> &[Example] {
        &self.examples
    }

    /// All that decides what becomes of an item, as a text for comparing; comments, layout and examples of the file are not in it.
    pub(crate) fn identity(&self) -> String {
        let Self { sources, targets, entities, unclassified, examples: _, drop_replication } = self;
        format!("{:?}", (sources, targets, entities, unclassified, drop_replication))
    }

    /// The entities that are known by their names alone, whose columns something is declared of, and of which a run had no item, in words: their
    /// names may be misspelt. `had_items` says it of an entity, by its place, and of the dataset of its name.
    pub(crate) fn settings_for_nothing(&self, had_items: impl Fn(usize, Option<DatasetId>) -> bool) -> Vec<String> {
        let dataset = |name: &str| (0..).map(DatasetId).zip(&self.targets.datasets).find(|(_, dataset)| dataset.name == name);
        let had_items = |at: usize, name: &str| had_items(at, dataset(name).map(|(id, _)| id));
        let (seen, unseen): (Vec<_>, Vec<_>) =
            self.entities.iter().map(|entity| entity.name.as_str()).enumerate().partition(|(at, name)| had_items(*at, name));
        let by_name = |entity: &Entity| entity.matches.is_empty() && entity.classify.is_none() && entity.aliases.is_empty();
        let unseen = unseen.into_iter().filter(|(at, _)| by_name(&self.entities[*at])).map(|(_, name)| name);
        let has_settings = |name: &&str| dataset(name).is_some_and(|(_, dataset)| dataset.declared != Declared::default());
        let in_words = |name: &str| {
            let near = nearest(name, seen.iter().map(|(_, name)| *name));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("entity `{name}` has settings for Parquet, and no item is of it{near}")
        };
        unseen.filter(has_settings).map(in_words).collect()
    }

    /// Whether `aws:rep:*` attributes of old global tables are dropped.
    #[must_use]
    pub fn drops_replication_attributes(&self) -> bool {
        self.drop_replication
    }
}

impl Entity {
    /// How literal its key templates are together: more literal bytes win, then fewer names. A key attribute without a
    /// template counts as one name, since it takes every text.
    #[must_use]
    pub fn literalness(&self) -> (usize, Reverse<usize>) {
        let unnamed = 2_usize.saturating_sub(self.matches.len());
        self.matches.iter().fold((0, Reverse(unnamed)), |(bytes, Reverse(names)), (_, template)| {
            let (more, Reverse(other)) = template.literalness();
            (bytes + more, Reverse(names + other))
        })
    }
}

/// One export that the pipeline reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name in `[source.NAME]`; `None` for a plain `[source]`.
    pub name: Option<String>,
    /// The partition key's attribute name.
    pub partition: String,
    /// The sort key's attribute name, if the table has one.
    pub sort: Option<String>,
    /// The attribute that names the entity.
    pub type_attribute: Option<String>,
    /// The one entity of this export, where it held one kind only.
    pub entity: Option<EntityId>,
}

/// One kind of record.
#[derive(Debug)]
pub struct Entity {
    /// The canonical name.
    pub name: String,
    /// Other spellings of the type attribute's value; rewritten and counted.
    pub aliases: Vec<String>,
    /// Key templates by source attribute name; all must match. Empty: the key does not classify.
    pub matches: Vec<(String, Template)>,
    /// The names that `matches` captures; a capture's slot is its place here.
    pub captures: Vec<String>,
    /// A condition that classifies where type and key did not.
    pub classify: Option<Condition>,
    /// The item's own way, then one for each `emit`.
    pub outputs: Vec<Output>,
}

/// One way out for an item of an entity.
#[derive(Debug)]
pub struct Output {
    /// Where its rows are counted and which Parquet dataset they join.
    pub dataset: DatasetId,
    /// False: the item is dropped here, and counted.
    pub when: Option<Condition>,
    /// In order.
    pub steps: Vec<Box<dyn Op>>,
    /// The table it goes to; `None`: Parquet only.
    pub table: Option<TableId>,
    /// Key attributes and their templates; empty: the item keeps its keys.
    pub key: Vec<(String, Template)>,
    /// For each index of the table, in the table's order: its key templates, or `None` where the entity
    /// declares none, so that the item loses the index's key attributes.
    pub indexes: Vec<Option<Vec<(String, Template)>>>,
    /// What the table's type attribute says.
    pub type_value: String,
}

/// What happens to an item that no entity claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unclassified {
    /// It becomes a reject.
    #[default]
    Reject,
    /// It goes, unchanged, to the dataset and table given here.
    Keep {
        /// The dataset, named `Unclassified`.
        dataset: DatasetId,
        /// The table, where the pipeline has exactly one or names it.
        table: Option<TableId>,
    },
    /// It is dropped and counted.
    Drop,
    /// It ends the run.
    Fail,
}

/// An example in the pipeline file: `DynamoDB` JSON in, `DynamoDB` JSON or a reject out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Its name, or `example N`.
    pub name: String,
    /// Where it stands in the file.
    pub span: crate::error::Span,
    /// The source it pretends to come from.
    pub source: SourceId,
    /// The item, as one line of `DynamoDB` JSON (`{"Item":{…}}`).
    pub input: String,
    /// What must come out.
    pub expected: Expected,
}

/// What an example says must come out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// These items, each with the table it goes to (`None`: Parquet only); an empty list is a dropped item.
    Items(Vec<(Option<TableId>, String)>),
    /// A reject whose `stage/rule: message` contains this text.
    Reject(String),
}
