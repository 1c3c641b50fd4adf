//! The columns of a dataset: one schema for the whole run, from the shape of all its items.
//!
//! A function of the shape and the dataset alone. What a single value becomes is in [`form`](super::form).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{ColumnPath, TypePtr};
use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use super::ddl::Dialect;
#[cfg(feature = "iceberg")]
use super::fixed::{FieldId, with_ids};
use super::form::{ATTRIBUTE, Form, JsonForm, NumberForm};
use super::lock::{Column, Holds};
use super::naming::{Names, renamed};
use super::partition::{self, By};
use crate::error::{Error, Kind, Result, nearest};
use crate::model::declared::COLUMNS;
use crate::model::{Change, ColumnType, Dataset, Declared, Item, Mixed, Nulls, Type};
use crate::shape::{Fits, Shape, ValueShape};

/// The metadata key of schema and file for the entity's name.
pub(super) const ENTITY: &str = "dynamorph.entity";

/// The column for the attributes that have none of their own.
const REST: &str = "__rest";

/// A dictionary that outgrows this is given up: the values are then mostly different, and the effort is lost.
const DICTIONARY_BYTES: usize = 256 * 1024;

/// Texts of this many bytes on average are hardly ever equal.
const LONG_TEXT: usize = 64;

/// How often a Bloom filter may take a key that is not there for one that may be.
const FALSE_POSITIVES: f64 = 0.01;

/// Marks a type without a column in [`Slots`].
const NO_COLUMN: u32 = u32::MAX;

/// For one attribute: its columns by `Type as usize`. Where there are two, the first takes what fits a declared type.
#[derive(Debug)]
pub(super) struct Slots {
    places: [[u32; 2]; 10],
    /// Whether the values are in the names of folders.
    in_folders: bool,
    /// Whether NULL must have a column, for it is not to be taken for no attribute.
    tells_null: bool,
}

impl Slots {
    /// The columns that may take a value of type `kind`, in the order in which they are to be asked.
    pub(super) fn places(&self, kind: Type) -> impl Iterator<Item = usize> + use<> {
        self.places[kind as usize].into_iter().filter(|at| *at != NO_COLUMN).map(|at| at as usize)
    }

    /// Whether the values have no column, since they are in the names of folders.
    pub(super) fn are_in_folders(&self) -> bool {
        self.in_folders
    }

    /// Whether a NULL is more than what a column has where nothing is written.
    pub(super) fn heeds_null(&self) -> bool {
        self.tells_null || self.places(Type::Null).next().is_some()
    }

    /// Adds a column for values of type `kind`. A third one would get nothing.
    fn add(&mut self, kind: Type, column: u32) {
        if let Some(free) = self.places[kind as usize].iter_mut().find(|at| **at == NO_COLUMN) {
            *free = column;
        }
    }
}

/// The attributes that have columns, by name.
pub(super) type Attributes = FxHashMap<Box<str>, Slots>;

/// The columns of an attribute, which has none yet where it is new.
fn slots_of<'s>(attributes: &'s mut Attributes, attribute: &str, tells_null: bool) -> &'s mut Slots {
    attributes.entry(attribute.into()).or_insert_with(|| Slots { places: [[NO_COLUMN; 2]; 10], in_folders: false, tells_null })
}

/// The columns of a dataset and everything that follows from them.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) dataset: String,
    /// What the paths of its files begin with, where that is chosen.
    pub(super) stem: Option<String>,
    /// The schema with numbers of the fields, where they have some.
    numbered: Option<Schema>,
    pub(super) schema: SchemaRef,
    pub(super) forms: Vec<Form>,
    /// The leaf columns in a file.
    pub(super) leaves: usize,
    pub(super) attributes: Attributes,
    /// The column of the attributes that have none of their own, where there are such.
    pub(super) rest: Option<usize>,
    /// The attributes that lead the columns: keys, and what tells the entity.
    leading: Vec<String>,
    /// The columns by which the rows of each row group are sorted.
    pub(super) sort: Vec<usize>,
    /// What names the folders of the files.
    pub(super) partition: Vec<By>,
    zstd: ZstdLevel,
    /// Made when the first file is written; many layouts are for a few rows on their way.
    file: OnceLock<FileSettings>,
    /// Whether the columns are not made from the items that come.
    pub(super) pinned: bool,
}

