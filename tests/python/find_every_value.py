"""Finds every value of every item of a full export again in Parquet datasets. Independent of dynamorph.

usage: find_every_value.py EXPORT LAKE

LAKE has a folder for each entity; an item must be in that of its EntityType.
Items are paired by PK and SK. Each is put together from the columns of its row, by what their metadata says of the attributes, and compared
with what the export has: numbers by their exact value, NULL and an absent attribute as one. Prints the number of items; what is missing, there
twice or different ends the program and is named.
"""

import argparse
import json
import sys
from pathlib import Path

import canonical
import read_export
import read_parquet


def key(item):
    return item["PK"]["S"], item["SK"]["S"]


def exported(export):
    """The canonical text of every item, by its key."""
    found = {}
    for text in read_export.lines(read_export.find(export)):
        item = canonical.parse(text)["Item"]
        item = canonical.drop_null({name: canonical.tagged(value) for name, value in item.items()})
        if found.setdefault(key(item), line := canonical.line(item)) is not line:
            sys.exit(f"{export}: two items {key(item)}")
    return found


def difference(expected, found):
    """The attributes that differ, shortened."""
    expected, found = json.loads(expected), json.loads(found)
    names = [name for name in sorted(expected.keys() | found.keys()) if expected.get(name) != found.get(name)]
    return "\n".join(f"{name!r}: expected {str(expected.get(name))[:300]}, found {str(found.get(name))[:300]}" for name in names[:10])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("export", type=Path)
    parser.add_argument("lake", type=Path)
    given = parser.parse_args()
    expected = exported(given.export)
    items = len(expected)
    for dataset in sorted(path for path in given.lake.iterdir() if path.is_dir()):
        for item in read_parquet.items([dataset], "pyarrow"):
            wanted = expected.pop(key(item), None)
            if wanted is None:
                sys.exit(f"{dataset}: {key(item)} is there twice, or in no export")
            if wanted != (found := canonical.line(item)):
                sys.exit(f"{dataset}: {key(item)} differs:\n{difference(wanted, found)}")
            if item["EntityType"]["S"] != dataset.name:
                sys.exit(f"{dataset}: {key(item)} is a {item['EntityType']['S']}")
    if expected:
        sys.exit(f"{given.lake}: {len(expected)} items are missing, such as {next(iter(expected))}")
    print(items)


if __name__ == "__main__":
    main()
