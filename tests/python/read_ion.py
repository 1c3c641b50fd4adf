"""Prints the items of import files in Amazon Ion in canonical form, sorted. Independent of dynamorph: values are read by amazon.ion.

usage: read_ion.py [--without-null] PATH…

PATH is a file, or a folder of which all *.ion and *.ion.gz below it are read. A line must be a whole document of its own, and a number a
decimal: the import refuses ints.
"""

import gzip
from decimal import Decimal
from pathlib import Path

import canonical
from amazon.ion import simpleion
from amazon.ion.core import IonType
from amazon.ion.simple_types import IonPyBool, IonPyBytes, IonPyDecimal, IonPyDict, IonPyList, IonPyNull, IonPyText

SETS = {"$dynamodb_SS": "S", "$dynamodb_NS": "N", "$dynamodb_BS": "B"}

# With C code where the package has it, and without.
READERS = sorted({False, bool(simpleion.c_ext)})


def files(path):
    """The data files at or below `path`."""
    return [path] if path.is_file() else sorted([*path.rglob("*.ion"), *path.rglob("*.ion.gz")])


def items(path):
    """The canonical items of a file."""
    stored = path.read_bytes()
    text = gzip.decompress(stored) if stored.startswith(b"\x1f\x8b") else stored
    found = text.decode("utf-8").split("\n")
    if found.pop():
        raise ValueError("the last line does not end")
    return [item(line) for line in found]


def item(line):
    """The canonical item of a line. All readers must find the same in it."""
    if not line.startswith("$ion_1_0 "):
        raise ValueError("a line without a version marker")
    found = []
    for simpleion.c_ext in READERS:
        document = simpleion.loads(line)
        if list(document) != ["Item"]:
            raise ValueError("a line that is no item")
        found.append({name: from_ion(value) for name, value in document["Item"].items()})
    if any(other != found[0] for other in found):
        raise ValueError("two readers found different items")
    return found[0]


def from_ion(value):
    """The canonical form of a value."""
    annotations = [annotation.text for annotation in value.ion_annotations]
    if annotations:
        (annotation,), kind = annotations, SETS[annotations[0]]
        kinds, inside = zip(*(next(iter(from_ion(member).items())) for member in value))
        if set(kinds) != {kind}:
            raise TypeError(f"{annotation} of {set(kinds)}")
        return {f"{kind}S": canonical.members(inside)}
    match value:
        case IonPyNull():
            return {"NULL": True}
        case IonPyBool():
            return {"BOOL": bool(value)}
        case IonPyText() if value.ion_type is IonType.STRING:
            return {"S": str(value)}
        case IonPyDecimal():
            return {"N": canonical.number(Decimal(value))}
        case IonPyBytes() if value.ion_type is IonType.BLOB:
            return {"B": canonical.binary(value)}
        case IonPyDict():
            return {"M": {name: from_ion(element) for name, element in value.items()}}
        case IonPyList() if value.ion_type is IonType.LIST:
            return {"L": [from_ion(element) for element in value]}
    raise TypeError(f"no value of an import: {type(value)}")


if __name__ == "__main__":
    given = canonical.arguments("Prints the items of import files in Ion.", PATH={"type": Path, "nargs": "+"}).parse_args()
    canonical.write((item for path in given.PATH for file in files(path) for item in items(file)), given.without_null)
