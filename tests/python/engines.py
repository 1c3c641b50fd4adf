"""Engines that read Parquet files, and tables over them. Each gives columns and rows in one form, whatever it calls its types.

A column is (name, kind). Kinds are written alike for all engines: `text`, `binary`, `bool`, `int`, `double`, `moment`, `decimal(5,2)`,
`list<int>`, `map<text,int>`, `struct<a:int,b:text>`. A row is a list of Python values in the order of the columns. `sees` says
what an engine makes of a kind, where that is another one.

What an engine cannot tell apart is said by `without`: the canonical item as that engine has it.
"""

import os
import re
import tempfile
import time

import canonical
import pyarrow.types as types

STATEMENT = re.compile(r"^CREATE (?:OR REPLACE |EXTERNAL )*(?:TABLE|VIEW) (`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")", re.MULTILINE)


def statements(sql):
    """The statements of a text, without comments; a comment has a line of its own."""
    code = "\n".join(line for line in sql.split("\n") if not line.startswith("--"))
    return [statement for statement in map(str.strip, re.split(r";\n", code + "\n")) if statement]


def tables(sql):
    """The quoted names of the tables and views that the text makes, in its order."""
    return STATEMENT.findall(sql)


def kind(arrow, names=list):
    """The kind of an Arrow type; `names` changes the names of a struct's fields."""
    inside = lambda arrow: kind(arrow, names)
    for test, name in (
        (types.is_string, "text"),
        (types.is_large_string, "text"),
        (types.is_string_view, "text"),
        (types.is_binary, "binary"),
        (types.is_large_binary, "binary"),
        (types.is_boolean, "bool"),
        (types.is_int64, "int"),
        (types.is_float64, "double"),
    ):
        if test(arrow):
            return name
    if types.is_timestamp(arrow) and arrow.unit == "us" and arrow.tz == "UTC":
        return "moment"
    if types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if types.is_list(arrow) or types.is_large_list(arrow):
        return f"list<{inside(arrow.value_type)}>"
    if types.is_map(arrow):
        return f"map<{inside(arrow.key_type)},{inside(arrow.item_type)}>"
    if types.is_struct(arrow):
        fields = list(arrow)
        return struct(zip(names(field.name for field in fields), (inside(field.type) for field in fields), strict=True))
    raise TypeError(f"no kind for {arrow}")


def struct(fields):
    return "struct<" + ",".join(f"{name}:{inside}" for name, inside in fields) + ">"


class Engine:
    """What engines have in common."""

    @staticmethod
    def sees(arrow):
        """The kind that the engine should find for an Arrow type."""
        return kind(arrow)

    @staticmethod
    def names(names):
        """What the engine calls columns of these names."""
        return names

    @staticmethod
    def without(item):
        """The canonical item as the engine can tell it."""
        return item

    def close(self):
        """Ends what the engine runs."""


