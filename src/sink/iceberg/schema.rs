//! The schema of a table: our columns with Iceberg's types and field ids, and what becomes of it when the columns change.
//!
//! An id never gets another meaning: what has the name and the type of a field that the table had keeps its id, all else gets a new one.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use crate::error::{Error, Kind, Result};
use crate::sink::parquet::{Column, ColumnType, FieldId};

/// What the words about a field begin with that say its type in the items.
const DOC: &str = "DynamoDB ";

/// What a schema holds at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) id: i32,
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) holds: Holds,
    /// For people.
    pub(super) doc: Option<String>,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// One that has no parts, by its name; a decimal is not here.
    Plain(String),
    Decimal {
        precision: u8,
        scale: u8,
    },
    List(Box<Field>),
    Struct(Vec<Field>),
    /// Key and value.
    Map(Box<(Field, Field)>),
}

/// What becomes of the fields that a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// They stay; others come.
    Extend,
    /// Exactly the columns are its fields.
    Replace,
}

/// The schema that a table gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    /// All fields of the table.
    pub(super) fields: Vec<Field>,
    /// The ids of the columns, in their order.
    pub(super) ids: Vec<FieldId>,
    /// The greatest id that was ever given.
    pub(super) last_id: i32,
}

/// Says of a column how its values differ from those of the table.
pub(super) type InWords<'w> = dyn Fn(&str) -> Option<String> + 'w;

/// Gives the columns ids in a table that has these fields, and had `last_id` as its greatest id.
///
/// # Errors
/// Kind `Usage` when the table stays and a column has another type in it, or a row of it may not lack a field; kind `Input` when two fields would
/// have one full name. `in_words` says of a column how its values differ from those of the table, where it knows that better than the types.
pub(super) fn number(columns: &[Column], table: &[Field], last_id: i32, change: Change, in_words: &InWords<'_>) -> Result<Numbered> {
    let wanted: Vec<_> = columns.iter().map(Field::of).collect();
    let mut numbering = Numbering { last_id, change, column: String::new(), differs: Vec::new() };
    let fields = numbering.fields(table, wanted, "");
    // Two types of ours may be one of Iceberg: texts, and JSON as text.
    for column in columns.iter().filter(|column| change == Change::Extend && table.iter().any(|field| field.name == column.name)) {
        let is_told = numbering.differs.iter().any(|(told, _)| *told == column.name);
        if let (false, Some(how)) = (is_told, in_words(&column.name)) {
            numbering.differs.push((column.name.clone(), how));
        }
    }
    if numbering.differs.is_empty() {
        if let Some(name) = full_name_of_two(&fields) {
            return Err(Error::new(
                Kind::Input,
                "two fields of a table would have one name, and readers of Iceberg would refuse the table",
            )
            .with("name", &name)
            .with("hint", format_args!("give the attribute `{name}` another name with `names` in the entity's [parquet]")));
        }
        let ids = ids_of(columns, &fields);
        return Ok(Numbered { fields, ids, last_id: numbering.last_id });
    }
    let mut differs: Vec<String> = numbering.differs.into_iter().map(|(column, by_type)| in_words(&column).unwrap_or(by_type)).collect();
    differs.dedup();
    let more = differs.len().saturating_sub(5);
    differs.truncate(5);
    if more > 0 {
        differs.push(format!("and {more} more"));
    }
    Err(Error::new(Kind::Usage, "the columns of the items do not fit the table they are to be appended to")
        .with("differs", differs.join("; "))
        .with("hint", "keep the columns of the first run with --schema-out and give them to each later one with --schema; or replace the table with --overwrite"))
}

/// A full name, with the way to the field in it, that two fields have: `a.b` beside the field `b` of `a`.
fn full_name_of_two(fields: &[Field]) -> Option<String> {
    fn add(field: &Field, way: &str, names: &mut BTreeSet<String>) -> Option<String> {
        let name = format!("{way}{}", field.name);
        let inside = format!("{name}.");
        if !names.insert(name.clone()) {
            return Some(name);
        }
        match &field.holds {
            Holds::Plain(_) | Holds::Decimal { .. } => None,
            Holds::List(element) => add(element, &inside, names),
            Holds::Struct(fields) => fields.iter().find_map(|field| add(field, &inside, names)),
            Holds::Map(parts) => add(&parts.0, &inside, names).or_else(|| add(&parts.1, &inside, names)),
        }
    }
    let mut names = BTreeSet::new();
    fields.iter().find_map(|field| add(field, "", &mut names))
}

