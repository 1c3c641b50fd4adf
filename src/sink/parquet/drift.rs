//! A value that does not fit its columns, in words. The value is walked once more for that, so that whoever fills columns keeps nothing for it.

use super::column::Builder;
use super::form::{Form, NumberForm};
use super::layout::Layout;
use super::lock::Holds;
use crate::model::{Type, Value};

/// What does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drift {
    /// The attribute and the way inside, such as `acl.read[]`.
    pub(super) attribute: String,
    /// The type there, as `DynamoDB` names it.
    pub(super) found: String,
    /// What the column takes there, in the words of the file of a schema.
    pub(super) takes: String,
}

impl Drift {
    /// Where a value of an attribute does not fit.
    pub(super) fn of(layout: &Layout, attribute: &str, value: &Value<'_>) -> Self {
        let takers: Vec<_> = layout.columns_of(attribute).filter(|(_, form)| form.takes(value.kind())).collect();
        // What does not fit the first column of its type was to go to the next.
        let Some((_, form)) = takers.last() else { return Self::of_kind(layout, attribute, value.kind()) };
        let drift = inside(form, value, attribute.to_owned());
        if drift.attribute == attribute { Self { takes: in_words(attribute, takers.into_iter()), ..drift } } else { drift }
    }

    /// A type for which an attribute has no column.
    pub(super) fn of_kind(layout: &Layout, attribute: &str, kind: Type) -> Self {
        let columns = in_words(attribute, layout.columns_of(attribute));
        let takes = match layout.attribute_in_other_case(attribute) {
            _ if !columns.is_empty() => columns,
            Some(other) => format!("no such attribute; `{other}` is another one"),
            None => "no such attribute".to_owned(),
        };
        Self { attribute: attribute.to_owned(), found: kind.to_string(), takes }
    }
}

/// What the columns of an attribute take, each with its name where that is another.
fn in_words<'l>(attribute: &str, columns: impl Iterator<Item = (&'l str, &'l Form)>) -> String {
    let column = |(name, form): (&str, &Form)| {
        let takes = Holds::of(form).in_words();
        if name == attribute { takes } else { format!("{takes} in the column `{name}`") }
    };
    columns.map(column).collect::<Vec<_>>().join(", or ")
}

/// Where a value does not fit a form that takes its type.
fn inside(form: &Form, value: &Value<'_>, at: String) -> Drift {
    let has_place = |form, value: &Value<'_>| Builder::has_place(form, value);
    match (form, *value) {
        (Form::List(element, _), Value::L(elements)) => {
            if let Some(value) = elements.iter().find(|value| !has_place(element, value)) {
                return inside(element, value, at + "[]");
            }
        }
        (Form::Set(_, element, _), Value::Ns(numbers)) => {
            if let Some(value) = numbers.iter().map(|number| Value::N(number)).find(|value| !has_place(element, value)) {
                return inside(element, &value, at + "[]");
            }
        }
        (Form::Map(member, _), Value::M(members)) => {
            if let Some((name, value)) = members.iter().find(|(_, value)| !has_place(member, value)) {
                return inside(member, value, format!("{at}.{name}"));
            }
        }
        (Form::Struct(fields), Value::M(members)) => {
            for (name, value) in members {
                let Some(field) = fields.index.get(*name).map(|place| &fields.forms[*place]) else {
                    let takes = format!("no field of this name in {}", Holds::of(form).in_words());
                    return Drift { attribute: format!("{at}.{name}"), found: value.kind().to_string(), takes };
                };
                if !has_place(field, value) {
                    return inside(field, value, format!("{at}.{name}"));
                }
            }
        }
        _ => {}
    }
    Drift { attribute: at, found: found(form, value.kind()), takes: Holds::of(form).in_words() }
}

/// The type, and what is wrong with the value where the column takes others of its type.
fn found(form: &Form, kind: Type) -> String {
    match (form, kind) {
        (Form::IsoText, Type::S) => "S that is no date and time".to_owned(),
        (Form::Number(NumberForm::Integer | NumberForm::Moment), Type::N) => "N that is no integer of 64 bits".to_owned(),
        (Form::Number(NumberForm::Decimal(..)), Type::N) => "N with more digits before or after the point".to_owned(),
        (Form::Number(NumberForm::Epoch(_)), Type::N) => "N that is no such time".to_owned(),
        (Form::Number(NumberForm::Double), Type::N) => "N that is beyond a double".to_owned(),
        _ => kind.to_string(),
    }
}
