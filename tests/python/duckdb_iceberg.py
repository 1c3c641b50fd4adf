"""Checks that DuckDB reads from Iceberg tables what it reads from Parquet datasets. Runs in an environment of its own, since the extension
is published for one version of DuckDB.

usage: duckdb_iceberg.py LAKE=PARQUET[+PARQUET]…

LAKE is a folder of tables, PARQUET a folder with a dataset for each table, and several are taken together. Prints a line for each table.
"""

import sys
from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg


def connect():
    """A connection that knows Iceberg."""
    connection = duckdb.connect()
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        (extension,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    return connection


def check(connection, table, datasets):
    """Compares one table."""
    files = [f"read_parquet('{dataset}/*.parquet')" for dataset in datasets]
    parquet = " UNION ALL BY NAME ".join(f"SELECT * FROM {file}" for file in files)
    names = [name for name, *_ in connection.execute(f"DESCRIBE {parquet}").fetchall()]
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    one, other = f"SELECT {columns} FROM iceberg_scan('{table}')", f"SELECT {columns} FROM ({parquet})"
    for left, right in ((one, other), (other, one)):
        differing = connection.execute(f"({left}) EXCEPT ALL ({right})").fetchall()
        assert not differing, f"{table.name}: {len(differing)} rows differ, first: {differing[0]}"
    described = connection.execute(f"DESCRIBE SELECT * FROM iceberg_scan('{table}')").fetchall()
    assert sorted(name for name, *_ in described) == sorted(names), f"{table.name}: other columns"
    (rows,) = connection.execute(f"SELECT count(*) FROM iceberg_scan('{table}')").fetchone()
    print(f"{table.name}: {len(described)} columns, {rows} rows")


if __name__ == "__main__":
    connection = connect()
    for pair in sys.argv[1:]:
        lake, folders = pair.split("=")
        parquet = [Path(folder) for folder in folders.split("+")]
        for entity in sorted({dataset.name for folder in parquet for dataset in folder.iterdir() if dataset.is_dir()}):
            known = [folder / entity for folder in parquet if (folder / entity).is_dir()]
            check(connection, Path(lake, entity), known)
