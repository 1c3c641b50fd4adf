"""Prints the items of a full export in canonical form, sorted. Independent of dynamorph: values are read by boto3.

usage: read_export.py [--without-null] FOLDER

FOLDER holds manifest-summary.json, itself or in AWSDynamoDB/ID/ below it. The manifest is followed; counts and checksums are compared.
"""

import base64
import gzip
import hashlib
import sys
from decimal import Decimal
from pathlib import Path

import canonical
from boto3.dynamodb.types import Binary, TypeDeserializer


class Deserializer(TypeDeserializer):
    """boto3's own, but for numbers: boto3 refuses 10^125 in plain digits, since it counts the zeros too."""

    def _deserialize_n(self, value):
        return Decimal(value)


def find(folder):
    """The export folder at or below `folder`."""
    found = [folder] if (folder / "manifest-summary.json").exists() else sorted(folder.glob("**/AWSDynamoDB/*/manifest-summary.json"))
    if len(found) != 1:
        sys.exit(f"{folder}: expected one export, found {len(found)}")
    return found[0] if found[0].is_dir() else found[0].parent


def lines(export):
    """The lines of all data files that the manifest names."""
    summary_bytes = (export / "manifest-summary.json").read_bytes()
    list_bytes = (export / "manifest-files.json").read_bytes()
    for name, content in (("manifest-summary.md5", summary_bytes), ("manifest-files.md5", list_bytes)):
        check(name, md5(content), (export / name).read_text())
    total = 0
    for entry in map(canonical.parse, list_bytes.splitlines()):
        name = entry["dataFileS3Key"].rsplit("/", 1)[1]
        # All incremental exports of a folder have their data in one.
        shared = "/AWSDynamoDB/data/" in "/" + entry["dataFileS3Key"]
        stored = ((export.parent if shared else export) / "data" / name).read_bytes()
        check(name, md5(stored), entry["md5Checksum"])
        found = gzip.decompress(stored).split(b"\n")
        check(name, found.pop(), b"")
        check(name, len(found), entry["itemCount"])
        total += len(found)
        yield from found
    check("manifest-summary.json", total, canonical.parse(summary_bytes)["itemCount"])


def md5(content):
    return base64.b64encode(hashlib.md5(content).digest()).decode("ascii")


def check(name, found, expected):
    if found != expected:
        sys.exit(f"{name}: expected {expected}, found {found}")


def decode_binary(value):
    """A value as boto3 gets it from the service's own parser: binary as bytes."""
    (kind, inside), = value.items()
    match kind:
        case "B":
            return {kind: base64.b64decode(inside, validate=True)}
        case "BS":
            return {kind: [base64.b64decode(member, validate=True) for member in inside]}
        case "M":
            return {kind: {name: decode_binary(element) for name, element in inside.items()}}
        case "L":
            return {kind: [decode_binary(element) for element in inside]}
    return value


def from_python(value):
    """The canonical form of what boto3 made of a value."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case Decimal():
            return {"N": canonical.number(value)}
        case Binary():
            return {"B": canonical.binary(value.value)}
        case dict():
            return {"M": {name: from_python(element) for name, element in value.items()}}
        case list():
            return {"L": [from_python(element) for element in value]}
        case set():
            kinds, inside = zip(*(next(iter(from_python(member).items())) for member in value))
            return {f"{kinds[0]}S": canonical.members(inside)}
    raise TypeError(f"no DynamoDB value: {type(value)}")


def canonical_item(attributes):
    """The canonical form of typed attributes, as boto3 reads them."""
    deserializer = Deserializer()
    return {name: from_python(deserializer.deserialize(decode_binary(value))) for name, value in attributes.items()}


def items(folder):
    """The items of the export in canonical form."""
    for text in lines(find(folder)):
        yield canonical_item(canonical.parse(text)["Item"])


if __name__ == "__main__":
    given = canonical.arguments("Prints the items of a full export.", FOLDER={"type": Path}).parse_args()
    canonical.write(items(given.FOLDER), given.without_null)
