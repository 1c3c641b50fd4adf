//! From a source item to target items: classify, capture, `when`, steps, keys, index keys, type stamp, limits.
//!
//! Pure: the same item gives the same answer wherever and whenever it is asked.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::error::{Reason, Stage};
use crate::expr::template::RenderError;
use crate::expr::{Condition, Template};
use crate::limits;
use crate::model::number::Decimal;
use crate::model::{Batch, EntityId, Fate, Item, KeySchema, KeyType, Op, Row, Table, Value, short};
use crate::plan::{Output, Plan, Source};

/// How an item was told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The source holds one kind only.
    BySource,
    /// The type attribute says the entity's name.
    ByType,
    /// The type attribute says one of its aliases.
    ByAlias,
    /// The key templates match.
    ByKey,
    /// The entity's `classify` condition holds.
    ByCondition,
}

/// An item that an entity claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The entity.
    pub entity: EntityId,
    /// How it was told.
    pub told: Told,
    /// The type attribute says one entity, the key another.
    pub disagrees: bool,
    /// The type attribute says what no entity is called; the key or a condition told the entity.
    pub unknown_type: bool,
    /// What the entity's key templates captured, by slot; all `None` where they do not match.
    pub captures: &'a [Option<&'a str>],
}

/// Tells items apart. Made once for a plan; looks names up, so that no item costs more than one look-up and
/// the templates that its key can match.
#[derive(Debug)]
pub struct Classifier<'p> {
    plan: &'p Plan,
    by_type: FxHashMap<&'p str, (EntityId, Told)>,
    /// Entities with key templates, the most literal first.
    by_key: Vec<EntityId>,
    by_condition: Vec<(EntityId, &'p Condition)>,
}

impl<'p> Classifier<'p> {
    /// The classifier of a plan.
    #[must_use]
    pub fn new(plan: &'p Plan) -> Self {
        let ids = || (0_u32..).map(EntityId).zip(&plan.entities);
        let mut by_type = FxHashMap::default();
        for (id, entity) in ids() {
            for alias in &entity.aliases {
                by_type.insert(alias.as_str(), (id, Told::ByAlias));
            }
        }
        for (id, entity) in ids() {
            by_type.insert(entity.name.as_str(), (id, Told::ByType));
        }
        let mut by_key: Vec<_> = ids().filter(|(_, entity)| !entity.matches.is_empty()).map(|(id, _)| id).collect();
        by_key.sort_by_key(|id| Reverse(plan.entities[id.index()].literalness()));
        let by_condition = ids().filter_map(|(id, entity)| Some((id, entity.classify.as_ref()?))).collect();
        Self { plan, by_type, by_key, by_condition }
    }

    /// Which entity claims the item, in this order: the source's only entity, the type attribute, an alias, the key, a condition.
    #[must_use]
    pub fn claim<'a>(&self, source: &Source, item: &Item<'a>) -> Option<Claim<'a>> {
        if let Some(entity) = source.entity {
            let captures = self.captures(entity, item).unwrap_or_default();
            return Some(Claim { entity, told: Told::BySource, disagrees: false, unknown_type: false, captures });
        }
        let by_type = match source.type_attribute.as_deref().and_then(|name| item.get(name)) {
            None | Some(Value::Null) => None,
            Some(Value::S(text)) => Some(self.by_type.get(text).copied()),
            // To write a type over a number or a map would lose it.
            Some(_) => return None,
        };
        if let Some(Some((entity, told))) = by_type {
            let captures = self.captures(entity, item);
            let disagrees = captures.is_none() && self.by_key(item).is_some_and(|(other, _)| other != entity);
            let captures = captures.unwrap_or_else(|| self.no_captures(entity, item));
            return Some(Claim { entity, told, disagrees, unknown_type: false, captures });
        }
        let unknown_type = by_type.is_some();
        if let Some((entity, captures)) = self.by_key(item) {
            return Some(Claim { entity, told: Told::ByKey, disagrees: false, unknown_type, captures });
        }
        let (entity, _) = self.by_condition.iter().find(|(_, condition)| condition.holds(item))?;
        let captures = self.no_captures(*entity, item);
        Some(Claim { entity: *entity, told: Told::ByCondition, disagrees: false, unknown_type, captures })
    }

    fn by_key<'a>(&self, item: &Item<'a>) -> Option<(EntityId, &'a [Option<&'a str>])> {
        self.by_key.iter().find_map(|entity| Some((*entity, self.captures(*entity, item)?)))
    }

    /// The captures of the entity's key templates, or `None` where one of them does not match.
    fn captures<'a>(&self, entity: EntityId, item: &Item<'a>) -> Option<&'a [Option<&'a str>]> {
        let entity = &self.plan.entities[entity.index()];
        if entity.matches.is_empty() {
            return None;
        }
        let captures = item.arena().alloc_slice_fill_copy(entity.captures.len(), None);
        for (attribute, template) in &entity.matches {
            let (Value::S(text) | Value::N(text)) = item.get(attribute)? else { return None };
            if !template.matches(text, captures) {
                return None;
            }
        }
        Some(captures)
    }

    fn no_captures<'a>(&self, entity: EntityId, item: &Item<'a>) -> &'a [Option<&'a str>] {
        item.arena().alloc_slice_fill_copy(self.plan.entities[entity.index()].captures.len(), None)
    }
}

