"""Makes a table in moto, lets moto export it, and completes the export with the manifests that moto leaves out.

usage: moto_export.py URL BUCKET

The export lies below s3://BUCKET/exports/. Prints the table's items in canonical form, sorted.
"""

import base64
import datetime
import gzip
import hashlib
import json
from decimal import Decimal

import boto3
import canonical
from boto3.dynamodb.types import Binary, TypeSerializer

ITEMS = [
    {
        "PK": f"WS#{number % 7}",
        "SK": f"DOC#{number}",
        "title": 'é "quoted" \\ \n 😀',
        "count": Decimal("12345678901234567890.123456789"),
        "tags": {"b", "a"},
        "sizes": {Decimal("1.5"), Decimal(number + 2)},
        "parts": {Binary(b"\x00\x01"), Binary(b"z")},
        "data": Binary(b"\xff" * (number % 5)),
        "open": number % 2 == 0,
        "gone": None,
        "nested": {"list": [1, "two", {"three": []}], "S": {}},
    }
    for number in range(200)
]


def main():
    options = canonical.arguments("Exports a table of moto.", URL={}, BUCKET={}).parse_args()
    access = {"endpoint_url": options.URL, "region_name": "us-east-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}
    dynamodb, s3 = boto3.client("dynamodb", **access), boto3.client("s3", **access)
    keys = [("PK", "HASH"), ("SK", "RANGE")]
    table = dynamodb.create_table(
        TableName="docs",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
    )["TableDescription"]
    dynamodb.update_continuous_backups(TableName="docs", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
    serializer = TypeSerializer()
    items = [{name: serializer.serialize(value) for name, value in item.items()} for item in ITEMS]
    for item in items:
        dynamodb.put_item(TableName="docs", Item=item)
    export = dynamodb.export_table_to_point_in_time(TableArn=table["TableArn"], S3Bucket=options.BUCKET, S3Prefix="exports")["ExportDescription"]
    while dynamodb.describe_export(ExportArn=export["ExportArn"])["ExportDescription"]["ExportStatus"] == "IN_PROGRESS":
        pass
    complete(s3, options.BUCKET, table)
    canonical.write(({name: canonical.tagged(plain(value)) for name, value in item.items()} for item in items), False)


def plain(value):
    """The value with its binaries in base64, as JSON has them."""
    ((kind, inside),) = value.items()
    match kind:
        case "B":
            return {kind: canonical.binary(bytes(inside))}
        case "BS":
            return {kind: [canonical.binary(bytes(member)) for member in inside]}
        case "L":
            return {kind: [plain(element) for element in inside]}
        case "M":
            return {kind: {name: plain(element) for name, element in inside.items()}}
        case _:
            return value


def complete(s3, bucket, table):
    """Writes summary, list and their checksums for the data files that are there."""
    entries, total = [], 0
    for listed in s3.list_objects_v2(Bucket=bucket, Prefix="exports/AWSDynamoDB/")["Contents"]:
        stored = s3.get_object(Bucket=bucket, Key=listed["Key"])["Body"].read()
        count = len(gzip.decompress(stored).splitlines())
        total += count
        entries.append({"itemCount": count, "md5Checksum": md5(stored), "etag": listed["ETag"], "dataFileS3Key": listed["Key"]})
    folder = entries[0]["dataFileS3Key"].rsplit("/data/", 1)[0]
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    summary = {
        "version": "2020-06-30",
        "exportArn": f"{table['TableArn']}/export/{folder.rsplit('/', 1)[1]}",
        "startTime": now,
        "endTime": now,
        "tableArn": table["TableArn"],
        "tableId": table.get("TableId", "00000000-0000-0000-0000-000000000000"),
        "exportTime": now,
        "s3Bucket": bucket,
        "s3Prefix": "exports",
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{folder}/manifest-files.json",
        "billedSizeBytes": 0,
        "itemCount": total,
        "outputFormat": "DYNAMODB_JSON",
    }
    listing = "".join(json.dumps(entry) + "\n" for entry in entries)
    for stem, text in [("manifest-files", listing), ("manifest-summary", json.dumps(summary))]:
        s3.put_object(Bucket=bucket, Key=f"{folder}/{stem}.json", Body=text.encode())
        s3.put_object(Bucket=bucket, Key=f"{folder}/{stem}.md5", Body=md5(text.encode()).encode())


def md5(content):
    return base64.b64encode(hashlib.md5(content).digest()).decode()


if __name__ == "__main__":
    main()
