//! Entities, and that an item can be of one only: names, aliases and key templates of all of them together.

use crate::document::unknown;
use crate::expr::Template;
use crate::ops::read;
use crate::plan::Entity;
use crate::plan::bind::{Binder, list};
use crate::spec::{EntitySpec, KeySpec};

impl<'n> Binder<'_, 'n> {
    pub(super) fn bind_entities(&mut self) -> Vec<Entity> {
        self.check_aliases();
        let entities: Vec<_> = self.spec.entities.iter().map(|spec| self.bind_entity(spec)).collect();
        self.check_ties(&entities);
        entities
    }

    fn bind_entity(&mut self, spec: &EntitySpec<'n>) -> Entity {
        let mut matches = self.matches(spec);
        let mut captures: Vec<String> = Vec::new();
        for (_, template) in &matches {
            for name in template.names() {
                if !captures.iter().any(|known| known == name) {
                    captures.push(name.to_owned());
                }
            }
        }
        for (_, template) in &mut matches {
            template.bind(&captures);
        }
        let classify = spec.classify.and_then(|node| read::condition(node, "`classify`", self.diagnostics));
        let sources = self.sources_of(spec);
        let outputs = std::iter::once(&spec.own).chain(&spec.emits).map(|output| self.output(spec, output, &captures, &sources)).collect();
        Entity {
            name: spec.name.text.to_owned(),
            aliases: spec.aliases.iter().map(|alias| alias.text.to_owned()).collect(),
            matches,
            captures,
            classify,
            outputs,
        }
    }

    /// The key templates of an entity, the partition key's first.
    fn matches(&mut self, spec: &EntitySpec<'n>) -> Vec<(String, Template)> {
        let known: Vec<&str> = self.spec.sources.iter().filter_map(|source| source.key.as_ref()).flat_map(KeySpec::names).collect();
        let mut found = Vec::new();
        for named in &spec.matches {
            if !known.contains(&named.name) && !known.is_empty() {
                unknown("key attribute of the source", named.name, &named.name_span, known.iter().copied(), self.diagnostics);
            }
            let Some(template) = read::template(named.value, &format!("the template of `{}`", named.name), &[], self.diagnostics) else {
                continue;
            };
            match template.check_matchable() {
                Ok(()) => found.push((named.name.to_owned(), template)),
                Err(error) => read::syntax(named.value, error, self.diagnostics),
            }
        }
        found.sort_by_key(|(name, _)| known.iter().position(|known| known == name));
        let fits = |key: &KeySpec<'n>| found.iter().all(|(name, _)| key.names().any(|known| known == name));
        let all_known = found.iter().all(|(name, _)| known.contains(&name.as_str()));
        if all_known && !found.is_empty() && !self.spec.sources.iter().filter_map(|source| source.key.as_ref()).any(fits) {
            let names = list(found.iter().map(|(name, _)| name.as_str()));
            let message = format!("no source has all of the key attributes {names}, so that no item can match");
            self.diagnostics.error(spec.matches[0].name_span.clone(), message);
        }
        found
    }

    /// The sources that an entity's items can come from.
    fn sources_of(&self, spec: &EntitySpec<'n>) -> Vec<usize> {
        let can_give = |source: &crate::spec::SourceSpec<'n>| match (&source.entity, &source.key) {
            (Some(only), _) => only.text == spec.name.text,
            (None, Some(key)) => spec.matches.iter().all(|named| key.names().any(|name| name == named.name)),
            (None, None) => true,
        };
        (0..self.spec.sources.len()).filter(|at| can_give(&self.spec.sources[*at])).collect()
    }

    /// A text of the type attribute must mean one entity.
    fn check_aliases(&mut self) {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for spec in &self.spec.entities {
            let name = spec.name.text;
            for alias in &spec.aliases {
                let message = if alias.text == name {
                    format!("`{name}` is the entity's own name and needs no alias")
                } else if self.spec.entities.iter().any(|other| other.name.text == alias.text) {
                    format!("`{}` is an alias of {name} and the name of another entity", alias.text)
                } else if let Some((_, other)) = seen.iter().find(|(known, _)| *known == alias.text) {
                    format!("`{}` is an alias of {other} and of {name}", alias.text)
                } else {
                    seen.push((alias.text, name));
                    continue;
                };
                self.diagnostics.error_with_help(alias.span.clone(), message, "take it out of one of them");
            }
        }
    }

    /// Two entities whose key templates are equally literal must not match the same key.
    fn check_ties(&mut self, entities: &[Entity]) {
        for (at, right) in entities.iter().enumerate() {
            let spec = &self.spec.entities[at];
            for (other, left) in entities[..at].iter().enumerate() {
                let sources = self.sources_of(&self.spec.entities[other]);
                let shared = self.sources_of(spec).iter().any(|at| sources.contains(at) && self.spec.sources[*at].entity.is_none());
                // A template with a mistake is missing from the bound entity, which then says nothing about ties.
                let whole = left.matches.len() == self.spec.entities[other].matches.len() && right.matches.len() == spec.matches.len();
                if !shared || !whole || left.matches.is_empty() || right.matches.is_empty() || left.literalness() != right.literalness() {
                    continue;
                }
                let apart = left
                    .matches
                    .iter()
                    .any(|(name, template)| right.matches.iter().any(|(other, their)| name == other && !template.overlaps(their)));
                if !apart {
                    let message = format!("entities {} and {} can match the same key, and neither is more literal", left.name, right.name);
                    let help = "make one template more literal, or tell them apart by the type attribute or `classify` and leave `match` out of one";
                    self.diagnostics.error_with_help(spec.matches[0].name_span.clone(), message, help);
                }
            }
        }
    }
}
