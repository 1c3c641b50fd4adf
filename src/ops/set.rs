//! `set` and `default`: an attribute gets a value.
//!
//! ```toml
//! steps = [
//!   { set = { label = "{ws}/{title}", seats = { N = "5" }, "owner.kind" = "user" } },
//!   { default = { plan = "free" } },
//! ]
//! ```
//!
//! A string is a template and gives a string; any other value is written the way `DynamoDB` types it. `set`
//! writes over what is there; `default` writes only where nothing is (the null value is something). Attributes
//! are set in the order of the file, so a template sees those before it. Rejects: `set-missing` and `default-missing`
//! where a part of a template is not there, `set-path` and `default-path` where the place cannot be made, and the
//! rules of the filters, such as `pad-width`. Of an item of which nothing but the key is known nobody can say what is absent: `default` passes
//! it by, and what a filter would put in place of a missing part is missing.

use std::fmt;

use crate::document::Node;
use crate::error::{Diagnostics, Reason};
use crate::expr::Template;
use crate::expr::template::RenderError;
use crate::model::{Batch, Fate, Path, Row, Value};
use crate::ops::literal::Literal;
use crate::ops::{Op, read, refused};

#[derive(Debug)]
struct Set {
    when: When,
    values: Vec<(Path, Given)>,
}

/// When a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    Absent,
}

#[derive(Debug)]
enum Given {
    Template(Template),
    Literal(Literal),
}

pub(super) fn bind(node: Node<'_>, captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    bind_when(When::Always, node, captures, diagnostics)
}

pub(super) fn bind_default(node: Node<'_>, captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    bind_when(When::Absent, node, captures, diagnostics)
}

fn bind_when(when: When, node: Node<'_>, captures: &[String], diagnostics: &mut Diagnostics) -> Option<Box<dyn Op>> {
    let all = read::entries(node, &format!("`{}`", when.name()), diagnostics)?;
    let values: Vec<_> = all
        .iter()
        .filter_map(|named| {
            let path = read::path(named.name, &named.name_span, diagnostics);
            let what = format!("the value of `{}`", named.name);
            let given = if named.value.is_table() || named.value.text().is_none() {
                Given::Literal(Literal::read(named.value, &what, diagnostics)?)
            } else {
                Given::Template(read::template(named.value, &what, captures, diagnostics)?)
            };
            Some((path?, given))
        })
        .collect();
    Some(Box::new(Set { when, values }))
}

impl When {
    /// The step's name.
    fn name(self) -> &'static str {
        match self {
            When::Always => "set",
            When::Absent => "default",
        }
    }

    /// The rule for a template that lacks a part, and the one for a place that cannot be made.
    fn rules(self) -> (&'static str, &'static str) {
        match self {
            When::Always => ("set-missing", "set-path"),
            When::Absent => ("default-missing", "default-path"),
        }
    }
}

impl Set {
    fn row(&self, row: &mut Row<'_>) -> Result<Fate, Reason> {
        let (missing, place) = self.when.rules();
        let keys_only = row.is_keys_only();
        if keys_only && self.when == When::Absent {
            return Ok(Fate::Keep);
        }
        for (path, given) in &self.values {
            if self.when == When::Absent && path.get(&row.item).is_some() {
                continue;
            }
            let step = format_args!("{} {path}", self.when.name());
            let value = match given {
                Given::Literal(literal) => literal.to_value(row.item.arena()),
                Given::Template(template) => match template.render(row.captures, &row.item) {
                    Ok(_) if keys_only && let Some(part) = template.missing(row.captures, &row.item) => {
                        return Err(refused(missing, step, format_args!("`{part}` is not known")));
                    }
                    Ok(text) => Value::S(text),
                    Err(RenderError::Missing(part)) => return Err(refused(missing, step, format_args!("`{part}` is not there"))),
                    Err(RenderError::Refused { rule, message }) => return Err(refused(rule, step, message)),
                },
            };
            row.item.set_path(path, value).map_err(|error| refused(place, step, error))?;
        }
        Ok(Fate::Keep)
    }
}

impl Op for Set {
    fn apply(&self, batch: &mut Batch<'_>) {
        batch.each(|row| self.row(row));
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.when.name())?;
        for (at, (path, given)) in self.values.iter().enumerate() {
            f.write_str(if at == 0 { " " } else { ", " })?;
            match given {
                Given::Template(template) => write!(f, "{path} = \"{template}\"")?,
                Given::Literal(literal) => write!(f, "{path} = {literal}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{check, mistakes};

    #[test]
    fn a_string_is_a_template_and_everything_else_is_written_with_its_type() {
        check(
            r#"{ set = { label = "{ws}/{title}", seats = { N = "5" }, "owner.tags" = { SS = ["x"] }, title = "" } }"#,
            r#"{ title = { S = "T" } }"#,
            r#"{ title = { S = "" }, label = { S = "acme/T" }, seats = { N = "5" }, owner = { M = { tags = { SS = ["x"] } } } }"#,
        );
    }

    #[test]
    fn a_default_is_written_only_where_nothing_is() {
        check(
            r#"{ default = { a = "x", b = "x", "c.d" = { BOOL = true } } }"#,
            r#"{ a = { NULL = true }, c = { M = { e = { S = "" } } } }"#,
            r#"{ a = { NULL = true }, c = { M = { e = { S = "" }, d = { BOOL = true } } }, b = { S = "x" } }"#,
        );
    }

    #[test]
    fn a_missing_part_or_a_wrong_place_is_a_reject() {
        let item = r#"{ a = { S = "1" } }"#;
        check(r#"{ set = { b = "{none}" } }"#, item, "step/set-missing: set b: `none` is not there");
        check(r#"{ default = { b = "{none}" } }"#, item, "step/default-missing: default b: `none` is not there");
        check(r#"{ default = { a = "{none}" } }"#, item, item);
        check(r#"{ set = { "a.b" = "x" } }"#, item, "step/set-path: set a.b: `a` is S, expected M");
        check(r#"{ set = { b = "{ws | pad(3)}" } }"#, item, "step/pad-digits: set b: ");
    }

    #[test]
    fn mistakes_are_found_by_check() {
        mistakes(r"{ set = { a = 5 } }", "help: write { N = \"5\" }");
        mistakes(r"{ default = { a = true } }", "help: write { BOOL = true }");
        mistakes(r#"{ set = { a = "{b" } }"#, "p.toml:1:");
        mistakes(r"{ set = { owner.id = 'x' } }", "write a nested path in quotes: \"owner.id\"");
        mistakes(r"{ set = {} }", "`set` names nothing");
    }
}
