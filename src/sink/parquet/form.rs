//! What a value becomes in Parquet: from the shape of all values at a position to one form for the position.
//!
//! Knows nothing of columns and their names; those are in [`layout`](super::layout).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use rustc_hash::FxHashMap;

use crate::model::time::Unit;
use crate::model::{ColumnType, Type};
use crate::shape::{MapShape, Members, Numbers, Sizes, ValueShape};

/// The metadata key for the `DynamoDB` type of a field: a descriptor such as `SS`, `json`, or `text`, which is S, N or BOOL as text.
pub(super) const TYPE: &str = "dynamodb.type";

/// The metadata key for the name that an attribute or a map's key has in the items: on every column that is of one, and on the fields of
/// structs that have another name.
pub(super) const ATTRIBUTE: &str = "dynamodb.attribute";

/// The metadata key, on `json` fields, for what the text holds: `M` or `L` (the inside of such a value) or `any`
/// (a whole attribute value with its descriptor).
pub(super) const JSON: &str = "dynamodb.json";

/// The metadata key, on timestamps that were epoch numbers, for their unit; without it they are microseconds.
pub(super) const EPOCH: &str = "dynamodb.epoch";

/// The most leaf columns that one attribute may become; with more it is JSON text.
const LEAVES: usize = 512;

/// How the values at one position are written. Where a value has a type, a NULL is written as null.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// Every value is NULL: a text column without texts.
    Nothing,
    /// S.
    Text {
        /// Bytes of a text, on average.
        average: usize,
    },
    /// S: a date and time that is a timestamp.
    IsoText,
    /// S, N or BOOL as a text.
    AnyText {
        /// Bytes of a text, on average.
        average: usize,
    },
    /// Whether there is a NULL: true, or null.
    IsNull,
    /// N.
    Number(NumberForm),
    /// B.
    Binary,
    /// BOOL.
    Bool,
    /// SS, NS or BS: a list of this form.
    Set(Type, Box<Form>, FieldRef),
    /// L whose elements have one form.
    List(Box<Form>, FieldRef),
    /// M with few keys.
    Struct(StructForm),
    /// M whose keys are data and whose values have one form; the field is that of the entries.
    Map(Box<Form>, FieldRef),
    /// `DynamoDB` JSON as text.
    Json(JsonForm),
}

/// The narrowest exact form of all numbers at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberForm {
    /// 64 bits.
    Integer,
    /// 64 bits, which are microseconds since 1970.
    Moment,
    /// A timestamp; the numbers count these units since 1970.
    Epoch(Unit),
    /// A double, which the pipeline asks for.
    Double,
    /// A decimal with these many digits, and of them after the point.
    Decimal(u8, i8),
    /// Text, since no type of Parquet holds all of them exactly.
    Text,
}

/// What a JSON text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonForm {
    /// The inside of a value whose type is known: `[{"N":"1"}]` for an L, `{"a":{"N":"1"}}` for an M.
    Inside(Type),
    /// A value with its descriptor: `{"N":"1"}`.
    Tagged,
}

impl JsonForm {
    /// Whether the column takes values of this type; NULL is null where the types are known.
    pub(super) fn holds(self, kind: Type) -> bool {
        match self {
            JsonForm::Inside(inside) => kind == inside,
            JsonForm::Tagged => kind != Type::Null,
        }
    }
}

/// The fields of a struct.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StructForm {
    pub(super) fields: Fields,
    pub(super) forms: Vec<Form>,
    pub(super) index: FxHashMap<Box<str>, usize>,
}

impl Form {
    /// The form of the values of type `kind` at a top-level position, other types aside.
    pub(super) fn of_column(kind: Type, shape: &ValueShape) -> Self {
        let form = Self::of_kind(kind, shape);
        if form.leaves() > LEAVES { Form::Json(JsonForm::Inside(kind)) } else { form }
    }

