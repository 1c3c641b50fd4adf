//! Columns for items that come to a table which has columns already: what the table's column takes exactly goes there, also where the
//! items alone would have had a narrower column.

use std::collections::BTreeMap;

use super::form::Form;
use super::layout::Layout;
use super::lock::{Column, Holds, Inside, SchemaFile};
use crate::model::Type;
use crate::model::number::DIGITS;
use crate::shape::{MapShape, Numbers, Shape, ValueShape};

impl Default for SchemaFile {
    fn default() -> Self {
        Self::new(None, BTreeMap::new())
    }
}

impl SchemaFile {
    /// Adds columns that a later run wrote, or that it changed.
    pub(in crate::sink) fn extend(&mut self, later: SchemaFile) {
        self.dialect = later.dialect;
        for (dataset, columns) in later.datasets {
            let known = self.datasets.entry(dataset).or_default();
            for column in columns {
                match known.iter_mut().find(|known| known.name == column.name) {
                    Some(known) => *known = column,
                    None => known.push(column),
                }
            }
        }
    }

    /// The schema of one dataset; empty where it has none.
    pub(in crate::sink) fn only(&self, dataset: &str) -> Self {
        let columns = self.datasets.get(dataset);
        Self::new(self.dialect, columns.map(|columns| (dataset.to_owned(), columns.clone())).into_iter().collect())
    }
}

/// The columns of a layout that was made for items of this shape; in place of each the one that the table has for such values, where it
/// has one. Values of a type that the attribute never had get a column that is new, under a name that is free.
pub(super) fn aligned(layout: &Layout, shape: &Shape, table: &[Column]) -> Vec<Column> {
    let kind = |holds: &Holds| holds.form().and_then(|form| form.kind());
    let mut columns: Vec<Column> = Vec::new();
    for mut column in layout.columns() {
        let values = column.attribute.as_deref().and_then(|name| shape.attribute(name));
        let of_attribute = || table.iter().filter(|known| known.attribute == column.attribute);
        let taker = of_attribute().find_map(|known| Some((known, joined(&known.holds, &column.holds, values)?)));
        if let Some((known, holds)) = taker {
            column = Column { name: known.name.clone(), holds, ..column };
            // One column of JSON may take all types of an attribute.
            if columns.iter().all(|other| other.name != column.name) {
                columns.push(column);
            }
            continue;
        }
        let wanted = kind(&column.holds);
        let same_kind = of_attribute().find(|known| kind(&known.holds) == wanted);
        let is_new = same_kind.is_none();
        // In the items alone another attribute had a claim to the name of this one, or this one to that of another.
        if let Some(known) = same_kind
            && (is_made_of(&column.name, &known.name)
                || table.iter().any(|other| other.name == column.name && other.attribute != column.attribute))
            && columns.iter().all(|other| other.name != known.name)
        {
            column.name.clone_from(&known.name);
        }
        if is_new && table.iter().any(|known| known.name == column.name) {
            let what = match (wanted, &column.holds) {
                (Some(kind), _) => kind.descriptor().to_lowercase(),
                (None, Holds::AnyText) => "text".to_owned(),
                (None, _) => "json".to_owned(),
            };
            column.name = format!("{}__{what}", column.name);
            while table.iter().chain(&columns).any(|known| known.name == column.name) {
                column.name.push('_');
            }
        }
        columns.push(column);
    }
    columns
}

/// Whether two names differ only in case, and in what is added to one that is taken.
fn is_made_of(one: &str, other: &str) -> bool {
    one.trim_end_matches('_').eq_ignore_ascii_case(other.trim_end_matches('_'))
}

