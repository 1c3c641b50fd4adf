"""Writes full exports that are hard to write as Parquet. The same arguments give the same bytes.

usage: make_hard_export.py KIND FOLDER [--items N]

KIND is one of
  wide    2,000 attributes in one entity, each in a few items, later ones in later files only
  uneven  400 attributes, the first in nearly every item, the last in hardly any; now and then a text of up to 300 KB
  late    narrow types all the way, until the very last item of the last file has others
  early   the same, but the first item of the first file has the others
  odd     every type, spelling, width and name that DynamoDB takes, nested, mixed and empty; what there is changes from item to item. The
          items of a second entity, Typed, have fewer attributes with keys that are data, so that all have columns of their own

Keys are PK and SK, in each item; EntityType is the kind with a capital letter. Prints the folder of the export. Data files are of many sizes,
so that units of work and chunks see different attributes and types.
"""

import argparse
import base64
import gzip
import hashlib
import json
import random
import string
from pathlib import Path

import canonical

FILES = 8
ITEMS = {"wide": 2_000, "uneven": 1_200, "late": 6_000, "early": 6_000, "odd": 6_000}
LARGE = 300_000

CHARACTERS = [*string.ascii_letters, *string.digits, *' _-#.:/"\\\'`$%{}[]()', "\0", "\1", "\t", "\n", "\r", "\x7f", "\x85", "é", "ß", "名", "\u2028", "\ufeff", "\uffff", "👍", "🏳️‍🌈", "\U0010ffff"]


def text(dice, most=20):
    return {"S": "".join(dice.choices(CHARACTERS, k=dice.randint(0, most)))}


def word(dice):
    return {"S": dice.choice(["draft", "open", "solved", "", "größe"])}


def number(value):
    return {"N": str(value)}


def spelled(dice, value):
    """An integer in one of the spellings that a number may have."""
    return number(dice.choice([f"{value}", f"{value}", f"{value}.0", f"{value}E0", f"{value}0e-1", f"{value}.000", f"-{value}" if value == 0 else f"{value}"]))


def small(dice):
    return spelled(dice, dice.choice([0, 0, 1, -1, dice.randint(-1000, 1000)]))


def integer(dice):
    return number(dice.choice([-(2**63), 2**63 - 1, 0, dice.randint(-(2**63), 2**63 - 1)]))


def beyond(dice):
    """An integer of up to 38 digits."""
    return number(dice.choice(["-", ""]) + str(dice.randint(10 ** (digits := dice.randrange(38)), 10 ** (digits + 1) - 1)))


def money(dice):
    return number(dice.choice([f"{dice.randint(-99999, 99999)}.{dice.randrange(100):02}", f"{dice.randint(0, 999)}E-2", "0.00", "-0.0", "5"]))


def precise(dice):
    """38 digits, a point anywhere."""
    digits = str(dice.randint(10**37, 10**38 - 1))
    at = dice.randrange(39)
    return number(f"{digits[:at] or '0'}.{digits[at:]}" if at < 38 else digits)


def exact(dice):
    """Up to 38 digits, 20 of them after the point."""
    return number(f"{dice.choice(['-', ''])}{dice.randrange(10 ** dice.randrange(1, 19))}.{dice.randrange(10**20):020}")


def extreme(dice):
    """From the least to the greatest that there is."""
    return number(dice.choice(["1E125", "-9.9999999999999999999999999999999999999E+125", "1e-130", "-1E-130", "1" + "0" * 125, "-0", "1.0", "0." + "0" * 129 + "1", "1E38", "1E37"]))


def binary(dice):
    return {"B": base64.b64encode(dice.randbytes(dice.choice([0, 1, 2, 3, 16, 40]))).decode()}


def boolean(dice):
    return {"BOOL": dice.random() < 0.5}


def null(_dice):
    return {"NULL": True}


def distinct(dice, kind, make, most=5):
    """A set of such members, distinct by value."""
    members = {}
    for _ in range(dice.randint(1, most)):
        member = make(dice)
        members.setdefault(json.dumps(canonical.tagged(member)), member[kind])
    return {kind + "S": list(members.values())}


def texts(dice):
    return distinct(dice, "S", text)


def numbers(dice):
    return distinct(dice, "N", dice.choice([small, money]))


def wide_numbers(dice):
    return distinct(dice, "N", dice.choice([precise, extreme, integer]))


def binaries(dice):
    return distinct(dice, "B", binary)


def sometimes(dice, make, otherwise=null, share=0.1):
    return otherwise(dice) if dice.random() < share else make(dice)


