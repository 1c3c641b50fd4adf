//! The names that the engines take, and what becomes of the others.

use std::collections::HashSet;

use super::Dialect;
use crate::sink::parquet::manifest::{Column, ColumnType};

/// What `BigQuery` keeps for itself, in any case.
const RESERVED: [&str; 6] = ["_table_", "_file_", "_partition", "_row_timestamp", "__root__", "_colidentifier"];

/// Names that are taken already.
pub(super) struct Names {
    dialect: Dialect,
    taken: HashSet<String>,
}

impl Names {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, taken: HashSet::new() }
    }

    /// The name, or, where it is taken, the name with the first free number of `_2`, `_3` …
    pub(super) fn take(&mut self, name: &str) -> String {
        let mut found = self.dialect.fit(name, "");
        for number in 2.. {
            if self.taken.insert(self.dialect.folded(&found)) {
                break;
            }
            found = self.dialect.fit(name, &format!("_{number}"));
        }
        found
    }
}

impl Dialect {
    /// What two names have in common that are one to the engine.
    fn folded(self, name: &str) -> String {
        if matches!(self, Self::Snowflake | Self::ClickHouse) { name.to_owned() } else { name.to_lowercase() }
    }

    /// The most bytes of a name. Some engines count characters, which are never more.
    fn longest(self) -> usize {
        match self {
            Self::DuckDb | Self::Spark | Self::ClickHouse => usize::MAX,
            Self::Redshift => 127,
            Self::Athena | Self::Snowflake => 255,
            Self::BigQuery => 300,
        }
    }

    /// The name with this end, cut to the longest that there may be.
    pub(in crate::sink::parquet) fn fit(self, name: &str, end: &str) -> String {
        let most = self.longest().saturating_sub(end.len());
        let cut = name.char_indices().map(|(at, character)| at + character.len_utf8()).take_while(|end| *end <= most).last().unwrap_or(0);
        format!("{}{end}", &name[..cut])
    }

    /// The name that a file should have for the engine: one that it takes wherever it looks for names, in structs too, and, where that can be,
    /// without quotes.
    pub(in crate::sink::parquet) fn safe_name(self, name: &str) -> String {
        let clean = match self {
            Self::DuckDb => name.replace(char::is_control, "_"),
            // What Spark before 3.3, and Hive's metastore, refuse in the names of columns.
            Self::Spark => name.replace(|character: char| character.is_control() || " ,;{}()=".contains(character), "_"),
            Self::Athena | Self::Redshift => plain(name).to_ascii_lowercase(),
            Self::Snowflake | Self::BigQuery if name.starts_with(|first: char| first.is_ascii_digit()) => format!("_{}", plain(name)),
            Self::BigQuery if is_reserved(&plain(name).to_lowercase()) => format!("_{}", plain(name)),
            Self::Snowflake | Self::BigQuery => plain(name),
            Self::ClickHouse => name.to_owned(),
        };
        if clean.is_empty() { "_".to_owned() } else { clean }
    }

    /// The name of an entity's table, made of characters that the engine takes.
    pub(super) fn table_name(self, entity: &str) -> String {
        match self {
            Self::Spark => plain(entity),
            _ => self.column_name(entity),
        }
    }

    /// The name of a column, made of characters that the engine takes.
    fn column_name(self, name: &str) -> String {
        match self {
            Self::Spark | Self::ClickHouse => name.to_owned(),
            Self::DuckDb | Self::Redshift | Self::Snowflake => name.replace(char::is_control, "_"),
            Self::Athena => plain(name).to_ascii_lowercase(),
            Self::BigQuery if name.starts_with(|first: char| first.is_ascii_digit()) => format!("_{}", plain(name)),
            Self::BigQuery => plain(name),
        }
    }

    /// Whether a field of a struct can be declared by its name.
    pub(super) fn takes_field(self, name: &str) -> bool {
        match self {
            Self::Spark | Self::ClickHouse => !name.is_empty(),
            Self::Athena => !name.is_empty() && plain(name) == name,
            _ => true,
        }
    }
}

/// Whether `BigQuery` keeps a name, in small letters, for itself.
fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| name.starts_with(reserved))
}

/// The name with `_` for all that is no ASCII letter or digit.
fn plain(name: &str) -> String {
    name.replace(|character: char| !character.is_ascii_alphanumeric(), "_")
}