/// What a position of a table holds once it has taken values of a shape that would make `wanted` of themselves; `None` where it cannot take
/// them as they are.
fn joined(known: &Holds, wanted: &Holds, values: Option<&ValueShape>) -> Option<Holds> {
    let numbers = || values.map(ValueShape::numbers);
    match (known, wanted) {
        (Holds::IsNull, Holds::Null) => None,
        (known, Holds::Null) => Some(known.clone()),
        (known, wanted) if known == wanted => Some(known.clone()),
        // Where all was NULL, there is a column for text.
        (Holds::Null, Holds::Text | Holds::Digits | Holds::Json(_)) => Some(wanted.clone()),
        (Holds::Decimal(digits, scale), Holds::Int64 | Holds::Decimal(..)) => roomy(numbers()?, *digits, *scale),
        // As text that does not say what it was, which is asked for.
        (Holds::Text | Holds::Digits, Holds::AnyText) => Some(Holds::AnyText),
        (Holds::Digits, Holds::Int64 | Holds::Decimal(..))
        | (Holds::AnyText, Holds::Text | Holds::Digits | Holds::Int64 | Holds::Decimal(..) | Holds::Bool) => Some(known.clone()),
        (Holds::Json(inside), wanted) => takes(*inside, wanted).then(|| known.clone()),
        (Holds::Set(known), Holds::Set(wanted)) => {
            let fit = |digits, scale| values.is_some_and(|values| fits(values.members().numbers, digits, scale));
            match (known.as_ref(), wanted.as_ref()) {
                (Holds::Decimal(digits, scale), Holds::Int64 | Holds::Decimal(..)) if !fit(*digits, *scale) => None,
                (Holds::Decimal(..) | Holds::Digits, Holds::Int64 | Holds::Decimal(..)) => Some(Holds::Set(known.clone())),
                _ => None,
            }
        }
        // Lists and maps whose parts have no type of their own make text of themselves; each part may well fit the type that the table has.
        (Holds::List(known), Holds::Json(Inside::L)) => {
            let elements = values.and_then(ValueShape::elements)?;
            Some(Holds::List(Box::new(joined(known, &wanted_by(elements), Some(elements))?)))
        }
        (Holds::Struct(_), Holds::Json(Inside::M)) => {
            let fields = values.and_then(ValueShape::map).and_then(MapShape::fields)?;
            fields.is_empty().then(|| known.clone())
        }
        (Holds::Map(value), Holds::Json(Inside::M)) => {
            let map = values.and_then(ValueShape::map)?;
            let mut value = value.as_ref().clone();
            for shape in map.fields().into_iter().flat_map(BTreeMap::into_values).chain(map.values()) {
                value = joined(&value, &wanted_by(shape), Some(shape))?;
            }
            Some(Holds::Map(Box::new(value)))
        }
        (Holds::List(known), Holds::List(wanted)) => {
            let elements = values.and_then(ValueShape::elements);
            Some(Holds::List(Box::new(joined(known, wanted, elements)?)))
        }
        (Holds::Struct(known), Holds::Struct(wanted)) => {
            let shapes = values.and_then(ValueShape::map).and_then(MapShape::fields);
            let mut fields = known.clone();
            for (name, wanted) in wanted {
                let shape = shapes.as_ref().and_then(|shapes| shapes.get(name.as_str()).copied());
                match fields.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => *known = joined(known, wanted, shape)?,
                    None => fields.push((name.clone(), wanted.clone())),
                }
            }
            Some(Holds::Struct(fields))
        }
        (Holds::Map(known), Holds::Map(wanted)) => {
            let shape = values.and_then(ValueShape::map).and_then(MapShape::values);
            Some(Holds::Map(Box::new(joined(known, wanted, shape)?)))
        }
        // Few keys make fields of themselves, also where the table has seen many.
        (Holds::Map(value), Holds::Struct(wanted)) => {
            let shapes = values.and_then(ValueShape::map).and_then(MapShape::fields)?;
            let mut value = value.as_ref().clone();
            for (name, wanted) in wanted {
                value = joined(&value, wanted, shapes.get(name.as_str()).copied())?;
            }
            Some(Holds::Map(Box::new(value)))
        }
        _ => None,
    }
}

