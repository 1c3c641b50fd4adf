"""Prints the items of import files or batch-write request files in canonical form, sorted.

usage: read_items.py [--without-null] PATH…

PATH is a file, or a folder of which all *.json and *.json.gz below it are read, hidden ones and what lies beside the data aside. A file
holds lines of {"Item":{…}}, or one request {"TABLE":[{"PutRequest":{"Item":{…}}},…]}.
"""

import gzip
from pathlib import Path

import canonical


BESIDE = {"table.json", "bulk-put.json", "counts.json"}


def files(path):
    """The data files at or below `path`."""
    if path.is_file():
        return [path]
    found = [*path.rglob("*.json"), *path.rglob("*.json.gz")]
    return sorted(file for file in found if file.name not in BESIDE and not file.name.startswith("."))


def items(path):
    """The canonical items of a file."""
    stored = path.read_bytes()
    text = gzip.decompress(stored) if stored.startswith(b"\x1f\x8b") else stored
    if not text.lstrip().startswith(b'{"Item"'):
        requests = canonical.parse(text) if text.strip() else {}
        found = [put["PutRequest"]["Item"] for puts in requests.values() for put in puts]
    else:
        found = [canonical.parse(line)["Item"] for line in text.split(b"\n") if line]
    return [{name: canonical.tagged(value) for name, value in item.items()} for item in found]


if __name__ == "__main__":
    given = canonical.arguments("Prints the items of import or batch files.", PATH={"type": Path, "nargs": "+"}).parse_args()
    canonical.write((item for path in given.PATH for file in files(path) for item in items(file)), given.without_null)
