//! The engines' words for the types of columns.

use std::collections::HashSet;

use super::Dialect;
use super::names::in_words;
use crate::sink::parquet::manifest::{Column, ColumnType};

/// Redshift's type for all that is nested.
pub(super) const SUPER: &str = "SUPER";

/// Snowflake's.
pub(super) const VARIANT: &str = "VARIANT";

/// The type of a struct none of whose fields the engine can find by name: it has to be there, since what follows is found by position.
pub(super) const UNREADABLE: &str = "struct<`unreadable`:string>";

/// The type of a column, with what is left out of it; `None` where it cannot be declared. `path` names it in comments.
pub(super) fn of(dialect: Dialect, column: &Column, path: &str, comments: &mut Vec<String>) -> Option<String> {
    Some(match &column.kind {
        ColumnType::List(_) | ColumnType::Struct(_) | ColumnType::Map(_) if dialect == Dialect::Redshift => SUPER.to_owned(),
        ColumnType::List(_) | ColumnType::Struct(_) | ColumnType::Map(_) if dialect == Dialect::Snowflake => VARIANT.to_owned(),
        // BigQuery knows no array of arrays.
        ColumnType::List(element) if dialect == Dialect::BigQuery && matches!(element.kind, ColumnType::List(_)) => return None,
        ColumnType::List(element) => {
            let element = of(dialect, element, path, comments)?;
            match dialect {
                Dialect::DuckDb => format!("{element}[]"),
                Dialect::Athena => format!("array<{element}>"),
                Dialect::ClickHouse => format!("Array({element})"),
                _ => format!("ARRAY<{element}>"),
            }
        }
        ColumnType::Map(value) => {
            let value = of(dialect, value, path, comments)?;
            match dialect {
                Dialect::DuckDb => format!("MAP(VARCHAR, {value})"),
                Dialect::Athena => format!("map<string,{value}>"),
                Dialect::ClickHouse => format!("Map(String, {value})"),
                Dialect::BigQuery => format!("STRUCT<key_value ARRAY<STRUCT<key STRING, value {value}>>>"),
                _ => format!("MAP<STRING, {value}>"),
            }
        }
        ColumnType::Struct(fields) => of_struct(dialect, fields, path, comments)?,
        ColumnType::Decimal { precision, scale } => decimal(dialect, *precision, *scale, path, comments),
        plain => {
            let words = match plain {
                ColumnType::Int64 => ["BIGINT", "BIGINT", "bigint", "BIGINT", "NUMBER(19,0)", "INT64", "Nullable(Int64)"],
                ColumnType::Double => ["DOUBLE", "DOUBLE", "double", "DOUBLE PRECISION", "FLOAT", "FLOAT64", "Nullable(Float64)"],
                ColumnType::Timestamp => {
                    let of_clickhouse = "Nullable(DateTime64(6, 'UTC'))";
                    ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP", "timestamp", "TIMESTAMP", "TIMESTAMP_LTZ(6)", "TIMESTAMP", of_clickhouse]
                }
                ColumnType::Boolean => ["BOOLEAN", "BOOLEAN", "boolean", "BOOLEAN", "BOOLEAN", "BOOL", "Nullable(Bool)"],
                ColumnType::Binary => ["BLOB", "BINARY", "binary", "VARBYTE(1024000)", "BINARY", "BYTES", "Nullable(String)"],
                _ => ["VARCHAR", "STRING", "string", "VARCHAR(65535)", "VARCHAR", "STRING", "Nullable(String)"],
            };
            words[dialect as usize].to_owned()
        }
    })
}

/// Exact wherever the engine has such a type. Redshift and Snowflake have none with 38 digits after the point.
fn decimal(dialect: Dialect, precision: u8, scale: i8, path: &str, comments: &mut Vec<String>) -> String {
    match dialect {
        Dialect::BigQuery if scale <= 9 && i16::from(precision) - i16::from(scale) <= 29 => "NUMERIC".to_owned(),
        Dialect::BigQuery => "BIGNUMERIC".to_owned(),
        Dialect::Snowflake if scale > 37 => "VARCHAR".to_owned(),
        Dialect::Snowflake => format!("NUMBER({precision},{scale})"),
        Dialect::Redshift if scale > 37 => {
            comments.push(format!("{}: Redshift has at most 37 digits after the point, the last one is lost", in_words(path)));
            "DECIMAL(38,37)".to_owned()
        }
        Dialect::Athena => format!("decimal({precision},{scale})"),
        Dialect::ClickHouse => format!("Nullable(Decimal({precision}, {scale}))"),
        _ => format!("DECIMAL({precision},{scale})"),
    }
}

fn of_struct(dialect: Dialect, fields: &[Column], path: &str, comments: &mut Vec<String>) -> Option<String> {
    let mut names = HashSet::new();
    let mut declared = Vec::new();
    for field in fields {
        let path = format!("{path}.{}", field.name);
        let mut name = field.name.clone();
        match dialect {
            // What it does itself when it reads two names that are one to it.
            Dialect::DuckDb => {
                for number in 1.. {
                    if names.insert(name.to_lowercase()) {
                        break;
                    }
                    name = format!("{}_{number}", field.name);
                }
                if name != field.name {
                    comments.push(format!("{} is field {}", in_words(&path), in_words(&name)));
                }
            }
            Dialect::Athena => name.make_ascii_lowercase(),
            _ => {}
        }
        if !dialect.takes_field(&name) || (dialect == Dialect::Athena && !names.insert(name.clone())) {
            comments.push(format!("{} is left out, since its name cannot be declared", in_words(&path)));
            continue;
        }
        let Some(kind) = of(dialect, field, &path, comments) else {
            if dialect == Dialect::BigQuery {
                return None;
            }
            continue;
        };
        declared.push(match dialect {
            Dialect::Spark | Dialect::Athena => format!("{}:{kind}", dialect.quoted(&name)),
            _ => format!("{} {kind}", dialect.quoted(&name)),
        });
    }
    let separator = if dialect == Dialect::Athena { "," } else { ", " };
    let inside = declared.join(separator);
    (!declared.is_empty()).then(|| match dialect {
        Dialect::DuckDb => format!("STRUCT({inside})"),
        Dialect::Athena => format!("struct<{inside}>"),
        Dialect::ClickHouse => format!("Tuple({inside})"),
        _ => format!("STRUCT<{inside}>"),
    })
}
