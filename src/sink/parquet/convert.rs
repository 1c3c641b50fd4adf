//! From one layout to a wider one: columns that were made before all items were known are brought to the schema that holds all of them.
//!
//! A column whose form stays is not touched, a number gets more digits in place; everything else becomes values again and is encoded anew.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, ListArray, MapArray, StructArray, new_null_array};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type};

use super::encode::{Batch, Columns, WIDE};
use super::form::{Form, NumberForm, attribute_of};
use super::layout::{Layout, Slots};
use super::sparse::Packed;
use crate::error::{Error, Kind, Result};
use crate::model::{Arena, Attribute, ByAttribute, Item, Type, Value};
use crate::shape::Shape;

/// Rows that become items at one time.
const ROWS: usize = 1024;

/// What becomes of the columns of one layout in another.
#[derive(Debug)]
pub(super) struct Way {
    /// By column of the first layout: the column of the second that holds the same values, in the same form or one that [`widen`] makes.
    pub(super) straight: Vec<Option<usize>>,
    /// The columns of the first layout whose values are encoded anew.
    pub(super) anew: Vec<usize>,
}

impl Way {
    pub(super) fn new(from: &Layout, to: &Layout) -> Self {
        let mut straight = vec![None; from.forms.len()];
        let mut anew = Vec::new();
        for (place, form) in from.forms.iter().enumerate() {
            match from.attribute(place).map(|attribute| straight_to(from, to, place, attribute)) {
                // A column of nulls is as good as none.
                _ if *form == Form::Nothing => {}
                Some(Some(target)) => straight[place] = Some(target),
                _ => anew.push(place),
            }
        }
        // What is encoded anew looks for its column itself, so an attribute goes one way with all of its columns.
        let mixed = |place: &usize| anew.iter().any(|other| from.attribute(*other) == from.attribute(*place));
        let others: Vec<_> = (0..from.forms.len()).filter(|place| straight[*place].is_some() && mixed(place)).collect();
        for place in others {
            straight[place] = None;
            anew.push(place);
        }
        anew.sort_unstable();
        Self { straight, anew }
    }

    /// Whether everything that is known is still known exactly; `shape` is that of all items. A column, or a field of a struct, that is NULL is one
    /// that is absent; texts and maps tell the two apart.
    pub(super) fn is_exact(&self, from: &Layout, to: &Layout, shape: &Shape) -> bool {
        (0..from.forms.len()).all(|place| {
            let Some(attribute) = from.attribute(place) else { return true };
            let values = shape.attribute(attribute);
            let Some(slots) = to.slots(attribute) else { return values.is_some_and(|values| values.count(Type::Null) == 0) };
            if !self.anew.contains(&place) {
                return true;
            }
            let form = &from.forms[place];
            let target = form.kind().and_then(|kind| slots.places(kind).next());
            !opens_struct(form, target.map(|target| &to.forms[target])) || values.is_some_and(|values| !values.has_null_fields())
        })
    }

    /// Whether rows that are sorted as the first layout says are so by the second one too. Numbers that get more digits keep their order, those
    /// that become text do not.
    pub(super) fn keeps_order(&self, from: &Layout, to: &Layout) -> bool {
        let mut sorted = from.sort.iter();
        to.sort.iter().all(|target| {
            let Some(attribute) = to.attribute(*target) else { return false };
            let may_have = |slots: &Slots| Type::ALL.into_iter().any(|kind| kind != Type::Null && slots.places(kind).next().is_some());
            // Equal in all rows.
            if !from.slots(attribute).map_or(from.rest.is_some(), may_have) {
                return true;
            }
            sorted.next().is_some_and(|place| self.straight[*place] == Some(*target))
        })
    }
}

/// Whether a struct of one form is something else in the other.
fn opens_struct(from: &Form, to: Option<&Form>) -> bool {
    match (from, to) {
        (Form::Struct(from), Some(Form::Struct(to))) => from
            .fields
            .iter()
            .zip(&from.forms)
            .any(|(field, form)| opens_struct(form, to.index.get(attribute_of(field)).map(|at| &to.forms[*at]))),
        (Form::Struct(_), _) => true,
        (Form::List(from, _), Some(Form::List(to, _))) | (Form::Map(from, _), Some(Form::Map(to, _))) => opens_struct(from, Some(to)),
        (Form::List(from, _) | Form::Map(from, _), _) => opens_struct(from, None),
        _ => false,
    }
}

