"""Prints the rows of a Parquet dataset as items in canonical form, sorted.

usage: read_parquet.py [--engine pyarrow|duckdb|both] PATH…

PATH is a file, or a folder of which all *.parquet below it are read; their schemas must be equal. What a column was in DynamoDB is taken
from the metadata of its field (`dynamodb.type`, `dynamodb.json`, `dynamodb.attribute`); a field without it is taken by its Arrow type.
A timestamp is a number too: microseconds since 1970. A null in a column or in a field of a struct is no value. With `both`, the
default, the engines must agree.
"""

import base64
import datetime
import sys
from pathlib import Path

import canonical
import duckdb
import pyarrow
import pyarrow.parquet


def files(paths):
    """The Parquet files at or below the paths."""
    found = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.parquet")))]
    if not found:
        sys.exit(f"no Parquet files in {', '.join(map(str, paths))}")
    return found


def schema_of(file):
    """The Arrow schema as the writer stored it: the one place that keeps the metadata of nested fields."""
    parquet = pyarrow.parquet.ParquetFile(file)
    stored = (parquet.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return parquet.schema_arrow
    return pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(stored)))


def shared_of(file):
    """The attributes that all rows of a file share and no column has, without NULLs."""
    said = (pyarrow.parquet.ParquetFile(file).metadata.metadata or {}).get(b"dynamorph.partition", b"{}")
    return canonical.drop_null({name: canonical.tagged(value) for name, value in canonical.parse(said).items()})


def kind_of(field):
    """The DynamoDB type of a field."""
    named = (field.metadata or {}).get(b"dynamodb.type")
    if named is not None:
        return named.decode()
    types = pyarrow.types
    for test, kind in (
        (types.is_string, "S"),
        (types.is_large_string, "S"),
        (types.is_boolean, "BOOL"),
        (types.is_integer, "N"),
        (types.is_decimal, "N"),
        (types.is_floating, "N"),
        (types.is_binary, "B"),
        (types.is_large_binary, "B"),
        (types.is_list, "L"),
        (types.is_struct, "M"),
        (types.is_map, "M"),
    ):
        if test(field.type):
            return kind
    raise TypeError(f"column {field.name}: no DynamoDB type for {field.type}")


def moment(value):
    """Microseconds since 1970. A time without a zone is one in UTC."""
    value = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
    return (value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)


def value_of(field, value):
    """The canonical form of a value that is not null."""
    kind = kind_of(field)
    match kind:
        case "json":
            inside = field.metadata[b"dynamodb.json"].decode()
            parsed = canonical.parse(value)
            return canonical.tagged(parsed) if inside == "any" else {inside: canonical.untagged(inside, parsed)}
        case "S" | "BOOL":
            return {kind: value}
        case "N" if pyarrow.types.is_timestamp(field.type):
            return {kind: canonical.number(moment(value))}
        case "N":
            return {kind: canonical.number(value)}
        case "B":
            return {kind: canonical.binary(value)}
        case "SS" | "NS" | "BS":
            element = field.type.value_field
            return {kind: canonical.members(value_of(element, member)[kind[0]] for member in value)}
        case "L":
            return {kind: [element_of(field.type.value_field, element) for element in value]}
        case "M" if pyarrow.types.is_map(field.type):
            return {kind: {key: element_of(field.type.item_field, element) for key, element in entries(value)}}
        case "M":
            inside = zip(field.type, value.values() if isinstance(value, dict) else value, strict=True)
            return {kind: {child.name: value_of(child, element) for child, element in inside if element is not None}}
    raise TypeError(f"column {field.name}: {kind} holds no values")


def element_of(field, value):
    """The canonical form of an element of a list or map, where null is NULL."""
    return {"NULL": True} if value is None else value_of(field, value)


def entries(value):
    """The entries of a map: pyarrow gives pairs, others a dictionary."""
    return value.items() if isinstance(value, dict) else value


def item_of(schema, row):
    """The canonical item of a row, whose values are in the order of the columns."""
    item = {}
    for field, value in zip(schema, row, strict=True):
        if value is None:
            continue
        name = (field.metadata or {}).get(b"dynamodb.attribute")
        found = value_of(field, value)
        # The one column without an attribute of its own holds those that have no column.
        attributes = found["M"] if name is None and field.name.startswith("__rest") else {(name or field.name.encode()).decode(): found}
        if item.keys() & attributes.keys():
            raise ValueError(f"column {field.name}: the attribute has a value in another column too")
        item.update(attributes)
    return canonical.drop_null(item)


def read_pyarrow(file, width):
    """The rows of a file, each as a list of Python values, by pyarrow."""
    table = pyarrow.parquet.ParquetFile(file).read()
    columns = [table.column(at).to_pylist() for at in range(width)]
    return zip(*columns, strict=True)


def read_duckdb(file, _width):
    """The same by DuckDB."""
    return duckdb.connect().execute("SELECT * FROM read_parquet(?, hive_partitioning = false)", [str(file)]).fetchall()


ENGINES = {"pyarrow": read_pyarrow, "duckdb": read_duckdb}


def items(paths, engine):
    """The canonical items of all files."""
    schema = None
    for file in files(paths):
        found = schema_of(file)
        if schema is not None and not schema.equals(found, check_metadata=True):
            sys.exit(f"{file}: its schema differs from that of the files before")
        schema, shared = found, shared_of(file)
        for row in ENGINES[engine](file, len(schema)):
            yield item_of(schema, row) | shared


if __name__ == "__main__":
    parser = canonical.arguments("Prints the rows of a Parquet dataset as items.", PATH={"type": Path, "nargs": "+"})
    parser.add_argument("--engine", choices=[*ENGINES, "both"], default="both")
    given = parser.parse_args()
    chosen = list(ENGINES) if given.engine == "both" else [given.engine]
    read = [sorted(items(given.PATH, engine), key=canonical.line) for engine in chosen]
    for engine, rows in zip(chosen, read):
        differing = [(mine, other) for mine, other in zip(rows, read[0]) if mine != other]
        if differing or len(rows) != len(read[0]):
            sys.exit(f"{engine} and {chosen[0]} read different items: {len(rows)} and {len(read[0])}, first: {differing[:1]}")
    canonical.write(read[0], given.without_null)
