//! The columns of a dataset: one schema for the whole run, from the shape of all its items.
//!
//! A function of the shape and the dataset alone. What a single value becomes is in [`form`](super::form).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, TypePtr};
use rustc_hash::FxHashMap;

#[cfg(feature = "iceberg")]
use super::fixed::{FieldId, with_ids};
use super::form::{Form, JsonForm, NumberForm};
use super::lock::{Column, Holds};
use super::write::folder;
use crate::error::{Error, Kind, Result};
use crate::model::{Change, ColumnType, Dataset, Declared, Type};
use crate::shape::{Fits, Shape, ValueShape};

/// The metadata key for the name that a column's attribute has in the items.
pub(super) const ATTRIBUTE: &str = "dynamodb.attribute";

/// The metadata key of schema and file for the entity's name.
pub(super) const ENTITY: &str = "dynamorph.entity";

/// The column for the attributes that have none of their own.
const REST: &str = "__rest";

/// The most leaf columns of a dataset. Each costs settings and statistics for every row group of a file, and engines refuse far wider
/// tables; with more, the attributes that the fewest items have share the column [`REST`].
const LEAVES: usize = 2048;

/// A dictionary that outgrows this is given up: the values are then mostly different, and the effort is lost.
const DICTIONARY_BYTES: usize = 256 * 1024;

/// Texts of this many bytes on average are hardly ever equal.
const LONG_TEXT: usize = 64;

/// The level 1 costs half of what Parquet costs; on the usual texts a higher one saves little.
const ZSTD_LEVEL: i32 = 1;

/// Marks a type without a column in [`Slots`].
const NO_COLUMN: u32 = u32::MAX;

/// For one attribute: its columns by `Type as usize`. Where there are two, the first takes what fits a declared type.
#[derive(Debug)]
pub(super) struct Slots([[u32; 2]; 10]);

impl Slots {
    /// The columns that may take a value of type `kind`, in the order in which they are to be asked.
    pub(super) fn places(&self, kind: Type) -> impl Iterator<Item = usize> + use<> {
        self.0[kind as usize].into_iter().filter(|at| *at != NO_COLUMN).map(|at| at as usize)
    }

    /// Adds a column for values of type `kind`. A third one would get nothing.
    fn add(&mut self, kind: Type, column: u32) {
        if let Some(free) = self.0[kind as usize].iter_mut().find(|at| **at == NO_COLUMN) {
            *free = column;
        }
    }
}

/// The columns of a dataset and everything that follows from them.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) dataset: String,
    /// What the paths of its files begin with.
    pub(super) stem: String,
    pub(super) schema: SchemaRef,
    pub(super) forms: Vec<Form>,
    /// The leaf columns in a file.
    pub(super) leaves: usize,
    attributes: FxHashMap<Box<str>, Slots>,
    /// The column of the attributes that have none of their own, where there are such.
    pub(super) rest: Option<usize>,
    pub(super) file: FileSettings,
    /// Makes the column writers of row groups.
    pub(super) row_groups: ArrowRowGroupWriterFactory,
    /// Whether the columns are not made from the items that come.
    pub(super) pinned: bool,
}

/// What a new file of the dataset needs.
#[derive(Clone, Debug)]
pub(super) struct FileSettings {
    pub(super) schema: TypePtr,
    pub(super) properties: WriterPropertiesPtr,
}

impl Layout {
    /// The layout of this dataset for items of this shape.
    ///
    /// # Errors
    /// Kind `Bug` when the Parquet library refuses the schema.
    pub(super) fn of(dataset: &Dataset, shape: &Shape) -> Result<Self> {
        Self::new(dataset, Columns::of(dataset, shape), false)
    }

    /// The layout of this dataset with columns that are given.
    ///
    /// # Errors
    /// Kind `Input` when there can be no such columns.
    pub(super) fn pinned(dataset: &Dataset, columns: &[Column]) -> Result<Self> {
        let wrong = |column: &Column| {
            let error = Error::new(Kind::Input, "the schema has a column that cannot be, or a second one of its name");
            error.with("dataset", &dataset.name).with("column", &column.name)
        };
        let mut chosen = Columns::default();
        for column in columns {
            let form = column.holds.form().ok_or_else(|| wrong(column))?;
            let known = chosen.fields.iter().any(|field| *field.name() == column.name);
            let second_rest = column.attribute.is_none() && (chosen.rest.is_some() || form != Form::Json(JsonForm::Inside(Type::M)));
            if known || second_rest {
                return Err(wrong(column));
            }
            chosen.push(column.attribute.as_deref(), &column.name, form);
        }
        if chosen.forms.is_empty() {
            return Err(Error::new(Kind::Input, "the schema has a dataset without columns").with("dataset", &dataset.name));
        }
        Self::new(dataset, chosen, true)
    }

