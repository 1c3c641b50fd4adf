"""Prints how the files of a dataset lie, and its rows as two engines see them together with what the names of the folders say.

usage: describe_layout.py DATASET COLUMN…

Prints a line for each file: its path below DATASET, the rows of its row groups, and what each says that it is sorted by. Then a line for each
row, sorted: its values as texts, those of the files and then those of the folders, which are named after COLUMN…. What DuckDB and pyarrow
do not read alike ends the program.
"""

import sys
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.dataset
import pyarrow.parquet


def describe(dataset, file):
    metadata = pyarrow.parquet.ParquetFile(file).metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    rows = ", ".join(str(group.num_rows) for group in groups)
    names = {tuple(metadata.schema.column(column.column_index).path for column in group.sorting_columns) for group in groups}
    sorting = " / ".join(",".join(each) for each in sorted(names))
    return f"{file.relative_to(dataset)}: {rows}" + (f" by {sorting}" if sorting else "")


def texts(row):
    return tuple("-" if value is None else str(value) for value in row)


if __name__ == "__main__":
    dataset, by = Path(sys.argv[1]), sys.argv[2:]
    files = sorted(dataset.rglob("*.parquet"))
    for file in files:
        print(describe(dataset, file))
    names = [*pyarrow.parquet.ParquetFile(files[0]).schema_arrow.names, *by]
    kinds = ", ".join(f"'{name}': VARCHAR" for name in by)
    more = f", hive_partitioning = true, hive_types = {{{kinds}}}" if by else ""
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    found = duckdb.connect().execute(f"SELECT {columns} FROM read_parquet(?{more})", [list(map(str, files))]).fetchall()
    folders = pyarrow.dataset.partitioning(pyarrow.schema([(name, pyarrow.string()) for name in by]), flavor="hive") if by else None
    table = pyarrow.dataset.dataset(dataset, format="parquet", partitioning=folders).to_table(columns=names)
    other = [tuple(row[name] for name in names) for row in table.to_pylist()]
    rows, other = sorted(map(texts, found)), sorted(map(texts, other))
    if rows != other:
        sys.exit(f"DuckDB: {rows}\npyarrow: {other}")
    for row in rows:
        print(" | ".join(row))
