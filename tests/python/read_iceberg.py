"""Checks Iceberg tables: pyiceberg must read the rows that Parquet datasets hold.

usage: read_iceberg.py [--option KEY=VALUE]… [--show] LAKE=PARQUET[+PARQUET]…

LAKE is a folder of tables or its address in S3, PARQUET a folder with a dataset for each table, and several are taken together. What a
column was in DynamoDB is taken from the fields of the Parquet files, as read_parquet.py does it. Prints a line for each table, and one for
each of its snapshots, from the oldest. Options are pyiceberg's. With --show it is LAKE alone, and nothing is compared.
"""

import argparse
import sys
from pathlib import Path

import canonical
import read_parquet
from pyiceberg.expressions import EqualTo, LessThan
from pyiceberg.table import StaticTable


def fields_of(datasets):
    """The columns of all files, by name, as the files have them."""
    fields = {}
    for file in read_parquet.files(datasets):
        for field in read_parquet.schema_of(file):
            fields.setdefault(field.name, field)
    return fields


def items_of(fields, found):
    """The canonical items of rows that are a table of Arrow."""
    columns = [column.to_pylist() for column in found.columns]
    named = [fields[name] for name in found.column_names]
    return [read_parquet.item_of(named, row) for row in zip(*columns, strict=True)]


def check_bounds(table):
    """The files that hold a value are never passed by; for a number that is below all others all files are."""
    for field in table.schema().fields:
        if not field.field_type.is_primitive or str(field.field_type) == "binary":
            continue
        values = table.scan(selected_fields=(field.name,)).to_arrow().column(0).unique().drop_null().to_pylist()
        literals = [value.isoformat() if hasattr(value, "isoformat") else value for value in values]
        for literal in literals[:4]:
            assert files(table, EqualTo(field.name, literal)), f"no file is said to hold {field.name} = {literal!r}"
        if str(field.field_type) == "long" and literals:
            assert not files(table, LessThan(field.name, min(literals))), f"the bounds of {field.name} are not tight"


def files(table, condition):
    """The data files that a scan would read."""
    return list(table.scan(row_filter=condition).plan_files())


def show(name, table):
    """A line about the table, and one about each snapshot."""
    print(f"{name}: {len(table.schema().columns)} columns, {len(table.scan().to_arrow())} rows")
    for snapshot in table.snapshots():
        rows = len(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow())
        after = "after another" if snapshot.parent_snapshot_id is not None else "by itself"
        total = snapshot.summary["total-records"]
        print(f"  {snapshot.summary.operation.value} {after}: {rows} rows of {total}, schema {snapshot.schema_id}, at {snapshot.timestamp_ms}")


def check(lake, datasets, name, options):
    """Compares one table."""
    table = StaticTable.from_metadata(f"{lake}/{name}", options)
    datasets = [dataset / name for dataset in datasets]
    fields = fields_of(datasets)
    expected = sorted((item for dataset in datasets for item in read_parquet.items([dataset], "pyarrow")), key=canonical.line)
    items = sorted(items_of(fields, table.scan().to_arrow()), key=canonical.line)
    differing = [pair for pair in zip(items, expected) if pair[0] != pair[1]]
    if differing or len(items) != len(expected):
        sys.exit(f"{name}: {len(items)} rows are read, expected {len(expected)}; first difference: {differing[:1]}")
    # In S3 the lists of files have no bounds.
    if not options:
        check_bounds(table)
    show(name, table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Checks Iceberg tables.")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--show", action="store_true")
    parser.add_argument("pairs", nargs="+")
    given = parser.parse_args()
    for lake in map(Path, given.pairs if given.show else []):
        for folder in sorted(folder for folder in lake.iterdir() if folder.is_dir() and not folder.name.startswith(".")):
            show(folder.name, StaticTable.from_metadata(str(folder)))
    for pair in [] if given.show else given.pairs:
        place, folders = pair.split("=")
        parquet = [Path(folder) for folder in folders.split("+")]
        for entity in sorted({dataset.name for folder in parquet for dataset in folder.iterdir() if dataset.is_dir()}):
            check(place, parquet, entity, dict(option.split("=", 1) for option in given.option))
