//! The ways out of an entity: its table, its keys, its index keys, its steps.

use crate::document::{Named, unknown};
use crate::error::{Span, nearest};
use crate::expr::Template;
use crate::model::{KeySchema, Table, TableId};
use crate::ops::{bind_steps, read};
use crate::plan::Output;
use crate::plan::bind::{Binder, list, resolve};
use crate::spec::{EntitySpec, OutputSpec, TemplatesSpec};

/// Templates by attribute name, in the order of the key.
type Templates = Vec<(String, Template)>;

impl<'n> Binder<'_, 'n> {
    pub(super) fn output(&mut self, entity: &EntitySpec<'n>, spec: &OutputSpec<'n>, captures: &[String], sources: &[usize]) -> Output {
        let name = spec.entity.as_ref().unwrap_or(&entity.name);
        if let Some(emitted) = &spec.entity
            && let Some(owner) = self.spec.entities.iter().find(|owner| owner.aliases.iter().any(|alias| alias.text == emitted.text))
        {
            let message = format!("`{}` is an alias of {}, and items leave under the canonical name", name.text, owner.name.text);
            self.diagnostics.error_with_help(name.span.clone(), message, format!("write `{}`", owner.name.text));
        }
        let when = spec.when.and_then(|node| read::condition(node, "`when`", self.diagnostics));
        let steps = bind_steps(&spec.steps, captures, self.diagnostics);
        let table = spec.to.as_ref().and_then(|to| self.table(to));
        let (key, indexes) = match (table, &spec.to) {
            (Some(table), Some(to)) => (self.key(table, spec, &to.span, captures, sources), self.indexes(table, spec, captures)),
            (_, Some(_)) => (self.unplaced(spec, captures), Vec::new()),
            (_, None) => {
                self.report_keys_without_table(spec);
                (self.unplaced(spec, captures), Vec::new())
            }
        };
        if let Some(type_value) = &spec.type_value {
            let stamped = match table {
                Some(table) => self.targets.tables[table.index()].type_attribute.is_some(),
                None => spec.to.is_some() || sources.iter().any(|at| self.spec.sources[*at].type_attribute.is_some()),
            };
            if !stamped {
                let message = "`type_value` would be written nowhere: there is no type attribute";
                self.diagnostics.error_with_help(type_value.span.clone(), message, "give the table (or the source) a `type = \"…\"`");
            }
        }
        Output {
            dataset: self.dataset(name.text, table, sources),
            when,
            steps,
            table,
            key,
            indexes,
            type_value: spec.type_value.as_ref().unwrap_or(name).text.to_owned(),
        }
    }

    fn report_keys_without_table(&mut self, spec: &OutputSpec<'n>) {
        let help = "add `to = \"TABLE\"`; without it the items go to Parquet only, with the keys they have";
        if let Some(key) = &spec.key {
            self.diagnostics.error_with_help(key.span.clone(), "`key` without a table that it is the key of", help);
        }
        if let Some((index, _)) = spec.indexes.first() {
            self.diagnostics.error_with_help(index.span.clone(), "`index` without a table that it belongs to", help);
        }
    }

    /// Templates of keys for a table that is not known: only their own mistakes can be found.
    fn unplaced(&mut self, spec: &OutputSpec<'n>, captures: &[String]) -> Templates {
        for templates in spec.key.iter().chain(spec.indexes.iter().map(|(_, templates)| templates)) {
            for named in &templates.templates {
                self.key_template(named, captures);
            }
        }
        Vec::new()
    }

    fn key(&mut self, table: TableId, spec: &OutputSpec<'n>, to: &Span, captures: &[String], sources: &[usize]) -> Templates {
        let Some(key) = &spec.key else {
            let names = list(self.targets.tables[table.index()].key.attributes().map(|attribute| attribute.name.as_str()));
            let help = format!("add `key = {{ … }}` with a template for each of {names}");
            self.check_kept_keys(table, sources, to, &help);
            return Vec::new();
        };
        if self.spec.tables[table.index()].key.is_none() {
            return self.unplaced(spec, captures);
        }
        let Table { name, key: schema, .. } = &self.targets.tables[table.index()];
        let what = format!("key of table {name}");
        let expected: Vec<_> = schema.attributes().map(|attribute| attribute.name.clone()).collect();
        self.templates(key, &what, &expected, &[], captures)
    }

    /// For each index of the table its templates, or `None` where none are declared.
    fn indexes(&mut self, table: TableId, spec: &OutputSpec<'n>, captures: &[String]) -> Vec<Option<Templates>> {
        let names: Vec<_> = self.spec.tables[table.index()].indexes.iter().map(|index| index.name.text).collect();
        let mut found: Vec<Option<Templates>> = vec![None; names.len()];
        for (word, templates) in &spec.indexes {
            let what = format!("index of table {}", self.spec.tables[table.index()].name.text);
            let Some(at) = resolve(&what, word, names.iter().copied(), self.diagnostics) else {
                continue;
            };
            if self.spec.tables[table.index()].indexes[at].key.is_none() {
                continue;
            }
            let table = &self.targets.tables[table.index()];
            let attributes = table.indexes[at].key.attributes().map(|attribute| attribute.name.clone());
            let (given, expected): (Vec<_>, Vec<_>) = attributes.partition(|name| given(table, name));
            let bound = self.templates(templates, &format!("index {}", word.text), &expected, &given, captures);
            self.check_shared(&found, &bound, templates);
            found[at] = Some(bound);
        }
        found
    }

    /// An attribute that two indexes share has one value.
    fn check_shared(&mut self, earlier: &[Option<Templates>], bound: &Templates, spec: &TemplatesSpec<'n>) {
        for (name, template) in bound {
            let other = earlier.iter().flatten().flatten().find(|(known, _)| known == name);
            if other.is_some_and(|(_, other)| other.to_string() != template.to_string()) {
                let span = spec.templates.iter().find(|named| named.name == name).map_or(spec.span.clone(), |named| named.value.span());
                let message = format!("`{name}` has another template in an index above");
                self.diagnostics.error_with_help(
                    span,
                    message,
                    "two indexes with the same attribute share its value; write the same template",
                );
            }
        }
    }

    /// The template of a key attribute. An empty one would make every item a reject, since no key is empty.
    fn key_template(&mut self, named: &Named<'n>, captures: &[String]) -> Option<Template> {
        let what = format!("the template of `{}`", named.name);
        let template = read::template(named.value, &what, captures, self.diagnostics)?;
        if named.value.text() == Some("") {
            let help = "DynamoDB takes no empty text in a key; write one such as WS#{ws}";
            self.diagnostics.error_with_help(named.value.span(), format!("{what} is empty"), help);
            return None;
        }
        Some(template)
    }

    /// Templates that must name exactly the attributes `expected`; those in `given` have their value from elsewhere.
    fn templates(&mut self, spec: &TemplatesSpec<'n>, what: &str, expected: &[String], given: &[String], captures: &[String]) -> Templates {
        let mut found = Vec::new();
        for named in &spec.templates {
            let template = self.key_template(named, captures);
            if given.iter().any(|name| name == named.name) {
                let message = format!("`{}` has its value from the table's key or its type attribute", named.name);
                self.diagnostics.error_with_help(named.name_span.clone(), message, "take it out here");
            } else if !expected.iter().any(|name| name == named.name) {
                let known = expected.iter().map(String::as_str);
                unknown(&format!("attribute in the {what}"), named.name, &named.name_span, known, self.diagnostics);
            } else if let Some(template) = template {
                found.push((named.name.to_owned(), template));
            }
        }
        for name in expected {
            // A misspelt attribute was reported with the right name already.
            let misspelt = |written: &str| !expected.iter().any(|known| known == written) && nearest(written, [name.as_str()]).is_some();
            if !spec.templates.iter().any(|named| named.name == name || misspelt(named.name)) {
                let message = format!("the {what} lacks `{name}`");
                let help = format!("it takes a template for each of {}", list(expected.iter().map(String::as_str)));
                self.diagnostics.error_with_help(spec.span.clone(), message, help);
            }
        }
        found.sort_by_key(|(name, _)| expected.iter().position(|known| known == name));
        found
    }
}

/// Whether the table's key or its type stamp gives the attribute; an index's templates do not say it a second time then.
pub(in crate::plan) fn given(table: &Table, name: &str) -> bool {
    table.key.attributes().any(|known| known.name == name) || table.type_attribute.as_deref() == Some(name)
}

impl Output {
    /// The key attributes of the table's indexes that an item loses before the declared index keys are written: all of
    /// them but those that the table's key or the type stamp gives. So no stale value keeps an item in a sparse index.
    #[must_use]
    pub fn cleared<'t>(&self, table: &'t Table) -> Vec<&'t str> {
        let mut found = Vec::new();
        for attribute in table.indexes.iter().map(|index| &index.key).flat_map(KeySchema::attributes) {
            let name = attribute.name.as_str();
            if !given(table, name) && !found.contains(&name) {
                found.push(name);
            }
        }
        found
    }
}