struct Numbering {
    last_id: i32,
    change: Change,
    /// The column that is looked at; none for what the table alone is the cause of.
    column: String,
    /// By column.
    differs: Vec<(String, String)>,
}

impl Numbering {
    fn differ(&mut self, how: String) {
        self.differs.push((self.column.clone(), how));
    }

    fn new_id(&mut self) -> i32 {
        self.last_id += 1;
        self.last_id
    }

    /// The fields that a struct gets which has `table`.
    fn fields(&mut self, table: &[Field], wanted: Vec<Field>, path: &str) -> Vec<Field> {
        let mut fields = Vec::new();
        if self.change == Change::Extend {
            let required = table.iter().filter(|field| field.required);
            required.for_each(|field| self.differ(format!("`{path}{}` must be in each row of the table", field.name)));
            fields = table.to_vec();
        }
        // Ids of one level follow each other.
        let mut fresh = Vec::new();
        for mut field in wanted {
            if path.is_empty() {
                self.column.clone_from(&field.name);
            }
            let known = table.iter().find(|known| known.name == field.name);
            let same_kind = known.is_some_and(|known| Self::one_kind(&known.holds, &field.holds));
            match known {
                Some(known) if same_kind || self.change == Change::Extend => {
                    field.id = known.id;
                    field.holds = self.holds(&known.holds, field.holds, &format!("{path}{}", field.name));
                    match fields.iter_mut().find(|kept| kept.id == field.id) {
                        Some(kept) => {
                            kept.holds = field.holds;
                            // What was NULL alone has a type now. Words that others wrote stay.
                            if kept.doc.as_ref().is_none_or(|doc| doc.starts_with(DOC)) {
                                kept.doc = field.doc.or(kept.doc.take());
                            }
                        }
                        None => fields.push(field),
                    }
                }
                _ => {
                    field.id = self.new_id();
                    fresh.push(fields.len());
                    fields.push(field);
                }
            }
        }
        for at in fresh {
            self.number_inside(&mut fields[at].holds);
        }
        fields
    }

    /// Whether a field of the first type may become one of the second, and keep its id.
    fn one_kind(known: &Holds, wanted: &Holds) -> bool {
        match (known, wanted) {
            (Holds::Decimal { precision: before, scale }, Holds::Decimal { precision, scale: wanted }) => {
                scale == wanted && before <= precision
            }
            (Holds::List(_), Holds::List(_)) | (Holds::Struct(_), Holds::Struct(_)) | (Holds::Map(_), Holds::Map(_)) => true,
            (known, wanted) => known == wanted,
        }
    }

    /// The type of a field that has the first and gets values of the second.
    fn holds(&mut self, known: &Holds, wanted: Holds, path: &str) -> Holds {
        match (known, wanted) {
            (Holds::Decimal { precision: before, scale: known }, Holds::Decimal { precision, scale }) if *known == scale => {
                Holds::Decimal { precision: precision.max(*before), scale }
            }
            (Holds::List(known), Holds::List(wanted)) => Holds::List(Box::new(self.part(known, *wanted, path))),
            (Holds::Struct(known), Holds::Struct(wanted)) => Holds::Struct(self.fields(known, wanted, &format!("{path}."))),
            (Holds::Map(known), Holds::Map(wanted)) => {
                let value = self.part(&known.1, wanted.1, path);
                Holds::Map(Box::new((known.0.clone(), value)))
            }
            (known, wanted) => {
                if *known != wanted {
                    self.differ(format!("`{path}` is {} in the table and would be {}", known.in_words(), wanted.in_words()));
                }
                wanted
            }
        }
    }

    /// A list's element or a map's value.
    fn part(&mut self, known: &Field, mut wanted: Field, path: &str) -> Field {
        if self.change == Change::Replace && !Self::one_kind(&known.holds, &wanted.holds) {
            wanted.id = self.new_id();
            self.number_inside(&mut wanted.holds);
            return wanted;
        }
        if self.change == Change::Extend && known.required {
            self.differ(format!("a part of `{path}` must be in each row of the table"));
        }
        let holds = self.holds(&known.holds, wanted.holds, path);
        Field { holds, required: false, ..known.clone() }
    }

