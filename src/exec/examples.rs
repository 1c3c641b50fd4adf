//! Runs the examples of a pipeline file through the very code that a run uses.

use std::sync::{Arc, OnceLock};

use crate::codec::ddb_json::{decode_item, write_item};
use crate::error::Span;
use crate::exec::record::Holds;
use crate::exec::route::Router;
use crate::exec::units::RunFile;
use crate::model::{Arena, FileId, Format, Item, Origin, TableId, Value};
use crate::plan::{Example, Expected, Plan};
use crate::proof::collisions::Collisions;
use crate::source::manifest::DataFile;
use crate::source::{Chunk, Lines};
use crate::store::{Facts, Location, Stamp};

/// An example that does not come out as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleFailure {
    /// The example's name.
    pub name: String,
    /// Where it stands in the file.
    pub span: Span,
    /// What came out and what was expected.
    pub message: String,
}

/// Runs all examples; gives those that fail. No file is touched.
#[must_use]
pub fn check_examples(plan: &Plan) -> Vec<ExampleFailure> {
    plan.examples
        .iter()
        .filter_map(|example| {
            let message = run(plan, example).err()?;
            Some(ExampleFailure { name: example.name.clone(), span: example.span.clone(), message })
        })
        .collect()
}

/// What came out of an example.
enum Outcome<'a> {
    Items(Vec<(Option<TableId>, Item<'a>)>),
    Reject(String),
}

fn run(plan: &Plan, example: &Example) -> Result<(), String> {
    let facts = Facts { bytes: 0, stamp: Stamp::Modified(None) };
    let file = DataFile { location: Location::Local("example".into()), name: example.name.clone(), items: None, md5: None, facts };
    let files = [RunFile { source: example.source, export: 0, holds: Holds::Either, seen: OnceLock::new(), file }];
    let router = Router::new(plan, &files, &[], Arc::new(Collisions::default()), true);
    let first = Origin { file: FileId(0), line: 1 };
    let chunk = Chunk { first, format: Format::Json, lines: Lines::Elements, bytes: example.input.clone().into_bytes() };
    let arena = Arena::new();
    let mut parts = router.route(&chunk, &arena);
    let outcome = if let Some(fatal) = parts.fatal {
        Outcome::Reject(format!("classify/unclassified: {}", fatal.message()))
    } else if let Some(reject) = parts.rejects.pop() {
        Outcome::Reject(reject.reason.to_string())
    } else {
        let items = parts.outgoing.into_iter().flat_map(|outgoing| outgoing.rows.into_iter().map(move |row| (outgoing.table, row.item)));
        Outcome::Items(items.collect())
    };
    compare(plan, &example.expected, &outcome)
}

fn compare(plan: &Plan, expected: &Expected, outcome: &Outcome<'_>) -> Result<(), String> {
    match (expected, outcome) {
        (Expected::Reject(part), Outcome::Reject(reason)) if reason.contains(part.as_str()) => Ok(()),
        (Expected::Reject(part), Outcome::Reject(reason)) => {
            Err(format!("it is rejected, but not for this reason\n  expected: … {part} …\n  found:    {reason}"))
        }
        (Expected::Reject(part), Outcome::Items(items)) => {
            Err(format!("it is not rejected\n  expected: a reject with … {part} …\n  found:    {}", show(plan, items)))
        }
        (Expected::Items(expected), outcome) => {
            let arena = Arena::new();
            let mut lines = Vec::new();
            for (table, object) in expected {
                lines.push((*table, format!("{{\"Item\":{object}}}")));
            }
            let mut wanted = Vec::new();
            for (table, line) in &lines {
                let item = decode_item(line, &arena).map_err(|reason| format!("the expected item is no item: {reason}"))?;
                wanted.push((*table, item));
            }
            let found = match outcome {
                Outcome::Items(found) => found,
                Outcome::Reject(reason) => {
                    return Err(format!("it is rejected\n  expected: {}\n  found:    {reason}", show(plan, &wanted)));
                }
            };
            let mut left: Vec<_> = found.iter().collect();
            for (table, item) in &wanted {
                match left.iter().position(|(other_table, other)| other_table == table && same(item, other)) {
                    Some(at) => drop(left.remove(at)),
                    None => return Err(differ(plan, &wanted, found)),
                }
            }
            if left.is_empty() { Ok(()) } else { Err(differ(plan, &wanted, found)) }
        }
    }
}

/// Whether two items are the same by value: attributes in any order, sets unordered, numbers as numbers.
fn same(left: &Item<'_>, right: &Item<'_>) -> bool {
    Value::M(left.attributes()).same_as(&Value::M(right.attributes()))
}

fn differ(plan: &Plan, wanted: &[(Option<TableId>, Item<'_>)], found: &[(Option<TableId>, Item<'_>)]) -> String {
    let mut message = format!("other items come out\n  expected: {}\n  found:    {}", show(plan, wanted), show(plan, found));
    if let ([(_, wanted)], [(_, found)]) = (wanted, found) {
        let names = wanted.attributes().iter().chain(found.attributes()).map(|(name, _)| *name);
        let mut different: Vec<_> = names
            .filter(|name| match (wanted.get(name), found.get(name)) {
                (Some(left), Some(right)) => !left.same_as(&right),
                _ => true,
            })
            .collect();
        different.sort_unstable();
        different.dedup();
        if !different.is_empty() {
            message.push_str(&format!("\n  different: {}", different.join(", ")));
        }
    }
    message
}

fn show(plan: &Plan, items: &[(Option<TableId>, Item<'_>)]) -> String {
    if items.is_empty() {
        return "no item".to_owned();
    }
    let show = |(table, item): &(Option<TableId>, Item<'_>)| {
        let mut out = Vec::new();
        write_item(item, &mut out);
        let item = String::from_utf8_lossy(&out).into_owned();
        match table {
            Some(table) => format!("in {}: {item}", plan.targets.table(*table).name),
            None => item,
        }
    };
    items.iter().map(show).collect::<Vec<_>>().join("\n            ")
}