    /// The columns as they can be pinned.
    pub(super) fn columns(&self) -> Vec<Column> {
        let column = |(field, form): (&Arc<Field>, &Form)| Column {
            name: field.name().clone(),
            attribute: field.metadata().get(ATTRIBUTE).cloned(),
            holds: Holds::of(form),
        };
        self.schema.fields().iter().zip(&self.forms).map(column).collect()
    }

    fn new(dataset: &Dataset, columns: Columns, pinned: bool) -> Result<Self> {
        let schema = Arc::new(Schema::new(columns.fields).with_metadata([(ENTITY, dataset.name.as_str())]));
        let refused = |cause| Error::new(Kind::Bug, "no Parquet schema for the dataset").with("dataset", &dataset.name).caused_by(cause);
        let descriptor = ArrowSchemaConverter::new().convert(&schema).map_err(refused)?;
        let file =
            FileSettings { schema: descriptor.root_schema_ptr(), properties: Arc::new(properties(dataset, &schema, &columns.forms)) };
        // The factory copies schema and settings from a writer; which file that writes to does not matter.
        let nowhere = SerializedFileWriter::new(std::io::sink(), file.schema.clone(), file.properties.clone()).map_err(refused)?;
        let row_groups = ArrowRowGroupWriterFactory::new(&nowhere, schema.clone());
        Ok(Self {
            dataset: dataset.name.clone(),
            stem: format!("{}/part", folder(&dataset.name)),
            schema,
            leaves: columns.forms.iter().map(Form::leaves).sum(),
            forms: columns.forms,
            attributes: columns.attributes,
            rest: columns.rest,
            file,
            row_groups,
            pinned,
        })
    }

    /// The same layout for files of this stem whose fields have these numbers.
    ///
    /// # Errors
    /// Kind `Bug` when the Parquet library refuses the numbers.
    #[cfg(feature = "iceberg")]
    pub(super) fn numbered(mut self, stem: String, numbers: &[FieldId]) -> Result<Self> {
        let refused = |cause| Error::new(Kind::Bug, "no Parquet schema for the dataset").with("dataset", &self.dataset).caused_by(cause);
        let numbered = Schema::new(with_ids(self.schema.fields(), numbers));
        let descriptor = ArrowSchemaConverter::new().convert(&numbered).map_err(refused)?;
        self.file.schema = descriptor.root_schema_ptr();
        let nowhere =
            SerializedFileWriter::new(std::io::sink(), self.file.schema.clone(), self.file.properties.clone()).map_err(refused)?;
        self.row_groups = ArrowRowGroupWriterFactory::new(&nowhere, self.schema.clone());
        Ok(Self { stem, ..self })
    }

    /// What the user should know of the types that the pipeline declares, by attribute.
    pub(super) fn findings(&self, dataset: &Dataset, shape: &Shape) -> Vec<String> {
        let mut findings = Vec::new();
        for (name, column) in &dataset.declared.types {
            let Fits { fit, rounded, misfit } = shape.fits(name);
            let entity = &dataset.name;
            if shape.attribute(name).is_none() {
                findings.push(format!("{entity}: no item has `{name}`, which is declared as {column}"));
            }
            if rounded > 0 {
                findings.push(format!("{entity}: {rounded} of {fit} values of `{name}` lost digits as a double"));
            }
            if misfit > 0 {
                let of_attribute = |field: &&Arc<Field>| field.metadata().get(ATTRIBUTE).is_some_and(|attribute| attribute == name);
                let others = self.schema.fields().iter().filter(of_attribute).skip(1);
                let others: Vec<_> = others.map(|field| format!("`{}`", field.name())).collect();
                let place = if others.is_empty() { format!("`{REST}`") } else { others.join(", ") };
                let all = fit + misfit;
                findings.push(format!("{entity}: {misfit} of {all} values of `{name}` do not fit {column}; they are in {place}"));
            }
        }
        findings
    }

