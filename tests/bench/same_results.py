"""Compares Parquet datasets of dynamorph with those that a peer made of the same export, before anybody compares times.

usage: same_results.py [--empty-is-null] LAKE FOLDER

LAKE has a folder an entity, FOLDER a file an entity. For every entity: the number of rows; for every column and field that the peer has, how many
values there are, how many distinct ones, their sum where they are numbers, and a checksum that does not depend on the order of rows; and such a checksum
of whole rows. A column that the peer does not have must hold nothing but nulls. With `--empty-is-null` an empty list is none, for
a peer that cannot tell. What differs is printed, and the exit code is 1.
"""

import argparse
import sys
from pathlib import Path

import duckdb

NUMBERS = {"bigint", "decimal", "double", "integer"}


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def leaves(path, kind):
    """The values at and below a column, structs opened: path, expression, type."""
    if kind.id == "struct":
        for name, inside in kind.children:
            yield from leaves([*path, name], inside)
    else:
        yield ".".join(path), ".".join(map(quoted, path)), kind


def columns(base, files):
    relation = base.sql("SELECT * FROM read_parquet(?)", params=[files])
    return {path: (value, kind) for name, kind in zip(relation.columns, relation.types) for path, value, kind in leaves([name], kind)}


def text(value, kind, empty_is_null):
    """One text for a value, whatever its width and, of a list, its order."""
    if kind.id in NUMBERS:
        return f"CAST({value} AS DECIMAL(38, 6))::VARCHAR"
    if kind.id == "list":
        sorted_list = f"list_sort({value})::VARCHAR"
        return f"CASE WHEN len({value}) > 0 THEN {sorted_list} END" if empty_is_null else sorted_list
    return f"{value}::VARCHAR"


def checksums(base, files, found, paths, empty_is_null):
    """What there is of each column, by its path, and of whole rows."""
    texts = {path: text(*found[path], empty_is_null) for path in paths}
    wanted = ["count(*)", f"sum(hash({', '.join(f'coalesce({one}, chr(0))' for one in texts.values())})::HUGEINT)"]
    for path in paths:
        value, kind = found[path]
        one = texts[path]
        total = f"sum(CAST({value} AS DECIMAL(38, 6)))" if kind.id in NUMBERS else "NULL"
        wanted += [f"count({one})", f"count(DISTINCT {one})", total, f"sum(hash({one})::HUGEINT) FILTER ({one} IS NOT NULL)"]
    row = base.execute(f"SELECT {', '.join(wanted)} FROM read_parquet(?)", [files]).fetchone()
    every = {path: row[2 + at * 4 : 6 + at * 4] for at, path in enumerate(paths)}
    return {"(rows)": row[:2], **every}


def compare(base, ours, theirs, empty_is_null):
    """The differences of one entity, a line each, and the number of rows."""
    mine, other = columns(base, ours), columns(base, theirs)
    missing = sorted(other.keys() - mine.keys())
    if missing:
        return [f"dynamorph has no column {path}" for path in missing], 0
    differences = []
    for path in sorted(mine.keys() - other.keys()):
        (values,) = base.execute(f"SELECT count({mine[path][0]}) FROM read_parquet(?)", [ours]).fetchone()
        if values:
            differences.append(f"the peer has no column {path}, which has {values} values")
    paths = sorted(other)
    first, second = (checksums(base, files, found, paths, empty_is_null) for files, found in ((ours, mine), (theirs, other)))
    differences += [f"{path}: dynamorph {first[path]}, the peer {second[path]}" for path in first if first[path] != second[path]]
    return differences, first["(rows)"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--empty-is-null", action="store_true")
    parser.add_argument("lake", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    base = duckdb.connect()
    ours, theirs = sorted(path.name for path in options.lake.iterdir() if path.is_dir()), sorted(path.stem for path in options.folder.glob("*.parquet"))
    differences = [] if ours == theirs else [f"entities: dynamorph {ours}, the peer {theirs}"]
    rows = 0
    for entity in sorted(set(ours) & set(theirs)):
        files = [str(file) for file in sorted((options.lake / entity).rglob("*.parquet"))]
        found, read = compare(base, files, [str(options.folder / f"{entity}.parquet")], options.empty_is_null)
        differences += [f"{entity}: {difference}" for difference in found]
        rows += read
    if differences or not rows:
        sys.exit("\n".join(["the results differ", *differences]))
    print(f"the results agree: {len(ours)} entities, {rows} rows")


if __name__ == "__main__":
    main()
