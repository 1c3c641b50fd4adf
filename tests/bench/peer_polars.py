"""The job of warehouse.toml done by hand in Polars, as an analyst would who knows the table.

usage: peer_polars.py parquet EXPORT FOLDER

Typed Parquet, a file an entity, zstd; the same columns as dynamorph's. The export is scanned lazily and all files are written in one go.
It checks nothing: no checksums, counts or limits, and what has no column is lost.
"""

import argparse
import shutil
from pathlib import Path

import polars as pl

S, N, B, BOOL = (pl.Struct({kind: form}) for kind, form in (("S", pl.String), ("N", pl.String), ("B", pl.String), ("BOOL", pl.Boolean)))
SS, NS, L = pl.Struct({"SS": pl.List(pl.String)}), pl.Struct({"NS": pl.List(pl.String)}), pl.Struct({"L": pl.List(S)})
REACTIONS = ["confused", "eyes", "heart", "party", "thumbs_up"]
ATTRIBUTES = {
    "PK": S, "SK": S, "EntityType": S,
    "name": S, "tier": S, "seats": N, "since": S, "flags": SS, "address": pl.Struct({"M": pl.Struct({"city": S, "zip": S})}),
    "visitId": N, "page": S, "at": S, "millis": N, "score": N, "agent": S,
    "ticketId": S, "subject": S, "state": S, "priority": N, "openedAt": S, "changedAt": S, "bytes": N, "urgent": BOOL, "labels": L, "digest": B,
    "access": pl.Struct({"M": pl.Struct({"readers": SS, "public": BOOL})}), "expiresAt": N,
    "messageId": S, "author": S, "body": S, "sentAt": S, "likes": N, "internal": BOOL,
    "reactions": pl.Struct({"M": pl.Struct({name: N for name in REACTIONS})}), "scores": NS,
}


def inside(column, *path):
    for name in path:
        column = column.struct.field(name)
    return column


def typed(name):
    """The column of an attribute."""
    column, form = pl.col(name), ATTRIBUTES[name]
    if name == "score":
        return inside(column, "N").cast(pl.Decimal(18, 2)).alias(name)
    if name == "address":
        values = [inside(column, "M", field, "S").alias(field) for field in ("city", "zip")]
    elif name == "access":
        values = [inside(column, "M", "public", "BOOL").alias("public"), inside(column, "M", "readers", "SS").alias("readers")]
    elif name == "reactions":
        values = [inside(column, "M", field, "N").cast(pl.Int64).alias(field) for field in REACTIONS]
    else:
        kind = form.fields[0].name
        value = inside(column, kind)
        match kind:
            case "N":
                value = value.cast(pl.Int64)
            case "NS":
                value = value.cast(pl.List(pl.Int64))
            case "L":
                value = value.list.eval(pl.element().struct.field("S"))
            case "B":
                value = value.str.decode("base64")
        return value.alias(name)
    return pl.when(column.is_not_null()).then(pl.struct(values)).alias(name)


COLUMNS = {
    "Customer": ["name", "tier", "seats", "since", "flags", "address"],
    "Visit": ["visitId", "page", "at", "millis", "score", "agent"],
    "Ticket": ["ticketId", "subject", "state", "priority", "openedAt", "changedAt", "bytes", "urgent", "labels", "digest", "access", "expiresAt"],
    "Message": ["messageId", "author", "body", "sentAt", "likes", "internal", "reactions", "scores"],
}


def entity():
    """What an item is: by its type in whatever spelling, else by its key."""
    known = {name[:3].lower(): name for name in COLUMNS}
    sort = inside(pl.col("SK"), "S")
    by_key = pl.when(sort.str.starts_with("PROFILE#")).then(pl.lit("Customer")).when(sort.str.starts_with("VISIT#")).then(pl.lit("Visit"))
    by_key = by_key.when(sort.str.contains("#MSG#", literal=True)).then(pl.lit("Message")).otherwise(pl.lit("Ticket"))
    spelled = inside(pl.col("EntityType"), "S").str.slice(0, 3).str.to_lowercase()
    return spelled.replace_strict(known, default=None).fill_null(by_key)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=["parquet"])
    parser.add_argument("export", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    items = pl.scan_ndjson(options.export / "data" / "*.json.gz", schema={"Item": pl.Struct(ATTRIBUTES)}).unnest("Item")
    items = items.with_columns(entity().alias("entity"))
    sinks = []
    for name, columns in COLUMNS.items():
        keys = [inside(pl.col("PK"), "S").alias("PK"), inside(pl.col("SK"), "S").alias("SK"), pl.lit(name).alias("EntityType")]
        rows = items.filter(pl.col("entity") == name).select(*keys, *map(typed, columns))
        sinks.append(rows.sink_parquet(options.folder / f"{name}.parquet", compression="zstd", lazy=True))
    pl.collect_all(sinks)


if __name__ == "__main__":
    main()