/// The column that takes the values of a column as they are, or as [`widen`] makes them.
fn straight_to(from: &Layout, to: &Layout, place: usize, attribute: &str) -> Option<usize> {
    let form = &from.forms[place];
    let kind = form.kind().unwrap_or(Type::S);
    // Of two columns for one type the first takes what fits a declared type, in both layouts.
    let rank = from.slots(attribute)?.places(kind).position(|known| known == place)?;
    let target = to.slots(attribute)?.places(kind).nth(rank)?;
    can_widen(form, &to.forms[target]).then_some(target)
}

/// Whether [`widen`] can bring values of one form to another.
pub(super) fn can_widen(from: &Form, to: &Form) -> bool {
    match (from, to) {
        (Form::Nothing, _)
        | (Form::Text { .. }, Form::Text { .. } | Form::AnyText { .. })
        | (Form::AnyText { .. }, Form::AnyText { .. }) => true,
        (Form::Number(from), Form::Number(to)) => from == to || scaled_by(*from, *to).is_some(),
        (Form::Set(one, from, _), Form::Set(other, to, _)) => one == other && can_widen(from, to),
        (Form::List(from, _), Form::List(to, _)) | (Form::Map(from, _), Form::Map(to, _)) => can_widen(from, to),
        (Form::Struct(from), Form::Struct(to)) => from.fields.iter().zip(&from.forms).all(|(field, form)| {
            *form == Form::Nothing || to.index.get(attribute_of(field)).is_some_and(|at| can_widen(form, &to.forms[*at]))
        }),
        (from, to) => from == to,
    }
}

/// How many digits after the point are added, where every number of the one form is one of the other.
fn scaled_by(from: NumberForm, to: NumberForm) -> Option<u8> {
    let NumberForm::Decimal(digits, scale) = to else { return None };
    let (whole, point) = match from {
        NumberForm::Integer => (None, 0),
        NumberForm::Decimal(digits, scale) => (Some(i16::from(digits) - i16::from(scale)), scale),
        _ => return None,
    };
    let room = i16::from(digits) - i16::from(scale);
    // The digits of integers are not known, but the wider form was made for them too.
    (whole.is_none_or(|whole| whole <= room)).then(|| u8::try_from(scale - point).ok()).flatten()
}

/// Brings values to a form that [can hold them](can_widen).
fn widen(array: &ArrayRef, from: &Form, to: &Form) -> Result<ArrayRef> {
    let wrong = || Error::new(Kind::Bug, "a column cannot be widened").with("from", array.data_type()).with("to", to.data_type());
    let failed = |cause| wrong().caused_by(cause);
    if *array.data_type() == to.data_type() {
        return Ok(array.clone());
    }
    Ok(match (from, to) {
        (Form::Nothing, _) => new_null_array(&to.data_type(), array.len()),
        (Form::Number(one), Form::Number(other @ NumberForm::Decimal(digits, scale))) => {
            let factor = scaled_by(*one, *other).and_then(|by| 10_i128.checked_pow(u32::from(by))).ok_or_else(wrong)?;
            let numbers: Decimal128Array = match one {
                NumberForm::Integer => {
                    array.as_primitive::<Int64Type>().try_unary(|number| i128::from(number).checked_mul(factor).ok_or_else(wrong))?
                }
                _ if factor == 1 => array.as_primitive::<Decimal128Type>().clone(),
                _ => array.as_primitive::<Decimal128Type>().try_unary(|number| number.checked_mul(factor).ok_or_else(wrong))?,
            };
            Arc::new(numbers.with_precision_and_scale(*digits, *scale).map_err(failed)?)
        }
        (Form::Set(_, inner, _) | Form::List(inner, _), Form::Set(_, wider, field) | Form::List(wider, field)) => {
            let lists = array.as_list::<i32>();
            let elements = widen(lists.values(), inner, wider)?;
            Arc::new(ListArray::try_new(field.clone(), lists.offsets().clone(), elements, lists.nulls().cloned()).map_err(failed)?)
        }
        (Form::Map(inner, _), Form::Map(wider, field)) => {
            let maps = array.as_map();
            let DataType::Struct(entry) = field.data_type() else { return Err(wrong()) };
            let values = widen(maps.values(), inner, wider)?;
            let entries = StructArray::try_new(entry.clone(), vec![maps.keys().clone(), values], None).map_err(failed)?;
            Arc::new(MapArray::try_new(field.clone(), maps.offsets().clone(), entries, maps.nulls().cloned(), false).map_err(failed)?)
        }
        (Form::Struct(narrow), Form::Struct(wide)) => {
            let structs = array.as_struct();
            let column = |(field, form): (&FieldRef, &Form)| match narrow.index.get(attribute_of(field)) {
                Some(at) => widen(&structs.columns()[*at], &narrow.forms[*at], form),
                None => Ok(new_null_array(field.data_type(), array.len())),
            };
            let columns = wide.fields.iter().zip(&wide.forms).map(column).collect::<Result<_>>()?;
            let nulls = structs.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(wide.fields.clone(), columns, nulls, array.len()).map_err(failed)?)
        }
        _ => return Err(wrong()),
    })
}