    /// The form of the values that fit a declared type.
    pub(super) fn declared(column: ColumnType, shape: &ValueShape) -> Self {
        match column {
            ColumnType::Timestamp => Form::IsoText,
            ColumnType::Epoch(unit) => Form::Number(NumberForm::Epoch(unit)),
            ColumnType::Double => Form::Number(NumberForm::Double),
            ColumnType::Decimal { digits, scale } => {
                Form::Number(NumberForm::Decimal(digits, i8::try_from(scale).expect("a decimal has at most 38 digits after the point")))
            }
            ColumnType::Text => Form::Text { average: average(shape.texts(), shape.count(Type::S)) },
            ColumnType::Json => Form::Json(JsonForm::Tagged),
        }
    }

    /// The form of values of several types, S, N and BOOL, as texts.
    pub(super) fn any_text(shape: &ValueShape) -> Self {
        Form::AnyText { average: average(shape.texts(), shape.count(Type::S)) }
    }

    /// The form of all values at a position inside a map or a list.
    pub(super) fn of(shape: &ValueShape) -> Self {
        let mut kinds = shape.kinds();
        match (kinds.next(), kinds.next()) {
            (None, _) => Form::Nothing,
            (Some(kind), None) => Self::of_kind(kind, shape),
            (Some(_), Some(_)) => Form::Json(JsonForm::Tagged),
        }
    }

    fn of_kind(kind: Type, shape: &ValueShape) -> Self {
        match kind {
            Type::S => Form::Text { average: average(shape.texts(), shape.count(Type::S)) },
            Type::N => Form::Number(NumberForm::of(shape.numbers())),
            Type::B => Form::Binary,
            Type::Bool => Form::Bool,
            Type::Null => Form::Nothing,
            Type::Ss | Type::Ns | Type::Bs => Self::set(kind, shape.members()),
            Type::L => Self::list(shape.elements()),
            Type::M => shape.map().map_or(Form::Json(JsonForm::Inside(Type::M)), Self::map),
        }
    }

    fn set(kind: Type, members: Members) -> Self {
        let (element, name) = match kind {
            Type::Ns => (Form::Number(NumberForm::of(members.numbers)), Type::N),
            Type::Bs => (Form::Binary, Type::B),
            _ => (Form::Text { average: 0 }, Type::S),
        };
        let field = Arc::new(Field::new("element", element.data_type(), true).with_metadata([(TYPE, name.descriptor())]));
        Form::Set(kind, Box::new(element), field)
    }

    /// A list whose elements have no typed form is text as a whole: one JSON value is easier to use than a list of JSON texts.
    fn list(elements: Option<&ValueShape>) -> Self {
        match elements.map(Self::of) {
            None | Some(Form::Nothing | Form::Json(_)) => Form::Json(JsonForm::Inside(Type::L)),
            Some(element) => Self::list_of(element),
        }
    }

    pub(super) fn list_of(element: Form) -> Self {
        let field = Arc::new(element.field("element"));
        Form::List(Box::new(element), field)
    }

    /// A set of such members; `None` where there is none such.
    pub(super) fn set_of(element: Form) -> Option<Self> {
        let kind = match &element {
            Form::Text { .. } => Type::Ss,
            Form::Number(NumberForm::Integer | NumberForm::Decimal(..) | NumberForm::Text) => Type::Ns,
            Form::Binary => Type::Bs,
            _ => return None,
        };
        let field = Arc::new(element.field("element"));
        Some(Form::Set(kind, Box::new(element), field))
    }

    /// A struct with these fields; `None` where there is none, or two have one name.
    pub(super) fn struct_of(fields: Vec<(&str, Form)>) -> Option<Self> {
        let form = StructForm::new(fields);
        (!form.forms.is_empty() && form.index.len() == form.forms.len()).then_some(Form::Struct(form))
    }

    pub(super) fn map_of(value: Form) -> Self {
        let entry = Fields::from(vec![Field::new("key", DataType::Utf8, false), value.field("value")]);
        Form::Map(Box::new(value), Arc::new(Field::new("key_value", DataType::Struct(entry), false)))
    }

    /// Whether a column of this form takes values of this type.
    pub(super) fn takes(&self, kind: Type) -> bool {
        match self {
            // Null is what a column has where nothing is written.
            Form::Nothing => false,
            Form::AnyText { .. } => matches!(kind, Type::S | Type::N | Type::Bool),
            Form::Json(form) => form.holds(kind),
            other => other.kind() == Some(kind),
        }
    }

