//! The statements, type by type and name by name.

use std::collections::BTreeMap;

use super::*;
use crate::sink::parquet::manifest::DataFile;

const ALL: [Dialect; 7] =
    [Dialect::DuckDb, Dialect::Spark, Dialect::Athena, Dialect::Redshift, Dialect::Snowflake, Dialect::BigQuery, Dialect::ClickHouse];

fn column(name: &str, kind: ColumnType) -> Column {
    Column { name: name.to_owned(), kind, dynamodb: None, json: None, attribute: Some(name.to_owned()) }
}

fn list(element: ColumnType) -> ColumnType {
    ColumnType::List(Box::new(column("element", element)))
}

fn map(value: ColumnType) -> ColumnType {
    ColumnType::Map(Box::new(column("value", value)))
}

fn fields(fields: &[(&str, ColumnType)]) -> ColumnType {
    ColumnType::Struct(fields.iter().map(|(name, kind)| column(name, kind.clone())).collect())
}

fn manifest(entity: &str, columns: Vec<Column>) -> Manifest {
    let files = vec![DataFile {
        path: format!("{entity}/part-u00001-0000.parquet"),
        items: 7,
        bytes: 100,
        partition: BTreeMap::new(),
        sha256: None,
    }];
    Manifest {
        sources: Vec::new(),
        version: 1,
        dialect: None,
        datasets: vec![DatasetFiles {
            name: entity.to_owned(),
            folder: super::super::write::folder(entity),
            items: 7,
            columns,
            partition: Vec::new(),
            files,
        }],
    }
}

fn location(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::BigQuery => "gs://lake/docs",
        _ => "s3://lake/docs",
    }
}

fn texts(names: &[&str]) -> Vec<Column> {
    names.iter().map(|name| column(name, ColumnType::Text)).collect()
}

/// What was noted of a dataset with these columns.
fn notes(dialect: Dialect, columns: Vec<Column>) -> Vec<String> {
    ddl(&manifest("E", columns), dialect, location(dialect)).unwrap().notes
}

#[test]
fn every_type_has_its_word_in_every_dialect() {
    let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
    let inner = fields(&[("zipCode", ColumnType::Text), ("n", ColumnType::Int64)]);
    let table = [
        (ColumnType::Text, ["VARCHAR", "STRING", "string", "VARCHAR(65535)", "VARCHAR", "STRING", "Nullable(String)"]),
        (ColumnType::Int64, ["BIGINT", "BIGINT", "bigint", "BIGINT", "NUMBER(19,0)", "INT64", "Nullable(Int64)"]),
        (ColumnType::Double, ["DOUBLE", "DOUBLE", "double", "DOUBLE PRECISION", "FLOAT", "FLOAT64", "Nullable(Float64)"]),
        (ColumnType::Boolean, ["BOOLEAN", "BOOLEAN", "boolean", "BOOLEAN", "BOOLEAN", "BOOL", "Nullable(Bool)"]),
        (ColumnType::Binary, ["BLOB", "BINARY", "binary", "VARBYTE(1024000)", "BINARY", "BYTES", "Nullable(String)"]),
        (
            ColumnType::Timestamp,
            [
                "TIMESTAMP WITH TIME ZONE",
                "TIMESTAMP",
                "timestamp",
                "TIMESTAMP",
                "TIMESTAMP_LTZ(6)",
                "TIMESTAMP",
                "Nullable(DateTime64(6, 'UTC'))",
            ],
        ),
        (
            decimal(5, 2),
            ["DECIMAL(5,2)", "DECIMAL(5,2)", "decimal(5,2)", "DECIMAL(5,2)", "NUMBER(5,2)", "NUMERIC", "Nullable(Decimal(5, 2))"],
        ),
        (
            decimal(38, 9),
            ["DECIMAL(38,9)", "DECIMAL(38,9)", "decimal(38,9)", "DECIMAL(38,9)", "NUMBER(38,9)", "NUMERIC", "Nullable(Decimal(38, 9))"],
        ),
        (
            decimal(38, 8),
            ["DECIMAL(38,8)", "DECIMAL(38,8)", "decimal(38,8)", "DECIMAL(38,8)", "NUMBER(38,8)", "BIGNUMERIC", "Nullable(Decimal(38, 8))"],
        ),
        (
            decimal(10, 10),
            [
                "DECIMAL(10,10)",
                "DECIMAL(10,10)",
                "decimal(10,10)",
                "DECIMAL(10,10)",
                "NUMBER(10,10)",
                "BIGNUMERIC",
                "Nullable(Decimal(10, 10))",
            ],
        ),
        (
            decimal(38, 38),
            ["DECIMAL(38,38)", "DECIMAL(38,38)", "decimal(38,38)", "DECIMAL(38,37)", "VARCHAR", "BIGNUMERIC", "Nullable(Decimal(38, 38))"],
        ),
        (
            list(ColumnType::Int64),
            ["BIGINT[]", "ARRAY<BIGINT>", "array<bigint>", "SUPER", "VARIANT", "ARRAY<INT64>", "Array(Nullable(Int64))"],
        ),
        (
            list(list(ColumnType::Text)),
            ["VARCHAR[][]", "ARRAY<ARRAY<STRING>>", "array<array<string>>", "SUPER", "VARIANT", "", "Array(Array(Nullable(String)))"],
        ),
        (
            map(list(ColumnType::Binary)),
            [
                "MAP(VARCHAR, BLOB[])",
                "MAP<STRING, ARRAY<BINARY>>",
                "map<string,array<binary>>",
                "SUPER",
                "VARIANT",
                "STRUCT<key_value ARRAY<STRUCT<key STRING, value ARRAY<BYTES>>>>",
                "Map(String, Array(Nullable(String)))",
            ],
        ),
        (
            list(inner),
            [
                "STRUCT(\"zipCode\" VARCHAR, \"n\" BIGINT)[]",
                "ARRAY<STRUCT<`zipCode`:STRING, `n`:BIGINT>>",
                "array<struct<`zipcode`:string,`n`:bigint>>",
                "SUPER",
                "VARIANT",
                "ARRAY<STRUCT<`zipCode` STRING, `n` INT64>>",
                "Array(Tuple(`zipCode` Nullable(String), `n` Nullable(Int64)))",
            ],
        ),
    ];
    for (kind, words) in table {
        for (dialect, word) in ALL.into_iter().zip(words) {
            let found = types::of(dialect, &column("x", kind.clone()), "x", &mut Vec::new());
            assert_eq!(found.as_deref(), Some(word).filter(|word| !word.is_empty()), "{dialect:?}: {kind:?}");
        }
    }
}