/// How the values of a column differ from those of the table's column of this name and attribute, in words: where, what the items have, and what
/// the table takes. `None` where that is not what keeps them apart.
pub(super) fn differs(column: &Column, shape: &Shape, table: &[Column]) -> Option<String> {
    let attribute = column.attribute.as_ref()?;
    let known = table.iter().find(|known| known.name == column.name && known.attribute == column.attribute)?;
    if grows(&known.holds, &column.holds) || joined(&known.holds, &column.holds, shape.attribute(attribute)).is_some() {
        return None;
    }
    let mut at = attribute.clone();
    let (takes, wanted, values) = misfit(&known.holds, column.holds.clone(), shape.attribute(attribute), &mut at);
    let kinds: Vec<&str> = match (wanted.form().and_then(|form| form.kind()), values) {
        (Some(kind), _) => vec![kind.descriptor()],
        (None, values) => values.into_iter().flat_map(ValueShape::kinds).map(Type::descriptor).collect(),
    };
    let (takes, found) = (takes.in_words(), wanted.in_words());
    Some(format!("`{at}` takes {takes} in the table; the items have {} there, which would be {found}", kinds.join(" and ")))
}

/// The innermost part that does not fit, with the way to it added to `at`.
fn misfit<'h, 's>(
    known: &'h Holds,
    wanted: Holds,
    values: Option<&'s ValueShape>,
    at: &mut String,
) -> (&'h Holds, Holds, Option<&'s ValueShape>) {
    let fit = |known: &Holds, wanted: &Holds, values| grows(known, wanted) || joined(known, wanted, values).is_some();
    let map = values.and_then(ValueShape::map);
    let step = match (known, &wanted) {
        (Holds::List(known), Holds::List(_) | Holds::Json(Inside::L)) => {
            values.and_then(ValueShape::elements).map(|elements| ("[]".to_owned(), known.as_ref(), elements))
        }
        (Holds::Map(known), Holds::Map(_) | Holds::Json(Inside::M)) if map.and_then(MapShape::values).is_some() => {
            map.and_then(MapShape::values).map(|values| (".*".to_owned(), known.as_ref(), values))
        }
        (Holds::Struct(_) | Holds::Map(_), Holds::Struct(_) | Holds::Json(Inside::M)) => {
            let known_of = |name: &str| match known {
                Holds::Struct(known) => known.iter().find(|(known, _)| known == name).map(|(_, holds)| holds),
                Holds::Map(value) => Some(value.as_ref()),
                _ => None,
            };
            map.and_then(MapShape::fields).into_iter().flatten().find_map(|(name, shape)| {
                let known = known_of(name).filter(|known| !fit(known, &wanted_by(shape), Some(shape)))?;
                Some((format!(".{name}"), known, shape))
            })
        }
        _ => None,
    };
    let Some((way, known, values)) = step else { return (known, wanted, values) };
    at.push_str(&way);
    misfit(known, wanted_by(values), Some(values), at)
}

/// Whether a table lets the one decimal become the other.
fn grows(known: &Holds, wanted: &Holds) -> bool {
    matches!((known, wanted), (Holds::Decimal(before, known), Holds::Decimal(digits, scale)) if known == scale && before <= digits)
}

/// What values inside of a map or a list make of themselves.
fn wanted_by(values: &ValueShape) -> Holds {
    Holds::of(&Form::of(values))
}

/// The decimal with so many digits after the point that takes these numbers, with more digits before it than the one there is where they need that;
/// `None` where they have more after the point.
fn roomy(numbers: Numbers, digits: u8, scale: u8) -> Option<Holds> {
    let needed = u8::try_from(numbers.whole).ok()?.checked_add(scale)?;
    let digits = digits.max(needed);
    (usize::from(digits) <= DIGITS && fits(numbers, digits, scale)).then_some(Holds::Decimal(digits, scale))
}

/// Whether such numbers fit a decimal.
fn fits(numbers: Numbers, digits: u8, scale: u8) -> bool {
    numbers.malformed == 0 && numbers.scale <= u32::from(scale) && numbers.whole <= u32::from(digits.saturating_sub(scale))
}