    fn number_inside(&mut self, holds: &mut Holds) {
        match holds {
            Holds::Plain(_) | Holds::Decimal { .. } => {}
            Holds::List(element) => {
                element.id = self.new_id();
                self.number_inside(&mut element.holds);
            }
            Holds::Struct(fields) => {
                for field in fields.iter_mut() {
                    field.id = self.new_id();
                }
                for field in fields {
                    self.number_inside(&mut field.holds);
                }
            }
            Holds::Map(parts) => {
                parts.0.id = self.new_id();
                parts.1.id = self.new_id();
                self.number_inside(&mut parts.1.holds);
            }
        }
    }
}

/// The ids of the columns among the fields, which have all of them.
fn ids_of(columns: &[Column], fields: &[Field]) -> Vec<FieldId> {
    let id = |column: &Column| fields.iter().find(|field| field.name == column.name).map(|field| id_of(&column.kind, field));
    columns.iter().filter_map(id).collect()
}

fn id_of(kind: &ColumnType, field: &Field) -> FieldId {
    let inside = match (kind, &field.holds) {
        (ColumnType::List(column), Holds::List(element)) => vec![id_of(&column.kind, element)],
        (ColumnType::Struct(columns), Holds::Struct(fields)) => ids_of(columns, fields),
        (ColumnType::Map(column), Holds::Map(parts)) => {
            vec![FieldId { id: parts.0.id, inside: Vec::new() }, id_of(&column.kind, &parts.1)]
        }
        _ => Vec::new(),
    };
    FieldId { id: field.id, inside }
}

impl Field {
    /// The field of a column, without ids.
    fn of(column: &Column) -> Self {
        let holds = match &column.kind {
            ColumnType::Text => Holds::plain("string"),
            ColumnType::Int64 => Holds::plain("long"),
            ColumnType::Double => Holds::plain("double"),
            ColumnType::Timestamp => Holds::plain("timestamptz"),
            ColumnType::Boolean => Holds::plain("boolean"),
            ColumnType::Binary => Holds::plain("binary"),
            ColumnType::Decimal { precision, scale } => Holds::Decimal { precision: *precision, scale: scale.unsigned_abs() },
            ColumnType::List(element) => Holds::List(Box::new(Self { name: "element".to_owned(), doc: None, ..Self::of(element) })),
            ColumnType::Struct(columns) => Holds::Struct(columns.iter().map(Self::of).collect()),
            ColumnType::Map(value) => {
                let key = Self { id: 0, name: "key".to_owned(), required: true, holds: Holds::plain("string"), doc: None };
                Holds::Map(Box::new((key, Self { name: "value".to_owned(), doc: None, ..Self::of(value) })))
            }
        };
        let doc = column.dynamodb.as_deref().map(|kind| match (kind, column.json.as_deref()) {
            ("json", Some("any")) => format!("{DOC}JSON of a value"),
            ("json", Some(inside)) => format!("{DOC}JSON of the inside of {inside}"),
            _ => format!("{DOC}{kind}"),
        });
        Self { id: 0, name: column.name.clone(), required: false, holds, doc }
    }

    fn json(&self) -> Json {
        let mut field = json!({ "id": self.id, "name": self.name, "required": self.required, "type": self.holds.json() });
        if let Some(doc) = &self.doc {
            field["doc"] = json!(doc);
        }
        field
    }

    fn parse(json: &Json) -> Option<Self> {
        Some(Self {
            id: id(json, "id")?,
            name: json.get("name")?.as_str()?.to_owned(),
            required: json.get("required")?.as_bool()?,
            holds: Holds::parse(json.get("type")?)?,
            doc: json.get("doc").and_then(Json::as_str).map(str::to_owned),
        })
    }
}

fn id(json: &Json, key: &str) -> Option<i32> {
    json.get(key)?.as_i64()?.try_into().ok()
}

impl Holds {
    fn plain(name: &str) -> Self {
        Holds::Plain(name.to_owned())
    }

    fn json(&self) -> Json {
        match self {
            Holds::Plain(name) => json!(name),
            Holds::Decimal { precision, scale } => json!(format!("decimal({precision}, {scale})")),
            Holds::List(element) => json!({
                "type": "list",
                "element-id": element.id,
                "element": element.holds.json(),
                "element-required": element.required,
            }),
            Holds::Struct(fields) => json!({ "type": "struct", "fields": fields.iter().map(Field::json).collect::<Vec<_>>() }),
            Holds::Map(parts) => json!({
                "type": "map",
                "key-id": parts.0.id,
                "key": parts.0.holds.json(),
                "value-id": parts.1.id,
                "value": parts.1.holds.json(),
                "value-required": parts.1.required,
            }),
        }
    }

