"""Prints the items that pipelines/docs-backfill-type.toml must give, in canonical form, sorted. Independent of dynamorph.

usage: transform_docs_backfill_type.py [--without-null] EXPORT

What the pipeline file says in templates and steps is said here in Python.
"""

from pathlib import Path

import canonical
import read_export
import transform_docs_split_comments as split

DEFAULTS = {"Workspace": {"plan": {"S": "free"}}, "Document": {"version": {"N": "1"}, "starred": {"BOOL": False}}, "Comment": {}}


def entity_of(item):
    """What an item is: by its type, in whatever spelling, else by its key."""
    shape = split.SORT_KEY.fullmatch(item["SK"]["S"])
    by_key = "Workspace" if shape["meta"] else "Comment" if shape["cmt"] else "Document"
    named = item.get("EntityType", {"S": by_key})["S"]
    return split.SPELLINGS.get(named, named)


def without_replication(item):
    """The item without the attributes of old global tables."""
    return {name: value for name, value in item.items() if not name.startswith("aws:rep:")}


def transform(item):
    """The target item of a source item."""
    entity = entity_of(item)
    return DEFAULTS[entity] | without_replication(item) | {"EntityType": {"S": entity}}


if __name__ == "__main__":
    given = canonical.arguments("Prints the expected items of the table.", EXPORT={"type": Path}).parse_args()
    canonical.write(map(transform, read_export.items(given.EXPORT)), given.without_null)
