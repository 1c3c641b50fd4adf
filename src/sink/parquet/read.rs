//! Reads back what the sink wrote: rows become items again, by the types of the columns and by what their fields say in their metadata.
//!
//! What the columns cannot tell apart is in no item: a NULL in a map, or in an item where no column says so, is taken for an absent
//! attribute. In JSON texts and as an element of a list it is read as it is. Where S, N and BOOL became text, it is S. Everything else comes
//! back as it was, numbers in one spelling. Files of others are refused.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray};
use arrow::datatypes::{Decimal128Type, DecimalType, Field, Float64Type, Int64Type, TimestampMicrosecondType};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use super::form::{ATTRIBUTE, Form, JsonForm, NumberForm, attribute_of};
use super::layout::ENTITY;
use super::partition::{PARTITION, Shared};
use crate::codec::ddb_json;
use crate::error::{Error, Kind, Result};
use crate::model::declared::{digits_below, iso};
use crate::model::time::Unit;
use crate::model::{Arena, Attribute, Declared, Item, Type, Value};

/// Rows that are decoded at one time.
const ROWS: usize = 1024;

/// A file that the sink wrote.
#[derive(Debug)]
pub struct ParquetFile {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    entity: String,
    columns: Vec<Column>,
    /// What all items share, and no column has.
    shared: Vec<(String, Shared)>,
}

/// A column, and the attribute that its values are of; `None`: of those that have no column of their own.
#[derive(Debug)]
struct Column {
    attribute: Option<String>,
    form: Form,
}

impl ParquetFile {
    /// Opens a file of this machine.
    ///
    /// # Errors
    /// Kind `Input`, with the path, when it cannot be read or is none of the sink's.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |cause| unreadable(path).caused_by(cause);
        let file = File::open(path).map_err(|cause| unreadable(path).caused_by(cause))?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(failed)?;
        let foreign = |what: String| {
            Error::new(Kind::Input, "the Parquet file is not as dynamorph writes it")
                .with("file", path.display())
                .with("found", what)
                .with("expected", "a file that `run --to parquet:` wrote, with the metadata of its fields")
        };
        let entity = metadata.schema().metadata().get(ENTITY).ok_or_else(|| foreign(format!("no `{ENTITY}` in its metadata")))?;
        let column = |field: &Field| {
            let form = Form::of_field(field).ok_or_else(|| foreign(format!("column `{}` of type {}", field.name(), field.data_type())))?;
            Ok(Column { attribute: field.metadata().get(ATTRIBUTE).cloned(), form })
        };
        let columns = metadata.schema().fields().iter().map(|field| column(field)).collect::<Result<_>>()?;
        let shared = match partition_of(&metadata) {
            None => Vec::new(),
            Some(json) => {
                Shared::parse(json).ok_or_else(|| foreign(format!("`{PARTITION}` in its metadata, which cannot be understood")))?
            }
        };
        Ok(Self { path: path.to_owned(), entity: entity.clone(), columns, shared, metadata })
    }

    /// The entity whose items it holds.
    #[must_use]
    pub fn entity(&self) -> &str {
        &self.entity
    }

    /// The rows of each row group.
    #[must_use]
    pub fn row_groups(&self) -> Vec<u64> {
        self.metadata.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).collect()
    }

    /// Reads a row group; `take` gets each item with the number of its row in the file, from 1.
    ///
    /// # Errors
    /// Kind `Input`, with the path, when the file cannot be read or a value is none; and what `take` says.
    pub fn read(&self, group: usize, take: &mut dyn FnMut(u64, &Item<'_>) -> Result<()>) -> Result<()> {
        let before: u64 = self.row_groups().iter().take(group).sum();
        self.rows(|builder| builder.with_row_groups(vec![group]), before + 1, take)
    }

    /// Reads one row.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_row(&self, row: u64, take: &mut dyn FnMut(&Item<'_>) -> Result<()>) -> Result<()> {
        let offset = usize::try_from(row.saturating_sub(1)).unwrap_or(usize::MAX);
        self.rows(|builder| builder.with_offset(offset).with_limit(1), row, &mut |_, item| take(item))
    }

    fn rows(
        &self,
        choose: impl FnOnce(ParquetRecordBatchReaderBuilder<File>) -> ParquetRecordBatchReaderBuilder<File>,
        first: u64,
        take: &mut dyn FnMut(u64, &Item<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = File::open(&self.path).map_err(|cause| unreadable(&self.path).caused_by(cause))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone()).with_batch_size(ROWS);
        let reader = choose(builder).build().map_err(|cause| unreadable(&self.path).caused_by(cause))?;
        let mut arena = Arena::new();
        let mut row = first;
        for batch in reader {
            let batch = batch.map_err(|cause| unreadable(&self.path).caused_by(cause))?;
            for at in 0..batch.num_rows() {
                self.item(batch.columns(), at, &arena)
                    .map_err(|message| unreadable(&self.path).with("row", row).with("found", message))
                    .and_then(|item| take(row, &item))?;
                arena.reset();
                row += 1;
            }
        }
        Ok(())
    }

    fn item<'a>(&'a self, columns: &'a [ArrayRef], at: usize, arena: &'a Arena) -> std::result::Result<Item<'a>, String> {
        let mut item = Item::new_in(arena);
        for (name, value) in &self.shared {
            item.push(name, value.value());
        }
        for (column, array) in self.columns.iter().zip(columns) {
            let Some(value) = column.form.value(array.as_ref(), at, arena)? else { continue };
            match (&column.attribute, value) {
                (Some(name), value) => item.push(name, value),
                (None, Value::M(others)) => others.iter().for_each(|(name, value)| item.push(name, *value)),
                (None, other) => return Err(format!("attributes without a column of their own as {}", other.kind())),
            }
        }
        Ok(item)
    }
}

