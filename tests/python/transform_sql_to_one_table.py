"""Prints the items that pipelines/sql-to-one-table.toml must give, in canonical form, sorted. Independent of dynamorph.

usage: transform_sql_to_one_table.py [--without-null] WORKSPACES PROJECTS

Both are exports. What the pipeline file says in templates and steps is said here in Python.
"""

from pathlib import Path

import canonical
import read_export


def workspace(item):
    """The target item of a row of the table of workspaces."""
    identity = item.pop("id")
    return item | {
        "PK": {"S": f"WS#{identity['S']}"},
        "SK": {"S": "META"},
        "EntityType": {"S": "Workspace"},
        "workspaceId": identity,
    }


def project(item):
    """The target item of a row of the table of projects."""
    identity, parent, created = item.pop("id"), item.pop("workspace_id"), item.pop("created_at")
    target = item | {
        "PK": {"S": f"WS#{parent['S']}"},
        "SK": {"S": f"PROJ#{identity['S']}"},
        "EntityType": {"S": "Project"},
        "projectId": identity,
        "workspaceId": parent,
        "createdAt": created,
    }
    # A project without a status is in no list by status.
    if "status" in item:
        target |= {"GSI1PK": {"S": f"STATUS#{item['status']['S']}"}, "GSI1SK": created}
    return target


if __name__ == "__main__":
    folder = {"type": Path}
    given = canonical.arguments("Prints the expected items of the table.", WORKSPACES=folder, PROJECTS=folder).parse_args()
    expected = [workspace(item) for item in read_export.items(given.WORKSPACES)]
    expected += [project(item) for item in read_export.items(given.PROJECTS)]
    canonical.write(expected, given.without_null)
