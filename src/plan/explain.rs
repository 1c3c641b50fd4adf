//! The plan in words: what is read, what is written, and the way of each entity, as `check -v` prints it.

use std::collections::BTreeSet;
use std::fmt;

use crate::expr::Template;
use crate::model::{Billing, Creation, Declared, KeySchema, Mixed, Nulls, Table};
use crate::plan::bind::given;
use crate::plan::{Entity, Output, Plan, Source, Unclassified};

impl fmt::Display for Plan {
    /// Sources, tables, entities in the order of the file, unclassified items, examples. Ends with a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for source in &self.sources {
            self.write_source(source, f)?;
        }
        let replication = if self.drop_replication { "dropped" } else { "kept" };
        writeln!(f, "attributes aws:rep:* of old global tables are {replication}")?;
        for table in &self.targets.tables {
            write_table(table, f)?;
        }
        for entity in &self.entities {
            self.write_entity(entity, f)?;
        }
        write!(f, "\nunclassified items: ")?;
        match self.unclassified {
            Unclassified::Reject => writeln!(f, "rejected")?,
            Unclassified::Drop => writeln!(f, "dropped and counted")?,
            Unclassified::Fail => writeln!(f, "the first one ends the run")?,
            Unclassified::Keep { dataset, table } => {
                let name = &self.targets.dataset(dataset).name;
                let place = table.map_or("Parquet only".to_owned(), |table| format!("table {}", self.targets.table(table).name));
                writeln!(f, "kept as they are, as {name}, {place}")?;
            }
        }
        match self.examples.len() {
            0 => Ok(()),
            1 => writeln!(f, "1 example"),
            count => writeln!(f, "{count} examples"),
        }
    }
}

impl Plan {
    /// The plan in words; the same as its `Display`.
    #[must_use]
    pub fn explain(&self) -> String {
        self.to_string()
    }

    fn write_source(&self, source: &Source, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { name, partition, sort, type_attribute, entity } = source;
        f.write_str("source")?;
        if let Some(name) = name {
            write!(f, " {name}")?;
        }
        write!(f, ": key {partition}")?;
        if let Some(sort) = sort {
            write!(f, ", {sort}")?;
        }
        match type_attribute {
            Some(name) => write!(f, "; type attribute {name}")?,
            None => f.write_str("; no type attribute")?,
        }
        if let Some(entity) = entity {
            write!(f, "; every item is a {}", self.entities[entity.index()].name)?;
        }
        writeln!(f)
    }

    fn write_entity(&self, entity: &Entity, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entity { name, aliases, matches, captures: _, classify, outputs } = entity;
        write!(f, "\nentity {name}")?;
        if !aliases.is_empty() {
            write!(f, ", also written {}", aliases.join(", "))?;
        }
        writeln!(f)?;
        if !matches.is_empty() {
            writeln!(f, "  matches {}", Templates(matches))?;
        }
        if let Some(condition) = classify {
            writeln!(f, "  classified by {condition}")?;
        }
        for (at, output) in outputs.iter().enumerate() {
            let otherwise = if outputs.len() == 1 { "dropped" } else { "not this way" };
            self.write_output(output, if at == 0 { "goes" } else { "also goes" }, otherwise, f)?;
        }
        let dataset = self.targets.datasets.iter().find(|dataset| dataset.name == *name);
        dataset.map_or(Ok(()), |dataset| write_declared(&dataset.declared, f))
    }

    fn write_output(&self, output: &Output, verb: &str, otherwise: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Output { dataset, when, steps, table, key, indexes, type_value } = output;
        let table = table.map(|table| self.targets.table(table));
        let place = table.map_or("Parquet only".to_owned(), |table| format!("table {}", table.name));
        writeln!(f, "  {verb} to {place}, as {}", self.targets.dataset(*dataset).name)?;
        if let Some(condition) = when {
            writeln!(f, "    when {condition}, else {otherwise}")?;
        }
        for (at, step) in steps.iter().enumerate() {
            writeln!(f, "    {}. {step}", at + 1)?;
        }
        if key.is_empty() {
            writeln!(f, "    keeps its key")?;
        } else {
            writeln!(f, "    key {}", Templates(key))?;
        }
        let Some(table) = table else {
            return Ok(());
        };
        for (index, templates) in table.indexes.iter().zip(indexes) {
            match templates {
                // An index whose attributes all come from the table's key or the type stamp, such as an inverted one.
                _ if index.key.attributes().all(|attribute| given(table, &attribute.name)) => {
                    writeln!(f, "    index {}: in it by the table's own attributes", index.name)?;
                }
                Some(templates) => writeln!(f, "    index {}: {}, left out where a part is missing", index.name, Templates(templates))?,
                None => writeln!(f, "    index {}: not in it", index.name)?,
            }
        }
        // What an index takes away from items is said, since it is the one thing a step did not name.
        let declared = |name: &str| indexes.iter().flatten().flatten().any(|(known, _)| known == name);
        let lost: Vec<_> = output.cleared(table).into_iter().filter(|name| !declared(name)).collect();
        if !lost.is_empty() {
            writeln!(f, "    loses index keys {}", lost.join(", "))?;
        }
        if let Some(attribute) = &table.type_attribute {
            writeln!(f, "    type {attribute} = {type_value}")?;
        }
        Ok(())
    }
}