/// What a new file of the dataset needs.
#[derive(Debug)]
pub(super) struct FileSettings {
    pub(super) schema: TypePtr,
    pub(super) properties: WriterPropertiesPtr,
}

impl Layout {
    /// The layout of this dataset for items of this shape, with the names of an engine where the run writes for one. Where values have no text,
    /// and are declared to become text, the column is JSON; [`check`](Self::check) says so.
    pub(super) fn of(dataset: &Dataset, shape: &Shape, dialect: Option<Dialect>) -> Self {
        Self::new(&dataset.name, &dataset.leading, &dataset.declared.sort, Columns::of(dataset, shape, dialect), false)
    }

    /// Checks that the values of all items can become what is declared.
    ///
    /// # Errors
    /// Kind `Input` for the first attribute with others.
    pub(super) fn check(dataset: &Dataset, shape: &Shape) -> Result<()> {
        let without_text = |(name, values): &(&str, &ValueShape)| {
            dataset.declared.mixed(name) == Mixed::Text
                && !dataset.declared.names_folders(name)
                && values.kinds().count() > 1
                && !has_text(values)
        };
        let attributes = shape.attributes();
        for name in &dataset.declared.partition {
            if let Some(values) = attributes.get(name.as_str()).filter(|values| partition::without_folder(values)) {
                return Err(partition::no_folder(name).with("dataset", &dataset.name).with("found", counts(values)));
            }
        }
        attributes.into_iter().find(without_text).map_or(Ok(()), |(name, values)| Err(no_text(dataset, name, values)))
    }

    /// The layout of a file that was written, with rows that are sorted by these attributes; `None` where the sink did not write it.
    pub(super) fn of_file(schema: &Schema, sort: &[String]) -> Option<Self> {
        let mut columns = Columns::default();
        let nothing = Declared::default();
        for field in schema.fields() {
            let attribute = field.metadata().get(ATTRIBUTE).map(String::as_str);
            columns.push(&nothing, attribute, field.name(), Form::of_field(field)?);
        }
        Some(Self::new(schema.metadata().get(ENTITY)?, &[], sort, columns, false))
    }

