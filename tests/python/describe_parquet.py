"""Prints the columns of Parquet files as two engines see them: name, type by DuckDB, type by pyarrow, and the values by DuckDB in UTC.

usage: describe_parquet.py PATH…
"""

import sys
from pathlib import Path

import duckdb
import pyarrow.parquet

if __name__ == "__main__":
    files = [str(file) for path in sys.argv[1:] for file in sorted(Path(path).rglob("*.parquet"))]
    schema = pyarrow.parquet.ParquetFile(files[0]).schema_arrow
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    columns = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [files]).fetchall()
    for name, kind, *_ in columns:
        rows = connection.execute(f'SELECT CAST("{name}" AS VARCHAR) FROM read_parquet(?)', [files]).fetchall()
        values = " | ".join("-" if value is None else value for (value,) in rows)
        print(f"{name}: {kind}, {schema.field(name).type} = {values}")
