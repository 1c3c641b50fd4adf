"""Writes a full export of a helpdesk's single table, as DynamoDB would: gzipped DynamoDB JSON or Amazon Ion with its manifest.

usage: make_export.py FOLDER --items N [--files F] [--first I] [--format json|ion]

The same arguments give the same bytes. Four entities in one table; 2 % of the items have no type, 2 % one that drifted; attributes come in
any order. Keys are unique: each holds the item's number, which starts at I. Prints the folder of the export.
"""

import argparse
import base64
import gzip
import hashlib
import json
import multiprocessing
import random
import re
from decimal import Decimal
from pathlib import Path

WORDS = (
    "account again answer attached before billing broken button cannot change check customer daily error export fails file first fixed "
    "follow gateway heute import invoice issue later login mañana message minute month network order page password please printer report "
    "request restart screen server session since slow still support thanks ticket today token update upload user version waiting works "
    "größer 請求書 ✅ 👍 C:\\temp \"quoted\" line\nbreak tab\there"
).split(" ")
TIERS = ["free", "standard", "premium"]
STATES = ["open", "pending", "solved", "closed"]
LABELS = ["billing", "bug", "how-to", "outage", "printer", "refund", "slow", "vip"]
PAGES = ["/", "/faq", "/faq/reset", "/invoices", "/status", "/tickets/new"]
REACTIONS = ["thumbs_up", "heart", "eyes", "party", "confused"]

NO_TYPE = 0.02
DRIFT = 0.02


def words(dice, least, most):
    return " ".join(dice.choices(WORDS, k=dice.randint(least, most)))


def moment(dice):
    day, second = dice.randrange(365), dice.randrange(86_400)
    return f"2026-{day // 31 + 1:02}-{day % 28 + 1:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def agent(dice):
    return f"agent-{dice.randrange(5_000)}"


def customer(dice, number):
    return "Customer", f"PROFILE#{number:09}", {
        "name": {"S": words(dice, 1, 3)},
        "tier": {"S": dice.choice(TIERS)},
        "seats": {"N": str(dice.randint(1, 2_000))},
        "since": {"S": moment(dice)},
        "flags": {"SS": dice.sample(LABELS, dice.randint(1, 3))},
        "address": {"M": {"city": {"S": dice.choice(["Köln", "Lyon", "東京", "Austin"])}, "zip": {"S": f"{dice.randrange(100_000):05}"}, "box": {"NULL": True}}},
    }


def visit(dice, number):
    return "Visit", f"VISIT#{moment(dice)[:10]}#{number:09}", {
        "visitId": {"N": str(number)},
        "page": {"S": dice.choice(PAGES)},
        "at": {"S": moment(dice)},
        "millis": {"N": str(dice.randrange(1, 600_000))},
        "score": {"N": f"{dice.random() * 100:.2f}"},
        "agent": {"S": agent(dice)},
    }


def ticket(dice, number):
    attributes = {
        "ticketId": {"S": f"{dice.getrandbits(128):032x}"},
        "subject": {"S": words(dice, 2, 8)},
        "state": {"S": dice.choice(STATES)},
        "priority": {"N": str(dice.randint(1, 5))},
        "openedAt": {"S": moment(dice)},
        "changedAt": {"S": moment(dice)},
        "bytes": {"N": str(dice.getrandbits(30))},
        "urgent": {"BOOL": dice.random() < 0.1},
        "labels": {"L": [{"S": label} for label in dice.choices(LABELS, k=dice.randint(0, 4))]},
        "digest": {"B": base64.b64encode(dice.randbytes(32)).decode()},
        "access": {"M": {"readers": {"SS": [f"agent-{one}" for one in dice.sample(range(5_000), dice.randint(1, 4))]}, "public": {"BOOL": False}}},
    }
    if dice.random() < 0.3:
        attributes["expiresAt"] = {"N": str(1_767_225_600 + dice.randrange(31_536_000))}
    return "Ticket", f"TICKET#{number:09}", attributes


def message(dice, number):
    attributes = {
        "messageId": {"S": f"msg_{dice.getrandbits(100):025x}"},
        "author": {"S": agent(dice)},
        "body": {"S": words(dice, 5, 40)},
        "sentAt": {"S": moment(dice)},
        "likes": {"N": str(int(dice.paretovariate(1.5)))},
        "internal": {"BOOL": dice.random() < 0.2},
    }
    if dice.random() < 0.2:
        attributes["reactions"] = {"M": {name: {"N": str(dice.randint(1, 50))} for name in dice.sample(REACTIONS, dice.randint(1, 3))}}
    if dice.random() < 0.1:
        attributes["scores"] = {"NS": [str(score) for score in dice.sample(range(1, 100), 3)]}
    return "Message", f"TICKET#{dice.randint(0, number):09}#MSG#{number:09}", attributes