    /// The layout of this dataset with columns that are given, by the names that they have for an engine where that is given too.
    ///
    /// # Errors
    /// Kind `Input` when there can be no such columns.
    pub(super) fn pinned(dataset: &Dataset, columns: &[Column], dialect: Option<Dialect>) -> Result<Self> {
        let wrong = |column: &Column| {
            let error = Error::new(Kind::Input, "the schema has a column that cannot be, or a second one of its name");
            error.with("dataset", &dataset.name).with("column", &column.name)
        };
        let mut chosen = Columns { dialect, ..Columns::default() };
        let mut names = Names::new(dialect);
        chosen.part_by(&dataset.declared, &mut names);
        for column in columns {
            let in_folders = column.attribute.as_deref().is_some_and(|attribute| dataset.declared.names_folders(attribute));
            if in_folders || chosen.partition.iter().any(|by| by.column.eq_ignore_ascii_case(&column.name)) {
                return Err(Error::new(Kind::Input, "the schema has a column that is in the names of folders by `partition`")
                    .with("dataset", &dataset.name)
                    .with("column", &column.name)
                    .with("hint", "write a new schema with --schema-out and without --schema"));
            }
            let form = column.holds.form().ok_or_else(|| wrong(column))?;
            let known = chosen.fields.iter().any(|field| *field.name() == column.name);
            let second_rest = column.attribute.is_none() && (chosen.rest.is_some() || form != Form::Json(JsonForm::Inside(Type::M)));
            if known || second_rest {
                return Err(wrong(column));
            }
            chosen.push(&dataset.declared, column.attribute.as_deref(), &column.name, form);
        }
        if chosen.forms.is_empty() {
            return Err(Error::new(Kind::Input, "the schema has a dataset without columns").with("dataset", &dataset.name));
        }
        Ok(Self::new(&dataset.name, &dataset.leading, &dataset.declared.sort, chosen, true))
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

    fn new(dataset: &str, leading: &[String], sort: &[String], columns: Columns, pinned: bool) -> Self {
        let of_attribute = |attribute: &String| {
            let place = columns.fields.iter().position(|field| field.metadata().get(ATTRIBUTE) == Some(attribute))?;
            columns.forms[place].is_ordered().then_some(place)
        };
        Self {
            sort: sort.iter().filter_map(of_attribute).collect(),
            dataset: dataset.to_owned(),
            stem: None,
            numbered: None,
            schema: Arc::new(Schema::new(columns.fields).with_metadata([(ENTITY, dataset)])),
            leaves: columns.forms.iter().map(Form::leaves).sum(),
            forms: columns.forms,
            partition: columns.partition,
            attributes: columns.attributes,
            rest: columns.rest,
            leading: leading.to_vec(),
            zstd: ZstdLevel::default(),
            file: OnceLock::new(),
            pinned,
        }
    }

    /// The same layout, whose files are compressed so hard.
    pub(super) fn with_zstd(self, zstd: ZstdLevel) -> Self {
        Self { zstd, ..self }
    }

    /// The same layout for files of this stem whose fields have these numbers.
    #[cfg(feature = "iceberg")]
    pub(super) fn numbered(self, stem: String, numbers: &[FieldId]) -> Self {
        let numbered = Some(Schema::new(with_ids(self.schema.fields(), numbers)));
        Self { stem: Some(stem), numbered, file: OnceLock::new(), ..self }
    }

    /// What files of this layout need.
    ///
    /// # Errors
    /// Kind `Bug` when the Parquet library refuses the schema.
    pub(super) fn file(&self) -> Result<&FileSettings> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let refused = |cause| Error::new(Kind::Bug, "no Parquet schema for the dataset").with("dataset", &self.dataset).caused_by(cause);
        let schema =
            ArrowSchemaConverter::new().convert(self.numbered.as_ref().unwrap_or(&self.schema)).map_err(refused)?.root_schema_ptr();
        let properties = Arc::new(self.properties());
        Ok(self.file.get_or_init(|| FileSettings { schema, properties }))
    }

    /// How files of the dataset are written. Nothing here depends on the clock or the machine.
    fn properties(&self) -> WriterProperties {
        let mut builder = WriterProperties::builder()
            .set_created_by("dynamorph".to_owned())
            .set_compression(Compression::ZSTD(self.zstd))
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            // Of pages too: a reader that looks for a few values skips the others.
            .set_statistics_enabled(EnabledStatistics::Page)
            // A dictionary says itself what is in it.
            .set_bloom_filter_for_dictionary_encoded_chunks(false)
            .set_key_value_metadata(Some(vec![KeyValue::new(ENTITY.to_owned(), self.dataset.clone())]));
        let leaf_of = |place: usize| self.forms[..place].iter().map(Form::leaves).sum::<usize>();
        let sorting = self.sort.iter().map(|place| SortingColumn {
            column_idx: i32::try_from(leaf_of(*place)).expect("a dataset has at most some thousand columns"),
            descending: false,
            nulls_first: true,
        });
        builder = builder.set_sorting_columns((!self.sort.is_empty()).then(|| sorting.collect()));
        for (place, (field, form)) in self.schema.fields().iter().zip(&self.forms).enumerate() {
            let is_sorted = self.sort.contains(&place);
            let is_key = self.attribute(place).is_some_and(|attribute| self.leading.iter().any(|leading| leading == attribute));
            let mut path = vec![field.name().clone()];
            each_leaf(form, &mut path, &mut |form, path| {
                let path = ColumnPath::new(path.to_vec());
                let current = std::mem::take(&mut builder);
                builder = match form {
                    Form::Text { .. } | Form::Number(NumberForm::Integer | NumberForm::Text) | Form::Binary if is_key => {
                        current.set_column_bloom_filter_fpp(path, FALSE_POSITIVES)
                    }
                    // Sorted ones tell a reader which row groups it may skip, however long they are.
                    Form::Binary | Form::Text { average: LONG_TEXT.. } | Form::AnyText { average: LONG_TEXT.. } if is_sorted => {
                        current.set_column_dictionary_enabled(path, false)
                    }
                    // Long and different each time: no dictionary, and least and greatest value say nothing.
                    Form::Json(_) | Form::Binary | Form::Text { average: LONG_TEXT.. } | Form::AnyText { average: LONG_TEXT.. } => current
                        .set_column_dictionary_enabled(path.clone(), false)
                        .set_column_statistics_enabled(path, EnabledStatistics::None),
                    _ => current,
                };
            });
        }
        let mut properties = builder.build();
        add_encoded_arrow_schema_to_metadata(&self.schema, &mut properties);
        properties
    }

