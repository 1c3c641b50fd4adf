//! What the pipeline file writes in strings: paths, templates and conditions, each read with its place.
//!
//! Steps and the binding of the plan share these; nothing here knows a step.

use std::fmt;

use crate::document::{Named, Node};
use crate::error::{Diagnostics, Span};
use crate::expr::{Condition, SyntaxError, Template};
use crate::model::{Path, Type};

/// The most parts a path may have; `DynamoDB` nests no deeper (AWS, "Quotas": 32 levels).
pub const PATH_PARTS: usize = 32;

/// The template in `node`, its names bound to `captures`; a mistake where it is none.
pub fn template(node: Node<'_>, what: &str, captures: &[String], diagnostics: &mut Diagnostics) -> Option<Template> {
    let text = node.string(what, diagnostics)?;
    match Template::parse(text) {
        Ok(mut template) => {
            template.bind(captures);
            Some(template)
        }
        Err(error) => {
            syntax(node, error, diagnostics);
            None
        }
    }
}

/// The condition in `node`; a mistake where it is none.
pub fn condition(node: Node<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<Condition> {
    let text = node.string(what, diagnostics)?;
    match Condition::parse(text) {
        Ok(condition) => Some(condition),
        Err(error) => {
            syntax(node, error, diagnostics);
            None
        }
    }
}

/// Reports a mistake in the string that `node` holds, at its place in the file.
pub fn syntax(node: Node<'_>, error: SyntaxError, diagnostics: &mut Diagnostics) {
    let SyntaxError { at, message, help } = error;
    let span = node.inside(&at);
    match help {
        Some(help) => diagnostics.error_with_help(span, message, help),
        None => diagnostics.error(span, message),
    }
}

/// The path that `text`, standing at `span`, writes; a mistake where it is none.
pub fn path(text: &str, span: &Span, diagnostics: &mut Diagnostics) -> Option<Path> {
    match Path::parse(text) {
        Ok(path) if path.rest().len() >= PATH_PARTS => {
            let message = format!("the path has {} parts, limit {PATH_PARTS}", path.rest().len() + 1);
            diagnostics.error(span.clone(), message);
            None
        }
        Ok(path) => Some(path),
        Err(message) => {
            diagnostics.error(span.clone(), message);
            None
        }
    }
}

/// The entries of a table whose names are paths, at least one.
pub fn entries<'n>(node: Node<'n>, what: &str, diagnostics: &mut Diagnostics) -> Option<Vec<Named<'n>>> {
    let all = node.fields(what, diagnostics)?.all();
    if all.is_empty() {
        diagnostics.error(node.span(), format!("{what} names nothing"));
        return None;
    }
    // `owner.id = "x"` is a table in TOML, and never what was meant by a step.
    let mut right = true;
    for named in &all {
        if let Some(inner) = dotted(named) {
            let message = format!("`{}` and `{inner}` are read as a table within a table", named.name);
            diagnostics.error_with_help(
                named.name_span.clone(),
                message,
                format!("write a nested path in quotes: \"{}.{inner}\"", named.name),
            );
            right = false;
        }
    }
    right.then_some(all)
}

/// The inner name of an entry that was written with a dot outside of quotes: a table with one field that is no type.
fn dotted<'n>(named: &Named<'n>) -> Option<&'n str> {
    if !named.value.is_table() {
        return None;
    }
    let all = named.value.fields("", &mut Diagnostics::new())?.all();
    let [inner] = &all[..] else {
        return None;
    };
    // A dotted name has its parts side by side, and the inner table starts where its own name does.
    (Type::from_descriptor(inner.name).is_none()
        && named.name_span.end < inner.name_span.start
        && inner.name_span.start - named.name_span.end <= 1)
        .then_some(inner.name)
}

/// Pairs of paths: `{ from = "to" }`. No two values may go to one place, and none to itself.
pub fn pairs(node: Node<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<Vec<(Path, Path)>> {
    let mut found: Vec<(Path, Path)> = Vec::new();
    for named in entries(node, what, diagnostics)? {
        let from = path(named.name, &named.name_span, diagnostics);
        let to = named.value.string(&format!("the target of `{}`", named.name), diagnostics);
        let to = to.and_then(|text| path(text, &named.value.span(), diagnostics));
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        if from == to {
            diagnostics.error(named.name_span.clone(), format!("`{from}` would go to itself"));
        } else if found.iter().any(|(_, other)| *other == to) {
            diagnostics.error(named.value.span(), format!("two values would go to `{to}`"));
        } else {
            found.push((from, to));
        }
    }
    Some(found)
}

/// An array of paths, at least one and none twice.
pub fn paths(node: Node<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<Vec<Path>> {
    let mut found: Vec<Path> = Vec::new();
    let strings = node.strings(what, diagnostics)?;
    if strings.is_empty() && node.array(what, diagnostics)?.is_empty() {
        diagnostics.error(node.span(), format!("{what} names nothing"));
    }
    for (text, span) in strings {
        let Some(path) = path(text, &span, diagnostics) else {
            continue;
        };
        if found.contains(&path) {
            diagnostics.error(span, format!("`{path}` is named twice"));
        } else {
            found.push(path);
        }
    }
    Some(found)
}

/// Writes pairs for `explain`: `title -> name, owner.id -> ownerId`.
pub(super) fn write_pairs(pairs: &[(Path, Path)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, (from, to)) in pairs.iter().enumerate() {
        write!(f, "{}{from} -> {to}", if at == 0 { "" } else { ", " })?;
    }
    Ok(())
}

/// Writes paths for `explain`: `legacy, owner.phone`.
pub(super) fn write_paths(paths: &[Path], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, path) in paths.iter().enumerate() {
        write!(f, "{}{path}", if at == 0 { "" } else { ", " })?;
    }
    Ok(())
}