def list_of(make, most=4):
    return lambda dice: {"L": [sometimes(dice, make) for _ in range(dice.randint(0, most))]}


def map_of(keys, make, most=4):
    """A map whose keys are data."""
    return lambda dice: {"M": {keys(dice): sometimes(dice, make) for _ in range(dice.randint(0, most))}}


def record(**makers):
    """A map whose keys are chosen; each is there or not."""
    return lambda dice: {"M": {name: sometimes(dice, make) for name, make in makers.items() if dice.random() < 0.7}}


def day(dice):
    return f"2026-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"


def identity(dice):
    return f"u-{dice.getrandbits(24):06x}"


def chosen(dice):
    return dice.choice(["a", "A", "a.b", "a__s", "näme", "👍", "key_value", "element", "list"])


def nested(levels, make):
    for level in range(levels):
        make = list_of(make, 2) if level % 3 == 0 else record(**{f"in{level}": make, "n": small}) if level % 3 == 1 else map_of(identity, make, 2)
    return make


SCALARS = [text, word, small, integer, beyond, money, precise, extreme, binary, boolean, null]
SETS = [texts, numbers, wide_numbers, binaries]


def anything(dice, levels=5):
    """A value of any type."""
    inside = lambda dice: anything(dice, levels - 1)
    made = dice.choice([*SCALARS, *SETS] + ([list_of(inside, 3), map_of(lambda dice: dice.choice(["", chosen(dice)]), inside, 3)] * 3 if levels else []))
    return made(dice)


def either(*makers):
    """The first mostly, else one of the others."""
    return lambda dice: (makers[0] if dice.random() < 0.9 else dice.choice(makers))(dice)


NO_LIST, NO_MAP = (lambda _: {"L": []}), (lambda _: {"M": {}})

# How often an attribute is there, the share of items before its first one, and what it holds.
ODD = {
    "text": (0.9, 0, text), "word": (0.9, 0, word), "small": (0.9, 0, small), "integer": (0.5, 0, integer), "beyond": (0.3, 0.2, beyond),
    "money": (0.8, 0, money), "precise": (0.3, 0.5, precise), "exact": (0.4, 0, exact), "extreme": (0.2, 0, extreme), "binary": (0.4, 0, binary), "flag": (0.5, 0, boolean),
    "only null": (0.3, 0, null), "no list": (0.2, 0, NO_LIST), "no map": (0.2, 0, NO_MAP),
    # What widens after a while.
    "grows": (0.7, 0, small), "grows, too": (0.7, 0, small), "late": (0.5, 0.99, anything), "rare": (0.001, 0, text),
    "texts": (0.4, 0, texts), "numbers": (0.4, 0, numbers), "wide numbers": (0.2, 0.3, wide_numbers), "binaries": (0.2, 0, binaries),
    "list": (0.5, 0, list_of(word)), "list of numbers": (0.4, 0, list_of(money)), "list of lists": (0.2, 0, list_of(list_of(small))),
    "list of sets": (0.2, 0, list_of(numbers)), "list of records": (0.3, 0, list_of(record(a=word, b=money, c=list_of(binary)))),
    "mixed list": (0.3, 0, list_of(either(small, text, binaries, NO_MAP))), "list of null": (0.1, 0, list_of(null)),
    "record": (0.6, 0, record(city=word, zip=small, box=null, tags=texts, seen=map_of(day, small))),
    "mixed record": (0.4, 0, record(a=either(small, text), b=either(NO_MAP, record(c=small)), A=boolean)),
    "by day": (0.4, 0, map_of(day, small)), "by user": (0.4, 0, map_of(identity, record(role=word, since=lambda dice: {"S": day(dice)}))),
    "by user, mixed": (0.2, 0.1, map_of(identity, either(small, text, NO_LIST))), "by name": (0.3, 0, map_of(chosen, small)),
    "deep": (0.2, 0, nested(7, word)), "deeper": (0.1, 0, nested(14, small)), "deepest": (0.02, 0, nested(31, text)),
    # Several types under one name, and the names that their columns would have.
    "mixed": (0.7, 0, either(small, text, boolean, list_of(word), record(x=small))), "mixed__s": (0.3, 0, word), "mixed__l": (0.2, 0, small),
    "mixed__s_": (0.1, 0, boolean), "sets or lists": (0.3, 0, either(texts, list_of(text), numbers, binaries)), "any": (0.5, 0, anything),
    "numbers or text": (0.4, 0, either(money, word)), "null or number": (0.4, 0, either(null, small)),
    # Names.
    "Kind": (0.3, 0, word), "kind": (0.3, 0, small), "KIND": (0.1, 0, either(boolean, word)), "__rest": (0.1, 0, word), "__rest_": (0.1, 0.4, small),
    "größe": (0.2, 0, money), "名前": (0.2, 0, text), "👍": (0.2, 0, small), "a.b": (0.2, 0, word), "a[0]": (0.2, 0, small), "a": (0.2, 0, record(b=word)),
    "it's": (0.1, 0, word), 'q"uote`': (0.1, 0, word), "line\nbreak\ttab": (0.1, 0, word), " ": (0.1, 0, small), "\0": (0.05, 0, word),
    "select": (0.1, 0, word), "_op": (0.1, 0, word), "_written_at": (0.1, 0, small), "n" * 1025: (0.02, 0, either(word, small)),
    "e\u0301": (0.1, 0, word), "\u00e9": (0.1, 0, small),
}


