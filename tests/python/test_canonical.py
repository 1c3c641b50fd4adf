"""Tests of the readers' own rules. Run with `python -m unittest`."""

import datetime
import unittest
from decimal import Decimal

import canonical
import engines
import pyarrow
import read_export
import read_ion
import read_parquet


class Numbers(unittest.TestCase):
    def test_a_number_has_one_spelling(self):
        for given, expected in [
            ("1.50", "1.5"),
            ("100", "100"),
            ("-0.0", "0"),
            ("1E+2", "100"),
            ("1e-3", "0.001"),
            ("00042", "42"),
            ("1" + "0" * 125, "1" + "0" * 125),
            ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
            (Decimal("7.10"), "7.1"),
            (-3, "-3"),
            (0.1, "0.1"),
        ]:
            self.assertEqual(canonical.number(given), expected)

    def test_what_is_no_number_is_refused(self):
        for given in [True, "NaN", "Infinity", "x", ""]:
            self.assertRaises((TypeError, ValueError, ArithmeticError), canonical.number, given)


class WithoutEmpty(unittest.TestCase):
    def test_what_has_nothing_in_it_is_left_out_and_is_null_in_a_list(self):
        given = {"a": {"M": {"b": {"L": []}}}, "c": {"L": [{"M": {}}, {"S": ""}]}, "d": {"BOOL": False}, "e": {"SS": []}}
        self.assertEqual(canonical.drop_empty(given), {"c": {"L": [{"NULL": True}, {"S": ""}]}, "d": {"BOOL": False}})


class Statements(unittest.TestCase):
    def test_statements_and_the_tables_that_they_make_are_found(self):
        sql = "-- `A`: 1 item; or more\nSET x = 1;\n\nCREATE TABLE `A b``c` (\n  `x` INT\n)\nUSING PARQUET;\nCREATE OR REPLACE VIEW \"v\" AS SELECT 1;\n"
        self.assertEqual([text.split()[0] for text in engines.statements(sql)], ["SET", "CREATE", "CREATE"])
        self.assertEqual(engines.tables(sql), ["`A b``c`", '"v"'])


class Values(unittest.TestCase):
    def test_sets_are_sorted_and_numbers_in_them_normal(self):
        self.assertEqual(canonical.tagged({"NS": ["3", "2.0"]}), {"NS": ["2", "3"]})
        self.assertRaises(ValueError, canonical.tagged, {"NS": ["1", "1.0"]})
        self.assertRaises(ValueError, canonical.tagged, {"SS": []})

    def test_a_value_of_two_types_or_of_the_wrong_one_is_refused(self):
        for value in [{"S": "1", "N": "1"}, {}, {"N": 1}, {"NULL": False}, {"X": "1"}, {"BOOL": "true"}, "S"]:
            self.assertRaises(ValueError, canonical.tagged, value)

    def test_null_goes_from_maps_and_stays_in_lists(self):
        item = {"a": {"NULL": True}, "m": {"M": {"b": {"NULL": True}, "l": {"L": [{"NULL": True}, {"M": {"c": {"NULL": True}}}]}}}}
        self.assertEqual(canonical.drop_null(item), {"m": {"M": {"l": {"L": [{"NULL": True}, {"M": {}}]}}}})

    def test_a_name_that_stands_twice_is_refused(self):
        self.assertRaises(ValueError, canonical.parse, '{"a":1,"a":2}')

    def test_boto3_and_the_plain_reader_agree(self):
        value = {"M": {"l": {"L": [{"B": "AP8="}, {"NULL": True}, {"BOOL": False}]}, "b": {"BS": ["", "aGk="]}, "n": {"NS": ["1.0"]}}}
        by_boto3 = read_export.from_python(read_export.Deserializer().deserialize(read_export.decode_binary(value)))
        self.assertEqual(by_boto3, canonical.tagged(value))


class Columns(unittest.TestCase):
    def field(self, kind, arrow, **metadata):
        return pyarrow.field("x", arrow, metadata={"dynamodb.type": kind, **{f"dynamodb.{name}": text for name, text in metadata.items()}})

    def test_the_metadata_says_what_a_column_was(self):
        text, number = pyarrow.string(), pyarrow.decimal128(5, 2)
        members = pyarrow.list_(self.field("N", number))
        moment = datetime.datetime(2026, 4, 1, 2, 0, 0, 7, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
        for field, value, expected in [
            (self.field("N", text), "1.0", {"N": "1"}),
            (self.field("N", number), Decimal("1.20"), {"N": "1.2"}),
            (self.field("N", pyarrow.timestamp("us", "UTC")), moment, {"N": "1775001600000007"}),
            (self.field("NS", members), [Decimal("3.00"), Decimal("2.50")], {"NS": ["2.5", "3"]}),
            (self.field("L", members), [Decimal("3.00"), None], {"L": [{"N": "3"}, {"NULL": True}]}),
            (self.field("json", text, json="L"), '[{"N":"1.0"},{"S":"1"}]', {"L": [{"N": "1"}, {"S": "1"}]}),
            (self.field("json", text, json="any"), '{"N":"1.0"}', {"N": "1"}),
            (self.field("M", pyarrow.struct([self.field("S", text)])), {"x": None}, {"M": {}}),
            (self.field("M", pyarrow.map_(text, self.field("S", text))), [("k", "v"), ("n", None)], {"M": {"k": {"S": "v"}, "n": {"NULL": True}}}),
            (pyarrow.field("x", pyarrow.int64()), 5, {"N": "5"}),
        ]:
            self.assertEqual(read_parquet.value_of(field, value), expected)

    def test_columns_of_one_attribute_and_the_rest_become_one_item(self):
        schema = pyarrow.schema([
            self.field("S", pyarrow.string(), attribute="a").with_name("a__s"),
            self.field("N", pyarrow.int64(), attribute="a").with_name("a"),
            self.field("json", pyarrow.string(), json="M").with_name("__rest"),
        ])
        self.assertEqual(read_parquet.item_of(schema, [None, 1, '{"z":{"S":"q"}}']), {"a": {"N": "1"}, "z": {"S": "q"}})
        self.assertRaises(ValueError, read_parquet.item_of, schema, ["x", 1, None])


class Ion(unittest.TestCase):
    def test_a_line_gives_the_item_as_json_has_it(self):
        line = '$ion_1_0 {Item:{n:616d2,l:[null,{x:true}],s:$dynamodb_NS::[2d1,1.],b:{{AAE=}},\'a-t\':"\\x00é"}}'
        expected = {
            "n": {"N": "61600"},
            "l": {"L": [{"NULL": True}, {"M": {"x": {"BOOL": True}}}]},
            "s": {"NS": ["1", "20"]},
            "b": {"B": "AAE="},
            "a-t": {"S": "\0é"},
        }
        self.assertEqual(read_ion.item(line), expected)

    def test_what_an_import_refuses_is_refused(self):
        for value in ["1", "1e0", "x", '{{"clob"}}', "2007T", "(1.)", "$dynamodb_SS::[1.]", "other::[1.]"]:
            with self.assertRaises((TypeError, KeyError), msg=value):
                read_ion.item(f"$ion_1_0 {{Item:{{a:{value}}}}}")
        for line in ["{Item:{a:1.}}", "$ion_1_0 {a:1.}"]:
            with self.assertRaises(ValueError):
                read_ion.item(line)


if __name__ == "__main__":
    unittest.main()