/// What was changed on the way, to be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Items whose type attribute was missing and is now there.
    pub backfilled: u64,
    /// Items whose type attribute said something else.
    pub retyped: u64,
    /// Items left out of an index because a part of its key is missing.
    pub unindexed: u64,
    /// Index key attributes that were taken off items whose entity declares no such index.
    pub stale_index_attributes: u64,
}

impl Output {
    /// Takes the rows of `batch` all the way to where a sink may have them.
    ///
    /// Of an item that was deleted perhaps nothing but the key is known. Conditions, which ask for more, pass it by; steps do to the key
    /// what they did to that of the whole item. Where a step fails for a deleted item, of which the key is all that is written, and the
    /// new key is made of captures alone, no step matters.
    pub fn carry(&self, plan: &Plan, source: &Source, batch: &mut Batch<'_>) -> Changes {
        let mut bare = Batch::default();
        if batch.rows.iter().any(Row::is_keys_only) {
            bare.rows.extend(batch.rows.extract_if(.., |row| row.is_keys_only()));
        }
        if let Some(when) = &self.when {
            batch.each(|row| Ok(if when.holds(&row.item) { Fate::Keep } else { Fate::Drop }));
        }
        for step in &self.steps {
            step.apply(batch);
            step.apply(&mut bare);
            bare.rows.append(&mut bare.dropped);
        }
        if !bare.rows.is_empty() || !bare.refused.is_empty() {
            batch.rows.append(&mut bare.rows);
            batch.rows.sort_by_key(|row| row.origin);
            batch.refused.append(&mut bare.refused);
        }
        self.take_back_deletes(batch);
        let table = self.table.map(|id| plan.targets.table(id));
        let cleared = table.map_or_else(Vec::new, |table| self.cleared(table));
        let mut changes = Changes::default();
        batch.each(|row| {
            if let Some(table) = table {
                self.place(table, &cleared, source, row, &mut changes)?;
            }
            self.stamp(table, source, row, &mut changes);
            row.size = limits::check_item(&row.item, table)?;
            Ok(Fate::Keep)
        });
        changes
    }

