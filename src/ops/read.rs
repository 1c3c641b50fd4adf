//! What the pipeline file writes in strings: paths, templates and conditions, each read with its place.
//!
//! Steps and the binding of the plan share these; nothing here knows a step.

use crate::document::Node;
use crate::error::{Diagnostics, Span};
use crate::expr::{Condition, SyntaxError, Template};
use crate::model::Path;

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