/// What is declared of the columns of a dataset: `  in Parquet createdAt is timestamp; price is double, as cost`.
fn write_declared(declared: &Declared, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Declared { types, names, strict, mixed, mixed_of, nulls, columns, rest, order, sort, partition } = declared;
    let list = |names: &mut dyn Iterator<Item = &String>| names.map(String::as_str).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    for name in types.keys().chain(names.keys()).chain(mixed_of.keys()).collect::<BTreeSet<_>>() {
        let is = types.get(name).map(|column| format!("is {column}"));
        let mixed = mixed_of.get(name).map(|mixed| format!("of several types is {}", mixed.name()));
        let renamed = names.get(name).map(|column| format!("as {column}"));
        parts.push(format!("{name} {}", is.into_iter().chain(mixed).chain(renamed).collect::<Vec<_>>().join(", ")));
    }
    if *mixed != Mixed::default() {
        parts.push(format!("what else has several types is {}", mixed.name()));
    }
    match nulls {
        Nulls::All => parts.push("NULL has columns of its own".to_owned()),
        Nulls::Of(names) if names.is_empty() => {}
        Nulls::Of(names) => parts.push(format!("NULL has a column of its own in {}", list(&mut names.iter()))),
    }
    parts.extend((!order.is_empty()).then(|| format!("{} first", list(&mut order.iter()))));
    parts.extend((!partition.is_empty()).then(|| format!("folders by {}", list(&mut partition.iter()))));
    parts.extend((!sort.is_empty()).then(|| format!("rows by {}", list(&mut sort.iter()))));
    parts.extend((!rest.is_empty()).then(|| format!("no columns for {}", list(&mut rest.iter()))));
    parts.extend(columns.map(|columns| format!("at most {columns} columns")));
    parts.extend(strict.then(|| "what does not fit is rejected".to_owned()));
    if parts.is_empty() { Ok(()) } else { writeln!(f, "  in Parquet {}", parts.join("; ")) }
}

fn write_table(table: &Table, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Table { name, key, indexes, type_attribute, creation: Creation { billing, tags } } = table;
    write!(f, "\ntable {name}: key {}", Key(key))?;
    if let Some(name) = type_attribute {
        write!(f, "; type attribute {name}")?;
    }
    writeln!(f)?;
    for index in indexes {
        writeln!(f, "  index {}: key {}", index.name, Key(&index.key))?;
    }
    if let Billing::Provisioned { read, write } = billing {
        let each = if indexes.is_empty() { "" } else { ", and each index" };
        writeln!(f, "  where it is created: {read} read and {write} write units a second{each}")?;
    }
    if !tags.is_empty() {
        let tags: Vec<_> = tags.iter().map(|(name, value)| format!("{name} = \"{value}\"")).collect();
        writeln!(f, "  where it is created: tagged {}", tags.join(", "))?;
    }
    Ok(())
}

/// A key in words: `EntityRef (S), Detail (N)`.
struct Key<'p>(&'p KeySchema);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, attribute) in self.0.attributes().enumerate() {
            write!(f, "{}{} ({})", if at == 0 { "" } else { ", " }, attribute.name, attribute.kind.descriptor())?;
        }
        Ok(())
    }
}

/// Templates in words: `PK = "WS#{ws}", SK = "DOC#{doc}"`.
struct Templates<'p>(&'p [(String, Template)]);

impl fmt::Display for Templates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, template)) in self.0.iter().enumerate() {
            write!(f, "{}{name} = \"{template}\"", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;

    #[test]
    fn a_plan_is_told_in_words() {
        let plan = Plan::from_toml(include_str!("../../pipelines/docs-split-comments.toml")).unwrap();
        assert_eq!(
            plan.explain(),
            r#"source: key PK, SK; type attribute EntityType
attributes aws:rep:* of old global tables are dropped

table docs: key EntityRef (S), Detail (S); type attribute EntityType
  index recent: key GSI1PK (S), GSI1SK (S)

table comments: key DocRef (S), Detail (S); type attribute EntityType

entity Workspace
  matches PK = "WS#{ws}", SK = "META"
  goes to table docs, as Workspace
    key EntityRef = "WS#{ws}", Detail = "META"
    index recent: not in it
    loses index keys GSI1PK, GSI1SK
    type EntityType = Workspace

entity Document, also written Doc, document
  matches PK = "WS#{ws}", SK = "DOC#{doc}"
  goes to table docs, as Document
    key EntityRef = "WS#{ws}", Detail = "DOC#{doc | pad(10)}"
    index recent: GSI1PK = "WS#{ws}", GSI1SK = "{updatedAt}", left out where a part is missing
    type EntityType = Document

entity Comment, also written COMMENT
  matches PK = "WS#{ws}", SK = "DOC#{doc}#CMT#{cmt}"
  goes to table comments, as Comment
    1. drop GSI1PK, GSI1SK
    key DocRef = "WS#{ws}#DOC#{doc | pad(10)}", Detail = "CMT#{createdAt}#{cmt}"
    type EntityType = Comment

unclassified items: rejected
4 examples
"#
        );
    }

    #[test]
    fn how_a_table_is_created_is_told_where_the_file_says_it() {
        let text = include_str!("../../pipelines/docs-split-comments.toml");
        let text = text.replace("[table.docs]\n", "[table.docs]\nbilling = { read = 5, write = 10 }\ntags = { team = \"docs\" }\n");
        let explained = Plan::from_toml(&text).unwrap().explain();
        let expected =
            "  where it is created: 5 read and 10 write units a second, and each index\n  where it is created: tagged team = \"docs\"\n";
        assert!(explained.contains(expected), "{explained}");
    }
}