impl Form {
    /// The value at a place of an array; `None` where it is null.
    pub(super) fn value<'a>(&self, array: &'a dyn Array, at: usize, arena: &'a Arena) -> std::result::Result<Option<Value<'a>>, String>
    where
        Self: 'a,
    {
        if array.is_null(at) {
            return Ok(None);
        }
        let plain = |number: &str| Value::N(arena.alloc_str(number));
        Ok(Some(match self {
            Form::Nothing => return Err("a text in a column that holds nothing".to_owned()),
            Form::IsNull if array.as_boolean().value(at) => Value::Null,
            Form::IsNull => return Ok(None),
            Form::Text { .. } | Form::AnyText { .. } => Value::S(array.as_string::<i32>().value(at)),
            Form::Number(NumberForm::Text) => Value::N(array.as_string::<i32>().value(at)),
            Form::Number(NumberForm::Integer) => plain(&array.as_primitive::<Int64Type>().value(at).to_string()),
            Form::IsoText => Value::S(arena.alloc_str(&iso(array.as_primitive::<TimestampMicrosecondType>().value(at)))),
            Form::Number(form @ (NumberForm::Epoch(_) | NumberForm::Moment)) => {
                let unit = if let NumberForm::Epoch(unit) = form { *unit } else { Unit::Micros };
                plain(&of_micros(array.as_primitive::<TimestampMicrosecondType>().value(at), unit))
            }
            Form::Number(NumberForm::Double) => plain(&array.as_primitive::<Float64Type>().value(at).to_string()),
            Form::Number(NumberForm::Decimal(..)) => {
                let decimals = array.as_primitive::<Decimal128Type>();
                plain(&Decimal128Type::format_decimal(decimals.value(at), decimals.precision(), decimals.scale()))
            }
            Form::Binary => Value::B(array.as_binary::<i32>().value(at)),
            Form::Bool => Value::Bool(array.as_boolean().value(at)),
            Form::Set(kind, element, _) => element.set_at(*kind, array.as_list::<i32>(), at, arena)?,
            Form::List(element, _) => {
                let mut elements = Vec::new();
                element.elements_at(array.as_list::<i32>(), at, arena, |value| elements.push(value.unwrap_or(Value::Null)))?;
                Value::L(arena.alloc_slice_copy(&elements))
            }
            Form::Struct(inner) => {
                let columns = array.as_struct().columns();
                let mut members: Vec<Attribute<'a>> = Vec::new();
                for ((field, form), column) in inner.fields.iter().zip(&inner.forms).zip(columns) {
                    if let Some(value) = form.value(column.as_ref(), at, arena)? {
                        members.push((arena.alloc_str(attribute_of(field)), value));
                    }
                }
                Value::M(arena.alloc_slice_copy(&members))
            }
            Form::Map(form, _) => {
                let map: &MapArray = array.as_map();
                let (keys, values) = (map.keys().as_string::<i32>(), map.values());
                let mut members: Vec<Attribute<'a>> = Vec::new();
                for entry in range(map.value_offsets(), at)? {
                    members.push((keys.value(entry), form.value(values.as_ref(), entry, arena)?.unwrap_or(Value::Null)));
                }
                Value::M(arena.alloc_slice_copy(&members))
            }
            Form::Json(form) => {
                let text = array.as_string::<i32>().value(at);
                let line = match form {
                    JsonForm::Tagged => format!("{{\"Item\":{{\"v\":{text}}}}}"),
                    JsonForm::Inside(kind) => format!("{{\"Item\":{{\"v\":{{\"{kind}\":{text}}}}}}}"),
                };
                let item = ddb_json::decode_item(arena.alloc_str(&line), arena).map_err(|reason| reason.message)?;
                item.get("v").ok_or("a JSON text without a value")?
            }
        }))
    }