    fn parse(json: &Json) -> Option<Self> {
        if let Some(name) = json.as_str() {
            let Some(inside) = name.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')')) else {
                return Some(Holds::plain(name));
            };
            let (precision, scale) = inside.split_once(',')?;
            return Some(Holds::Decimal { precision: precision.trim().parse().ok()?, scale: scale.trim().parse().ok()? });
        }
        let part = |name: &str, what: &str, required: bool| {
            let holds = Holds::parse(json.get(what)?)?;
            Some(Field { id: id(json, &format!("{what}-id"))?, name: name.to_owned(), required, holds, doc: None })
        };
        let required = |what: &str| json.get(what)?.as_bool();
        Some(match json.get("type")?.as_str()? {
            "list" => Holds::List(Box::new(part("element", "element", required("element-required")?)?)),
            "map" => Holds::Map(Box::new((part("key", "key", true)?, part("value", "value", required("value-required")?)?))),
            "struct" => Holds::Struct(fields(json)?),
            _ => return None,
        })
    }

    fn in_words(&self) -> String {
        match self {
            Holds::Plain(name) => name.clone(),
            Holds::Decimal { precision, scale } => format!("decimal({precision}, {scale})"),
            Holds::List(_) => "a list".to_owned(),
            Holds::Struct(_) => "a struct".to_owned(),
            Holds::Map(_) => "a map".to_owned(),
        }
    }
}

/// The fields of a schema or of a struct; `None` where it cannot be understood.
pub(super) fn fields(json: &Json) -> Option<Vec<Field>> {
    json.get("fields")?.as_array()?.iter().map(Field::parse).collect()
}