# Several attributes with so many keys leave no room for the names of others, which then share a column. ClickHouse cannot tell `a.b` from `b` in `a`.
NOT_TYPED = {"any", "late", "deep", "deeper", "deepest", "by day", "by user, mixed", "a.b"}


def odd(dice, at, items):
    entity = dice.choice(["Odd", "Typed"])
    attributes = {"EntityType": {"S": entity}}
    for name, (share, start, make) in ODD.items():
        if entity == "Typed" and name in NOT_TYPED:
            continue
        if at >= start * items and dice.random() < share:
            attributes[name] = sometimes(dice, make, share=0.03)
    if at > 0.7 * items and "grows" in attributes:
        attributes["grows"] = either(small, money)(dice)
        attributes["grows, too"] = either(small, beyond)(dice)
    if at == items - 1:
        attributes["grows, too"] = {"M": {"at": {"L": [{"S": "last"}]}}}
        attributes["only at the end"] = {"SS": ["a", "b"]}
    return attributes


def wide(dice, at, items):
    makers = [small, word, money, boolean, binary, texts, list_of(small, 2), integer]
    known = 1 + 1_999 * (at + 1) // items
    picked = {dice.randrange(known) for _ in range(60)} | {known - 1}
    return {f"a{name:04}": makers[name % len(makers)](dice) for name in sorted(picked)}


