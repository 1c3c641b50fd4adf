//! Independent proof of whole runs: Python computes the expected items from the export by itself, and other readers read what was written.
//!
//! What the pipeline files say is said once more in `tests/python/transform_*.py`; nothing of dynamorph is used there.

use std::path::{Path, PathBuf};

use crate::pipelines::{carry, carry_with};
use crate::program::{files, root};
use crate::python::run_program;

/// The options and paths of a program that computes expected items.
struct Expected {
    program: &'static str,
    /// What of it: a table, an entity.
    options: Vec<&'static str>,
    exports: Vec<PathBuf>,
}

impl Expected {
    fn new(program: &'static str, options: &[&'static str], samples: &[&str]) -> Self {
        let exports = samples.iter().map(|sample| root().join("sample_exports").join(sample)).collect();
        Self { program, options: options.to_vec(), exports }
    }

    fn lines(&self, more: &[&'static str]) -> Vec<String> {
        let paths: Vec<&Path> = self.exports.iter().map(PathBuf::as_path).collect();
        run_program(self.program, &[more, &self.options].concat(), &paths)
    }
}

/// The expected items are those in the import files and in the batch files.
#[track_caller]
fn same_in_files(expected: &Expected, out: &Path, table: &str, items: usize) {
    let expected = expected.lines(&[]);
    assert_eq!(expected.len(), items, "{table}");
    for sink in ["import", "batch"] {
        same(&run_program("read_items.py", &[], &[&out.join(sink).join(table)]), &expected, &format!("{sink}:{table}"));
    }
}

/// The expected items are those that pyarrow and `DuckDB` read, NULLs aside.
#[track_caller]
fn same_in_parquet(expected: &Expected, lake: &Path, datasets: &[&str]) {
    let folders: Vec<PathBuf> = datasets.iter().map(|dataset| lake.join(dataset)).collect();
    let mut found = Vec::new();
    for folder in &folders {
        // Each entity has a schema of its own. The program compares both engines.
        found.extend(run_program("read_parquet.py", &["--without-null"], &[folder]));
    }
    found.sort_unstable();
    same(&found, &expected.lines(&["--without-null"]), &format!("parquet:{}", datasets.join(" and ")));
}

/// Compares item by item, so that a difference can be read.
#[track_caller]
fn same(found: &[String], expected: &[String], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

#[test]
fn python_gets_the_same_items_when_it_splits_comments_from_documents() {
    let (folder, _) = carry("docs-split-comments");
    let expected = |table| Expected::new("transform_docs_split_comments.py", &[table], &["docs"]);
    same_in_files(&expected("docs"), folder.path(), "docs", 35);
    same_in_files(&expected("comments"), folder.path(), "comments", 74);
    let lake = folder.path().join("parquet");
    same_in_parquet(&expected("docs"), &lake, &["Workspace", "Document"]);
    same_in_parquet(&expected("comments"), &lake, &["Comment"]);
}

#[test]
fn python_gets_the_same_items_when_it_puts_two_tables_into_one() {
    let (folder, _) = carry("sql-to-one-table");
    let expected = Expected::new("transform_sql_to_one_table.py", &[], &["sql-style/workspaces", "sql-style/projects"]);
    same_in_files(&expected, folder.path(), "app", 36);
    same_in_parquet(&expected, &folder.path().join("parquet"), &["Workspace", "Project"]);
}

#[test]
fn amazon_ion_reads_the_same_items_from_import_files_in_ion() {
    let (folder, _) = carry_with("docs-split-comments", &["--import-format", "ion"]);
    let import = folder.path().join("import");
    for table in ["docs", "comments"] {
        let expected = Expected::new("transform_docs_split_comments.py", &[table], &["docs"]).lines(&[]);
        same(&run_program("read_ion.py", &[], &[&import.join(table)]), &expected, table);
    }
    let requests = [import.join("docs/table.json"), import.join("comments/table.json")];
    let requests: Vec<&Path> = requests.iter().map(PathBuf::as_path).collect();
    assert_eq!(run_program("validate_requests.py", &["ImportTable"], &requests), ["2"]);
}

#[test]
fn pyarrow_and_duckdb_read_the_warehouse_as_the_export_has_it() {
    let (folder, _) = carry("warehouse");
    let lake = folder.path().join("parquet");
    for (entity, rows) in [("Workspace", 3), ("Document", 32), ("Comment", 61)] {
        let expected = Expected::new("transform_warehouse.py", &[entity], &["docs"]);
        assert_eq!(expected.lines(&[]).len(), rows, "{entity}");
        same_in_parquet(&expected, &lake, &[entity]);
    }
}

#[test]
fn botocore_takes_table_json_and_batch_files_as_parameters() {
    let (folder, _) = carry("docs-split-comments");
    let is_request =
        |path: &Path| path.extension().is_some_and(|extension| extension == "json") && !path.starts_with(".dynamorph-output.json");
    let below = |sink: &str, wanted: fn(&Path) -> bool| -> Vec<PathBuf> {
        let found = files(&folder.path().join(sink)).into_iter().map(|(path, _)| path).filter(|path| is_request(path) && wanted(path));
        found.map(|path| folder.path().join(sink).join(path)).collect()
    };
    let tables = below("import", |path| path.ends_with("table.json"));
    let requests = below("batch", |_| true);
    assert_eq!((tables.len(), requests.len()), (2, 5));
    for (operation, found) in [("ImportTable", tables), ("BatchWriteItem", requests)] {
        let paths: Vec<&Path> = found.iter().map(PathBuf::as_path).collect();
        assert_eq!(run_program("validate_requests.py", &[operation], &paths), [paths.len().to_string()], "{operation}");
    }
}
