"""Serves S3 and DynamoDB that others wrote, on a free port of this machine, until standard input ends.

usage: serve.py {ministack|moto}

Prints the port once requests are answered. Whoever starts this holds the other end of standard input, so that it ends with them
however they end. Nothing is kept.
"""

import asyncio
import logging
import os
import socket
import sys
import threading


def end_with_standard_input():
    """Ends the process when the other end of standard input is closed. Nothing needs to be put in order."""

    def wait():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def moto():
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print(server.get_host_and_port()[1], flush=True)
    threading.Event().wait()


def ministack():
    # Bound before the server starts, so that nobody else can have the port; connections wait until it listens.
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    os.environ.update(GATEWAY_PORT=str(port), BIND_HOST="127.0.0.1", SERVICES="s3,dynamodb", LOG_LEVEL="ERROR")
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app

    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel = "ERROR"
    print(port, flush=True)
    asyncio.run(serve(app, config))


if __name__ == "__main__":
    servers = {"ministack": ministack, "moto": moto}
    if len(sys.argv) != 2 or sys.argv[1] not in servers:
        sys.exit(__doc__)
    end_with_standard_input()
    servers[sys.argv[1]]()
