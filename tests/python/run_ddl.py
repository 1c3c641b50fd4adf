"""Runs SQL in DuckDB and says what its views hold.

usage: run_ddl.py FILE…

Each FILE is SQL that creates views, each column on a line of its own with its type as a comment. Prints a line for each view: its name and
its rows. A type that is not the column's ends the program.
"""

import re
import sys
from pathlib import Path

import duckdb

COLUMN = re.compile(r'^  "(?:[^"]|"")*",? -- (.*)$', re.MULTILINE)


def main(paths):
    for path in paths:
        sql = Path(path).read_text()
        connection = duckdb.connect()
        connection.execute(sql)
        declared = []
        for (view,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY sql, view_name").fetchall():
            quoted = '"' + view.replace('"', '""') + '"'
            rows = connection.execute(f"SELECT * FROM {quoted}").fetchall()
            print(f"{view} {len(rows)}")
            declared.append([(name, kind) for name, kind, *_ in connection.execute(f"DESCRIBE {quoted}").fetchall()])
        said = [connection.execute(f"SELECT typeof(NULL::{kind})").fetchone()[0] for kind in COLUMN.findall(sql)]
        found = [kind for columns in declared for _, kind in columns]
        if sorted(said) != sorted(found):
            sys.exit(f"{path}: the comments say {said}, DuckDB finds {found}")


if __name__ == "__main__":
    main(sys.argv[1:])
