"""Measures whether a live run keeps to its write rate, with items of many sizes, half of them in an index.

usage: rate.py DYNAMORPH [--units N] [--seconds S] [--counts FACTOR] [--throttle SHARE]

The service is played by this script: it stores nothing, counts the write units of each item by its own arithmetic, and says how many it
counted, times FACTOR, as a real one counts more where larger items are replaced. With SHARE it throttles that part of the requests.
It prints what arrived in each second, and ends with code 1 when the mean over all seconds is more than 2 % off.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PIPELINE = """
version = 1
[source]
key = { partition = "PK", sort = "SK" }
[table.docs]
key = { partition = "PK", sort = "SK" }
[table.docs.index.recent]
key = { partition = "GSI1PK", sort = "GSI1SK" }
[entity.Doc]
match = { PK = "WS#{ws}", SK = "DOC#{doc}" }
to = "docs"
index.recent = { GSI1PK = "{kind}", GSI1SK = "{doc}" }
"""


def units(item):
    """Write units of an item of texts, in the table and in the index."""
    size = sum(len(name.encode()) + len(value["S"].encode()) for name, value in item.items())
    each = max(1, math.ceil(size / 1024))
    return each * (2 if "GSI1PK" in item and "GSI1SK" in item else 1)


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, answer = self.answer(self.headers["x-amz-target"].split(".")[1], body)
        answer = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def answer(self, action, body):
        if action == "BatchWriteItem":
            now = time.monotonic()
            if random.random() < self.server.options.throttle:
                return 400, {"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "on purpose"}
            counted = sum(units(put["PutRequest"]["Item"]) for put in body["RequestItems"]["docs"]) * self.server.options.counts
            with self.server.lock:
                self.server.arrived.append((now, counted))
            return 200, {"UnprocessedItems": {}, "ConsumedCapacity": [{"TableName": "docs", "CapacityUnits": counted}]}
        if action == "DescribeTable":
            key = lambda *names: [{"AttributeName": name, "KeyType": role} for name, role in zip(names, ["HASH", "RANGE"])]
            index = {"IndexName": "recent", "IndexStatus": "ACTIVE", "KeySchema": key("GSI1PK", "GSI1SK")}
            return 200, {
                "Table": {
                    "TableName": "docs",
                    "TableStatus": "ACTIVE",
                    "KeySchema": key("PK", "SK"),
                    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ["PK", "SK", "GSI1PK", "GSI1SK"]],
                    "GlobalSecondaryIndexes": [index],
                }
            }
        return 400, {"__type": "com.amazon.coral.service#UnknownOperationException"}


def write_items(path, wanted):
    """Items of at least so many units, of 100 bytes to 20 KB; small ones are as many as large ones."""
    dice = random.Random(5)
    total = at = 0
    with open(path, "w") as out:
        while total < wanted:
            item = {"PK": {"S": f"WS#{at // 40}"}, "SK": {"S": f"DOC#{at}"}, "text": {"S": "x" * int(100 * 200 ** dice.random())}}
            if at % 2:
                item["kind"] = {"S": f"K{at % 97}"}
                kind, doc = item["kind"], {"S": str(at)}
                total += units({**item, "GSI1PK": kind, "GSI1SK": doc})
            else:
                total += units(item)
            out.write(json.dumps({"Item": item}, separators=(",", ":")) + "\n")
            at += 1
    return at


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dynamorph")
    parser.add_argument("--units", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--counts", type=float, default=1.0)
    parser.add_argument("--throttle", type=float, default=0.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        items = write_items(folder / "items.json", options.units * options.seconds / options.counts)
        (folder / "rate.toml").write_text(PIPELINE)
        server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        server.daemon_threads = True
        server.options, server.lock, server.arrived = options, threading.Lock(), []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        command = [options.dynamorph, "run", str(folder / "rate.toml"), "--from", str(folder / "items.json"), "--to", "dynamodb", "--quiet"]
        command += ["--endpoint-url", address, "--region", "us-east-1", "--work", str(folder / "work")]
        command += ["--max-write-units", str(options.units)]
        environment = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(ran.stderr)
        arrived = sorted(server.arrived)
    start, end = arrived[0][0], arrived[-1][0]
    seconds = [0.0] * (int(end - start) + 1)
    for at, counted in arrived:
        seconds[int(at - start)] += counted
    print(" ".join(f"{second:.0f}" for second in seconds))
    # What the first request brought was saved up before the first second.
    mean = sum(counted for _, counted in arrived[1:]) / (end - start)
    off = mean / options.units - 1
    print(f"{items} items, {len(arrived)} requests, {end - start:.1f} s: {mean:.1f} write units a second, {off:+.2%} of {options.units}")
    print(next(line for line in ran.stdout.splitlines() if line.startswith("dynamodb")))
    if abs(off) > 0.02 and options.throttle == 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