#[test]
fn names_that_differ_in_case_alone_become_two_where_columns_are_found_by_position() {
    let columns = || texts(&["kind", "Kind", "kind_2", "KIND"]);
    for dialect in [Dialect::DuckDb, Dialect::Redshift] {
        assert_eq!(notes(dialect, columns()), ["`E`: `Kind` is column `Kind_3`", "`E`: `KIND` is column `KIND_4`"], "{dialect:?}");
    }
    assert_eq!(notes(Dialect::Athena, columns()), ["`E`: `Kind` is column `kind_3`", "`E`: `KIND` is column `kind_4`"]);
    assert!(notes(Dialect::Snowflake, columns()).is_empty());
    let spark = ddl(&manifest("E", columns()), Dialect::Spark, "s3://lake").unwrap();
    assert!(spark.sql.contains("SET spark.sql.caseSensitive = true;\n") && spark.sql.contains("  `Kind` STRING,\n"), "{}", spark.sql);
    let inside = vec![column("m", list(fields(&[("a", ColumnType::Text), ("A", ColumnType::Text)])))];
    assert!(ddl(&manifest("E", inside), Dialect::Spark, "s3://lake").unwrap().sql.contains("caseSensitive"));
}

#[test]
fn a_name_that_is_taken_as_it_is_goes_before_one_that_is_replaced() {
    assert_eq!(
        notes(Dialect::Athena, texts(&["GSI1-PK", "gsi1_pk", "Größe"])),
        ["`E`: `GSI1-PK` is column `gsi1_pk_2`", "`E`: `Größe` is column `gr__e`"]
    );
    assert_eq!(
        notes(Dialect::BigQuery, texts(&["Status#Date", "2nd"])),
        ["`E`: `Status#Date` is column `Status_Date`", "`E`: `2nd` is column `_2nd`"]
    );
    let long = "é".repeat(200);
    for (dialect, kept) in [(Dialect::DuckDb, 200), (Dialect::Redshift, 63), (Dialect::Snowflake, 127)] {
        let sql = ddl(&manifest("E", texts(&[&long])), dialect, "s3://lake").unwrap().sql;
        assert!(sql.contains(&format!("\"{}\"", "é".repeat(kept))), "{dialect:?}: {sql}");
    }
}

