"""The S3 server of the trials, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fixtures.object_store import ObjectStore, free_port

KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
START_SECONDS = 60.0


@contextmanager
def object_server() -> Iterator[ObjectStore]:
    """A server on loopback; no signal to a run reaches it."""
    for name, value in KEYS.items():
        os.environ.setdefault(name, value)
    server = ObjectStore(free_port())
    python = os.environ.get("PEG_MOTO_PYTHON", sys.executable)
    process = subprocess.Popen(
        [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(server.port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(server.port, process)
        yield server
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("no S3 server: install moto[s3], flask and flask-cors") from None
            time.sleep(0.2)
        else:
            return