    /// The columns of an attribute; `None` where it has none of its own.
    pub(super) fn slots(&self, attribute: &str) -> Option<&Slots> {
        self.attributes.get(attribute)
    }
}

/// The columns while they are chosen.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    forms: Vec<Form>,
    attributes: FxHashMap<Box<str>, Slots>,
    rest: Option<usize>,
}

/// An attribute with the forms of its types: the most frequent type first.
struct Candidate<'s> {
    name: &'s str,
    items: u64,
    forms: Vec<Form>,
}

impl Columns {
    fn of(dataset: &Dataset, shape: &Shape) -> Self {
        let mut known = shape.attributes();
        let mut candidates = Vec::with_capacity(known.len());
        // What leads does so in the dataset's order; an attribute that no item has gets no column.
        for name in &dataset.leading {
            candidates.extend(known.remove_entry(name.as_str()).map(|(name, values)| Candidate::of(name, values, dataset, shape)));
        }
        if let [op, written_at, ..] = candidates.as_mut_slice()
            && [op.name, written_at.name] == Change::COLUMNS
        {
            written_at.make_moment(shape.items());
        }
        let leading = candidates.len();
        let Declared { names: renamed, types, .. } = &dataset.declared;
        let attributes = shape.attributes();
        let kept = attributes.keys().filter(|name| !renamed.contains_key(**name)).map(|name| (*name).to_owned());
        let mut names: HashSet<String> = kept.chain(renamed.values().cloned()).collect();
        candidates.extend(known.into_iter().map(|(name, values)| Candidate::of(name, values, dataset, shape)));

        let is_asked_for = |at: usize| at < leading || types.contains_key(candidates[at].name) || renamed.contains_key(candidates[at].name);
        let homeless = homeless(&candidates, is_asked_for);
        let mut columns = Self::default();
        for (at, Candidate { name, forms, .. }) in candidates.into_iter().enumerate() {
            if !homeless.contains(&at) {
                let column = match renamed.get(name) {
                    Some(column) => column.clone(),
                    // Another attribute's column is to have this name.
                    None if renamed.values().any(|column| column == name) => free(name.to_owned(), &mut names),
                    None => name.to_owned(),
                };
                columns.add(name, &column, forms, &mut names);
            }
        }
        // Items without any attribute must still be rows, so there is always a column.
        if shape.others() || !homeless.is_empty() || columns.forms.is_empty() {
            let form = Form::Json(JsonForm::Inside(Type::M));
            columns.push(None, &free(REST.to_owned(), &mut names), form);
        }
        columns
    }

    /// Adds an attribute. Its most frequent type, or the declared one, has the column of this name; the others have names of their own.
    fn add(&mut self, name: &str, column: &str, forms: Vec<Form>, names: &mut HashSet<String>) {
        for (rank, form) in forms.into_iter().enumerate() {
            match form.kind() {
                Some(kind) if rank > 0 => {
                    self.push(Some(name), &free(format!("{column}__{}", kind.descriptor().to_lowercase()), names), form);
                }
                _ => self.push(Some(name), column, form),
            }
        }
    }

    /// Adds a column for an attribute, or that of those without a column of their own.
    fn push(&mut self, attribute: Option<&str>, column: &str, form: Form) {
        let place = u32::try_from(self.forms.len()).expect("a dataset has at most some thousand columns");
        let mut field = form.field(column);
        match attribute {
            Some(attribute) => {
                let mut metadata = field.metadata().clone();
                metadata.insert(ATTRIBUTE, attribute);
                field.set_metadata(metadata);
                let slots = self.attributes.entry(attribute.into()).or_insert(Slots([[NO_COLUMN; 2]; 10]));
                Type::ALL.into_iter().filter(|kind| form.kind().is_none_or(|takes| takes == *kind)).for_each(|kind| slots.add(kind, place));
            }
            None => self.rest = Some(self.forms.len()),
        }
        self.fields.push(field);
        self.forms.push(form);
    }
}

impl<'s> Candidate<'s> {
    /// When a change was written is a moment, and that of every item of a dataset of changes.
    fn make_moment(&mut self, items: u64) {
        if let [Form::Number(form @ NumberForm::Integer)] = self.forms.as_mut_slice()
            && self.items == items
        {
            *form = NumberForm::Moment;
        }
    }