#[test]
fn bigquery_loads_what_it_must_rename_and_is_refused_what_it_cannot_tell_apart() {
    let sql = |columns| ddl(&manifest("E", columns), Dialect::BigQuery, "gs://lake").unwrap();
    assert!(sql(texts(&["a", "b"])).sql.contains("CREATE EXTERNAL TABLE `E` (\n  `a` STRING,\n  `b` STRING\n)"));
    let renamed = sql(vec![column("m", fields(&[("a b", ColumnType::Text)]))]);
    assert!(renamed.sql.contains("LOAD DATA OVERWRITE `E`") && renamed.sql.contains("column_name_character_map = 'V1'"), "{}", renamed.sql);
    assert_eq!(renamed.notes, ["`E`: `m.a b` is field `a_b`"]);
    for (columns, why) in [
        (texts(&["kind", "Kind"]), "`Kind` and `kind` are one name to it"),
        (texts(&["a-b", "a_b"]), "`a_b` and `a-b` are one name to it"),
        (texts(&["_PARTITIONTIME"]), "it refuses the name `_PARTITIONTIME`"),
        (texts(&[&"x".repeat(301)]), "it refuses the name `xxx"),
        (vec![column("m", fields(&[("a", ColumnType::Text), ("A", ColumnType::Text)]))], "`m.A` and `m.a` are one name"),
    ] {
        let found = sql(columns);
        assert_eq!(found.refused, 1, "{why}");
        assert!(found.notes[0].contains(why) && !found.sql.contains("CREATE") && !found.sql.contains("LOAD"), "{found:?}");
    }
}

#[test]
fn a_field_that_cannot_be_declared_is_left_out_and_told() {
    let columns = vec![
        column("m", fields(&[("a-b", ColumnType::Text), ("zip", ColumnType::Text), ("Zip", ColumnType::Text)])),
        column("none", fields(&[("é", ColumnType::Int64)])),
        column("last", ColumnType::Text),
    ];
    let found = ddl(&manifest("E", columns), Dialect::Athena, "s3://lake").unwrap();
    assert!(found.sql.contains("  `m` struct<`zip`:string>,\n  `none` struct<`unreadable`:string>,\n  `last` string\n"), "{}", found.sql);
    let left_out = |path: &str| format!("`E`: `{path}` is left out, since its name cannot be declared");
    assert_eq!(found.notes, [left_out("m.a-b"), left_out("m.Zip"), left_out("none.é")]);
}

#[test]
fn what_a_name_holds_never_ends_a_comment_a_name_or_a_text() {
    let evil = "x\n; DROP TABLE t; --\"`'\\";
    for dialect in ALL {
        let inner = column("m", fields(&[(evil, ColumnType::Text)]));
        let found =
            ddl(&manifest(evil, vec![column(evil, ColumnType::Text), inner]), dialect, &format!("{}/it's", location(dialect))).unwrap();
        for line in found.sql.lines().filter(|line| line.starts_with("; DROP")) {
            // These find the column by this name, which stands in quotes.
            assert!(matches!(dialect, Dialect::Spark | Dialect::Snowflake | Dialect::ClickHouse), "{dialect:?}: {line}");
        }
        assert!(found.notes.iter().all(|note| !note.contains('\n')), "{dialect:?}");
        assert!(!found.sql.contains("/it's"), "{dialect:?}: {}", found.sql);
    }
}

#[test]
fn a_place_that_the_engine_cannot_read_is_refused_with_the_one_that_it_can() {
    for (dialect, wrong, expected) in [
        (Dialect::Athena, "/data/lake", "s3://"),
        (Dialect::Redshift, "gs://lake", "s3://"),
        (Dialect::Snowflake, "lake", "azure://"),
        (Dialect::BigQuery, "s3://lake", "gs://"),
        (Dialect::DuckDb, "", ""),
        (Dialect::Spark, "a\nb", ""),
        (Dialect::ClickHouse, "/data/*/lake", "a path without"),
    ] {
        let error = ddl(&manifest("E", texts(&["a"])), dialect, wrong).unwrap_err();
        assert!(error.kind() == Kind::Usage && error.to_string().contains(expected), "{error}");
    }
    let sql = ddl(&manifest("E", texts(&["a"])), Dialect::Snowflake, "@stage/lake/").unwrap().sql;
    assert!(sql.contains("FROM '@stage/lake/E/'") && !sql.contains("CREATE STAGE"), "{sql}");
}

