"""Prints the rows that pipelines/docs-split-comments.toml must give for changes, in canonical form, sorted. Independent of dynamorph.

usage: transform_docs_changes.py [--without-null] TABLE EXPORT…

TABLE is docs or comments, EXPORT an incremental export of the table of documents. A row is the new image as it would be in the table; of what
was deleted it has the key and the type. A deleted comment of which only the key is known has no row: its new key needs a time.
"""

from pathlib import Path

import canonical
import read_export
import transform_docs_split_comments as split

KEYS = {"docs": {"EntityRef", "Detail", "EntityType"}, "comments": {"DocRef", "Detail", "EntityType"}}
KNOWN = {"Workspace", "Document", "Comment", *split.SPELLINGS}


def row(record):
    """The table and the row of a change record; no row for a comment without its time."""
    old, new = record.get("OldImage"), record.get("NewImage")
    image = read_export.canonical_item(new or old or record["Keys"])
    if image.get("EntityType", {}).get("S") not in KNOWN:
        # What nobody knows is told by its key, as what has no type.
        image.pop("EntityType", None)
    if new is None and "#CMT#" in image["SK"]["S"] and "createdAt" not in image:
        return "comments", None
    table, target = split.transform(image)
    if new is None:
        target = {name: value for name, value in target.items() if name in KEYS[table]}
    operation = "delete" if new is None else "put" if old is None else "update"
    return table, target | {"_op": {"S": operation}, "_written_at": record["Metadata"]["WriteTimestampMicros"]}


if __name__ == "__main__":
    parser = canonical.arguments("Prints the expected rows of a table.", TABLE={"choices": [*KEYS]}, EXPORT={"type": Path, "nargs": "+"})
    given = parser.parse_args()
    records = (canonical.parse(text) for export in given.EXPORT for text in read_export.lines(export))
    rows = [target for table, target in map(row, records) if table == given.TABLE and target is not None]
    canonical.write(rows, given.without_null)
