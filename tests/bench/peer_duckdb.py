"""The jobs of warehouse.toml and tables.toml done by hand in DuckDB, as an analyst would who knows the table.

usage: peer_duckdb.py parquet|import EXPORT FOLDER [--threads N]

parquet: typed Parquet, a file an entity, zstd. The columns are written out by hand, since DuckDB cannot know DynamoDB's types.
import: gzipped DynamoDB JSON, a file a table, messages under their new keys.
It checks nothing: no checksums, counts, keys that collide, item sizes or limits, and what has no column is lost.
"""

import argparse
import shutil
from pathlib import Path

import duckdb

S, N, B, BOOL, SS = "STRUCT(S VARCHAR)", "STRUCT(N VARCHAR)", "STRUCT(B VARCHAR)", 'STRUCT("BOOL" BOOLEAN)', "STRUCT(SS VARCHAR[])"
REACTIONS = ["confused", "eyes", "heart", "party", "thumbs_up"]
ATTRIBUTES = {
    "PK": S, "SK": S, "EntityType": S,
    "name": S, "tier": S, "seats": N, "since": S, "flags": SS, "address": f"STRUCT(M STRUCT(city {S}, zip {S}))",
    "visitId": N, "page": S, "at": S, "millis": N, "score": N, "agent": S,
    "ticketId": S, "subject": S, "state": S, "priority": N, "openedAt": S, "changedAt": S, "bytes": N, "urgent": BOOL,
    "labels": f"STRUCT(L {S}[])", "digest": B, "access": f"STRUCT(M STRUCT(readers {SS}, public {BOOL}))", "expiresAt": N,
    "messageId": S, "author": S, "body": S, "sentAt": S, "likes": N, "internal": BOOL,
    "reactions": "STRUCT(M STRUCT({}))".format(", ".join(f"{name} {N}" for name in REACTIONS)), "scores": "STRUCT(NS VARCHAR[])",
}


def typed(*columns):
    """Column expressions from `name:type`."""
    forms = {
        "S": '"{0}".S', "I": '"{0}".N::BIGINT', "D": '"{0}".N::DECIMAL(18,2)', "BOOL": '"{0}"."BOOL"', "SS": '"{0}".SS',
        "L": 'list_transform("{0}".L, lambda one: one.S)', "B": 'from_base64("{0}".B)',
        "NS": 'list_transform("{0}".NS, lambda one: one::BIGINT)',
    }
    split = (column.split(":") for column in columns)
    return [f'{forms[form].format(name)} as "{name}"' for name, form in split]


def record(name, **fields):
    """The column of a map with these fields; absent where the map is."""
    packed = ", ".join(f"{field} := {name}.M.{field}.{inside}" for field, inside in fields.items())
    return f"case when {name} is not null then struct_pack({packed}) end as {name}"


SELECT = {
    "Customer": typed("name:S", "tier:S", "seats:I", "since:S", "flags:SS") + [record("address", city="S", zip="S")],
    "Visit": typed("visitId:I", "page:S", "at:S", "millis:I", "score:D", "agent:S"),
    "Ticket": typed("ticketId:S", "subject:S", "state:S", "priority:I", "openedAt:S", "changedAt:S", "bytes:I", "urgent:BOOL", "labels:L",
                    "digest:B", "expiresAt:I") + [record("access", public='"BOOL"', readers="SS")],
    "Message": typed("messageId:S", "author:S", "body:S", "sentAt:S", "likes:I", "internal:BOOL", "scores:NS")
    + [record("reactions", **dict.fromkeys(REACTIONS, "N::BIGINT"))],
}

ENTITY = """case lower(trim({type}))[1:3] when 'cus' then 'Customer' when 'vis' then 'Visit' when 'tic' then 'Ticket' when 'mes' then 'Message'
  else case when {sort} like 'PROFILE#%' then 'Customer' when {sort} like 'VISIT#%' then 'Visit'
            when {sort} like '%#MSG#%' then 'Message' else 'Ticket' end end"""


def parquet(base, files, out):
    item = "STRUCT({})".format(", ".join(f'"{name}" {form}' for name, form in ATTRIBUTES.items())).replace("'", "''")
    base.execute(
        f"create temp table items as select Item.*, {ENTITY.format(type='Item.EntityType.S', sort='Item.SK.S')} as entity"
        f" from read_json('{files}', format='newline_delimited', columns={{Item: '{item}'}}, maximum_object_size=4000000)"
    )
    for entity, columns in SELECT.items():
        base.execute(
            f"copy (select PK.S as PK, SK.S as SK, '{entity}' as EntityType, {', '.join(columns)} from items where entity = '{entity}')"
            f" to '{out / entity}.parquet' (format parquet, compression zstd)"
        )


def import_files(base, files, out):
    base.execute(
        "create temp table items as select Item, json_extract_string(Item, '$.SK.S') as sort,"
        f" {ENTITY.format(type='''json_extract_string(Item, '$.EntityType.S')''', sort='''json_extract_string(Item, '$.SK.S')''')} as entity"
        f" from read_json('{files}', format='newline_delimited', columns={{Item: 'JSON'}}, maximum_object_size=4000000)"
    )
    stamp = "EntityType: {S: entity}"
    keys = """PK: NULL, SK: NULL, TicketRef: {S: split_part(sort, '#MSG#', 1)},
      Detail: {S: 'MSG#' || json_extract_string(Item, '$.sentAt.S') || '#' || split_part(sort, '#MSG#', 2)}"""
    for table, where, changes in (("helpdesk", "entity <> 'Message'", stamp), ("messages", "entity = 'Message'", f"{stamp}, {keys}")):
        base.execute(
            f"copy (select json_merge_patch(Item, to_json({{{changes}}})) as Item from items where {where})"
            f" to '{out / table}.json.gz' (format json, compression gzip)"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=["parquet", "import"])
    parser.add_argument("export", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    base = duckdb.connect()
    if options.threads:
        base.execute(f"set threads = {options.threads}")
    # The order of items in an export means nothing, and keeping it would cost DuckDB memory.
    base.execute("set preserve_insertion_order = false")
    job = parquet if options.job == "parquet" else import_files
    job(base, options.export / "data" / "*.json.gz", options.folder)


if __name__ == "__main__":
    main()