    /// The attribute whose values a column has; `None`: it has those of the attributes without a column of their own.
    pub(super) fn attribute(&self, place: usize) -> Option<&str> {
        self.schema.field(place).metadata().get(ATTRIBUTE).map(String::as_str)
    }

    /// Two layouts whose files have one schema have one fingerprint.
    ///
    /// # Errors
    /// Kind `Bug` when the schema cannot be written down.
    pub(super) fn fingerprint(&self) -> Result<u64> {
        let columns =
            serde_json::to_vec(&self.columns()).map_err(|cause| Error::new(Kind::Bug, "cannot write a schema").caused_by(cause))?;
        Ok(Sha256::digest(columns).iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    /// What the user should know of what the pipeline declares, by attribute.
    pub(super) fn findings(&self, dataset: &Dataset, shape: &Shape) -> Vec<String> {
        let entity = &dataset.name;
        let declared = &dataset.declared;
        let mut findings = Vec::new();
        for (name, column) in &declared.types {
            let Fits { fit, rounded, misfit } = shape.fits(name);
            if shape.attribute(name).is_none() {
                findings.push(format!("{entity}: no item has `{name}`, which is declared as {column}{}", meant(name, shape)));
            }
            if rounded > 0 {
                findings.push(format!("{entity}: {rounded} of {fit} values of `{name}` lost digits as a double"));
            }
            if misfit > 0 {
                let others: Vec<_> = self.values_of(name).skip(1).map(|(field, _)| format!("`{}`", field.name())).collect();
                let place = if others.is_empty() { format!("`{REST}`") } else { others.join(", ") };
                let all = fit + misfit;
                findings.push(format!("{entity}: {misfit} of {all} values of `{name}` do not fit {column}; they are in {place}"));
            }
        }
        for (name, column) in declared.names.iter().filter(|(name, column)| name != column && shape.attribute(name).is_some()) {
            if let Some((field, _)) = self.values_of(column).next().filter(|(field, _)| field.name() != column) {
                let own = field.name();
                findings.push(format!("{entity}: `{name}` is in the column `{column}`, as declared; `{column}` itself is in `{own}`"));
            }
        }
        let others: BTreeSet<_> = declared.attributes().filter(|name| !declared.types.contains_key(*name)).collect();
        for name in others.into_iter().filter(|name| shape.attribute(name).is_none()) {
            findings.push(format!("{entity}: no item has `{name}`, of which something is declared{}", meant(name, shape)));
        }
        let known = shape.attributes();
        for pattern in declared.rest.iter().filter(|_| !shape.others()) {
            match pattern.strip_suffix('*') {
                Some(prefix) if known.keys().all(|name| !name.starts_with(prefix)) => {
                    findings
                        .push(format!("{entity}: no item has an attribute whose name begins with `{prefix}`, which is declared as `rest`"));
                }
                None if !known.contains_key(pattern.as_str()) => {
                    findings.push(format!("{entity}: no item has `{pattern}`, which is declared as `rest`{}", meant(pattern, shape)));
                }
                _ => {}
            }
        }
        for name in declared.sort.iter().filter(|name| shape.attribute(name).is_some()) {
            if let Some((field, form)) = self.values_of(name).next().filter(|(_, form)| !form.is_ordered() && **form != Form::Nothing) {
                let what = if matches!(form, Form::Json(_)) { "JSON" } else { "nested" };
                findings.push(format!("{entity}: rows are not sorted by `{name}`, since `{}` is {what}", field.name()));
            } else if self.values_of(name).next().is_none() {
                findings.push(format!("{entity}: rows are not sorted by `{name}`, since it has no column of its own"));
            }
        }
        for (name, values) in shape.attributes().into_iter().filter(|(name, _)| !declared.names_folders(name)) {
            if let (Mixed::RejectMinority, [most, _, ..]) = (declared.mixed(name), &by_frequency(values)[..]) {
                let counts = counts(values);
                findings.push(format!("{entity}: items with `{name}` of another type than {most} are rejected: {counts}"));
            }
            if let Some((field, _)) = self.values_of(name).find(|(_, form)| matches!(form, Form::AnyText { .. })) {
                let counts = counts(values);
                findings.push(format!(
                    "{entity}: values of `{name}` are text in `{}`, which does not say what they were: {counts}",
                    field.name()
                ));
            }
        }
        findings
    }

    /// Why an item is refused, where a value has another type than the attribute's one column takes.
    pub(super) fn refuses(&self, declared: &Declared, item: &Item<'_>) -> Option<String> {
        item.attributes().iter().find_map(|(name, value)| {
            let kind = value.kind();
            if kind == Type::Null || declared.mixed(name) != Mixed::RejectMinority {
                return None;
            }
            let slots = self.slots(name).filter(|slots| slots.places(kind).next().is_none())?;
            let most = Type::ALL.into_iter().find(|most| *most != Type::Null && slots.places(*most).next().is_some())?;
            Some(format!("`{name}` is of type {kind}, and of type {most} in most items"))
        })
    }

    /// The columns of an attribute, by their names.
    pub(super) fn columns_of(&self, attribute: &str) -> impl Iterator<Item = (&str, &Form)> {
        let of_attribute = move |field: &Field| field.metadata().get(ATTRIBUTE).is_some_and(|name| name == attribute);
        let columns = self.schema.fields().iter().zip(&self.forms).filter(move |(field, _)| of_attribute(field));
        columns.map(|(field, form)| (field.name().as_str(), form))
    }

    /// An attribute that has columns, and whose name differs from this one in case alone.
    pub(super) fn attribute_in_other_case(&self, attribute: &str) -> Option<&str> {
        let names = (0..self.forms.len()).filter_map(|place| self.attribute(place));
        names.filter(|name| *name != attribute).find(|name| name.eq_ignore_ascii_case(attribute))
    }

    /// The columns of an attribute's values.
    fn values_of(&self, attribute: &str) -> impl Iterator<Item = (&Arc<Field>, &Form)> {
        let of_attribute = move |field: &Field| field.metadata().get(ATTRIBUTE).is_some_and(|name| name == attribute);
        let columns = self.schema.fields().iter().zip(&self.forms);
        columns.filter(move |(field, form)| **form != Form::IsNull && of_attribute(field))
    }

    /// The columns of an attribute; `None` where it has none of its own.
    pub(super) fn slots(&self, attribute: &str) -> Option<&Slots> {
        self.attributes.get(attribute)
    }
}

/// The columns while they are chosen.
#[derive(Default)]
struct Columns {
    dialect: Option<Dialect>,
    fields: Vec<Field>,
    forms: Vec<Form>,
    attributes: Attributes,
    rest: Option<usize>,
    partition: Vec<By>,
}

/// An attribute with the forms of its types, the most frequent type first, and then whether there is a NULL, where that has a column.
struct Candidate<'s> {
    name: &'s str,
    items: u64,
    forms: Vec<Form>,
}

impl Columns {
    fn of(dataset: &Dataset, shape: &Shape, dialect: Option<Dialect>) -> Self {
        let declared = &dataset.declared;
        let mut known = shape.attributes();
        let [op, written_at] = Change::COLUMNS;
        let of_changes = dataset.leading.iter().any(|name| name == op) && known.contains_key(op);
        known.retain(|name, _| !declared.names_folders(name));
        let mut candidates = Vec::with_capacity(known.len());
        // What leads does so in the declared order, then the dataset's; an attribute that no item has gets no column.
        for name in declared.order.iter().chain(&dataset.leading) {
            if let Some((name, values)) = known.remove_entry(name.as_str()) {
                candidates.push(Candidate::of(name, values, dataset, shape));
            }
        }
        if of_changes && let Some(candidate) = candidates.iter_mut().find(|candidate| candidate.name == written_at) {
            candidate.make_moment(shape.items());
        }
        let leading = candidates.len();
        for (name, values) in known {
            candidates.push(Candidate::of(name, values, dataset, shape));
        }

        let asked_for: HashSet<&str> = declared.attributes().collect();
        let is_asked_for = |at: usize| at < leading || asked_for.contains(candidates[at].name);
        let homeless = homeless(&candidates, declared, is_asked_for);
        let mut names = Names::new(dialect);
        let mut columns = Self { dialect, ..Self::default() };
        columns.part_by(declared, &mut names);
        let in_a_column = |(attribute, _): &(&String, &String)| !declared.names_folders(attribute);
        // Declared names come first, then those that are right as they are; what is made up gives way to all of them.
        let mut chosen: HashMap<&str, String> =
            declared.names.iter().filter(in_a_column).map(|(attribute, column)| (attribute.as_str(), names.free(column))).collect();
        let others = shape.attributes().into_keys().filter(|name| !declared.names.contains_key(*name) && !declared.names_folders(name));
        let others: Vec<&str> = others.filter(|name| !names.take(name)).collect();
        for name in others {
            if !homeless.iter().any(|at| candidates[*at].name == name) {
                chosen.insert(name, names.free(name));
            }
        }
        for (at, Candidate { name, forms, .. }) in candidates.into_iter().enumerate() {
            if !homeless.contains(&at) {
                let column = chosen.get(name).map_or(name, String::as_str);
                columns.add(declared, name, column, forms, &mut names);
            }
        }
        // Items without any attribute must still be rows, so there is always a column.
        if shape.others() || !homeless.is_empty() || columns.forms.is_empty() {
            let form = Form::Json(JsonForm::Inside(Type::M));
            columns.push(declared, None, &names.free(REST), form);
        }
        columns
    }

