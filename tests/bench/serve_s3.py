"""Serves a folder as a bucket of S3, by a server that others wrote, until its input ends.

usage: serve_s3.py FOLDER BUCKET      prints the server's address when everything has been uploaded
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError


def main():
    folder, bucket = Path(sys.argv[1]), sys.argv[2]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "s3", "LOG_LEVEL": "WARNING"}
    server = subprocess.Popen([Path(sys.executable).with_name("ministack")], env=environment, stdout=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=address,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(s3={"addressing_style": "path"}),
        )
        while True:
            try:
                client.create_bucket(Bucket=bucket)
                break
            except BotoCoreError:
                if server.poll() is not None:
                    sys.exit("the server ended")
                time.sleep(0.1)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            client.upload_file(str(path), bucket, str(path.relative_to(folder)))
        print(address, flush=True)
        sys.stdin.read()
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
