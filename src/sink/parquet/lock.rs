//! The schema of datasets as a file: written by one run, and pinned by later ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ddl::Dialect;
use super::form::{Form, JsonForm, NumberForm};
use crate::error::{Error, Kind, Result};
use crate::model::time::Unit;
use crate::model::{ColumnType, Dataset, Mixed, Type};

/// The version of the file's form.
const VERSION: u32 = 1;

/// The most fields of a struct that are named for people.
const NAMED: usize = 12;

/// The columns of datasets, by the dataset's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaFile {
    version: u32,
    /// The engine whose names the columns, and the fields of their structs, have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dialect: Option<Dialect>,
    pub(super) datasets: BTreeMap<String, Vec<Column>>,
}

/// A column, and the attribute that its values are of; without one: of those that have no column of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sink) struct Column {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) attribute: Option<String>,
    #[serde(rename = "type")]
    pub(super) holds: Holds,
}

/// What the values at a position are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Holds {
    Null,
    /// Whether there is a NULL.
    IsNull,
    Text,
    /// S, N or BOOL as text.
    AnyText,
    Binary,
    Bool,
    Int64,
    Double,
    /// Digits in all, and after the point.
    Decimal(u8, u8),
    /// Numbers as text.
    Digits,
    Timestamp(Moments),
    /// SS, NS or BS, by what the members are.
    Set(Box<Holds>),
    List(Box<Holds>),
    /// By the maps' keys; the names of the fields follow from them.
    Struct(Vec<(String, Holds)>),
    Map(Box<Holds>),
    Json(Inside),
}

/// What a timestamp is in the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Moments {
    Iso,
    EpochS,
    EpochMs,
    EpochUs,
    /// That of a change record.
    WrittenAt,
}

/// What a JSON text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Inside {
    #[serde(rename = "any")]
    Any,
    M,
    L,
    Ss,
    Ns,
    Bs,
}

/// Checks that a schema has the types which only a declaration gives just where the pipeline declares them: what they do to values is counted, and
/// taken into account when targets are compared, by the declaration.
///
/// # Errors
/// Kind `Input` for the first attribute of which the two say different things.
pub(super) fn check_declared(dataset: &Dataset, columns: &[Column]) -> Result<()> {
    let declared = &dataset.declared;
    let name = |kind: Option<ColumnType>| kind.map_or_else(|| "no declared type".to_owned(), |kind| kind.to_string());
    let disagree = |attribute: &str, found: String, expected: String, toml: String| {
        Error::new(Kind::Input, "the schema and the pipeline disagree about a column")
            .with("dataset", &dataset.name)
            .with("attribute", attribute)
            .with("in the schema", found)
            .with("in the pipeline", expected)
            .with("hint", format_args!("{toml}, or write a new schema with --schema-out and without --schema"))
    };
    let says = |kind: &str| format!("declare `types = {{ … = \"{kind}\" }}` for it in the entity's [parquet]");
    for Column { attribute, holds, .. } in columns {
        let Some(attribute) = attribute.as_deref() else { continue };
        let (of_schema, of_pipeline) = (holds.declared(), declared.types.get(attribute).copied());
        if let Some(kind) = of_schema
            && of_pipeline != of_schema
        {
            return Err(disagree(attribute, kind.to_string(), name(of_pipeline), says(&kind.to_string())));
        }
        if *holds == Holds::AnyText && declared.mixed(attribute) != Mixed::Text {
            let toml = "declare `mixed = { … = \"text\" }` for it in the entity's [parquet]".to_owned();
            return Err(disagree(attribute, "S, N and BOOL as text".to_owned(), "no such declaration".to_owned(), toml));
        }
    }
    for (attribute, kind) in &declared.types {
        let only_declared = matches!(kind, ColumnType::Timestamp | ColumnType::Epoch(_) | ColumnType::Double);
        let mut of_attribute = columns.iter().filter(|column| column.attribute.as_ref() == Some(attribute)).peekable();
        if only_declared && of_attribute.peek().is_some() && of_attribute.all(|column| column.holds.declared() != Some(*kind)) {
            return Err(disagree(attribute, "another type".to_owned(), kind.to_string(), "take the declaration back".to_owned()));
        }
    }
    Ok(())
}

impl Holds {
    /// The type that only a declaration gives a column.
    fn declared(&self) -> Option<ColumnType> {
        match self {
            Holds::Double => Some(ColumnType::Double),
            Holds::Timestamp(Moments::Iso) => Some(ColumnType::Timestamp),
            Holds::Timestamp(Moments::EpochS) => Some(ColumnType::Epoch(Unit::Seconds)),
            Holds::Timestamp(Moments::EpochMs) => Some(ColumnType::Epoch(Unit::Millis)),
            Holds::Timestamp(Moments::EpochUs) => Some(ColumnType::Epoch(Unit::Micros)),
            _ => None,
        }
    }
}

