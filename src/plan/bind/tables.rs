//! Target tables: their keys, their indexes and the types of both.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Span;
use crate::model::declared::is_folder_name;
use crate::model::{Change, Creation, Dataset, DatasetId, Declared, Index, KeyAttribute, KeySchema, KeyType, Nulls, Table, TableId};
use crate::plan::bind::{Binder, id, list};
use crate::spec::{EntitySpec, KeySpec, NullsSpec, ParquetSpec, TableSpec, Word};

impl<'n> Binder<'_, 'n> {
    pub(super) fn bind_tables(&mut self) {
        self.used = vec![false; self.spec.tables.len()];
        self.targets.tables = self.spec.tables.iter().map(|spec| self.bind_table(spec)).collect();
    }

    fn bind_table(&mut self, spec: &TableSpec<'n>) -> Table {
        if let (Some(key), Some(type_attribute)) = (&spec.key, &spec.type_attribute)
            && key.names().any(|name| name == type_attribute.text)
        {
            let message = format!("the type attribute `{}` is a key attribute of the table too", type_attribute.text);
            self.diagnostics.error_with_help(
                type_attribute.span.clone(),
                message,
                "the type would overwrite the key; name another attribute",
            );
        }
        let types = self.key_types(spec);
        let schema = |key: &Option<KeySpec<'n>>| {
            let attribute = |name: &str| KeyAttribute {
                name: name.to_owned(),
                kind: types.iter().find(|(known, _)| known.text == name).map_or(KeyType::S, |(_, kind)| *kind),
            };
            let mut names = key.iter().flat_map(KeySpec::names);
            KeySchema { partition: attribute(names.next().unwrap_or_default()), sort: names.next().map(attribute) }
        };
        Table {
            name: spec.name.text.to_owned(),
            key: schema(&spec.key),
            indexes: spec.indexes.iter().map(|index| Index { name: index.name.text.to_owned(), key: schema(&index.key) }).collect(),
            type_attribute: spec.type_attribute.as_ref().map(|word| word.text.to_owned()),
            creation: Creation {
                billing: spec.billing,
                tags: spec.tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            },
        }
    }

    /// The declared types of a table. The service declares an attribute's type once for the table and all of its
    /// indexes, so a type that one of them says holds for the others.
    fn key_types(&mut self, spec: &TableSpec<'n>) -> Vec<(Word<'n>, KeyType)> {
        let keys = |key: &Option<KeySpec<'n>>| key.iter().flat_map(KeySpec::names).collect::<Vec<_>>();
        let all: Vec<&str> = keys(&spec.key).into_iter().chain(spec.indexes.iter().flat_map(|index| keys(&index.key))).collect();
        let mut types: Vec<(Word<'n>, KeyType)> = Vec::new();
        let parts = std::iter::once((&spec.types, all)).chain(spec.indexes.iter().map(|index| (&index.types, keys(&index.key))));
        for (declared, known) in parts {
            for (word, kind) in declared {
                if !known.contains(&word.text) {
                    crate::document::unknown("key attribute", word.text, &word.span, known.iter().copied(), self.diagnostics);
                    continue;
                }
                match types.iter().find(|(known, _)| known.text == word.text) {
                    Some((_, other)) if other != kind => {
                        let message = format!("`{}` is {} here and {} above", word.text, kind.descriptor(), other.descriptor());
                        let help = "an attribute has one type in a table and all of its indexes";
                        self.diagnostics.error_with_help(word.span.clone(), message, help);
                    }
                    Some(_) => {}
                    None => types.push((word.clone(), *kind)),
                }
            }
        }
        types
    }

    /// The first of `sources` whose key attributes are not those of the table, with its key's names.
    pub(super) fn unlike_keys(&self, table: TableId, sources: &[usize]) -> Option<Vec<&'n str>> {
        let key = self.spec.tables[table.index()].key.as_ref()?;
        let names: Vec<_> = key.names().collect();
        let sources = sources.iter().filter_map(|at| self.spec.sources[*at].key.as_ref());
        sources.map(|key| key.names().collect::<Vec<_>>()).find(|found| *found != names)
    }

    /// Reports items that would keep their keys and go to a table with other ones.
    pub(super) fn check_kept_keys(&mut self, table: TableId, sources: &[usize], span: &Span, help: &str) {
        if let Some(found) = self.unlike_keys(table, sources) {
            let Table { name, key, .. } = &self.targets.tables[table.index()];
            let expected = list(key.attributes().map(|attribute| attribute.name.as_str()));
            let message = format!("items keep their key {}, and table {name} has the key {expected}", list(found));
            self.diagnostics.error_with_help(span.clone(), message, help);
        }
    }

    /// The dataset of this name, made at its first use; its tables and leading attributes grow with each use.
    pub(super) fn dataset(&mut self, name: &str, table: Option<TableId>, sources: &[usize]) -> DatasetId {
        let mut leading: Vec<String> = Vec::new();
        if let Some(table) = table {
            let Table { key, indexes, type_attribute, .. } = &self.targets.tables[table.index()];
            let keys = std::iter::once(key).chain(indexes.iter().map(|index| &index.key));
            leading.extend(keys.flat_map(KeySchema::attributes).map(|attribute| attribute.name.clone()));
            leading.extend(type_attribute.clone());
        } else {
            for source in sources.iter().map(|at| &self.spec.sources[*at]) {
                leading.extend(source.key.iter().flat_map(KeySpec::names).map(str::to_owned));
                leading.extend(source.type_attribute.iter().map(|word| word.text.to_owned()));
            }
        }
        let datasets = &mut self.targets.datasets;
        let at = datasets.iter().position(|dataset| dataset.name == name).unwrap_or_else(|| {
            let leading = Change::COLUMNS.map(str::to_owned).to_vec();
            datasets.push(Dataset { name: name.to_owned(), leading, ..Dataset::default() });
            datasets.len() - 1
        });
        let dataset = &mut datasets[at];
        if let Some(table) = table
            && !dataset.tables.contains(&table)
        {
            dataset.tables.push(table);
        }
        for name in leading {
            if !dataset.leading.contains(&name) {
                dataset.leading.push(name);
            }
        }
        id(at, DatasetId)
    }

    /// What an entity declares of the columns of its dataset, which is there by now.
    pub(super) fn declare(&mut self, spec: &EntitySpec<'n>) {
        let ParquetSpec { types, names, strict, mixed, mixed_of, nulls, columns, rest, order, sort, partition } = &spec.parquet;
        let texts = |words: &[Word<'n>]| words.iter().map(|word| word.text.to_owned()).collect::<Vec<_>>();
        let mut declared = Declared {
            strict: *strict,
            mixed: *mixed,
            mixed_of: mixed_of.iter().map(|(attribute, mixed)| (attribute.text.to_owned(), *mixed)).collect(),
            nulls: match nulls {
                NullsSpec::All => Nulls::All,
                NullsSpec::Of(names) => Nulls::Of(texts(names).into_iter().collect()),
            },
            columns: *columns,
            rest: texts(rest).into_iter().collect(),
            order: texts(order),
            sort: texts(sort),
            partition: texts(partition),
            ..Declared::default()
        };
        for (attribute, column) in types {
            if Change::COLUMNS.contains(&attribute.text) {
                let message = format!("`{}` is what a change record adds, and has a type of its own", attribute.text);
                self.diagnostics.error(attribute.span.clone(), message);
            }
            declared.types.insert(attribute.text.to_owned(), *column);
        }
        for (attribute, column) in names {
            if Change::COLUMNS.contains(&attribute.text) {
                let message = format!("`{}` is what a change record adds, and keeps its name", attribute.text);
                self.diagnostics.error(attribute.span.clone(), message);
            }
            if let Some((other, _)) = declared.names.iter().find(|(_, known)| *known == column.text) {
                let message = format!("the column `{}` is that of `{other}` too", column.text);
                self.diagnostics.error_with_help(column.span.clone(), message, "give each attribute a column of its own");
            }
            declared.names.insert(attribute.text.to_owned(), column.text.to_owned());
        }
        for (attribute, _) in mixed_of {
            if declared.types.contains_key(attribute.text) {
                let message = format!("`{}` has a declared type, and what does not fit it has columns of its own", attribute.text);
                self.diagnostics.error_with_help(attribute.span.clone(), message, "take it out of `mixed` or of `types`");
            }
        }
        self.check_partitions(partition, &declared);
        let columns_of: BTreeSet<_> = declared.attributes().collect();
        for attribute in rest.iter().filter(|attribute| columns_of.contains(attribute.text)) {
            let message = format!("`{}` has no column of its own by `rest`, and something is said of its column", attribute.text);
            self.diagnostics.error_with_help(attribute.span.clone(), message, "take it out here, or everywhere else under [parquet]");
        }
        if let Some(dataset) = self.targets.datasets.iter_mut().find(|dataset| dataset.name == spec.name.text) {
            dataset.declared = declared;
        }
    }

    /// Reports attributes that name folders and of whose columns something is said, since they have none, and names that engines read in other ways.
    fn check_partitions(&mut self, partition: &[Word<'n>], declared: &Declared) {
        for attribute in partition {
            let columns = Declared { names: BTreeMap::new(), partition: Vec::new(), ..declared.clone() };
            if columns.attributes().any(|name| name == attribute.text) {
                let message =
                    format!("`{}` has no column in the files by `partition`, and something is said of its column", attribute.text);
                self.diagnostics.error_with_help(
                    attribute.span.clone(),
                    message,
                    "take it out here, or everywhere else under [parquet] but `names`",
                );
            }
            let [_, written_at] = Change::COLUMNS;
            if attribute.text == written_at {
                let message = format!("`{}` is another one for nearly every change", attribute.text);
                self.diagnostics.error_with_help(attribute.span.clone(), message, "take it out here");
            }
            let column = declared.names.get(attribute.text).map_or(attribute.text, String::as_str);
            if !is_folder_name(column) {
                let message = format!("`{column}` would name folders, and has characters that engines do not take there");
                let help = "give it another name under `names`, with no control character, no leading `.` and none of \" # % ' * / : = ? \\ { [ ] ^";
                self.diagnostics.error_with_help(attribute.span.clone(), message, help);
            }
        }
    }

    pub(super) fn report_unused_tables(&mut self) {
        for (spec, used) in self.spec.tables.iter().zip(&self.used) {
            if !used {
                let message = format!("no entity writes to table {}", spec.name.text);
                let help = format!("add `to = \"{}\"` to an entity, or take the table out", spec.name.text);
                self.diagnostics.error_with_help(spec.name.span.clone(), message, help);
            }
        }
    }
}