/// Whether JSON text of this kind takes values that would make `wanted` of themselves.
fn takes(inside: Inside, wanted: &Holds) -> bool {
    let kind = match wanted {
        Holds::Null => return true,
        Holds::Json(Inside::Any) => return inside == Inside::Any,
        Holds::Json(Inside::M) | Holds::Struct(_) | Holds::Map(_) => Type::M,
        Holds::Json(Inside::L) | Holds::List(_) => Type::L,
        Holds::Json(Inside::Ss) => Type::Ss,
        Holds::Json(Inside::Ns) => Type::Ns,
        Holds::Json(Inside::Bs) => Type::Bs,
        // A type that is declared, or one of the others that only a text of any value takes.
        _ => return inside == Inside::Any && !matches!(wanted, Holds::Timestamp(_) | Holds::Double | Holds::IsNull | Holds::AnyText),
    };
    inside.form().holds(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arena, Dataset, Declared, Item, Mixed, Value};

    fn shape(values: &[Value<'_>]) -> Shape {
        let mut shape = Shape::new::<&str>(&[]);
        let arena = Arena::new();
        for value in values {
            let mut item = Item::new_in(&arena);
            item.push("a", *value);
            shape.observe(&item);
        }
        shape
    }

    fn join(known: &Holds, wanted: &Holds, values: &[Value<'_>]) -> Option<Holds> {
        joined(known, wanted, shape(values).attribute("a"))
    }

    #[test]
    fn integers_go_to_a_decimal_whose_digits_suffice() {
        let known = Holds::Decimal(5, 2);
        assert_eq!(join(&known, &Holds::Int64, &[Value::N("123")]), Some(known.clone()));
        assert_eq!(join(&known, &Holds::Int64, &[Value::N("1234")]), Some(Holds::Decimal(6, 2)), "more digits before the point");
        assert_eq!(join(&Holds::Decimal(38, 37), &Holds::Int64, &[Value::N("12")]), None, "a decimal has 38 digits at the most");
        assert_eq!(join(&Holds::Decimal(3, 2), &Holds::Decimal(3, 1), &[Value::N("12.50")]), Some(Holds::Decimal(4, 2)));
        assert_eq!(join(&known, &Holds::Decimal(3, 1), &[Value::N("12.5")]), Some(known.clone()));
        assert_eq!(join(&known, &Holds::Decimal(4, 3), &[Value::N("1.255")]), None);
        assert_eq!(join(&Holds::Int64, &Holds::Decimal(3, 1), &[Value::N("12.5")]), None);
        assert_eq!(join(&Holds::Digits, &Holds::Int64, &[Value::N("1")]), Some(Holds::Digits));
    }

    #[test]
    fn text_and_json_of_any_value_are_never_one_column() {
        assert_eq!(join(&Holds::Text, &Holds::Json(Inside::Any), &[Value::S("a"), Value::N("1")]), None);
        assert_eq!(join(&Holds::Text, &Holds::AnyText, &[Value::S("a"), Value::N("1")]), Some(Holds::AnyText));
        let table = |holds| [Column { name: "a".to_owned(), attribute: Some("a".to_owned()), holds }];
        let values = [Value::S("a"), Value::N("1")];
        for (mixed, known, name) in
            [(Mixed::Json, Holds::Text, "a__json"), (Mixed::Text, Holds::Int64, "a__text"), (Mixed::Text, Holds::Text, "a")]
        {
            let declared = Declared { mixed, ..Declared::default() };
            let dataset = Dataset { name: "E".to_owned(), declared, ..Dataset::default() };
            let shape = shape(&values);
            let columns = aligned(&Layout::of(&dataset, &shape, None), &shape, &table(known));
            assert_eq!(columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), [name]);
        }
        // Inside of a struct there is no other name.
        let inner = |holds| Holds::List(Box::new(holds));
        let values = [Value::L(&[Value::M(&[("k", Value::S("x"))])]), Value::L(&[Value::M(&[("k", Value::N("1"))])])];
        let wanted = wanted_by(shape(&values).attribute("a").unwrap());
        let known = inner(Holds::Struct(vec![("k".to_owned(), Holds::Text)]));
        let column = Column { name: "a".to_owned(), attribute: Some("a".to_owned()), holds: wanted };
        let told = differs(&column, &shape(&values), &table(known)).unwrap();
        assert!(told.contains("`a[].k` takes text in the table"), "{told}");
    }

    #[test]
    fn what_is_only_null_goes_to_any_column_of_the_attribute() {
        assert_eq!(join(&Holds::Int64, &Holds::Null, &[Value::Null]), Some(Holds::Int64));
        assert_eq!(join(&Holds::Null, &Holds::Null, &[Value::Null]), Some(Holds::Null));
        assert_eq!(join(&Holds::Null, &Holds::Text, &[]), Some(Holds::Text));
        assert_eq!(join(&Holds::Null, &Holds::Int64, &[]), None);
    }

    #[test]
    fn structs_get_the_fields_of_both_and_maps_take_structs() {
        let field = |name: &str, holds: Holds| (name.to_owned(), holds);
        let known = Holds::Struct(vec![field("x", Holds::Text), field("y", Holds::Int64)]);
        let wanted = Holds::Struct(vec![field("w", Holds::Bool), field("y", Holds::Int64)]);
        let joined = Holds::Struct(vec![field("x", Holds::Text), field("y", Holds::Int64), field("w", Holds::Bool)]);
        assert_eq!(join(&known, &wanted, &[]), Some(joined));
        assert_eq!(join(&known, &Holds::Struct(vec![field("x", Holds::Int64)]), &[]), None);
        let fields = [("k", Value::N("1"))];
        let map = Holds::Map(Box::new(Holds::Int64));
        assert_eq!(join(&map, &Holds::Struct(vec![field("k", Holds::Int64)]), &[Value::M(&fields)]), Some(map));
    }

    #[test]
    fn empty_lists_and_maps_go_to_positions_that_are_typed_already() {
        let (list, text) = (|holds| Holds::List(Box::new(holds)), || Holds::Text);
        let (lists, maps) = (Holds::Json(Inside::L), Holds::Json(Inside::M));
        let texts = list(text());
        assert_eq!(join(&texts, &lists, &[Value::L(&[])]), Some(texts.clone()));
        assert_eq!(join(&texts, &lists, &[Value::L(&[Value::Null]), Value::L(&[])]), Some(texts.clone()));
        assert_eq!(join(&texts, &lists, &[Value::L(&[Value::S("a"), Value::N("1")])]), None);
        let deep = list(texts.clone());
        assert_eq!(join(&deep, &lists, &[Value::L(&[Value::L(&[]), Value::Null])]), Some(deep.clone()));
        assert_eq!(join(&texts, &lists, &[Value::L(&[Value::L(&[])])]), None);
        let structs = Holds::Struct(vec![("x".to_owned(), Holds::Int64)]);
        assert_eq!(join(&structs, &maps, &[Value::M(&[])]), Some(structs.clone()));
        assert_eq!(join(&structs, &maps, &[Value::M(&[("", Value::N("1"))])]), None);
        let map = Holds::Map(Box::new(texts));
        assert_eq!(join(&map, &maps, &[Value::M(&[])]), Some(map.clone()));
        assert_eq!(join(&map, &maps, &[Value::M(&[("", Value::L(&[]))])]), Some(map.clone()));
        assert_eq!(join(&map, &maps, &[Value::M(&[("", Value::L(&[Value::N("1")]))])]), None);
    }

    #[test]
    fn json_of_any_value_takes_every_type_and_that_of_maps_only_maps() {
        let any = Holds::Json(Inside::Any);
        assert_eq!(join(&any, &Holds::Text, &[]), Some(any.clone()));
        let maps = Holds::Json(Inside::M);
        assert_eq!(join(&maps, &Holds::Struct(vec![("k".to_owned(), Holds::Text)]), &[]), Some(maps.clone()));
        assert_eq!(join(&maps, &any, &[]), None);
        assert_eq!(join(&maps, &Holds::Json(Inside::L), &[]), None);
    }
}
