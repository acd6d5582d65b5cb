"""The stores of the trials: a folder, or a bucket of the S3 server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pyarrow.fs as pafs

from tests.fixtures.object_store import ObjectStore


class TrialStore(Protocol):
    """A store that a trial can fill, copy and look into."""

    address: str

    def copy_to(self, other: TrialStore, without: Sequence[str]) -> None:
        """Give another store of the same kind what this one has, but for some stages."""
        ...

    def as_folder(self, folder: Path) -> Path:
        """All that is in the store as a local folder, which may be ``folder``."""
        ...


class LocalStore:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder)

    def copy_to(self, other: TrialStore, without: Sequence[str]) -> None:
        target = Path(other.address)
        shutil.copytree(self.address, target, symlinks=True)
        for stage in without:
            shutil.rmtree(target / stage)
            (target / "current" / stage).unlink()

    def as_folder(self, folder: Path) -> Path:
        del folder  # it is one already
        return Path(self.address)


class BucketStore:
    """A bucket."""

    def __init__(self, server: ObjectStore) -> None:
        self.files = pafs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{server.port}", scheme="http", region="us-east-1"
        )
        self.root = f"{server.new_bucket()}/store"
        self.address = f"s3://{self.root}{server.options()}"

    def copy_to(self, other: TrialStore, without: Sequence[str]) -> None:
        assert isinstance(other, BucketStore)
        for name in self._names():
            if name.split("/")[0] not in without and name != "current.json":
                self.files.copy_file(f"{self.root}/{name}", f"{other.root}/{name}")
        with self.files.open_input_stream(f"{self.root}/current.json") as stream:
            current = json.loads(stream.read())
        kept = {stage: name for stage, name in current.items() if stage not in without}
        with other.files.open_output_stream(f"{other.root}/current.json") as sink:
            sink.write(json.dumps(kept).encode())

    def as_folder(self, folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        for name in self._names():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with self.files.open_input_stream(f"{self.root}/{name}") as stream:
                target.write_bytes(stream.read())
        return folder

    def _names(self) -> list[str]:
        chosen = pafs.FileSelector(self.root, recursive=True, allow_not_found=True)
        found = self.files.get_file_info(chosen)
        return [i.path.removeprefix(f"{self.root}/") for i in found if i.type == pafs.FileType.File]
