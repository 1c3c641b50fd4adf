//! Entities, and that an item can be of one only: names, aliases and key templates of all of them together.

use std::collections::BTreeMap;

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
        self.declare(spec);
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
        let mut groups: BTreeMap<_, Vec<Claim<'_>>> = BTreeMap::new();
        for (at, entity) in entities.iter().enumerate() {
            let spec = &self.spec.entities[at];
            // A template with a mistake is missing from the bound entity, which then says nothing about ties.
            if entity.matches.is_empty() || entity.matches.len() != spec.matches.len() {
                continue;
            }
            let mut sources = self.sources_of(spec);
            sources.retain(|source| self.spec.sources[*source].entity.is_none());
            groups.entry(entity.literalness()).or_default().push(Claim { at, entity, sources });
        }
        let mut ties: Vec<_> = groups.values().flat_map(|claims| ties(claims)).collect();
        ties.sort_unstable();
        for (right, left) in ties {
            let message = format!(
                "entities {} and {} can match the same key, and neither is more literal",
                entities[left].name, entities[right].name
            );
            let help =
                "make one template more literal, or tell them apart by the type attribute or `classify` and leave `match` out of one";
            self.diagnostics.error_with_help(self.spec.entities[right].matches[0].name_span.clone(), message, help);
        }
    }
}

/// An entity that claims items by their key.
struct Claim<'e> {
    /// Its place among the entities.
    at: usize,
    entity: &'e Entity,
    /// The sources whose items it can claim so.
    sources: Vec<usize>,
}

impl Claim<'_> {
    /// Whether some key of some source could be claimed by both.
    fn ties(&self, other: &Claim<'_>) -> bool {
        let apart = |(name, template): &(String, Template)| {
            other.entity.matches.iter().any(|(known, their)| known == name && !template.overlaps(their))
        };
        self.sources.iter().any(|source| other.sources.contains(source)) && !self.entity.matches.iter().any(apart)
    }

    /// The text that stands there in each key which the entity claims, backwards for [`Side::End`]; perhaps less than all of
    /// it, and empty where any text may stand.
    fn border(&self, key: &str, side: Side) -> Vec<u8> {
        let Some((_, template)) = self.entity.matches.iter().find(|(name, _)| name == key) else {
            return Vec::new();
        };
        let text = template.to_string();
        let is_literal = |byte: &u8| !matches!(byte, b'{' | b'}');
        match side {
            Side::Start => text.bytes().take_while(is_literal).collect(),
            Side::End => text.bytes().rev().take_while(is_literal).collect(),
            Side::Behind(separators) => {
                // Where braces may be literal or a name may take separators, the parts of the text are not those of the key.
                if ["{{", "}}", "...", "'", "\""].iter().any(|unclear| text.contains(unclear)) {
                    return Vec::new();
                }
                let mut depth = 0_usize;
                let part = text.split(|letter| {
                    match letter {
                        '{' => depth += 1,
                        '}' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    letter == '#' && depth == 0
                });
                part.skip(separators).take(1).flat_map(str::bytes).take_while(is_literal).collect()
            }
        }
    }
}

/// A place in a key where two keys can be told apart.
#[derive(Clone, Copy)]
enum Side {
    Start,
    End,
    /// Behind so many `#`. Once a template writes a `#`, no capture contains one, so its parts are those of the key.
    Behind(usize),
}

impl Side {
    /// The places that are looked at; templates with more parts are told apart by one of these nearly always.
    const ALL: [Side; 6] = [Side::Start, Side::End, Side::Behind(1), Side::Behind(2), Side::Behind(3), Side::Behind(4)];
}

/// The pairs of claims that tie, each as the places of the later and the earlier entity.
///
/// Comparing templates is slow and pairs are many. Two keys with different texts at one place differ, so only pairs are
/// looked at of which one border continues the other, at that [`Side`] of that key attribute where such pairs are fewest.
fn ties(claims: &[Claim<'_>]) -> Vec<(usize, usize)> {
    let mut keys: Vec<&str> = claims.iter().flat_map(|claim| &claim.entity.matches).map(|(name, _)| name.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let sides = keys.iter().flat_map(|key| Side::ALL.map(|side| (*key, side)));
    let sorted = sides.map(|(key, side)| {
        let mut sorted: Vec<_> = claims.iter().map(|claim| (claim.border(key, side), claim)).collect();
        sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
        // In this order the borders that continue one stand right behind it.
        let until = |at: usize| at + 1 + sorted[at + 1..].partition_point(|(border, _)| border.starts_with(&sorted[at].0));
        let ends: Vec<_> = (0..sorted.len()).map(until).collect();
        (sorted, ends)
    });
    let pairs = |ends: &[usize]| ends.iter().enumerate().map(|(at, end)| end - at - 1).sum::<usize>();
    let Some((sorted, ends)) = sorted.min_by_key(|(_, ends)| pairs(ends)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for ((at, (_, claim)), end) in sorted.iter().enumerate().zip(&ends) {
        let others = sorted[at + 1..*end].iter().filter(|(_, other)| claim.ties(other));
        found.extend(others.map(|(_, other)| (claim.at.max(other.at), claim.at.min(other.at))));
    }
    found
}
