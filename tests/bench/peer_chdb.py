"""The job of warehouse.toml done by hand in ClickHouse (chdb), as an analyst would who knows the table.

usage: peer_chdb.py parquet EXPORT FOLDER

Typed Parquet, a file an entity, zstd; the same columns as dynamorph's, but that ClickHouse has no null for lists: an absent one is empty.
It checks nothing: no checksums, counts or limits, and what has no column is lost.
"""

import argparse
import shutil
from pathlib import Path

from chdb import session

REACTIONS = ["confused", "eyes", "heart", "party", "thumbs_up"]


def tuple_of(**fields):
    return "Tuple({})".format(", ".join(f"`{name}` {form}" for name, form in fields.items()))


S, N, B, BOOL = (tuple_of(**{kind: f"Nullable({form})"}) for kind, form in (("S", "String"), ("N", "String"), ("B", "String"), ("BOOL", "Bool")))
SS, NS, L = tuple_of(SS="Array(String)"), tuple_of(NS="Array(String)"), tuple_of(L=f"Array({S})")
ATTRIBUTES = {
    "PK": S, "SK": S, "EntityType": S,
    "name": S, "tier": S, "seats": N, "since": S, "flags": SS, "address": tuple_of(M=tuple_of(city=S, zip=S)),
    "visitId": N, "page": S, "at": S, "millis": N, "score": N, "agent": S,
    "ticketId": S, "subject": S, "state": S, "priority": N, "openedAt": S, "changedAt": S, "bytes": N, "urgent": BOOL, "labels": L, "digest": B,
    "access": tuple_of(M=tuple_of(readers=SS, public=BOOL)), "expiresAt": N,
    "messageId": S, "author": S, "body": S, "sentAt": S, "likes": N, "internal": BOOL,
    "reactions": tuple_of(M=tuple_of(**dict.fromkeys(REACTIONS, N))), "scores": NS,
}


def typed(*columns):
    """Column expressions from `name:type`."""
    forms = {
        "S": "Item.`{0}`.S", "I": "toInt64(Item.`{0}`.N)", "D": "toDecimal64(Item.`{0}`.N, 2)", "BOOL": "Item.`{0}`.BOOL", "SS": "Item.`{0}`.SS",
        "L": "arrayMap(one -> one.S, Item.`{0}`.L)", "B": "toFixedString(base64Decode(Item.`{0}`.B), 32)", "NS": "arrayMap(one -> toInt64(one), Item.`{0}`.NS)",
    }
    split = (column.split(":") for column in columns)
    return [f"{forms[form].format(name)} as `{name}`" for name, form in split]


# What a field of a map becomes, and its type.
FORMS = {"S": ("{}.S", "Nullable(String)"), "BOOL": ("{}.BOOL", "Nullable(Bool)"), "SS": ("{}.SS", "Array(String)"), "I": ("toInt64({}.N)", "Nullable(Int64)")}


def record(name, **fields):
    """The column of a map with these fields."""
    values = ", ".join(FORMS[form][0].format(f"Item.`{name}`.M.`{field}`") for field, form in fields.items())
    return f"tuple({values})::{tuple_of(**{field: FORMS[form][1] for field, form in fields.items()})} as `{name}`"


SELECT = {
    "Customer": typed("name:S", "tier:S", "seats:I", "since:S", "flags:SS") + [record("address", city="S", zip="S")],
    "Visit": typed("visitId:I", "page:S", "at:S", "millis:I", "score:D", "agent:S"),
    "Ticket": typed("ticketId:S", "subject:S", "state:S", "priority:I", "openedAt:S", "changedAt:S", "bytes:I", "urgent:BOOL", "labels:L",
                    "digest:B", "expiresAt:I") + [record("access", public="BOOL", readers="SS")],
    "Message": typed("messageId:S", "author:S", "body:S", "sentAt:S", "likes:I", "internal:BOOL", "scores:NS")
    + [record("reactions", **dict.fromkeys(REACTIONS, "I"))],
}

SPELLED = "lower(substring(coalesce(Item.EntityType.S, ''), 1, 3))"
ENTITY = f"""multiIf(
  {SPELLED} = 'cus', 'Customer', {SPELLED} = 'vis', 'Visit', {SPELLED} = 'tic', 'Ticket', {SPELLED} = 'mes', 'Message',
  Item.SK.S like 'PROFILE#%', 'Customer', Item.SK.S like 'VISIT#%', 'Visit', Item.SK.S like '%#MSG#%', 'Message', 'Ticket')"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=["parquet"])
    parser.add_argument("export", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    base = session.Session()
    structure = f"Item {tuple_of(**ATTRIBUTES)}"
    source = f"file('{options.export.resolve()}/data/*.json.gz', JSONEachRow, '{structure}')"
    ignore = "SETTINGS input_format_json_ignore_unknown_keys_in_named_tuple = 1"
    base.query(f"CREATE TABLE items ENGINE = Memory AS SELECT Item, {ENTITY} AS entity FROM {source} {ignore}")
    for name, columns in SELECT.items():
        out = f"file('{options.folder.resolve()}/{name}.parquet', Parquet)"
        keys = f"Item.PK.S as PK, Item.SK.S as SK, '{name}' as EntityType"
        base.query(
            f"INSERT INTO FUNCTION {out} SELECT {keys}, {', '.join(columns)} FROM items WHERE entity = '{name}'"
            " SETTINGS output_format_parquet_compression_method = 'zstd'"
        )
    base.close()


if __name__ == "__main__":
    main()
