"""Prints the rows that pipelines/warehouse.toml must give, in canonical form, sorted. Independent of dynamorph.

usage: transform_warehouse.py [--without-null] ENTITY EXPORT

ENTITY is Workspace, Document or Comment. What the pipeline file says in templates and steps is said here in Python.
"""

import re
from pathlib import Path

import canonical
import read_export

SPELLINGS = {"Doc": "Document", "document": "Document", "COMMENT": "Comment"}
SORT_KEY = re.compile(r"(?P<meta>META)|DOC#(?P<doc>[^#]+)(?:#CMT#(?P<cmt>[^#]+))?")
FOR_MACHINES = {"Workspace": set(), "Document": {"checksum", "GSI1PK", "GSI1SK"}, "Comment": {"GSI1PK", "GSI1SK"}}


def transform(item):
    """The entity and the row of a source item; no row for what a bot said."""
    shape = SORT_KEY.fullmatch(item["SK"]["S"])
    by_key = "Workspace" if shape["meta"] else "Comment" if shape["cmt"] else "Document"
    named = item.get("EntityType", {"S": by_key})["S"]
    entity = SPELLINGS.get(named, named)
    if entity == "Comment" and item.get("author", {}).get("S", "").startswith("bot-"):
        return entity, None
    row = {name: value for name, value in item.items() if name not in FOR_MACHINES[entity] and not name.startswith("aws:rep:")}
    row["EntityType"] = {"S": entity}
    row["workspace"] = {"S": item["PK"]["S"].removeprefix("WS#")}
    if entity != "Workspace":
        row["document"] = {"S": shape["doc"].zfill(10)}
    if "S" in row.get("likes", {}):
        row["likes"] = {"N": canonical.number(row["likes"]["S"])}
    return entity, row


if __name__ == "__main__":
    entities = sorted(FOR_MACHINES)
    given = canonical.arguments("Prints the expected rows of an entity.", ENTITY={"choices": entities}, EXPORT={"type": Path}).parse_args()
    rows = map(transform, read_export.items(given.EXPORT))
    canonical.write((row for entity, row in rows if entity == given.ENTITY and row is not None), given.without_null)