    fn of(name: &'s str, values: &ValueShape, dataset: &Dataset, shape: &Shape) -> Self {
        let mut kinds: Vec<_> = values.kinds().collect();
        // Stable, so that of equally frequent types the first of `Type` leads.
        kinds.sort_by_key(|kind| Reverse(values.count(*kind)));
        let column = |kind: Type| Form::of_column(kind, values);
        let forms = match dataset.declared.types.get(name) {
            None if kinds.is_empty() => vec![Form::Nothing],
            None => kinds.into_iter().map(column).collect(),
            Some(ColumnType::Json) => vec![Form::declared(ColumnType::Json, values)],
            Some(ColumnType::Text) => {
                let numbers = Form::Number(NumberForm::Text);
                let texts = Form::declared(ColumnType::Text, values);
                let first = match (kinds.contains(&Type::S), kinds.contains(&Type::N)) {
                    (true, true) => vec![texts, numbers],
                    (false, true) => vec![numbers],
                    (_, false) => vec![texts],
                };
                first.into_iter().chain(kinds.into_iter().filter(|kind| !matches!(kind, Type::S | Type::N)).map(column)).collect()
            }
            Some(declared) => {
                let fit = shape.fits(name).fit;
                kinds.retain(|kind| declared.kind() != Some(*kind) || values.count(*kind) > fit);
                std::iter::once(Form::declared(*declared, values)).chain(kinds.into_iter().map(column)).collect()
            }
        };
        Self { name, items: values.total(), forms }
    }
}

/// The candidates that get no column of their own, because the dataset would have more than [`LEAVES`]: those of the fewest items.
fn homeless(candidates: &[Candidate<'_>], is_asked_for: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let mut ranked: Vec<_> = (0..candidates.len()).collect();
    ranked.sort_by_key(|at| (!is_asked_for(*at), Reverse(candidates[*at].items), candidates[*at].name));
    let mut leaves = 0;
    ranked
        .into_iter()
        .filter(|at| {
            leaves += candidates[*at].forms.iter().map(Form::leaves).sum::<usize>();
            leaves > LEAVES
        })
        .collect()
}

/// `name`, with as many `_` as make it different from all others.
fn free(mut name: String, names: &mut HashSet<String>) -> String {
    while !names.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// How files of the dataset are written. Nothing here depends on the clock or the machine.
fn properties(dataset: &Dataset, schema: &Schema, forms: &[Form]) -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("the level is one of zstd's");
    let mut builder = WriterProperties::builder()
        .set_created_by("dynamorph".to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(vec![KeyValue::new(ENTITY.to_owned(), dataset.name.clone())]));
    for (field, form) in schema.fields().iter().zip(forms) {
        let mut path = vec![field.name().clone()];
        each_leaf(form, &mut path, &mut |form, path| {
            let path = ColumnPath::new(path.to_vec());
            let current = std::mem::take(&mut builder);
            builder = match form {
                // Long and different each time: no dictionary, and least and greatest value say nothing.
                Form::Json(_) | Form::Binary | Form::Text { average: LONG_TEXT.. } => {
                    current.set_column_dictionary_enabled(path.clone(), false).set_column_statistics_enabled(path, EnabledStatistics::None)
                }
                _ => current,
            };
        });
    }
    let mut properties = builder.build();
    add_encoded_arrow_schema_to_metadata(schema, &mut properties);
    properties
}

/// Calls `leaf` for each leaf column with its path in the file.
fn each_leaf(form: &Form, path: &mut Vec<String>, leaf: &mut dyn FnMut(&Form, &[String])) {
    let mut inside = |names: &[&str], form: &Form| {
        let length = path.len();
        path.extend(names.iter().map(|name| (*name).to_owned()));
        each_leaf(form, path, leaf);
        path.truncate(length);
    };
    match form {
        Form::Set(_, element, _) | Form::List(element, _) => inside(&["list", "element"], element),
        Form::Struct(fields) => fields.fields.iter().zip(&fields.forms).for_each(|(field, form)| inside(&[field.name()], form)),
        Form::Map(value, _) => {
            inside(&["key_value", "key"], &Form::Text { average: 0 });
            inside(&["key_value", "value"], value);
        }
        Form::Nothing | Form::Text { .. } | Form::IsoText | Form::Number(_) | Form::Binary | Form::Bool | Form::Json(_) => leaf(form, path),
    }
}