impl SchemaFile {
    pub(in crate::sink) fn new(dialect: Option<Dialect>, datasets: BTreeMap<String, Vec<Column>>) -> Self {
        Self { version: VERSION, dialect, datasets }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// Kind `Input` when it is none.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::new(Kind::Input, "the schema cannot be read").with("expected", "a file that `run --schema-out` wrote");
        let file: Self = serde_json::from_str(text).map_err(|cause| wrong().caused_by(cause))?;
        if file.version != VERSION {
            return Err(wrong().with("version", file.version));
        }
        Ok(file)
    }

    /// The text of the file: equal schemas have equal bytes.
    ///
    /// # Errors
    /// Kind `Bug` when it cannot be made.
    pub fn text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).map_err(|cause| Error::new(Kind::Bug, "cannot write the schema").caused_by(cause))?;
        Ok(text + "\n")
    }
}

impl Moments {
    /// As the file has it.
    fn name(self) -> &'static str {
        match self {
            Moments::Iso => "iso",
            Moments::EpochS => "epoch_s",
            Moments::EpochMs => "epoch_ms",
            Moments::EpochUs => "epoch_us",
            Moments::WrittenAt => "written_at",
        }
    }
}

impl Inside {
    /// As the file has it.
    fn name(self) -> &'static str {
        match self {
            Inside::Any => "any",
            Inside::M => "M",
            Inside::L => "L",
            Inside::Ss => "Ss",
            Inside::Ns => "Ns",
            Inside::Bs => "Bs",
        }
    }

    /// What the text is.
    pub(super) fn form(self) -> JsonForm {
        match self {
            Inside::Any => JsonForm::Tagged,
            Inside::M => JsonForm::Inside(Type::M),
            Inside::L => JsonForm::Inside(Type::L),
            Inside::Ss => JsonForm::Inside(Type::Ss),
            Inside::Ns => JsonForm::Inside(Type::Ns),
            Inside::Bs => JsonForm::Inside(Type::Bs),
        }
    }
}

impl Holds {
    pub(super) fn of(form: &Form) -> Self {
        match form {
            Form::Nothing => Holds::Null,
            Form::IsNull => Holds::IsNull,
            Form::Text { .. } => Holds::Text,
            Form::AnyText { .. } => Holds::AnyText,
            Form::IsoText => Holds::Timestamp(Moments::Iso),
            Form::Number(NumberForm::Integer) => Holds::Int64,
            Form::Number(NumberForm::Moment) => Holds::Timestamp(Moments::WrittenAt),
            Form::Number(NumberForm::Epoch(Unit::Seconds)) => Holds::Timestamp(Moments::EpochS),
            Form::Number(NumberForm::Epoch(Unit::Millis)) => Holds::Timestamp(Moments::EpochMs),
            Form::Number(NumberForm::Epoch(Unit::Micros)) => Holds::Timestamp(Moments::EpochUs),
            Form::Number(NumberForm::Double) => Holds::Double,
            Form::Number(NumberForm::Decimal(digits, scale)) => Holds::Decimal(*digits, scale.unsigned_abs()),
            Form::Number(NumberForm::Text) => Holds::Digits,
            Form::Binary => Holds::Binary,
            Form::Bool => Holds::Bool,
            Form::Set(_, element, _) => Holds::Set(Box::new(Self::of(element))),
            Form::List(element, _) => Holds::List(Box::new(Self::of(element))),
            Form::Struct(fields) => {
                let names = fields.attributes().map(str::to_owned);
                Holds::Struct(names.zip(fields.forms.iter().map(Self::of)).collect())
            }
            Form::Map(value, _) => Holds::Map(Box::new(Self::of(value))),
            Form::Json(JsonForm::Tagged | JsonForm::Inside(Type::S | Type::N | Type::B | Type::Bool | Type::Null)) => {
                Holds::Json(Inside::Any)
            }
            Form::Json(JsonForm::Inside(Type::M)) => Holds::Json(Inside::M),
            Form::Json(JsonForm::Inside(Type::L)) => Holds::Json(Inside::L),
            Form::Json(JsonForm::Inside(Type::Ss)) => Holds::Json(Inside::Ss),
            Form::Json(JsonForm::Inside(Type::Ns)) => Holds::Json(Inside::Ns),
            Form::Json(JsonForm::Inside(Type::Bs)) => Holds::Json(Inside::Bs),
        }
    }