def ion_number(text):
    """A decimal as exports have it: zeros at the end move into the exponent."""
    sign, digits, exponent = Decimal(text).as_tuple()
    digits = "".join(map(str, digits))
    while exponent < 0 and digits.endswith("0"):
        digits, exponent = digits[:-1], exponent + 1
    if exponent >= 0:
        stripped = digits.rstrip("0") or "0"
        exponent = 0 if stripped == "0" else exponent + len(digits) - len(stripped)
        text = f"{stripped}d{exponent}" if exponent else f"{stripped}."
    else:
        digits = digits.rjust(1 - exponent, "0")
        text = f"{digits[:exponent]}.{digits[exponent:]}"
    return "-" * sign + text


def ion(value):
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return json.dumps(content, ensure_ascii=False)
        case "N":
            return ion_number(content)
        case "B":
            return "{{" + content + "}}"
        case "BOOL":
            return "true" if content else "false"
        case "NULL":
            return "null"
        case "M":
            return ion_struct(content)
        case "L":
            return "[" + ",".join(map(ion, content)) + "]"
        case _:
            return f"$dynamodb_{kind}::[" + ",".join(ion({kind[0]: member}) for member in content) + "]"


def ion_struct(attributes):
    name = lambda name: name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else f"'{name}'"
    return "{" + ",".join(f"{name(key)}:{ion(attributes[key])}" for key in sorted(attributes)) + "}"


def line(dice, number, form):
    share = dice.random()
    make = customer if share < 0.02 else visit if share < 0.10 else ticket if share < 0.40 else message
    kind, sort, attributes = make(dice, number)
    # Few customers have most of the items.
    attributes["PK"] = {"S": f"CUST#{int(dice.paretovariate(1.1) % 100_000):06}"}
    attributes["SK"] = {"S": sort}
    told = dice.random()
    if told >= NO_TYPE:
        spelling = dice.choice([kind.lower(), kind.upper(), kind[:3], kind + " "]) if told < NO_TYPE + DRIFT else kind
        attributes["EntityType"] = {"S": spelling}
    names = list(attributes)
    dice.shuffle(names)
    if form == "ion":
        return f" $ion_1_0 {{Item:{ion_struct(attributes)}}}\n"
    return json.dumps({"Item": {name: attributes[name] for name in names}}, separators=(",", ":"), ensure_ascii=False) + "\n"


def data_file(job):
    path, first, count, form = job
    # Each file has its own dice, so that files can be made side by side.
    dice = random.Random(f"{first}/{count}")
    text = "".join(line(dice, number, form) for number in range(first, first + count)).encode()
    stored = gzip.compress(text, 6, mtime=0)
    path.write_bytes(stored)
    return md5(stored)


def md5(content):
    return base64.b64encode(hashlib.md5(content).digest()).decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, required=True)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--format", choices=["json", "ion"], default="json")
    options = parser.parse_args()
    name = f"{1_767_225_600_000 + options.items:014}-{options.first:08x}"
    prefix = f"AWSDynamoDB/{name}"
    export = options.folder / prefix
    (export / "data").mkdir(parents=True, exist_ok=True)
    cuts = [options.items * at // options.files for at in range(options.files + 1)]
    jobs = [
        (export / "data" / f"{hashlib.sha256(f'{name}/{at}'.encode()).hexdigest()[:26]}.{options.format}.gz", options.first + start, end - start, options.format)
        for at, (start, end) in enumerate(zip(cuts, cuts[1:]))
    ]
    with multiprocessing.Pool() as pool:
        sums = pool.map(data_file, jobs, chunksize=1)
    entries = [
        {"itemCount": count, "md5Checksum": checksum, "etag": f"{base64.b64decode(checksum).hex()}-1", "dataFileS3Key": f"{prefix}/data/{path.name}"}
        for (path, _, count, _), checksum in zip(jobs, sums)
    ]
    summary = {
        "version": "2020-06-30",
        "exportArn": f"arn:aws:dynamodb:us-east-1:123456789012:table/helpdesk/export/{name}",
        "startTime": "2026-01-01T00:00:00.000Z",
        "endTime": "2026-01-01T00:05:00.000Z",
        "tableArn": "arn:aws:dynamodb:us-east-1:123456789012:table/helpdesk",
        "tableId": "00000000-0000-0000-0000-000000000000",
        "exportTime": "2026-01-01T00:00:00.000Z",
        "s3Bucket": "example-bucket",
        "s3Prefix": None,
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{prefix}/manifest-files.json",
        "billedSizeBytes": sum(path.stat().st_size for path, *_ in jobs),
        "itemCount": options.items,
        "outputFormat": "ION" if options.format == "ion" else "DYNAMODB_JSON",
        "exportType": "FULL_EXPORT",
    }
    listing = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries).encode()
    for stem, content in (("manifest-files", listing), ("manifest-summary", json.dumps(summary, separators=(",", ":")).encode())):
        (export / f"{stem}.json").write_bytes(content)
        (export / f"{stem}.md5").write_text(md5(content))
    print(export)


if __name__ == "__main__":
    main()
