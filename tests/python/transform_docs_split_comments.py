"""Prints the items that pipelines/docs-split-comments.toml must give, in canonical form, sorted. Independent of dynamorph.

usage: transform_docs_split_comments.py [--without-null] TABLE EXPORT

TABLE is docs or comments. What the pipeline file says in templates and steps is said here in Python.
"""

import re
from pathlib import Path

import canonical
import read_export

SPELLINGS = {"Doc": "Document", "document": "Document", "COMMENT": "Comment"}
SORT_KEY = re.compile(r"(?P<meta>META)|DOC#(?P<doc>[^#]+)(?:#CMT#(?P<cmt>[^#]+))?")


def transform(item):
    """The table and the target item of a source item."""
    shape = SORT_KEY.fullmatch(item["SK"]["S"])
    by_key = "Workspace" if shape["meta"] else "Comment" if shape["cmt"] else "Document"
    named = item.get("EntityType", {"S": by_key})["S"]
    entity = SPELLINGS.get(named, named)
    workspace = item["PK"]["S"].removeprefix("WS#")
    gone = {"PK", "SK", "GSI1PK", "GSI1SK"}
    target = {name: value for name, value in item.items() if name not in gone and not name.startswith("aws:rep:")}
    target["EntityType"] = {"S": entity}
    if entity == "Comment":
        target["DocRef"] = {"S": f"WS#{workspace}#DOC#{shape['doc'].zfill(10)}"}
        target["Detail"] = {"S": f"CMT#{item['createdAt']['S']}#{shape['cmt']}"}
        return "comments", target
    target["EntityRef"] = {"S": f"WS#{workspace}"}
    target["Detail"] = {"S": "META" if entity == "Workspace" else f"DOC#{shape['doc'].zfill(10)}"}
    if entity == "Document" and "updatedAt" in item:
        target["GSI1PK"] = {"S": f"WS#{workspace}"}
        target["GSI1SK"] = item["updatedAt"]
    return "docs", target


if __name__ == "__main__":
    parser = canonical.arguments("Prints the expected items of a table.", TABLE={"choices": ["docs", "comments"]}, EXPORT={"type": Path})
    given = parser.parse_args()
    targets = map(transform, read_export.items(given.EXPORT))
    canonical.write((item for table, item in targets if table == given.TABLE), given.without_null)