/// Brings a batch to another layout.
///
/// # Errors
/// Kind `Bug` when that does not hold its values.
pub(super) fn convert(batch: Batch, way: &Way, to: &Arc<Layout>) -> Result<Batch> {
    let Batch { dataset, rows, columns, layout: from, partition, .. } = batch;
    let cannot = |cause| Error::new(Kind::Bug, "a column cannot be packed").with("dataset", &to.dataset).caused_by(cause);
    let mut made = Vec::with_capacity(columns.len());
    let mut values = Vec::new();
    for (place, packed) in columns {
        match way.straight[place] {
            Some(target) if from.forms[place].data_type() == to.forms[target].data_type() => made.push((target, packed)),
            Some(target) => {
                let array = widen(&packed.unpack(rows).map_err(cannot)?, &from.forms[place], &to.forms[target])?;
                let packed = if to.leaves >= WIDE { Packed::of(array).map_err(cannot)? } else { Some(Packed::Whole(array)) };
                made.extend(packed.map(|packed| (target, packed)));
            }
            None if way.anew.contains(&place) => values.push((place, packed.unpack(rows).map_err(cannot)?)),
            None => {}
        }
    }
    if !values.is_empty() {
        made.extend(encode_anew(&values, &from, to, rows)?);
    }
    made.sort_unstable_by_key(|(place, _)| *place);
    let bytes = made.iter().map(|(_, column)| column.bytes()).sum();
    Ok(Batch { dataset, rows, columns: made, bytes, layout: to.clone(), partition, shape: None })
}

/// Makes values of columns and encodes them for another layout.
fn encode_anew(values: &[(usize, ArrayRef)], from: &Layout, to: &Layout, rows: usize) -> Result<Vec<(usize, Packed)>> {
    let mut columns = Columns::new(to, rows);
    let mut arena = Arena::new();
    for start in (0..rows).step_by(ROWS) {
        arena.reset();
        let items = (start..rows.min(start + ROWS)).map(|row| item(values, from, row, &arena)).collect::<std::result::Result<Vec<_>, _>>();
        let items = items
            .map_err(|found| Error::new(Kind::Bug, "a column cannot be read back").with("dataset", &to.dataset).with("found", found))?;
        columns.add(start, &ByAttribute::of(&items), |row| &items[row]).map_err(|(_, error)| error)?;
    }
    columns.finish()
}

/// What the columns hold of the item of a row, by name.
fn item<'a>(values: &'a [(usize, ArrayRef)], from: &'a Layout, row: usize, arena: &'a Arena) -> std::result::Result<Item<'a>, String> {
    let mut attributes: Vec<Attribute<'a>> = Vec::new();
    for (place, array) in values {
        let Some(value) = from.forms[*place].value(array.as_ref(), row, arena)? else { continue };
        match (from.attribute(*place), value) {
            (Some(name), value) => attributes.push((name, value)),
            (None, Value::M(others)) => attributes.extend_from_slice(others),
            (None, other) => return Err(format!("attributes without a column of their own as {}", other.kind())),
        }
    }
    attributes.sort_unstable_by_key(|(name, _)| *name);
    let mut item = Item::new_in(arena);
    for (name, value) in attributes {
        item.push(name, value);
    }
    Ok(item)
}