    /// Takes deletes back that a step refused, where their new key does not depend on what steps do.
    fn take_back_deletes(&self, batch: &mut Batch<'_>) {
        let is_known = |row: &Row<'_>| {
            let nothing = Item::new_in(row.item.arena());
            row.change.is_some_and(|change| change.op == Op::Delete)
                && !self.key.is_empty()
                && self.key.iter().all(|(_, template)| template.missing(row.captures, &nothing).is_none())
        };
        if !batch.refused.iter().any(|(row, _)| is_known(row)) {
            return;
        }
        for (mut row, _) in batch.refused.extract_if(.., |(row, _)| is_known(row)) {
            row.item.retain(|_, _| false);
            batch.rows.push(row);
        }
        batch.rows.sort_by_key(|row| row.origin);
    }

    /// Gives the item its keys and index keys.
    fn place(&self, table: &Table, cleared: &[&str], source: &Source, row: &mut Row<'_>, changes: &mut Changes) -> Result<(), Reason> {
        // Everything is rendered before anything is taken away, since a template may name a source key.
        let arena = row.item.arena();
        let mut new = bumpalo::collections::Vec::new_in(arena);
        for (name, template) in &self.key {
            // What a filter would put in place of a part that nobody knows would make the key of another item.
            let unknown = if row.is_keys_only() { template.missing(row.captures, &row.item) } else { None };
            let text = match unknown {
                Some(part) => Err(RenderError::Missing(part.to_owned())),
                None => template.render(row.captures, &row.item),
            };
            let text = text.map_err(|error| key_reason(name, template, row, error))?;
            new.push((name.as_str(), key_value(text, kind_of(&table.key, name), name)?));
        }
        for (index, templates) in table.indexes.iter().zip(&self.indexes) {
            let Some(templates) = templates else { continue };
            let mut parts = bumpalo::collections::Vec::with_capacity_in(templates.len(), arena);
            for (name, template) in templates {
                match template.render(row.captures, &row.item) {
                    Ok(text) => parts.push((name.as_str(), key_value(text, kind_of(&index.key, name), name)?)),
                    Err(RenderError::Missing(_)) => break,
                    Err(error) => return Err(key_reason(name, template, row, error)),
                }
            }
            if parts.len() == templates.len() {
                for (name, value) in parts {
                    match new.iter().find(|(known, _)| *known == name) {
                        Some((_, other)) if *other != value => {
                            return Err(Reason::new(
                                Stage::Key,
                                "index-conflict",
                                format!("two templates give `{name}` different values; an attribute can hold one key part only"),
                            ));
                        }
                        Some(_) => {}
                        None => new.push((name, value)),
                    }
                }
            } else {
                changes.unindexed += 1;
            }
        }
        if !self.key.is_empty() {
            row.item.remove(&source.partition);
            if let Some(sort) = &source.sort {
                row.item.remove(sort);
            }
        }
        for name in cleared {
            let rendered = new.iter().any(|(known, _)| known == name);
            if !rendered && row.item.remove(name).is_some() {
                changes.stale_index_attributes += 1;
            }
        }
        for (name, value) in new {
            row.item.set(arena.alloc_str(name), value);
        }
        Ok(())
    }

    /// Says on the item what it is.
    fn stamp(&self, table: Option<&Table>, source: &Source, row: &mut Row<'_>, changes: &mut Changes) {
        let arena = row.item.arena();
        // Drift is mended under the source's own name too, unless the item is not of this source's making.
        let stamped = match table {
            Some(table) => table.type_attribute.as_deref(),
            None => source.type_attribute.as_deref(),
        };
        if let Some(name) = source.type_attribute.as_deref()
            && Some(name) != stamped
            && row.item.get(name).is_some()
        {
            row.item.set(arena.alloc_str(name), Value::S(arena.alloc_str(&self.type_value)));
        }
        let Some(name) = stamped else { return };
        match row.item.get(name) {
            Some(Value::S(text)) if short::same(text, &self.type_value) => return,
            Some(_) => changes.retyped += 1,
            None => changes.backfilled += 1,
        }
        row.item.set(arena.alloc_str(name), Value::S(arena.alloc_str(&self.type_value)));
    }
}

/// The type that `key` gives its attribute `name`.
fn kind_of(key: &KeySchema, name: &str) -> KeyType {
    key.attributes().find(|attribute| attribute.name == name).map_or(KeyType::S, |attribute| attribute.kind)
}

/// The rendered text as a value of the key's type.
fn key_value<'a>(text: &'a str, kind: KeyType, name: &str) -> Result<Value<'a>, Reason> {
    match kind {
        KeyType::S => Ok(Value::S(text)),
        KeyType::N if Decimal::parse(text).is_some() => Ok(Value::N(text)),
        KeyType::N => {
            let message = format!("`{name}` is of type N, but its template gave a text of {} bytes that is no number", text.len());
            Err(Reason::new(Stage::Key, "key-number", message))
        }
        KeyType::B => Ok(Value::B(text.as_bytes())),
    }
}

