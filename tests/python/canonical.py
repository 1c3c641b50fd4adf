"""One text for each item, whoever read it: DynamoDB JSON with every freedom taken away.

Names are sorted, sets are sorted, numbers have one spelling, binary is base64. Two items are equal when their texts are.
Reads no files; that is done by the programs beside it.
"""

import argparse
import base64
import json
import sys
from decimal import Decimal


def number(value):
    """The one spelling of a number: plain, no exponent, no needless zeros. Takes int, Decimal, float or text; never rounds."""
    if isinstance(value, bool):
        raise TypeError("a boolean is no number")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ValueError("not a finite number")
    text = format(exact, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def binary(value):
    """Base64 with padding, from bytes."""
    return base64.b64encode(bytes(value)).decode("ascii")


def tagged(value):
    """The canonical form of a value in DynamoDB JSON, such as {"NS": ["1.0"]}."""
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("a value must have exactly one type")
    (kind, inside), = value.items()
    return {kind: untagged(kind, inside)}


def untagged(kind, inside):
    """The canonical form of what stands behind the descriptor `kind`."""
    match kind:
        case "S" if isinstance(inside, str):
            return inside
        case "N" if isinstance(inside, str):
            return number(inside)
        case "B" if isinstance(inside, str):
            return binary(base64.b64decode(inside, validate=True))
        case "BOOL" if isinstance(inside, bool):
            return inside
        case "NULL" if inside is True:
            return True
        case "M" if isinstance(inside, dict):
            return {name: tagged(value) for name, value in inside.items()}
        case "L" if isinstance(inside, list):
            return [tagged(value) for value in inside]
        case "SS" | "NS" | "BS" if isinstance(inside, list) and inside:
            return members(untagged(kind[0], member) for member in inside)
    raise ValueError(f"not a value of type {kind}")


def members(canonical_members):
    """The members of a set, sorted; a member that is there twice is an error."""
    found = sorted(canonical_members)
    if len(set(found)) != len(found):
        raise ValueError("a set holds a member twice")
    return found


def without_null(value):
    """The canonical value without NULLs in maps, which in a column are the same as no value. NULLs in lists stay."""
    (kind, inside), = value.items()
    if kind == "M":
        return {kind: drop_null(inside)}
    if kind == "L":
        return {kind: [without_null(element) for element in inside]}
    return value


def drop_null(attributes):
    """The attributes of an item or map without those that are NULL."""
    return {name: without_null(value) for name, value in attributes.items() if "NULL" not in value}


def drop_empty(attributes):
    """The attributes of an item or map without lists and maps in which there is nothing; in a list such an element is NULL."""
    return {name: inside for name, value in attributes.items() if (inside := _without_empty(value)) is not None}


def _without_empty(value):
    """The canonical value without what is empty in it; None when nothing remains."""
    (kind, inside), = value.items()
    if kind == "M":
        inside = drop_empty(inside)
    elif kind == "L":
        inside = [_without_empty(element) or {"NULL": True} for element in inside]
    return None if inside == {} or inside == [] else {kind: inside}


def line(item):
    """The text of a canonical item."""
    return json.dumps(item, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def parse(text):
    """JSON in which no name may stand twice."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def arguments(description, **paths):
    """The command line that all readers have: paths, and `--without-null`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--without-null", action="store_true", help="leave out NULLs in items and maps, as columns do")
    for name, options in paths.items():
        parser.add_argument(name, **options)
    return parser


def write(items, drop):
    """Prints canonical items, a line each, sorted."""
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for text in sorted(line(drop_null(item) if drop else item) for item in items):
        print(text)