class PyArrow(Engine):
    def read(self, files, _schema):
        import pyarrow.parquet

        tables = [pyarrow.parquet.ParquetFile(file).read() for file in files]
        columns = [(field.name, kind(field.type)) for field in tables[0].schema]
        rows = [list(row) for table in tables for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
        return columns, rows


class DuckDB(Engine):
    def __init__(self):
        import duckdb

        self.base = duckdb.connect()
        self.base.execute("SET TimeZone = 'UTC'")

    def read(self, files, _schema):
        return self.rows(self.base.sql("SELECT * FROM read_parquet(?, hive_partitioning = false)", params=[list(map(str, files))]))

    def run(self, sql):
        self.base.execute(sql)

    def table(self, name, _schema):
        return self.rows(self.base.sql(f"SELECT * FROM {name}"))

    def drop(self, name):
        self.base.execute(f"DROP VIEW {name}")

    @staticmethod
    def sees(arrow):
        return kind(arrow, names=DuckDB.names)

    @staticmethod
    def names(names):
        # It ignores case, and counts what it has seen before.
        seen, found = {}, []
        for name in names:
            times = seen.get(name.lower(), 0)
            seen[name.lower()] = times + 1
            found.append(f"{name}_{times}" if times else name)
        return found

    def rows(self, relation):
        columns = list(zip(relation.columns, map(self.kind, relation.types), strict=True))
        return columns, [list(row) for row in relation.fetchall()]

    def kind(self, found):
        simple = {"varchar": "text", "blob": "binary", "boolean": "bool", "bigint": "int", "double": "double", "timestamp with time zone": "moment"}
        match found.id:
            case "decimal":
                (_, precision), (_, scale) = found.children
                return f"decimal({precision},{scale})"
            case "list":
                return f"list<{self.kind(found.children[0][1])}>"
            case "map":
                (_, key), (_, value) = found.children
                return f"map<{self.kind(key)},{self.kind(value)}>"
            case "struct":
                return struct((name, self.kind(inside)) for name, inside in found.children)
        return simple[found.id]


class Polars(Engine):
    def read(self, files, _schema):
        import polars

        frame = polars.read_parquet([str(file) for file in files], hive_partitioning=False, glob=False)
        return [(name, self.kind(found)) for name, found in frame.schema.items()], [list(row) for row in frame.rows()]

    def kind(self, found):
        import polars

        simple = {polars.String: "text", polars.Binary: "binary", polars.Boolean: "bool", polars.Int64: "int", polars.Float64: "double"}
        if isinstance(found, polars.Datetime) and (found.time_unit, found.time_zone) == ("us", "UTC"):
            return "moment"
        if isinstance(found, polars.Decimal):
            return f"decimal({found.precision},{found.scale})"
        if isinstance(found, polars.List):
            return f"list<{self.kind(found.inner)}>"
        if isinstance(found, polars.Map):
            return f"map<{self.kind(found.key)},{self.kind(found.value)}>"
        if isinstance(found, polars.Struct):
            return struct((field.name, self.kind(field.dtype)) for field in found.fields)
        return simple[found.base_type()]


class Spark(Engine):
    def __init__(self):
        # Moments come as local time.
        os.environ["TZ"] = "UTC"
        time.tzset()
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        self.folder = tempfile.TemporaryDirectory()
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.caseSensitive": "true",
            "spark.sql.warehouse.dir": f"{self.folder.name}/warehouse",
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            # Nothing here runs long enough to be worth compiling.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.log.level": "ERROR",
        }
        builder = SparkSession.builder.master("local[1]").appName("readers")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()

    def read(self, files, _schema):
        return self.rows(self.session.read.parquet(*map(str, files)))

    def run(self, sql):
        for statement in statements(sql):
            self.session.sql(statement)

    def drop(self, name):
        self.session.sql(f"DROP TABLE {name}")

    def table(self, name, _schema):
        return self.rows(self.session.sql(f"SELECT * FROM {name}"))

    def rows(self, frame):
        return [(field.name, self.kind(field.dataType)) for field in frame.schema], [list(row) for row in frame.collect()]

    def kind(self, found):
        simple = {"string": "text", "binary": "binary", "boolean": "bool", "bigint": "int", "double": "double", "timestamp": "moment"}
        match found.typeName():
            case "decimal":
                return f"decimal({found.precision},{found.scale})"
            case "array":
                return f"list<{self.kind(found.elementType)}>"
            case "map":
                return f"map<{self.kind(found.keyType)},{self.kind(found.valueType)}>"
            case "struct":
                return struct((field.name, self.kind(field.dataType)) for field in found)
        return simple[found.simpleString()]

    def close(self):
        self.session.stop()
        self.folder.cleanup()


class ClickHouse(Engine):
    """chdb: ClickHouse in the process. To it an absent list, map or struct is one with nothing in it, and binary is text."""

    def __init__(self):
        from chdb import session

        self.session = session.Session()
        self.session.query("SET session_timezone = 'UTC'")

    def read(self, files, schema):
        names = ",".join(file.name for file in files)
        path = files[0].with_name("{" + names + "}" if len(files) > 1 else names)
        return self.select(f"file('{path}', Parquet)", schema, ", use_hive_partitioning = 0")

    def run(self, sql):
        for statement in statements(sql):
            self.session.query(statement)

    def drop(self, name):
        self.session.query(f"DROP TABLE {name}")

    def table(self, name, schema):
        return self.select(name, schema)

    def select(self, source, schema, more=""):
        import pyarrow.ipc

        # Arrow is the one way out that keeps bytes and digits; what is in it is ClickHouse's.
        found = self.session.query(f"SELECT * FROM {source} SETTINGS output_format_arrow_string_as_string = 0{more}", "Arrow")
        table = pyarrow.ipc.open_file(found.bytes()).read_all()
        columns = [(field.name, self.sees(field.type)) for field in table.schema]
        names = [field.type for field in schema]
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return columns, [[self.texts(arrow, value) for arrow, value in zip(names, row, strict=True)] for row in rows]

    @staticmethod
    def sees(arrow):
        return re.sub(r"\btext\b", "binary", kind(arrow))

    def texts(self, arrow, value):
        """The value with the bytes of texts as texts, and without what has nothing in it."""
        if value is None or value == []:
            return None
        if types.is_string(arrow):
            return value.decode()
        if types.is_list(arrow):
            return [self.texts(arrow.value_type, element) for element in value]
        if types.is_map(arrow):
            return [(key.decode(), self.texts(arrow.item_type, element)) for key, element in value]
        if types.is_struct(arrow):
            inside = {field.name: self.texts(field.type, element) for field, element in zip(arrow, value.values(), strict=True)}
            return inside if any(element not in (None, [], {}) for element in inside.values()) else None
        return value

    @staticmethod
    def without(item):
        return canonical.drop_empty(item)

    def close(self):
        self.session.close()


ENGINES = {"pyarrow": PyArrow, "duckdb": DuckDB, "polars": Polars, "spark": Spark, "clickhouse": ClickHouse}