fn key_reason(name: &str, template: &Template, row: &Row<'_>, error: RenderError) -> Reason {
    match error {
        RenderError::Missing(part) => {
            let why = match row.captures {
                _ if row.is_keys_only() => {
                    "; of a deleted item an export with NEW_IMAGE has the key alone, one with NEW_AND_OLD_IMAGES the old image too"
                }
                captures @ [_, ..] if captures.iter().all(Option::is_none) => {
                    "; its key does not fit the entity's `match`, so nothing was captured"
                }
                _ => "",
            };
            let message =
                format!("`{name}` = \"{template}\" needs `{part}`, which the item has neither as a capture nor as an attribute{why}");
            Reason::new(Stage::Key, "key-part-missing", message)
        }
        RenderError::Refused { rule, message } => Reason::new(Stage::Key, rule, format!("`{name}` = \"{template}\": {message}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ddb_json::{decode_item, write_item};
    use crate::model::{Arena, Change, FileId, Origin, Raw};

    const HEAD: &str = "version = 1\n[source]\nkey = { partition = \"PK\", sort = \"SK\" }\ntype = \"T\"\n";

    type Carried = (Option<(String, Told, bool)>, Result<String, String>, Changes);

    /// What becomes of an item: how it was told and what comes out of its first output, or the reason why not.
    fn carry(pipeline: &str, object: &str) -> Carried {
        let plan = Plan::from_toml(&format!("{HEAD}{pipeline}")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let classifier = Classifier::new(&plan);
        let line = format!("{{\"Item\":{object}}}");
        let arena = Arena::new();
        let item = decode_item(&line, &arena).unwrap();
        let Some(claim) = classifier.claim(&plan.sources[0], &item) else {
            return (None, Err("unclassified".to_owned()), Changes::default());
        };
        let entity = &plan.entities[claim.entity.index()];
        let origin = Origin { file: FileId(0), line: 1 };
        let row = Row { origin, item, captures: claim.captures, source: Raw::json(b""), change: None, size: 0 };
        let mut batch = Batch { rows: vec![row], ..Batch::default() };
        let changes = entity.outputs[0].carry(&plan, &plan.sources[0], &mut batch);
        let result = match (batch.rows.pop(), batch.refused.pop()) {
            (Some(row), _) => {
                let mut out = Vec::new();
                write_item(&row.item, &mut out);
                Ok(String::from_utf8(out).unwrap())
            }
            (None, Some((_, reason))) => Err(format!("{}: {}", reason.rule, reason.message)),
            (None, None) => Err("dropped".to_owned()),
        };
        (Some((entity.name.clone(), claim.told, claim.disagrees)), result, changes)
    }

    fn told(pipeline: &str, object: &str) -> Option<(String, Told, bool)> {
        carry(pipeline, object).0
    }

    #[test]
    fn an_item_is_told_by_type_then_alias_then_key_then_condition() {
        let pipeline = r#"
[entity.Doc]
aliases = ["doc"]
match = { PK = "WS#{w}", SK = "DOC#{d}" }
[entity.Note]
match = { PK = "WS#{w}", SK = "NOTE#{n}" }
[entity.Other]
classify = "attribute_exists(other)"
"#;
        let claim = |name: &str, told, disagrees| Some((name.to_owned(), told, disagrees));
        for (object, expected) in [
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#1"},"T":{"S":"Doc"}}"#, claim("Doc", Told::ByType, false)),
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#1"},"T":{"S":"doc"}}"#, claim("Doc", Told::ByAlias, false)),
            // The type is believed over the key, and that they differ is told.
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"NOTE#1"},"T":{"S":"Doc"}}"#, claim("Doc", Told::ByType, true)),
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"FREE"},"T":{"S":"Doc"}}"#, claim("Doc", Told::ByType, false)),
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"NOTE#1"}}"#, claim("Note", Told::ByKey, false)),
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"NOTE#1"},"T":{"NULL":true}}"#, claim("Note", Told::ByKey, false)),
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"NOTE#1"},"T":{"S":"Old"}}"#, claim("Note", Told::ByKey, false)),
            // A type that is no text is not written over.
            (r#"{"PK":{"S":"WS#a"},"SK":{"S":"NOTE#1"},"T":{"N":"1"}}"#, None),
            (r#"{"PK":{"S":"x"},"SK":{"S":"y"},"other":{"NULL":true}}"#, claim("Other", Told::ByCondition, false)),
            (r#"{"PK":{"S":"x"},"SK":{"S":"y"},"T":{"S":"DOC"}}"#, None),
        ] {
            assert_eq!(told(pipeline, object), expected, "{object}");
        }
    }

    const TABLE: &str = r#"
[table.docs]
key = { partition = "id", sort = "at" }
types = { at = "N" }
type = "Kind"
[table.docs.index.feed]
key = { partition = "F1", sort = "F2" }
"#;

    #[test]
    fn a_deleted_item_gets_the_key_that_its_steps_made_and_no_condition_drops_it() {
        let plan = Plan::from_toml(&format!(
            "{HEAD}{}",
            r#"
[table.docs]
key = { partition = "id" }
[entity.Doc]
match = { PK = "WS#{w}", SK = "{d...}" }
when = "attribute_exists(title)"
steps = [{ set = { SK = "{SK | lower}" } }, { filter = "attribute_exists(title)" }]
to = "docs"
key = { id = "{SK}" }
"#
        ))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let (kept, refused) = deleted(&plan, true, r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#X"}}"#);
        assert_eq!((kept.as_deref(), refused.as_deref()), (Some("doc#x"), None));
    }

    /// The `id` of a deleted item in the table, or why it has none.
    fn deleted(plan: &Plan, keys_only: bool, object: &str) -> (Option<String>, Option<String>) {
        let line = format!("{{\"Item\":{object}}}");
        let arena = Arena::new();
        let item = decode_item(&line, &arena).unwrap();
        let claim = Classifier::new(plan).claim(&plan.sources[0], &item).unwrap();
        let change = Change { op: Op::Delete, written_at: 1, keys_only };
        let origin = Origin { file: FileId(0), line: 1 };
        let row = Row { origin, item, captures: claim.captures, source: Raw::json(b""), change: Some(change), size: 0 };
        let mut batch = Batch { rows: vec![row], ..Batch::default() };
        plan.entities[0].outputs[0].carry(plan, &plan.sources[0], &mut batch);
        let id = batch.rows.pop().map(|row| match row.item.get("id") {
            Some(Value::S(text)) => text.to_owned(),
            other => format!("{other:?}"),
        });
        (id, batch.refused.pop().map(|(_, reason)| reason.to_string()))
    }

    #[test]
    fn a_deleted_item_that_a_step_refuses_is_carried_where_its_key_is_captured() {
        let keys = r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#X"}}"#;
        let whole = r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#X"},"n":{"S":"many"},"at":{"S":"7"}}"#;
        for (steps, key, object, expected) in [
            ("{ set = { label = '{title}' } }", "{w}/{d}", keys, Ok("a/DOC#X")),
            ("{ cast = { n = 'number' } }, { set = { label = '{title}' } }", "{w}/{d}", whole, Ok("a/DOC#X")),
            // The step might have changed what the key is made of.
            ("{ set = { SK = '{SK}#{title}' } }", "{SK}", keys, Err("step/set-missing: set SK: `title` is not there")),
            ("{ cast = { n = 'number' } }", "{w}/{at}", whole, Err("step/cast:")),
            ("{ set = { label = '{title}' } }", "{w}/{at | default('0')}", keys, Err("step/set-missing")),
            // Nobody knows what was absent.
            ("{ default = { at = '0' } }", "{w}/{at}", keys, Err("key/key-part-missing")),
            ("{ default = { label = '{title}' } }", "{w}/{d}", keys, Ok("a/DOC#X")),
            ("{ set = { at = \"{at | default('0')}\" } }", "{w}/{at}", keys, Err("step/set-missing: set at: `at` is not known")),
            ("{ drop = ['x'] }", "{w}/{at | default('0')}", keys, Err("key/key-part-missing")),
            ("{ drop = ['x'] }", "{w}/{at | default('0')}", whole, Ok("a/7")),
        ] {
            let text = format!(
                "{HEAD}[table.docs]\nkey = {{ partition = \"id\" }}\n[entity.Doc]\nmatch = {{ PK = \"WS#{{w}}\", SK = \"{{d...}}\" }}\nsteps = [{steps}]\nto = \"docs\"\nkey = {{ id = \"{key}\" }}\n"
            );
            let plan = Plan::from_toml(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            match (deleted(&plan, object == keys, object), expected) {
                ((Some(id), None), Ok(expected)) => assert_eq!(id, expected, "{steps} {key}"),
                ((None, Some(reason)), Err(expected)) => assert!(reason.starts_with(expected), "{steps} {key}: {reason}"),
                (found, _) => panic!("{steps} {key}: {found:?}"),
            }
        }
    }

    #[test]
    fn source_keys_go_and_target_keys_index_keys_and_type_come() {
        let pipeline = format!(
            "{TABLE}{}",
            r#"
[entity.Doc]
match = { PK = "WS#{w}", SK = "DOC#{d}" }
to = "docs"
key = { id = "{w}", at = "{d}" }
index.feed = { F1 = "FEED#{w}", F2 = "{PK}/{title}" }
"#
        );
        let (_, result, changes) = carry(&pipeline, r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#007"},"title":{"S":"x"},"T":{"S":"Doc"}}"#);
        let expected = r#"{"F1":{"S":"FEED#a"},"F2":{"S":"WS#a/x"},"Kind":{"S":"Doc"},"T":{"S":"Doc"},"at":{"N":"007"},"id":{"S":"a"},"title":{"S":"x"}}"#;
        assert_eq!(result.unwrap(), expected);
        assert_eq!(changes, Changes { backfilled: 1, ..Changes::default() });
        let (_, result, changes) = carry(&pipeline, r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#7"},"F1":{"S":"old"},"T":{"S":"Doc"}}"#);
        assert_eq!(result.unwrap(), r#"{"Kind":{"S":"Doc"},"T":{"S":"Doc"},"at":{"N":"7"},"id":{"S":"a"}}"#);
        assert_eq!(changes, Changes { backfilled: 1, unindexed: 1, stale_index_attributes: 1, ..Changes::default() });
        let (_, result, _) = carry(&pipeline, r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#x1"},"T":{"S":"Doc"}}"#);
        assert_eq!(result.unwrap_err(), "key-number: `at` is of type N, but its template gave a text of 2 bytes that is no number");
        let (_, result, _) = carry(&pipeline, r#"{"PK":{"S":"b"},"SK":{"S":"c"},"T":{"S":"Doc"}}"#);
        assert!(result.unwrap_err().starts_with("key-part-missing: `id` = \"{w}\" needs `w`"));
    }

    #[test]
    fn a_type_attribute_that_is_an_index_key_is_no_stale_index_key() {
        let pipeline = r#"
[table.docs]
key = { partition = "PK", sort = "SK" }
type = "T"
[table.docs.index.by_type]
key = { partition = "T", sort = "SK" }
[entity.Doc]
to = "docs"
"#;
        let object = r#"{"PK":{"S":"WS#a"},"SK":{"S":"DOC#7"},"T":{"S":"Doc"}}"#;
        let (_, result, changes) = carry(pipeline, object);
        assert_eq!(result.unwrap(), object);
        assert_eq!(changes, Changes::default());
    }

    #[test]
    fn an_item_for_parquet_keeps_its_keys_and_gets_its_type_in_one_spelling() {
        let pipeline = "[entity.Doc]\naliases = [\"doc\"]\nmatch = { PK = \"WS#{w}\" }\n";
        let (_, result, changes) = carry(pipeline, r#"{"PK":{"S":"WS#a"},"SK":{"S":"1"},"T":{"S":"doc"}}"#);
        assert_eq!(result.unwrap(), r#"{"PK":{"S":"WS#a"},"SK":{"S":"1"},"T":{"S":"Doc"}}"#);
        assert_eq!(changes, Changes { retyped: 1, ..Changes::default() });
        let (_, result, changes) = carry(pipeline, r#"{"PK":{"S":"WS#a"},"SK":{"S":"1"}}"#);
        assert_eq!(result.unwrap(), r#"{"PK":{"S":"WS#a"},"SK":{"S":"1"},"T":{"S":"Doc"}}"#);
        assert_eq!(changes, Changes { backfilled: 1, ..Changes::default() });
    }
}