    /// For people, in the words of the file.
    pub(super) fn in_words(&self) -> String {
        match self {
            Holds::Null => "null".to_owned(),
            Holds::IsNull => "is_null".to_owned(),
            Holds::Text => "text".to_owned(),
            Holds::AnyText => "any_text".to_owned(),
            Holds::Binary => "binary".to_owned(),
            Holds::Bool => "bool".to_owned(),
            Holds::Int64 => "int64".to_owned(),
            Holds::Double => "double".to_owned(),
            Holds::Decimal(digits, scale) => format!("decimal({digits}, {scale})"),
            Holds::Digits => "digits".to_owned(),
            Holds::Timestamp(moments) => format!("timestamp({})", moments.name()),
            Holds::Set(element) => format!("set of {}", element.in_words()),
            Holds::List(element) => format!("list of {}", element.in_words()),
            Holds::Struct(fields) => {
                let mut names: Vec<&str> = fields.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
                let more = (fields.len() > NAMED).then(|| format!("and {} more", fields.len() - NAMED));
                names.extend(more.as_deref());
                format!("struct({})", names.join(", "))
            }
            Holds::Map(value) => format!("map of {}", value.in_words()),
            Holds::Json(inside) => format!("json({})", inside.name()),
        }
    }

    /// The form; `None` where there is none such.
    pub(super) fn form(&self) -> Option<Form> {
        Some(match self {
            Holds::Null => Form::Nothing,
            Holds::IsNull => Form::IsNull,
            Holds::Text => Form::Text { average: 0 },
            Holds::AnyText => Form::AnyText { average: 0 },
            Holds::Binary => Form::Binary,
            Holds::Bool => Form::Bool,
            Holds::Int64 => Form::Number(NumberForm::Integer),
            Holds::Double => Form::Number(NumberForm::Double),
            Holds::Decimal(digits, scale) => {
                ColumnType::parse(&format!("decimal({digits},{scale})"))?;
                Form::Number(NumberForm::Decimal(*digits, i8::try_from(*scale).ok()?))
            }
            Holds::Digits => Form::Number(NumberForm::Text),
            Holds::Timestamp(Moments::Iso) => Form::IsoText,
            Holds::Timestamp(Moments::EpochS) => Form::Number(NumberForm::Epoch(Unit::Seconds)),
            Holds::Timestamp(Moments::EpochMs) => Form::Number(NumberForm::Epoch(Unit::Millis)),
            Holds::Timestamp(Moments::EpochUs) => Form::Number(NumberForm::Epoch(Unit::Micros)),
            Holds::Timestamp(Moments::WrittenAt) => Form::Number(NumberForm::Moment),
            Holds::Set(element) => Form::set_of(element.form()?)?,
            Holds::List(element) => Form::list_of(element.form()?),
            Holds::Struct(fields) => {
                let forms = fields.iter().map(|(name, holds)| Some((name.as_str(), holds.form()?))).collect::<Option<Vec<_>>>()?;
                Form::struct_of(forms)?
            }
            Holds::Map(value) => Form::map_of(value.form()?),
            Holds::Json(inside) => Form::Json(inside.form()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Declared;

    #[test]
    fn a_schema_has_declared_types_just_where_the_pipeline_declares_them() {
        let dataset = |declared| Dataset { name: "Order".to_owned(), declared, ..Dataset::default() };
        let typed = |kind: ColumnType| Declared { types: [("p".to_owned(), kind)].into(), ..Declared::default() };
        let mixed = || Declared { mixed_of: [("p".to_owned(), Mixed::Text)].into(), ..Declared::default() };
        let column = |holds| [Column { name: "p".to_owned(), attribute: Some("p".to_owned()), holds }];
        let millis = Holds::Timestamp(Moments::EpochMs);
        for (holds, declared, toml) in [
            (Holds::Double, typed(ColumnType::Double), "types = { … = \"double\" }"),
            (Holds::Timestamp(Moments::Iso), typed(ColumnType::Timestamp), "types = { … = \"timestamp\" }"),
            (millis.clone(), typed(ColumnType::Epoch(Unit::Millis)), "types = { … = \"timestamp(epoch_ms)\" }"),
            (Holds::AnyText, mixed(), "mixed = { … = \"text\" }"),
        ] {
            check_declared(&dataset(declared), &column(holds.clone())).unwrap();
            let told = check_declared(&dataset(Declared::default()), &column(holds)).unwrap_err().to_string();
            assert!(told.contains(toml) && told.contains("attribute: p") && told.contains("dataset: Order"), "{told}");
        }
        let told = check_declared(&dataset(typed(ColumnType::Double)), &column(Holds::Int64)).unwrap_err().to_string();
        assert!(told.contains("in the pipeline: double") && told.contains("take the declaration back"), "{told}");
        check_declared(&dataset(typed(ColumnType::Epoch(Unit::Seconds))), &column(millis)).unwrap_err();
        check_declared(&dataset(Declared::default()), &column(Holds::Decimal(5, 2))).unwrap();
    }
}