/// A dataset in folders that are named after these columns.
fn parted(by: &[&str], columns: &[&str]) -> Manifest {
    let mut manifest = manifest("E", texts(columns));
    let of = |name: &&str| PartitionColumn { name: (*name).to_owned(), kind: ColumnType::Text, attribute: (*name).to_owned() };
    manifest.datasets[0].partition = by.iter().map(of).collect();
    manifest.datasets[0].files[0].partition = by.iter().map(|name| ((*name).to_owned(), Some("12:30".to_owned()))).collect();
    manifest
}

#[test]
fn what_names_folders_is_a_column_of_each_engines_table() {
    let manifest = parted(&["status", "day"], &["PK"]);
    for (dialect, parts) in [
        (
            Dialect::DuckDb,
            &[
                "  \"PK\", -- VARCHAR\n  \"status\", -- VARCHAR\n  \"day\" -- VARCHAR\n",
                "SELECT * EXCLUDE (\"status\", \"day\"), \"status\", \"day\" FROM read_parquet('s3://lake/docs/E/*/*/*.parquet', \
                 hive_partitioning = true, hive_types = {'status': VARCHAR, 'day': VARCHAR});",
            ][..],
        ),
        (
            Dialect::Spark,
            &[
                "  `PK` STRING,\n  `status` STRING,\n  `day` STRING\n)\nUSING PARQUET\nPARTITIONED BY (`status`, `day`)\nLOCATION 's3://lake/docs/E';\n",
                "MSCK REPAIR TABLE `E`;\n",
            ],
        ),
        (Dialect::Athena, &["  `pk` string\n)\nPARTITIONED BY (`status` string, `day` string)\nROW FORMAT", "MSCK REPAIR TABLE `e`;\n"]),
        (
            Dialect::Redshift,
            &["(\n  \"PK\" VARCHAR(65535)\n);", "-- `day` is left out, since COPY takes nothing from the names of folders"],
        ),
        (
            Dialect::Snowflake,
            &[
                "NULLIF(SPLIT_PART(SPLIT_PART(METADATA$FILENAME, '/day=', -1), '/', 1), '__HIVE_DEFAULT_PARTITION__')",
                "%3A stands for a colon",
            ],
        ),
        (
            Dialect::BigQuery,
            &[
                "  `PK` STRING\n)\nWITH PARTITION COLUMNS (`status` STRING, `day` STRING)\nOPTIONS",
                "hive_partition_uri_prefix = 'gs://lake/docs/E'",
            ],
        ),
        (
            Dialect::ClickHouse,
            &[
                "AS SELECT *, nullIf(decodeURLComponent(splitByChar('/', splitByString('/status=', _path)[-1])[1]), '__HIVE_DEFAULT_PARTITION__') AS `status`",
                "s3('s3://lake/docs/E/*/*/*.parquet', 'Parquet', '`PK` Nullable(String)') SETTINGS use_hive_partitioning = 0;",
            ],
        ),
    ] {
        let found = ddl(&manifest, dialect, location(dialect)).unwrap();
        for part in parts {
            assert!(found.sql.contains(part), "{part}\n{}", found.sql);
        }
        assert_eq!(found.refused, 0);
    }
    let renamed = ddl(&parted(&["status"], &["a b"]), Dialect::BigQuery, "gs://lake").unwrap().sql;
    let told =
        "  column_name_character_map = 'V1',\n  hive_partition_uri_prefix = 'gs://lake/E'\n)\nWITH PARTITION COLUMNS (`status` STRING);";
    assert!(renamed.contains(told), "{renamed}");
    let above = ddl(&manifest, Dialect::DuckDb, "/lake/x=1").unwrap().sql;
    assert!(above.contains("EXCLUDE (\"status\", \"day\", \"x\")"), "{above}");
    for (dialect, name) in [(Dialect::Athena, "Status"), (Dialect::BigQuery, "my status")] {
        let found = ddl(&parted(&[name], &["PK"]), dialect, location(dialect)).unwrap();
        assert!(found.refused == 1 && found.notes.iter().any(|note| note.contains("finds no folders that are named after")), "{found:?}");
    }
}
