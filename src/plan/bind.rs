//! From the pipeline file to a plan: every name is resolved, every rule checked, every mistake reported in one go.
//!
//! Pure: no file but the text it is given, no clock, no environment.

use crate::document::{Document, unknown};
use crate::error::Diagnostics;
use crate::model::{DatasetId, EntityId, SourceId, TableId, Targets};
use crate::plan::{Plan, Source, Unclassified};
use crate::spec::{PipelineSpec, Policy, Word};

mod classes;
mod examples;
mod outputs;
mod tables;
#[cfg(test)]
mod tests;

pub(super) use outputs::given;

/// The name of the dataset that unclassified items join when they are kept.
pub(super) const UNCLASSIFIED: &str = "Unclassified";

/// Binds the text of a pipeline file.
pub(super) fn bind(text: &str) -> Result<Plan, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let document = Document::parse(text, &mut diagnostics);
    if !diagnostics.is_empty() {
        // A tree that was read past a syntax error lacks parts, and each would be reported as a mistake of its own.
        return Err(diagnostics);
    }
    let spec = PipelineSpec::read(document.root(), &mut diagnostics);
    let plan = Binder { spec: &spec, diagnostics: &mut diagnostics, targets: Targets::default(), used: Vec::new() }.plan();
    if diagnostics.is_empty() { Ok(plan) } else { Err(diagnostics) }
}

/// What binding knows while it goes on. Ids are places in the lists of `spec`, so they exist before the parts do.
struct Binder<'s, 'n> {
    spec: &'s PipelineSpec<'n>,
    diagnostics: &'s mut Diagnostics,
    targets: Targets,
    /// By table: whether something is written to it.
    used: Vec<bool>,
}

impl<'n> Binder<'_, 'n> {
    /// Binds everything. Where mistakes were reported the plan has gaps, and the caller throws it away.
    fn plan(mut self) -> Plan {
        let sources = self.spec.sources.iter().map(|spec| self.source(spec)).collect();
        self.bind_tables();
        if self.spec.entities.is_empty() && self.spec.unclassified.as_ref().is_none_or(|spec| spec.policy != Policy::Keep) {
            let help = "add [entity.NAME] for each kind of record; `dynamorph inspect EXPORT` shows what is in the export";
            self.diagnostics.error_with_help(0..0, "the pipeline has no entity, so that no item could be written", help);
        }
        let entities = self.bind_entities();
        let unclassified = self.unclassified();
        self.report_unused_tables();
        let examples = self.examples();
        let drop_replication = !self.spec.keep_replication;
        Plan { sources, targets: self.targets, entities, unclassified, examples, drop_replication }
    }

    fn source(&mut self, spec: &crate::spec::SourceSpec<'n>) -> Source {
        if let (Some(key), Some(type_attribute)) = (&spec.key, &spec.type_attribute)
            && key.names().any(|name| name == type_attribute.text)
        {
            let message = format!("the type attribute `{}` is a key attribute too", type_attribute.text);
            self.diagnostics.error_with_help(
                type_attribute.span.clone(),
                message,
                "entities told apart by a key need a `match`, not a `type`",
            );
        }
        let entity = spec.entity.as_ref().and_then(|word| self.entity(word));
        let mut names = spec.key.iter().flat_map(|key| key.names().map(str::to_owned));
        Source {
            name: spec.name.as_ref().map(|word| word.text.to_owned()),
            partition: names.next().unwrap_or_default(),
            sort: names.next(),
            type_attribute: spec.type_attribute.as_ref().map(|word| word.text.to_owned()),
            entity,
        }
    }

    fn unclassified(&mut self) -> Unclassified {
        let Some(spec) = &self.spec.unclassified else {
            return Unclassified::default();
        };
        match spec.policy {
            Policy::Reject => Unclassified::Reject,
            Policy::Drop => Unclassified::Drop,
            Policy::Fail => Unclassified::Fail,
            Policy::Keep => {
                let all: Vec<_> = (0..self.spec.sources.len()).collect();
                let table = match &spec.to {
                    Some(to) => {
                        let table = self.table(to);
                        if let Some(id) = table {
                            self.check_kept_keys(
                                id,
                                &all,
                                &to.span,
                                "point `to` at a table with the source's key, or leave it out: then they go to Parquet only",
                            );
                        }
                        table
                    }
                    // They are kept as they are, so a table fits only when its key is the source's.
                    None => (self.spec.tables.len() == 1 && self.unlike_keys(TableId(0), &all).is_none()).then_some(TableId(0)),
                };
                if let Some(known) = self.targets.datasets.iter().position(|dataset| dataset.name == UNCLASSIFIED) {
                    let message = format!("unclassified items are kept as `{UNCLASSIFIED}`, and an entity has this name");
                    self.diagnostics.error_with_help(spec.policy_span.clone(), message, "rename the entity");
                    return Unclassified::Keep { dataset: id(known, DatasetId), table };
                }
                Unclassified::Keep { dataset: self.dataset(UNCLASSIFIED, table, &all), table }
            }
        }
    }

    /// The entity of this name, or a mistake.
    fn entity(&mut self, word: &Word<'_>) -> Option<EntityId> {
        let names = self.spec.entities.iter().map(|entity| entity.name.text);
        resolve("entity", word, names, self.diagnostics).map(|at| id(at, EntityId))
    }

    /// The table of this name, or a mistake. It counts as written to.
    fn table(&mut self, word: &Word<'_>) -> Option<TableId> {
        let names = self.spec.tables.iter().map(|table| table.name.text);
        let found = resolve("table", word, names, self.diagnostics);
        match found {
            Some(at) => self.used[at] = true,
            // A misspelt name may mean any of the tables, so none is called unused.
            None => self.used.fill(true),
        }
        found.map(|at| id(at, TableId))
    }

    /// The source of this name, or a mistake.
    fn source_of_name(&mut self, word: &Word<'_>) -> Option<SourceId> {
        let names = self.spec.sources.iter().filter_map(|source| source.name.as_ref().map(|name| name.text));
        resolve("source", word, names, self.diagnostics).map(|at| id(at, SourceId))
    }
}

/// The place of a name in the list of known names, or a mistake with the nearest one.
fn resolve<'k>(what: &str, word: &Word<'_>, known: impl Iterator<Item = &'k str>, diagnostics: &mut Diagnostics) -> Option<usize> {
    let known: Vec<_> = known.collect();
    let found = known.iter().position(|name| *name == word.text);
    if found.is_none() {
        unknown(what, word.text, &word.span, known, diagnostics);
    }
    found
}

/// An id from a place in a list.
fn id<T>(at: usize, make: impl Fn(u32) -> T) -> T {
    make(u32::try_from(at).expect("a pipeline file of less than 4 GiB names less than 2^32 things"))
}

/// Names for a message: `EntityRef, Detail`.
fn list<'t>(names: impl IntoIterator<Item = &'t str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}
