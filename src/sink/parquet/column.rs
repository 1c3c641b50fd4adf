//! Builders: values of one column, pushed row by row, become an arrow array.
//!
//! What is missing is filled in late: a builder that is behind its rows gets its nulls when the next value comes or at the end,
//! so that a dataset with thousands of sparse columns costs what its values cost.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder, ListArray, MapArray, NullBufferBuilder,
    StringBuilder, StructArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, TimestampMicrosecondType};

use super::form::{Form, JsonForm, NumberForm, StructForm};
use crate::codec::ddb_json::{write_string, write_value};
use crate::model::declared::{as_text, decimal, double, epoch_micros, iso_micros, plain_number};
use crate::model::number::Decimal;
use crate::model::time::Unit;
use crate::model::{Attribute, Type, Value};
use crate::shape::to_i64;

/// A value that the column has no place for. The schema is made from all items, so this is a bug of the program where no other column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Misfit(pub(super) Type);

/// The most bytes that are reserved for the texts of a column before they are known; a chunk has about 512 KiB.
const RESERVED: usize = 256 * 1024;

type Fits = Result<(), Misfit>;

/// The values of one column, or of one position in it.
pub(super) enum Builder<'l> {
    Text(StringBuilder),
    Integer(Int64Builder),
    Moment(Int64Builder),
    Iso(Int64Builder),
    Epoch(Int64Builder, Unit),
    Double(Float64Builder),
    /// With the digits in all, and those after the point.
    Decimal(Decimal128Builder, u8, u8),
    NumberText(StringBuilder),
    AnyText(StringBuilder),
    IsNull(BooleanBuilder),
    Binary(BinaryBuilder),
    Bool(BooleanBuilder),
    Json(StringBuilder, JsonForm),
    Nothing(usize),
    Set(Type, Nested<'l>),
    List(Nested<'l>),
    Struct(Fields<'l>),
    Map(Nested<'l>, StringBuilder),
}

/// Where each row's elements begin, and the elements.
pub(super) struct Nested<'l> {
    form: &'l Form,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    elements: Box<Builder<'l>>,
}

/// The fields of each row.
pub(super) struct Fields<'l> {
    form: &'l StructForm,
    nulls: NullBufferBuilder,
    builders: Vec<Builder<'l>>,
}

impl<'l> Builder<'l> {
    /// An empty builder; `rows` is how many values to expect.
    pub(super) fn new(form: &'l Form, rows: usize) -> Self {
        let nested = |element: &'l Form| Nested {
            form,
            offsets: vec![0],
            nulls: NullBufferBuilder::new(rows),
            elements: Box::new(Builder::new(element, 0)),
        };
        match form {
            Form::Nothing => Builder::Nothing(0),
            Form::Text { average } => {
                // The texts of a chunk are about as long as those of the whole run, so most columns never grow.
                Builder::Text(StringBuilder::with_capacity(rows, rows.saturating_mul(*average + 1).min(RESERVED)))
            }
            Form::Number(NumberForm::Integer) => Builder::Integer(Int64Builder::with_capacity(rows)),
            Form::Number(NumberForm::Moment) => Builder::Moment(Int64Builder::with_capacity(rows)),
            Form::IsoText => Builder::Iso(Int64Builder::with_capacity(rows)),
            Form::Number(NumberForm::Epoch(unit)) => Builder::Epoch(Int64Builder::with_capacity(rows), *unit),
            Form::Number(NumberForm::Double) => Builder::Double(Float64Builder::with_capacity(rows)),
            Form::Number(NumberForm::Decimal(precision, scale)) => Builder::Decimal(
                Decimal128Builder::with_capacity(rows).with_data_type(DataType::Decimal128(*precision, *scale)),
                *precision,
                u8::try_from(*scale).expect("the scale counts the digits after the point"),
            ),
            Form::Number(NumberForm::Text) => Builder::NumberText(StringBuilder::with_capacity(rows, 0)),
            Form::AnyText { average } => Builder::AnyText(StringBuilder::with_capacity(rows, rows.saturating_mul(*average).min(RESERVED))),
            Form::IsNull => Builder::IsNull(BooleanBuilder::with_capacity(rows)),
            Form::Binary => Builder::Binary(BinaryBuilder::with_capacity(rows, 0)),
            Form::Bool => Builder::Bool(BooleanBuilder::with_capacity(rows)),
            Form::Json(inside) => Builder::Json(StringBuilder::with_capacity(rows, 0), *inside),
            Form::Set(kind, element, _) => Builder::Set(*kind, nested(element)),
            Form::List(element, _) => Builder::List(nested(element)),
            Form::Map(value, _) => Builder::Map(nested(value), StringBuilder::new()),
            Form::Struct(form) => Builder::Struct(Fields {
                form,
                nulls: NullBufferBuilder::new(rows),
                builders: form.forms.iter().map(|form| Builder::new(form, rows)).collect(),
            }),
        }
    }

    /// Whether a column of this form has a place for the value.
    pub(super) fn has_place(form: &'l Form, value: &Value<'_>) -> bool {
        Self::new(form, 1).push(value, &mut Vec::new()).is_ok()
    }

    /// How many values there are, nulls included.
    pub(super) fn len(&self) -> usize {
        use arrow::array::ArrayBuilder as _;
        match self {
            Builder::Text(builder) | Builder::NumberText(builder) | Builder::AnyText(builder) | Builder::Json(builder, _) => builder.len(),
            Builder::Integer(builder) | Builder::Moment(builder) | Builder::Iso(builder) | Builder::Epoch(builder, _) => builder.len(),
            Builder::Double(builder) => builder.len(),
            Builder::Decimal(builder, ..) => builder.len(),
            Builder::Binary(builder) => builder.len(),
            Builder::Bool(builder) | Builder::IsNull(builder) => builder.len(),
            Builder::Nothing(rows) => *rows,
            Builder::Set(_, nested) | Builder::List(nested) | Builder::Map(nested, _) => nested.offsets.len() - 1,
            Builder::Struct(fields) => fields.nulls.len(),
        }
    }

    /// Fills up to `rows` values with nulls.
    pub(super) fn fill(&mut self, rows: usize) {
        let missing = rows - self.len();
        if missing == 0 {
            return;
        }
        match self {
            Builder::Text(builder) | Builder::NumberText(builder) | Builder::AnyText(builder) | Builder::Json(builder, _) => {
                builder.append_nulls(missing);
            }
            Builder::Integer(builder) | Builder::Moment(builder) | Builder::Iso(builder) | Builder::Epoch(builder, _) => {
                builder.append_nulls(missing);
            }
            Builder::Double(builder) => builder.append_nulls(missing),
            Builder::Decimal(builder, ..) => builder.append_nulls(missing),
            Builder::Binary(builder) => builder.append_nulls(missing),
            Builder::Bool(builder) | Builder::IsNull(builder) => builder.append_nulls(missing),
            Builder::Nothing(rows) => *rows += missing,
            Builder::Set(_, nested) | Builder::List(nested) | Builder::Map(nested, _) => {
                let end = nested.offsets[nested.offsets.len() - 1];
                nested.offsets.extend(std::iter::repeat_n(end, missing));
                nested.nulls.append_n_nulls(missing);
            }
            // The fields stay behind, like every builder that has no value.
            Builder::Struct(fields) => fields.nulls.append_n_nulls(missing),
        }
    }

    /// Adds a value as row `row`, which comes after those that were added before.
    pub(super) fn push_at(&mut self, row: usize, value: &Value<'_>, scratch: &mut Vec<u8>) -> Fits {
        if self.len() > row {
            return Err(Misfit(value.kind()));
        }
        self.fill(row);
        self.push(value, scratch)
    }

    /// Adds the first of these values that fit, each as the row that it says, counted from `start`; gives how many. What most columns are has a loop
    /// of its own.
    pub(super) fn push_run(&mut self, start: usize, values: &[(u32, &Value<'_>)], scratch: &mut Vec<u8>) -> usize {
        let length = self.len();
        if let Builder::Text(builder) = self {
            let mut next = length;
            for (taken, (row, value)) in values.iter().enumerate() {
                let (Value::S(text), Some(missing)) = (value, (start + *row as usize).checked_sub(next)) else { return taken };
                if missing > 0 {
                    builder.append_nulls(missing);
                }
                builder.append_value(text);
                next += missing + 1;
            }
            return values.len();
        }
        let mut fits = |(row, value): &(u32, &Value<'_>)| self.push_at(start + *row as usize, value, scratch).is_ok();
        values.iter().position(|value| !fits(value)).unwrap_or(values.len())
    }

    /// Adds a value. `scratch` is for texts that must be made first.
    fn push(&mut self, value: &Value<'_>, scratch: &mut Vec<u8>) -> Fits {
        match (self, value) {
            (Builder::Json(builder, form), value) if form.holds(value.kind()) => {
                scratch.clear();
                write_value(value, scratch);
                builder.append_value(text_of(match form {
                    JsonForm::Tagged => scratch,
                    // What stands between `{"L":` and the closing brace.
                    JsonForm::Inside(kind) => &scratch[kind.descriptor().len() + 4..scratch.len() - 1],
                }));
            }
            (Builder::Text(builder), Value::S(text)) => builder.append_value(text),
            (Builder::Binary(builder), Value::B(bytes)) => builder.append_value(bytes),
            (Builder::Bool(builder), Value::Bool(truth)) => builder.append_value(*truth),
            (Builder::AnyText(builder), Value::S(_) | Value::N(_) | Value::Bool(_)) => {
                builder.append_value(as_text(value).ok_or(Misfit(value.kind()))?);
            }
            (Builder::IsNull(builder), Value::Null) => builder.append_value(true),
            (Builder::Iso(builder), Value::S(text)) => builder.append_value(iso_micros(text).ok_or(Misfit(Type::S))?),
            (
                builder @ (Builder::Integer(_)
                | Builder::Moment(_)
                | Builder::Epoch(..)
                | Builder::Double(_)
                | Builder::Decimal(..)
                | Builder::NumberText(_)),
                Value::N(text),
            ) => builder.push_number(text)?,
            (Builder::Set(Type::Ss, nested), Value::Ss(texts)) => {
                nested.push(texts.iter().map(|text| Value::S(text)), scratch)?;
            }
            (Builder::Set(Type::Ns, nested), Value::Ns(texts)) => {
                nested.push(texts.iter().map(|text| Value::N(text)), scratch)?;
            }
            (Builder::Set(Type::Bs, nested), Value::Bs(binaries)) => {
                nested.push(binaries.iter().map(|bytes| Value::B(bytes)), scratch)?;
            }
            (Builder::List(nested), Value::L(elements)) => nested.push(elements.iter().copied(), scratch)?,
            (Builder::Map(nested, keys), Value::M(fields)) => {
                fields.iter().for_each(|(name, _)| keys.append_value(name));
                nested.push(fields.iter().map(|(_, value)| *value), scratch)?;
            }
            (Builder::Struct(builder), Value::M(fields)) => builder.push(fields, scratch)?,
            (builder, Value::Null) => builder.fill(builder.len() + 1),
            (_, value) => return Err(Misfit(value.kind())),
        }
        Ok(())
    }

    /// Adds attributes as the inside of a map, to a JSON column.
    pub(super) fn push_attributes<'v, 'a: 'v>(
        &mut self,
        attributes: impl Iterator<Item = &'v Attribute<'a>>,
        scratch: &mut Vec<u8>,
    ) -> Fits {
        let Builder::Json(builder, JsonForm::Inside(Type::M)) = self else { return Err(Misfit(Type::M)) };
        scratch.clear();
        scratch.push(b'{');
        for (at, (name, value)) in attributes.enumerate() {
            if at > 0 {
                scratch.push(b',');
            }
            write_string(name, scratch);
            scratch.push(b':');
            write_value(value, scratch);
        }
        scratch.push(b'}');
        builder.append_value(text_of(scratch));
        Ok(())
    }

    fn push_number(&mut self, text: &str) -> Fits {
        const MISFIT: Misfit = Misfit(Type::N);
        match self {
            Builder::Integer(builder) | Builder::Moment(builder) => {
                let value = text.parse().ok().or_else(|| to_i64(&Decimal::parse(text)?)).ok_or(MISFIT)?;
                builder.append_value(value);
            }
            Builder::Epoch(builder, unit) => builder.append_value(epoch_micros(text, *unit).ok_or(MISFIT)?),
            Builder::Double(builder) => builder.append_value(double(text).ok_or(MISFIT)?),
            Builder::Decimal(builder, digits, scale) => builder.append_value(decimal(text, *digits, *scale).ok_or(MISFIT)?),
            // Equal numbers get equal texts, so that they group and join.
            Builder::NumberText(builder) => builder.append_value(plain_number(text)),
            _ => return Err(MISFIT),
        }
        Ok(())
    }

    /// The array of the first `rows` values; what is missing is null.
    pub(super) fn finish(mut self, rows: usize) -> ArrayRef {
        self.fill(rows);
        match self {
            Builder::Text(mut builder)
            | Builder::NumberText(mut builder)
            | Builder::AnyText(mut builder)
            | Builder::Json(mut builder, _) => Arc::new(builder.finish()),
            Builder::Integer(mut builder) => Arc::new(builder.finish()),
            Builder::Moment(mut builder) | Builder::Iso(mut builder) | Builder::Epoch(mut builder, _) => {
                Arc::new(builder.finish().reinterpret_cast::<TimestampMicrosecondType>().with_timezone("UTC"))
            }
            Builder::Double(mut builder) => Arc::new(builder.finish()),
            Builder::Decimal(mut builder, ..) => Arc::new(builder.finish()),
            Builder::Binary(mut builder) => Arc::new(builder.finish()),
            Builder::Bool(mut builder) | Builder::IsNull(mut builder) => Arc::new(builder.finish()),
            Builder::Nothing(rows) => arrow::array::new_null_array(&DataType::Utf8, rows),
            Builder::Set(_, nested) | Builder::List(nested) => nested.finish(),
            Builder::Map(nested, keys) => nested.finish_map(keys),
            Builder::Struct(Fields { form, nulls, builders }) => {
                let arrays = builders.into_iter().map(|builder| builder.finish(rows)).collect();
                Arc::new(StructArray::try_new_with_length(form.fields.clone(), arrays, nulls.build(), rows).expect(CONSISTENT))
            }
        }
    }
}

/// Why arrow cannot refuse the parts of an array.
const CONSISTENT: &str = "the builder was made from the same form as the field, and its parts are equally long";

impl Nested<'_> {
    fn push<'a>(&mut self, elements: impl Iterator<Item = Value<'a>>, scratch: &mut Vec<u8>) -> Fits {
        for element in elements {
            self.elements.push(&element, scratch)?;
        }
        let end = i32::try_from(self.elements.len()).expect("the elements of one chunk are fewer than its bytes, far below 2^31");
        self.offsets.push(end);
        self.nulls.append_non_null();
        Ok(())
    }

    fn parts(self) -> (OffsetBuffer<i32>, Option<arrow::buffer::NullBuffer>, ArrayRef) {
        let Self { offsets, nulls, elements, .. } = self;
        let length = elements.len();
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls.build(), elements.finish(length))
    }

    fn finish(self) -> ArrayRef {
        let (Form::Set(_, _, field) | Form::List(_, field)) = self.form else { unreachable!("only sets and lists end here") };
        let (offsets, nulls, elements) = self.parts();
        Arc::new(ListArray::try_new(field.clone(), offsets, elements, nulls).expect(CONSISTENT))
    }

    fn finish_map(self, mut keys: StringBuilder) -> ArrayRef {
        let Form::Map(_, field) = self.form else { unreachable!("only maps end here") };
        let DataType::Struct(entry) = field.data_type() else { unreachable!("the entries of a map are a struct") };
        let (offsets, nulls, values) = self.parts();
        let entries = StructArray::try_new(entry.clone(), vec![Arc::new(keys.finish()), values], None).expect(CONSISTENT);
        Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, false).expect(CONSISTENT))
    }
}

impl Fields<'_> {
    fn push(&mut self, fields: &[Attribute<'_>], scratch: &mut Vec<u8>) -> Fits {
        let row = self.nulls.len();
        let mut guess = 0;
        for (name, value) in fields {
            // The fields of a map come in one order mostly, some of them missing.
            let at = match self.form.fields.get(guess) {
                Some(field) if field.name() == name => guess,
                _ => *self.form.index.get(*name).ok_or(Misfit(value.kind()))?,
            };
            guess = at + 1;
            let builder = &mut self.builders[at];
            // A name that stands twice in a map would push a row too many; the decoder refuses such a line.
            if builder.len() > row {
                return Err(Misfit(value.kind()));
            }
            builder.fill(row);
            builder.push(value, scratch)?;
        }
        self.nulls.append_non_null();
        Ok(())
    }
}

fn text_of(json: &[u8]) -> &str {
    std::str::from_utf8(json).expect("JSON made from texts is text")
}
