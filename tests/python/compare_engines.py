"""Compares what engines find in Parquet datasets with the items that must be there: every column, its type, and every value.

usage: compare_engines.py [--engine NAME]… CASES

CASES is a JSON file: a list of {"name": …, "lake": FOLDER, "groups": [{"datasets": [FOLDER…], "lines": [ITEM…]}], "sql": {ENGINE: SQL}}.
The rows of a group's datasets, which are folders in the lake, are together the items of its lines: in canonical form, without NULLs. The SQL
of an engine makes a table for each dataset, in the manifest's order; its rows are compared too, column by column.
Prints a line for each engine: its name, and how many datasets, tables and rows it read. What differs ends the program.
"""

import argparse
import functools
import json
import sys
from pathlib import Path

import canonical
import engines
import pyarrow
import read_parquet


def check_columns(engine, schema, columns, place):
    """Every column is there, by its name and with its type."""
    expected = [(name, engine.sees(field.type)) for name, field in zip(engine.names(schema.names), schema, strict=True)]
    for found, wanted in zip(columns, expected, strict=True):
        if found != wanted:
            sys.exit(f"{place}: expected the column {wanted}, found {found}")


def items(schema, rows, place):
    """The canonical items of rows."""
    found = []
    for row in rows:
        try:
            found.append(read_parquet.item_of(schema, row))
        except (TypeError, ValueError, KeyError) as cause:
            sys.exit(f"{place}: {cause!r} in the row {dict(zip(schema.names, row))}")
    return found


def check_rows(engine, found, lines, place):
    """The items are those of the lines."""
    found = sorted(canonical.line(engine.without(item)) for item in found)
    lines = sorted(canonical.line(engine.without(json.loads(text))) for text in lines)
    for mine, wanted in zip(found, lines):
        if mine != wanted:
            sys.exit(f"{place}: expected\n{wanted}\nfound\n{mine}")
    if len(found) != len(lines):
        sys.exit(f"{place}: expected {len(lines)} rows, found {len(found)}")


def parts(files):
    """The files whose rows share the same attributes, with these."""
    found = {}
    for file in files:
        shared = read_parquet.shared_of(file)
        found.setdefault(canonical.line(shared), ([], shared))[0].append(file)
    return found.values()


def folders(lake, dataset):
    """The columns that name folders, and by their values the attributes of the rows below."""
    by = [column["name"] for column in dataset.get("partition", [])]
    shared = {tuple(file["partition"][name] for name in by): read_parquet.shared_of(lake / file["path"]) for file in dataset["files"]}
    return by, shared


def check(engine, name, case, counts):
    """One case by one engine."""
    lake = Path(case["lake"])
    statements = case["sql"].get(name)
    tables, manifest = {}, {}
    if statements is not None:
        engine.run(statements)
        manifest = {dataset["folder"]: dataset for dataset in json.loads((lake / "_dynamorph.json").read_text())["datasets"]}
        tables = dict(zip(manifest, engines.tables(statements), strict=True))
    for group in case["groups"]:
        read, selected = [], []
        for dataset in group["datasets"]:
            place = f"{name}: {case['name']}: {dataset}"
            files = read_parquet.files([lake / dataset])
            schema = read_parquet.schema_of(files[0])
            for files, shared in parts(files):
                columns, rows = engine.read(files, schema)
                check_columns(engine, schema, columns, place)
                read += [item | shared for item in items(schema, rows, place)]
            counts["datasets"] += 1
            if dataset in tables:
                by, shared = folders(lake, manifest[dataset])
                whole = functools.reduce(lambda schema, name: schema.append(pyarrow.field(name, pyarrow.string())), by, schema)
                columns, rows = engine.table(tables[dataset], whole)
                # The statements may rename columns; the place says which is which.
                kinds = [(wanted, found) for wanted, (_, found) in zip(engine.names(whole.names), columns, strict=True)]
                check_columns(engine, whole, kinds, f"{place}, the table")
                rows = [(row[: len(schema)], tuple(row[len(schema) :])) for row in rows]
                found = items(schema, [row for row, _ in rows], f"{place}, the table")
                selected += [item | shared[values] for item, (_, values) in zip(found, rows, strict=True)]
                counts["tables"] += 1
        counts["rows"] += len(read) + len(selected)
        check_rows(engine, read, group["lines"], f"{name}: {case['name']}: {group['datasets']}")
        if tables:
            check_rows(engine, selected, group["lines"], f"{name}: {case['name']}: the tables of {group['datasets']}")
    for table in tables.values():
        engine.drop(table)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=[*engines.ENGINES], action="append")
    parser.add_argument("cases", type=Path)
    given = parser.parse_args()
    cases = json.loads(given.cases.read_text())
    for name in given.engine or engines.ENGINES:
        engine = engines.ENGINES[name]()
        counts = {"datasets": 0, "tables": 0, "rows": 0}
        for case in cases:
            check(engine, name, case, counts)
        engine.close()
        print(name, *(f"{count} {what}" for what, count in counts.items()))


if __name__ == "__main__":
    main()