    /// Whether the values of a column have an order that its readers know.
    pub(super) fn is_ordered(&self) -> bool {
        match self {
            Form::Text { .. } | Form::IsoText | Form::AnyText { .. } | Form::Number(_) | Form::Binary | Form::Bool => true,
            Form::Nothing | Form::IsNull | Form::Json(_) | Form::Set(..) | Form::List(..) | Form::Struct(_) | Form::Map(..) => false,
        }
    }

    /// The form of a field that the sink made, from its type and its metadata; `None` where it is none of them.
    pub(super) fn of_field(field: &Field) -> Option<Self> {
        let kind = field.metadata().get(TYPE)?.as_str();
        if kind == "json" {
            return Some(Form::Json(match field.metadata().get(JSON)?.as_str() {
                "any" => JsonForm::Tagged,
                inside => JsonForm::Inside(Type::from_descriptor(inside)?),
            }));
        }
        if kind == "text" {
            return (*field.data_type() == DataType::Utf8).then_some(Form::AnyText { average: 0 });
        }
        Some(match (Type::from_descriptor(kind)?, field.data_type()) {
            (Type::Null, DataType::Utf8) => Form::Nothing,
            (Type::Null, DataType::Boolean) => Form::IsNull,
            (Type::S, DataType::Utf8) => Form::Text { average: 0 },
            (Type::N, DataType::Int64) => Form::Number(NumberForm::Integer),
            (Type::S, DataType::Timestamp(..)) => Form::IsoText,
            (Type::N, DataType::Timestamp(..)) => Form::Number(match field.metadata().get(EPOCH) {
                None => NumberForm::Moment,
                Some(unit) => NumberForm::Epoch(Unit::from_name(unit)?),
            }),
            (Type::N, DataType::Float64) => Form::Number(NumberForm::Double),
            (Type::N, DataType::Decimal128(precision, scale)) => Form::Number(NumberForm::Decimal(*precision, *scale)),
            (Type::N, DataType::Utf8) => Form::Number(NumberForm::Text),
            (Type::B, DataType::Binary) => Form::Binary,
            (Type::Bool, DataType::Boolean) => Form::Bool,
            (kind @ (Type::Ss | Type::Ns | Type::Bs), DataType::List(element)) => {
                Form::Set(kind, Box::new(Self::of_field(element)?), element.clone())
            }
            (Type::L, DataType::List(element)) => Form::List(Box::new(Self::of_field(element)?), element.clone()),
            (Type::M, DataType::Struct(fields)) => {
                let forms = fields.iter().map(|field| Self::of_field(field)).collect::<Option<Vec<_>>>()?;
                let index: FxHashMap<_, _> = fields.iter().enumerate().map(|(at, field)| (attribute_of(field).into(), at)).collect();
                let form = StructForm { fields: fields.clone(), forms, index };
                (!form.forms.is_empty() && form.index.len() == form.forms.len()).then_some(Form::Struct(form))?
            }
            (Type::M, DataType::Map(entries, _)) => {
                let DataType::Struct(entry) = entries.data_type() else { return None };
                Form::Map(Box::new(Self::of_field(entry.get(1)?)?), entries.clone())
            }
            _ => return None,
        })
    }

    /// The type of the values that it takes; `None` where it takes several.
    pub(super) fn kind(&self) -> Option<Type> {
        Some(match self {
            Form::Nothing | Form::IsNull => Type::Null,
            Form::Text { .. } | Form::IsoText => Type::S,
            Form::Number(_) => Type::N,
            Form::Binary => Type::B,
            Form::Bool => Type::Bool,
            Form::Set(kind, ..) | Form::Json(JsonForm::Inside(kind)) => *kind,
            Form::List(..) => Type::L,
            Form::Struct(_) | Form::Map(..) => Type::M,
            Form::Json(JsonForm::Tagged) | Form::AnyText { .. } => return None,
        })
    }

