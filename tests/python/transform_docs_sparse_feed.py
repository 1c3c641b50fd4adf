"""Prints the items that pipelines/docs-sparse-feed.toml must give, in canonical form, sorted. Independent of dynamorph.

usage: transform_docs_sparse_feed.py [--without-null] EXPORT

What the pipeline file says in templates and conditions is said here in Python.
"""

from pathlib import Path

import canonical
import read_export
import transform_docs_backfill_type as backfill
import transform_docs_split_comments as split


def transform(item):
    """The target item of a source item."""
    entity = backfill.entity_of(item)
    target = backfill.without_replication(item) | {"EntityType": {"S": entity}}
    for name in ("GSI1PK", "GSI1SK"):
        target.pop(name, None)
    if entity == "Document" and item.get("starred") == {"BOOL": True} and "updatedAt" in item:
        document = split.SORT_KEY.fullmatch(item["SK"]["S"])["doc"]
        target["GSI1PK"] = {"S": f"FEED#{item['PK']['S'].removeprefix('WS#')}"}
        target["GSI1SK"] = {"S": f"{item['updatedAt']['S']}#{document}"}
    return target


if __name__ == "__main__":
    given = canonical.arguments("Prints the expected items of the table.", EXPORT={"type": Path}).parse_args()
    canonical.write(map(transform, read_export.items(given.EXPORT)), given.without_null)