/// A schema of a table's metadata.
pub(super) fn schema(id: i64, fields: &[Field]) -> Map<String, Json> {
    let fields: Vec<_> = fields.iter().map(Field::json).collect();
    [("type", json!("struct")), ("schema-id", json!(id)), ("fields", json!(fields))]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: ColumnType) -> Column {
        let kind = serde_json::to_value(kind).expect("a type");
        serde_json::from_value(json!({ "name": name, "type": kind })).expect("a column")
    }

    fn decimal(precision: u8, scale: i8) -> ColumnType {
        ColumnType::Decimal { precision, scale }
    }

    /// Names and ids, those inside in brackets.
    fn shown(fields: &[Field]) -> String {
        let one = |field: &Field| {
            let inside = match &field.holds {
                Holds::Plain(_) => String::new(),
                Holds::Decimal { precision, scale } => format!("({precision},{scale})"),
                Holds::List(element) => format!("[{}]", shown(std::slice::from_ref(element))),
                Holds::Struct(fields) => format!("[{}]", shown(fields)),
                Holds::Map(parts) => format!("[{} {}]", shown(std::slice::from_ref(&parts.0)), shown(std::slice::from_ref(&parts.1))),
            };
            format!("{}={}{inside}", field.name, field.id)
        };
        fields.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn first() -> Numbered {
        let columns = [
            column("key", ColumnType::Text),
            column("by", ColumnType::Struct(vec![column("name", ColumnType::Text), column("age", ColumnType::Int64)])),
            column("tags", ColumnType::List(Box::new(column("element", ColumnType::Text)))),
            column("sums", ColumnType::Map(Box::new(column("value", decimal(5, 2))))),
        ];
        number(&columns, &[], 0, Change::Replace, &|_| None).unwrap()
    }

    #[test]
    fn every_field_of_a_new_table_has_an_id_of_its_own() {
        let numbered = first();
        assert_eq!(shown(&numbered.fields), "key=1 by=2[name=5 age=6] tags=3[element=7] sums=4[key=8 value=9(5,2)]");
        assert_eq!(numbered.last_id, 9);
        let inside: Vec<_> = numbered.ids.iter().map(|id| (id.id, id.inside.iter().map(|id| id.id).collect::<Vec<_>>())).collect();
        assert_eq!(inside, [(1, vec![]), (2, vec![5, 6]), (3, vec![7]), (4, vec![8, 9])]);
    }

    #[test]
    fn no_two_fields_have_one_full_name() {
        let wrapped = |name: &str| column(name, ColumnType::Struct(vec![column("b", ColumnType::Text)]));
        let list = || column("l", ColumnType::List(Box::new(column("element", ColumnType::Text))));
        for (columns, name) in
            [([wrapped("a"), column("a.b", ColumnType::Text)], "a.b"), ([list(), column("l.element", ColumnType::Text)], "l.element")]
        {
            let told = number(&columns, &[], 0, Change::Replace, &|_| None).unwrap_err().to_string();
            assert!(told.contains(&format!("name: {name}")), "{told}");
        }
        number(&[wrapped("a"), column("a.c", ColumnType::Text)], &[], 0, Change::Replace, &|_| None).unwrap();
    }

    #[test]
    fn a_column_whose_type_is_of_two_meanings_is_refused_and_one_of_nulls_gets_the_words_of_its_type() {
        let with = |kind: &str| Column { dynamodb: Some(kind.to_owned()), ..column("a", ColumnType::Text) };
        let Numbered { fields, last_id, .. } = number(&[with("NULL")], &[], 0, Change::Replace, &|_| None).unwrap();
        let extended = number(&[with("S")], &fields, last_id, Change::Extend, &|_| None).unwrap();
        assert_eq!(extended.fields[0].doc.as_deref(), Some("DynamoDB S"));
        let told = number(&[with("json")], &fields, last_id, Change::Extend, &|_| Some("texts and JSON".to_owned())).unwrap_err();
        assert!(told.to_string().contains("differs: texts and JSON"), "{told}");
    }

    #[test]
    fn a_table_that_is_extended_keeps_its_fields_and_widens_decimals() {
        let Numbered { fields, last_id, .. } = first();
        let columns = [
            column("by", ColumnType::Struct(vec![column("mail", ColumnType::Text), column("name", ColumnType::Text)])),
            column("sums", ColumnType::Map(Box::new(column("value", decimal(7, 2))))),
            column("late", ColumnType::Boolean),
        ];
        let numbered = number(&columns, &fields, last_id, Change::Extend, &|_| None).unwrap();
        assert_eq!(shown(&numbered.fields), "key=1 by=2[name=5 age=6 mail=10] tags=3[element=7] sums=4[key=8 value=9(7,2)] late=11");
        // In the order of the columns.
        assert_eq!(numbered.ids[0].inside.iter().map(|id| id.id).collect::<Vec<_>>(), [10, 5]);
        let narrower =
            number(&[column("sums", ColumnType::Map(Box::new(column("value", decimal(3, 2)))))], &fields, last_id, Change::Extend, &|_| {
                None
            });
        assert!(shown(&narrower.unwrap().fields).contains("value=9(5,2)"));
    }

    #[test]
    fn another_type_is_told_by_its_path_in_a_table_that_is_extended() {
        let Numbered { fields, last_id, .. } = first();
        let columns = [
            column("key", ColumnType::Binary),
            column("by", ColumnType::Struct(vec![column("age", ColumnType::Text)])),
            column("sums", ColumnType::Map(Box::new(column("value", decimal(5, 3))))),
        ];
        let error = number(&columns, &fields, last_id, Change::Extend, &|_| None).unwrap_err().to_string();
        for told in [
            "`key` is string in the table and would be binary",
            "`by.age` is long in the table and would be string",
            "`sums` is decimal(5, 2) in the table and would be decimal(5, 3)",
        ] {
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_table_that_is_replaced_has_the_columns_alone_and_no_id_means_something_else() {
        let Numbered { fields, last_id, .. } = first();
        let columns = [
            column("tags", ColumnType::List(Box::new(column("element", ColumnType::Int64)))),
            column("key", ColumnType::Text),
            column("by", ColumnType::Text),
            column("sums", ColumnType::Map(Box::new(column("value", decimal(5, 2))))),
        ];
        let numbered = number(&columns, &fields, last_id, Change::Replace, &|_| None).unwrap();
        assert_eq!(shown(&numbered.fields), "tags=3[element=10] key=1 by=11 sums=4[key=8 value=9(5,2)]");
    }

    #[test]
    fn a_schema_is_read_as_it_was_written() {
        let Numbered { fields: written, .. } = first();
        let json = Json::Object(schema(3, &written));
        assert_eq!(fields(&json), Some(written));
        assert_eq!(json["schema-id"], 3);
    }
}