def uneven(dice, at, items):
    makers = [text, small, money, list_of(word, 3), map_of(day, small), word, record(a=small, b=text), extreme]
    attributes = {}
    for name in range(400):
        # The first in nine of ten items, the last in one of a thousand.
        if dice.random() < 0.9 * 0.001 ** (name / 399):
            attributes[f"c{name}"] = makers[name % len(makers)](dice)
    if at % 40 == 7:
        attributes[f"c{dice.randrange(400) // 8 * 8}"] = {"S": "".join(dice.choices(CHARACTERS[:60], k=64)) * dice.randint(100, LARGE // 64)}
    return attributes


NARROW = {
    "int to text": ({"N": "7"}, {"S": "seven"}), "int to decimal": ({"N": "7"}, {"N": "0.125"}), "int to wide": ({"N": "7"}, {"N": "1E125"}),
    "int to 38 digits": ({"N": "7"}, {"N": "9" * 38}), "decimal to decimal": ({"N": "7.5"}, {"N": "12345678901234567890.123"}),
    "decimal to text": ({"N": "0.00001"}, {"N": "1" + "0" * 37}), "text to map": ({"S": "x"}, {"M": {"y": {"N": "1"}}}), "number to map": ({"N": "1"}, {"M": {}}),
    "bool to list": ({"BOOL": True}, {"L": [{"S": "x"}]}), "map to text": ({"M": {"y": {"N": "1"}}}, {"S": "x"}), "set to set": ({"SS": ["a"]}, {"NS": ["1"]}),
    "numbers to decimals": ({"NS": ["1"]}, {"NS": ["1.5", "2"]}), "list to mixed": ({"L": [{"N": "1"}]}, {"L": [{"S": "a"}]}),
    "list to decimals": ({"L": [{"N": "1"}]}, {"L": [{"N": "0.5"}]}), "empty to list": ({"L": []}, {"L": [{"N": "1"}]}),
    "empty to map": ({"M": {}}, {"M": {"a": {"S": "b"}}}), "field": ({"M": {"a": {"N": "1"}}}, {"M": {"a": {"N": "1"}, "b": {"S": "new"}}}),
    "field to text": ({"M": {"a": {"N": "1"}}}, {"M": {"a": {"S": "one"}}}), "field to decimal": ({"M": {"a": {"N": "1"}}}, {"M": {"a": {"N": "1.5"}}}),
    "struct to map": ({"M": {"a": {"N": "1"}}}, {"M": {f"k{at}": {"N": str(at)} for at in range(70)}}),
    "struct to json": ({"M": {"a": {"N": "1"}}}, {"M": {f"k{at}": {"N": "1"} if at % 2 else {"S": "1"} for at in range(70)}}),
    "null to text": ({"NULL": True}, {"S": "x"}), "null to map": ({"NULL": True}, {"M": {"a": {"N": "1"}}}), "text to null": ({"S": "x"}, {"NULL": True}),
    "list of maps": ({"L": [{"M": {"a": {"N": "1"}}}]}, {"L": [{"M": {"b": {"S": "x"}, "a": {"N": "0.5"}}}, {"NULL": True}]}),
    "stays": ({"S": "same"}, {"S": "same"}),
}


def last_differs(dice, at, items, which):
    """What every item has in the first of two forms, and one of them in the second; it has two attributes more."""
    attributes = {"at": number(at), "filler": {"S": dice.randbytes(40).hex()}}
    for name, (narrow, other) in NARROW.items():
        if at == which:
            attributes[name] = other
        elif dice.random() < 0.8:
            attributes[name] = narrow
    if at == which:
        attributes["only here"] = {"N": "-0"}
        attributes["int to text__s"] = {"S": "taken"}
    return attributes


KINDS = {
    "wide": wide,
    "uneven": uneven,
    "late": lambda dice, at, items: last_differs(dice, at, items, items - 1),
    "early": lambda dice, at, items: last_differs(dice, at, items, 0),
    "odd": odd,
}


def lines(kind, items):
    """The lines of all items, one after the other."""
    dice = random.Random(f"hard {kind}")
    for at in range(items):
        attributes = KINDS[kind](dice, at, items)
        attributes = {"EntityType": {"S": kind.title()}} | attributes | {"PK": {"S": f"P#{at % 97}"}, "SK": {"S": f"S#{at:09}"}}
        names = list(attributes)
        dice.shuffle(names)
        item = {"Item": {name: attributes[name] for name in names}}
        yield json.dumps(item, ensure_ascii=dice.random() < 0.5, separators=(",", ":")) + "\n"


def write(folder, kind, items):
    """Writes the export; gives its folder."""
    name = f"{1_767_225_600_000 + items:014}-{hashlib.sha256(kind.encode()).hexdigest()[:8]}"
    prefix = f"AWSDynamoDB/{name}"
    export = folder / prefix
    (export / "data").mkdir(parents=True)
    made = lines(kind, items)
    entries = []
    # The last file is the smallest, so it is the last one to be read too.
    cuts = [items - items * (FILES - at) ** 2 // FILES**2 for at in range(FILES + 1)]
    for at, (start, end) in enumerate(zip(cuts, cuts[1:])):
        stored = gzip.compress("".join(next(made) for _ in range(start, end)).encode(), 1, mtime=0)
        file = f"{hashlib.sha256(f'{name}/{at}'.encode()).hexdigest()[:26]}.json.gz"
        (export / "data" / file).write_bytes(stored)
        entries.append({"itemCount": end - start, "md5Checksum": md5(stored), "etag": "0-1", "dataFileS3Key": f"{prefix}/data/{file}"})
    table = "arn:aws:dynamodb:us-east-1:123456789012:table/hard"
    summary = {
        "version": "2020-06-30",
        "exportArn": f"{table}/export/{name}",
        "startTime": "2026-01-01T00:00:00.000Z",
        "endTime": "2026-01-01T00:05:00.000Z",
        "tableArn": table,
        "tableId": "00000000-0000-0000-0000-000000000000",
        "exportTime": "2026-01-01T00:00:00.000Z",
        "s3Bucket": "example-bucket",
        "s3Prefix": None,
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{prefix}/manifest-files.json",
        "billedSizeBytes": 0,
        "itemCount": items,
        "outputFormat": "DYNAMODB_JSON",
        "exportType": "FULL_EXPORT",
    }
    listing = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries).encode()
    for stem, content in (("manifest-files", listing), ("manifest-summary", json.dumps(summary, separators=(",", ":")).encode())):
        (export / f"{stem}.json").write_bytes(content)
        (export / f"{stem}.md5").write_text(md5(content))
    return export


def md5(content):
    return base64.b64encode(hashlib.md5(content).digest()).decode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=[*KINDS])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int)
    given = parser.parse_args()
    print(write(given.folder, given.kind, given.items or ITEMS[given.kind]))