    /// Takes the names of what names folders, and notes that it has no columns.
    fn part_by(&mut self, declared: &Declared, names: &mut Names) {
        self.partition = By::of(declared, names);
        for By { attribute, .. } in &self.partition {
            slots_of(&mut self.attributes, attribute, false).in_folders = true;
        }
    }

    /// Adds an attribute. Its most frequent type, or the declared one, has the column of this name; the others have names of their own.
    fn add(&mut self, declared: &Declared, name: &str, column: &str, forms: Vec<Form>, names: &mut Names) {
        for (rank, form) in forms.into_iter().enumerate() {
            match form.kind() {
                Some(kind) if rank > 0 => {
                    let made_up = names.free(&format!("{column}__{}", kind.descriptor().to_lowercase()));
                    self.push(declared, Some(name), &made_up, form);
                }
                _ => self.push(declared, Some(name), column, form),
            }
        }
    }

    /// Adds a column for an attribute, or that of those without a column of their own.
    fn push(&mut self, declared: &Declared, attribute: Option<&str>, column: &str, form: Form) {
        let place = u32::try_from(self.forms.len()).expect("a dataset has at most some thousand columns");
        let form = match self.dialect {
            Some(dialect) => renamed(form, dialect),
            None => form,
        };
        let mut field = form.field(column);
        match attribute {
            Some(attribute) => {
                let mut metadata = field.metadata().clone();
                metadata.insert(ATTRIBUTE, attribute);
                field.set_metadata(metadata);
                let slots = slots_of(&mut self.attributes, attribute, declared.tells_null(attribute));
                Type::ALL.into_iter().filter(|kind| form.takes(*kind)).for_each(|kind| slots.add(kind, place));
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
        let declared = &dataset.declared;
        let kinds = by_frequency(values);
        let mut forms = match declared.types.get(name) {
            Some(column) => Self::of_type(*column, shape.fits(name).fit, kinds, values),
            None if kinds.is_empty() => vec![Form::Nothing],
            None if kinds.len() == 1 => vec![Form::of_column(kinds[0], values)],
            None => match declared.mixed(name) {
                Mixed::Split => kinds.into_iter().map(|kind| Form::of_column(kind, values)).collect(),
                Mixed::RejectMinority => vec![Form::of_column(kinds[0], values)],
                Mixed::Text if has_text(values) => vec![Form::any_text(values)],
                Mixed::Json | Mixed::Text => vec![Form::Json(JsonForm::Tagged)],
            },
        };
        let has_mark = match &declared.nulls {
            // A mark that is asked for by name is there whatever the values are.
            Nulls::Of(names) => names.contains(name),
            Nulls::All => values.count(Type::Null) > 0,
        };
        forms.extend(has_mark.then_some(Form::IsNull));
        Self { name, items: values.total(), forms }
    }

    /// The forms of an attribute with a declared type, which so many values fit.
    fn of_type(declared: ColumnType, fit: u64, mut kinds: Vec<Type>, values: &ValueShape) -> Vec<Form> {
        let column = |kind: Type| Form::of_column(kind, values);
        match declared {
            ColumnType::Json => vec![Form::declared(ColumnType::Json, values)],
            ColumnType::Text => {
                let numbers = Form::Number(NumberForm::Text);
                let texts = Form::declared(ColumnType::Text, values);
                let first = match (kinds.contains(&Type::S), kinds.contains(&Type::N)) {
                    (true, true) => vec![texts, numbers],
                    (false, true) => vec![numbers],
                    (_, false) => vec![texts],
                };
                first.into_iter().chain(kinds.into_iter().filter(|kind| !matches!(kind, Type::S | Type::N)).map(column)).collect()
            }
            declared => {
                kinds.retain(|kind| declared.kind() != Some(*kind) || values.count(*kind) > fit);
                std::iter::once(Form::declared(declared, values)).chain(kinds.into_iter().map(column)).collect()
            }
        }
    }
}

/// The types of the values, NULL aside, the most frequent first.
fn by_frequency(values: &ValueShape) -> Vec<Type> {
    let mut kinds: Vec<_> = values.kinds().collect();
    // Stable, so that of equally frequent types the first of `Type` leads.
    kinds.sort_by_key(|kind| Reverse(values.count(*kind)));
    kinds
}

/// How many values there are of each type, NULL aside: `3 S, 1 N`.
fn counts(values: &ValueShape) -> String {
    by_frequency(values).into_iter().map(|kind| format!("{} {kind}", values.count(kind))).collect::<Vec<_>>().join(", ")
}

/// Whether all values have a text.
fn has_text(values: &ValueShape) -> bool {
    values.kinds().all(|kind| matches!(kind, Type::S | Type::N | Type::Bool))
}

fn no_text(dataset: &Dataset, attribute: &str, values: &ValueShape) -> Error {
    Error::new(Kind::Input, "an attribute is declared to become text where its types are mixed, and has values that have no text")
        .with("dataset", &dataset.name)
        .with("attribute", attribute)
        .with("found", counts(values))
        .with("expected", "S, N and BOOL alone")
        .with("hint", "say what else it becomes: `json` or `split` under `mixed` in the entity's [parquet]; or bring the values to one type with steps")
}

/// The candidates that get no column of their own: those that are declared so, and those of the fewest items where the dataset would have
/// more leaf columns than it may.
fn homeless(candidates: &[Candidate<'_>], declared: &Declared, is_asked_for: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let limit = declared.columns.unwrap_or(COLUMNS).min(COLUMNS);
    let mut ranked: Vec<_> = (0..candidates.len()).collect();
    ranked.sort_by_key(|at| (!is_asked_for(*at), Reverse(candidates[*at].items), candidates[*at].name));
    let mut leaves = 0;
    ranked
        .into_iter()
        .filter(|at| {
            let Candidate { name, forms, .. } = &candidates[*at];
            // A prefix takes no attribute that something else is said of.
            if declared.rest.contains(*name) || (!is_asked_for(*at) && declared.in_rest(name).is_some()) {
                return true;
            }
            leaves += forms.iter().map(Form::leaves).sum::<usize>();
            leaves > limit
        })
        .collect()
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
        Form::Nothing
        | Form::Text { .. }
        | Form::IsoText
        | Form::AnyText { .. }
        | Form::IsNull
        | Form::Number(_)
        | Form::Binary
        | Form::Bool
        | Form::Json(_) => leaf(form, path),
    }
}

/// The attribute that may be meant by the name of one that no item has.
fn meant(name: &str, shape: &Shape) -> String {
    nearest(name, shape.attributes().into_keys()).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