    fn set_at<'a>(&self, kind: Type, lists: &'a ListArray, at: usize, arena: &'a Arena) -> std::result::Result<Value<'a>, String> {
        let (mut texts, mut binaries) = (Vec::new(), Vec::new());
        self.elements_at(lists, at, arena, |value| match value {
            Some(Value::S(text) | Value::N(text)) => texts.push(text),
            Some(Value::B(bytes)) => binaries.push(bytes),
            _ => {}
        })?;
        let members = range(lists.value_offsets(), at)?.len();
        match kind {
            Type::Ss if texts.len() == members => Ok(Value::Ss(arena.alloc_slice_copy(&texts))),
            Type::Ns if texts.len() == members => Ok(Value::Ns(arena.alloc_slice_copy(&texts))),
            Type::Bs if binaries.len() == members => Ok(Value::Bs(arena.alloc_slice_copy(&binaries))),
            _ => Err(format!("a member of another type in a set of type {kind}")),
        }
    }

    fn elements_at<'a>(
        &self,
        lists: &'a ListArray,
        at: usize,
        arena: &'a Arena,
        mut take: impl FnMut(Option<Value<'a>>),
    ) -> std::result::Result<(), String> {
        for element in range(lists.value_offsets(), at)? {
            take(self.value(lists.values().as_ref(), element, arena)?);
        }
        Ok(())
    }
}

/// What a file says of its partition.
pub(super) fn partition_of(metadata: &ArrowReaderMetadata) -> Option<&str> {
    let said = metadata.metadata().file_metadata().key_value_metadata()?;
    said.iter().find(|said| said.key == PARTITION)?.value.as_deref()
}

/// An epoch number of microseconds.
fn of_micros(micros: i64, unit: Unit) -> String {
    let scale = i8::try_from(digits_below(unit)).expect("a unit has at most six digits below it");
    Decimal128Type::format_decimal(i128::from(micros), Decimal128Type::MAX_PRECISION, scale)
}

/// The item without what the columns cannot tell apart: members of maps that are NULL, and attributes where no column says so; how a moment
/// is written where the column is a timestamp; digits beyond a double; whether it was S, N or BOOL where that is declared to become text. To
/// be compared with an item that was read back, which has none either once it went through here.
#[must_use]
pub fn comparable<'a>(item: &Item<'a>, declared: &Declared) -> Item<'a> {
    let arena = item.arena();
    let mut kept = Item::new_in(arena);
    for (name, value) in item.attributes() {
        if !matches!(value, Value::Null) || declared.tells_null(name) {
            kept.push(name, without_nulls(*value, arena));
        }
    }
    declared.give_back(&mut kept);
    kept
}

/// Recurses as deep as the value goes, which the decoder bounds.
fn without_nulls<'a>(value: Value<'a>, arena: &'a Arena) -> Value<'a> {
    match value {
        Value::M(members) if members.iter().any(|(_, value)| has_nulls(value)) => {
            let mut kept: Vec<Attribute<'a>> = Vec::with_capacity(members.len());
            kept.extend(
                members
                    .iter()
                    .filter(|(_, value)| !matches!(value, Value::Null))
                    .map(|(name, value)| (*name, without_nulls(*value, arena))),
            );
            Value::M(arena.alloc_slice_copy(&kept))
        }
        Value::L(elements) if elements.iter().any(|element| !matches!(element, Value::Null) && has_nulls(element)) => {
            let kept: Vec<Value<'a>> = elements.iter().map(|element| without_nulls(*element, arena)).collect();
            Value::L(arena.alloc_slice_copy(&kept))
        }
        other => other,
    }
}

/// Whether it is NULL, or NULL may be inside of it.
fn has_nulls(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::M(members) => members.iter().any(|(_, value)| has_nulls(value)),
        Value::L(elements) => elements.iter().any(has_nulls),
        _ => false,
    }
}

/// Where the elements of a list or a map lie.
fn range(offsets: &[i32], at: usize) -> std::result::Result<std::ops::Range<usize>, String> {
    match (usize::try_from(offsets[at]), usize::try_from(offsets[at + 1])) {
        (Ok(start), Ok(end)) => Ok(start..end),
        _ => Err("offsets below zero".to_owned()),
    }
}

fn unreadable(path: &Path) -> Error {
    Error::new(Kind::Input, "cannot read the Parquet file").with("file", path.display())
}
