"""A machine that holds an object store: all that the others share."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from tests.cluster.machine import MOTO_PYTHON, Machine
from tests.fixtures.ray_node import server_port

# The server takes any; the tests' own process needs some, too.
KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
CURRENT = "current.json"


@dataclass(frozen=True)
class StoredObject:
    """One object, told from the one that is written over it."""

    bytes: int
    modified_ns: int


class ObjectMachine:
    """A real S3 server (moto) on a machine of its own."""

    def __init__(self, machine: Machine) -> None:
        if subprocess.run(
            [MOTO_PYTHON, "-c", "import moto.server"], capture_output=True
        ).returncode:
            pytest.skip("no S3 server: install moto[s3] and flask, or set PEG_MOTO_PYTHON")
        os.environ.update(KEYS)
        self.machine, self._buckets = machine, 0
        port = server_port()
        self.endpoint = f"{machine.address}:{port}"
        arguments = ["-m", "moto.server", "-H", machine.address, "-p", port]
        server = machine.popen(MOTO_PYTHON, *arguments)
        for _ in range(300):
            try:
                socket.create_connection((machine.address, port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, server.output
                time.sleep(0.1)
        self._files = pafs.S3FileSystem(
            endpoint_override=self.endpoint,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def new_bucket(self) -> str:
        """The name of an empty bucket."""
        self._buckets += 1
        name = f"bucket-{self._buckets}"
        self._files.create_dir(name)
        return name

    def url(self, path: str) -> str:
        """``bucket/name`` as machines write it."""
        return f"s3://{path}?endpoint_override={self.endpoint}&scheme=http&region=us-east-1"

    def upload(self, file: Path, path: str) -> None:
        with self._files.open_output_stream(path) as sink:
            sink.write(file.read_bytes())

    def objects(self, path: str) -> dict[str, StoredObject]:
        """All below ``bucket/folder``, by the rest of their names."""
        chosen = pafs.FileSelector(path, recursive=True, allow_not_found=True)
        return {
            info.path.removeprefix(f"{path}/"): StoredObject(info.size, info.mtime_ns)
            for info in self._files.get_file_info(chosen)
            if info.type == pafs.FileType.File
        }

    def copy(self, path: str, other: str, *, without: Collection[str] = ()) -> None:
        """A store as another one; it lacks some stages."""
        for name in self.objects(path):
            if name.split("/")[0] not in (*without, "lease") and name != CURRENT:
                self._files.copy_file(f"{path}/{name}", f"{other}/{name}")
        with self._files.open_input_stream(f"{path}/{CURRENT}") as stream:
            current = json.loads(stream.read())
        kept = {stage: name for stage, name in current.items() if stage not in without}
        with self._files.open_output_stream(f"{other}/{CURRENT}") as sink:
            sink.write(json.dumps(kept).encode())

    def download(self, path: str, folder: Path) -> Path:
        """Copy what is below ``bucket/folder``."""
        for name in self.objects(path):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._files.open_input_stream(f"{path}/{name}") as stream:
                target.write_bytes(stream.read())
        return folder