    fn map(shape: &MapShape) -> Self {
        match (shape.fields(), shape.values()) {
            // No engine knows a field without a name.
            (Some(fields), _) if !fields.is_empty() && !fields.contains_key("") => Form::Struct(StructForm::of(&fields)),
            (_, Some(values)) => match Self::of(values) {
                Form::Nothing | Form::Json(_) => Form::Json(JsonForm::Inside(Type::M)),
                value => Self::map_of(value),
            },
            _ => Form::Json(JsonForm::Inside(Type::M)),
        }
    }

    /// The leaf columns that this form becomes in a file.
    pub(super) fn leaves(&self) -> usize {
        match self {
            Form::Nothing
            | Form::Text { .. }
            | Form::IsoText
            | Form::AnyText { .. }
            | Form::IsNull
            | Form::Number(_)
            | Form::Binary
            | Form::Bool
            | Form::Json(_) => 1,
            Form::Set(_, element, _) | Form::List(element, _) => element.leaves(),
            Form::Struct(StructForm { forms, .. }) => forms.iter().map(Form::leaves).sum(),
            Form::Map(value, _) => 1 + value.leaves(),
        }
    }

    pub(super) fn data_type(&self) -> DataType {
        match self {
            Form::Nothing | Form::Text { .. } | Form::AnyText { .. } | Form::Json(_) | Form::Number(NumberForm::Text) => DataType::Utf8,
            Form::Number(NumberForm::Integer) => DataType::Int64,
            Form::IsoText | Form::Number(NumberForm::Moment | NumberForm::Epoch(_)) => {
                DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            Form::Number(NumberForm::Double) => DataType::Float64,
            Form::Number(NumberForm::Decimal(precision, scale)) => DataType::Decimal128(*precision, *scale),
            Form::Binary => DataType::Binary,
            Form::Bool | Form::IsNull => DataType::Boolean,
            Form::Set(_, _, field) | Form::List(_, field) => DataType::List(field.clone()),
            Form::Struct(StructForm { fields, .. }) => DataType::Struct(fields.clone()),
            Form::Map(_, entries) => DataType::Map(entries.clone(), false),
        }
    }

    /// A field of this form; its metadata says what the values are in `DynamoDB`.
    pub(super) fn field(&self, name: &str) -> Field {
        let kind = self.kind().map_or("any", Type::descriptor);
        let field = Field::new(name, self.data_type(), true);
        match self {
            Form::Json(_) => field.with_metadata([(TYPE, "json"), (JSON, kind)]),
            Form::AnyText { .. } => field.with_metadata([(TYPE, "text")]),
            Form::Number(NumberForm::Epoch(unit)) => field.with_metadata([(TYPE, kind), (EPOCH, unit.name())]),
            _ => field.with_metadata([(TYPE, kind)]),
        }
    }
}

/// The map's key that a field of a struct is of.
pub(super) fn attribute_of(field: &Field) -> &str {
    field.metadata().get(ATTRIBUTE).unwrap_or(field.name())
}

fn average(sizes: Sizes, values: u64) -> usize {
    usize::try_from(sizes.bytes / values.max(1)).unwrap_or(usize::MAX)
}

impl NumberForm {
    fn of(numbers: Numbers) -> Self {
        if numbers.malformed > 0 {
            return NumberForm::Text;
        }
        if numbers.not_i64 == 0 {
            return NumberForm::Integer;
        }
        match (u8::try_from(numbers.whole.saturating_add(numbers.scale)), i8::try_from(numbers.scale)) {
            (Ok(precision @ 1..=38), Ok(scale)) => NumberForm::Decimal(precision, scale),
            _ => NumberForm::Text,
        }
    }
}

impl StructForm {
    /// The maps' keys that the fields are of.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| attribute_of(field))
    }

    fn of(shapes: &BTreeMap<&str, &ValueShape>) -> Self {
        Self::new(shapes.iter().map(|(name, shape)| (*name, Form::of(shape))).collect())
    }

    fn new(named: Vec<(&str, Form)>) -> Self {
        let fields = named.iter().map(|(name, form)| form.field(name)).collect();
        let index = named.iter().enumerate().map(|(at, (name, _))| ((*name).into(), at)).collect();
        Self { fields, forms: named.into_iter().map(|(_, form)| form).collect(), index }
    }
}
