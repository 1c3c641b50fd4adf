"""Checks files against botocore's own description of the service. Sends nothing.

usage: validate_requests.py OPERATION PATH…

OPERATION is ImportTable or BatchWriteItem. A file of the first holds all parameters, one of the second the parameter RequestItems. Prints
the number of files that are right; ends with code 1 and every reason when one is wrong.
"""

import argparse
import base64
import sys
from pathlib import Path

import botocore.session
import canonical
from botocore.validate import ParamValidator


def parameters(operation, document):
    """What the AWS CLI would hand to the operation: binary is base64 in a file and bytes in memory."""
    if operation == "ImportTable":
        return document
    puts = {table: [{"PutRequest": {"Item": as_bytes(put["PutRequest"]["Item"])}} for put in puts] for table, puts in document.items()}
    return {"RequestItems": puts}


def as_bytes(attributes):
    """Attributes with binary decoded."""
    return {name: value_as_bytes(value) for name, value in attributes.items()}


def value_as_bytes(value):
    found = {}
    # A value of two types must reach the validator as it is.
    for kind, inside in value.items():
        match kind:
            case "B":
                found[kind] = base64.b64decode(inside, validate=True)
            case "BS":
                found[kind] = [base64.b64decode(member, validate=True) for member in inside]
            case "M":
                found[kind] = as_bytes(inside)
            case "L":
                found[kind] = [value_as_bytes(element) for element in inside]
            case _:
                found[kind] = inside
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Checks files against botocore's description of the service.")
    parser.add_argument("OPERATION", choices=["ImportTable", "BatchWriteItem"])
    parser.add_argument("PATH", type=Path, nargs="+")
    given = parser.parse_args()
    model = botocore.session.get_session().get_service_model("dynamodb").operation_model(given.OPERATION)
    wrong = []
    for path in given.PATH:
        document = canonical.parse(path.read_text(encoding="utf-8"))
        report = ParamValidator().validate(parameters(given.OPERATION, document), model.input_shape)
        if report.has_errors():
            wrong.append(f"{path}: {report.generate_report()}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(len(given.PATH))