/// The names of the columns; those that the engine takes as they are come first. `None` where it cannot read such columns at all.
pub(super) fn of_columns(dialect: Dialect, columns: &[Column], comments: &mut Vec<String>) -> Option<Vec<String>> {
    match dialect {
        // Found by name: nothing can be replaced.
        Dialect::Spark | Dialect::ClickHouse => return Some(columns.iter().map(|column| column.name.clone()).collect()),
        Dialect::BigQuery => {
            let cannot = comments.len();
            untakeable(columns, "", comments);
            if comments.len() > cannot {
                return None;
            }
        }
        _ => {}
    }
    let mut names = Names::new(dialect);
    let mut chosen = vec![None; columns.len()];
    for as_it_is in [true, false] {
        for (column, chosen) in columns.iter().zip(&mut chosen) {
            let clean = dialect.column_name(&column.name);
            if chosen.is_none() && (!as_it_is || (clean == column.name && !names.taken.contains(&dialect.folded(&dialect.fit(&clean, "")))))
            {
                *chosen = Some(names.take(&clean));
            }
        }
    }
    let names: Vec<_> = chosen.into_iter().flatten().collect();
    for (column, name) in columns.iter().zip(&names) {
        // Athena has no capital letters.
        if column.name != *name && !(dialect == Dialect::Athena && column.name.eq_ignore_ascii_case(name)) {
            comments.push(format!("{} is column {}", in_words(&column.name), in_words(name)));
        }
    }
    if dialect == Dialect::BigQuery {
        inside(columns, &mut |path, column| {
            if dialect.column_name(&column.name) != column.name {
                comments.push(format!("{} is field {}", in_words(path), in_words(&dialect.column_name(&column.name))));
            }
        });
    }
    Some(names)
}

/// Whether a name, at any depth, is not as the engine takes it.
pub(super) fn must_change(dialect: Dialect, columns: &[Column]) -> bool {
    let mut found = columns.iter().any(|column| dialect.column_name(&column.name) != column.name);
    inside(columns, &mut |_, column| found |= dialect.column_name(&column.name) != column.name);
    found
}

/// Whether names of columns or of the fields of a struct differ in case alone.
pub(super) fn differ_in_case(columns: &[Column]) -> bool {
    let mut names: HashSet<_> = HashSet::new();
    columns.iter().any(|column| !names.insert(column.name.to_lowercase())) || columns.iter().any(|column| differ_in_case(children(column)))
}

/// Says which names `BigQuery` can neither take nor replace: what is one name to it, what it keeps for itself, what is too long.
fn untakeable(columns: &[Column], before: &str, comments: &mut Vec<String>) {
    let dialect = Dialect::BigQuery;
    let mut names: Vec<(String, &str)> = Vec::new();
    for Column { name, .. } in columns {
        let found = dialect.folded(&dialect.column_name(name));
        let path = in_words(&format!("{before}{name}"));
        if let Some((_, other)) = names.iter().find(|(taken, _)| *taken == found) {
            comments
                .push(format!("BigQuery cannot read the files: {path} and {} are one name to it", in_words(&format!("{before}{other}"))));
        } else if found.is_empty() || found.len() > dialect.longest() || is_reserved(&found) {
            comments.push(format!("BigQuery cannot read the files: it refuses the name {path}"));
        }
        names.push((found, name));
    }
    for column in columns {
        untakeable(children(column), &format!("{before}{}.", column.name), comments);
    }
}

/// Calls `take` for all fields of structs inside of the columns, each with its path.
fn inside(columns: &[Column], take: &mut dyn FnMut(&str, &Column)) {
    fn walk(column: &Column, path: &str, take: &mut dyn FnMut(&str, &Column)) {
        match &column.kind {
            ColumnType::List(inner) | ColumnType::Map(inner) => walk(inner, path, take),
            ColumnType::Struct(fields) => {
                for field in fields {
                    let path = format!("{path}.{}", field.name);
                    take(&path, field);
                    walk(field, &path, take);
                }
            }
            _ => {}
        }
    }
    for column in columns {
        walk(column, &column.name, take);
    }
}

/// The fields of the struct in a column, if there is one, in lists and maps too.
fn children(column: &Column) -> &[Column] {
    match &column.kind {
        ColumnType::List(inner) | ColumnType::Map(inner) => children(inner),
        ColumnType::Struct(fields) => fields,
        _ => &[],
    }
}

/// A name for people, in a comment too: it has one line.
pub(super) fn in_words(name: &str) -> String {
    format!("`{}`", on_one_line(name))
}

/// The text without what could end a line.
pub(super) fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
            line.extend(character.escape_unicode());
        } else {
            line.push(character);
        }
    }
    line
}
