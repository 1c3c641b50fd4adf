"""Prints the items that pipelines/workspaces-shard-hot.toml must give, in canonical form, sorted. Independent of dynamorph.

usage: transform_workspaces_shard_hot.py [--without-null] EXPORT

What the pipeline file says in templates and conditions is said here in Python.
"""

import zlib
from pathlib import Path

import canonical
import read_export


def transform(item):
    """The target item of a source item."""
    project = item["Detail"]["S"].removeprefix("PROJ#")
    if item["EntityRef"]["S"] == "WS#acme" and project != item["Detail"]["S"]:
        return item | {"EntityRef": {"S": f"WS#acme#{zlib.crc32(project.encode()) % 10 + 1:02}"}}
    return item


if __name__ == "__main__":
    given = canonical.arguments("Prints the expected items of the table.", EXPORT={"type": Path}).parse_args()
    canonical.write(map(transform, read_export.items(given.EXPORT)), given.without_null)
