"""A folder in the file system or in an object store, with the few operations that a store needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from peg_core.atomic_file import atomic_path
from peg_core.object_url import ObjectUrl, StorageError, is_url
from peg_core.storage.file_record import MANIFEST_NAME, digest

TRANSFERS = 8
COPY_BYTES = 8 * 2**20
# Which artifacts the last run used, by stage.
CURRENT_NAME = "current.json"


@dataclass(frozen=True)
class StoredFile:
    """A file as a listing shows it; ``name`` is relative to the storage."""

    name: str
    bytes: int
    modified_ns: int


class Storage:
    """Files below one root; an object appears whole or not at all.

    Args:
        root: A folder, or ``s3://bucket/prefix`` or ``gs://bucket/prefix`` with options.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._url = ObjectUrl.parse(root) if is_url(root) else None
        self._base = self._url.path if self._url else str(Path(root).absolute())

    def location(self, name: str = "") -> str:
        """The path or URL of ``name``, as a user would type it."""
        path = self._path(name)
        return str(self._url.at(path)) if self._url else path

    def read_json(self, name: str) -> Any | None:
        """The value, or None where there is no such file."""
        with self._told("read", name):
            try:
                with self._filesystem.open_input_stream(self._path(name)) as stream:
                    return json.loads(stream.read())
            except FileNotFoundError:
                return None
            except OSError as error:
                # removed by another run between the opening and the reading
                if "NO_SUCH_KEY" in str(error):
                    return None
                raise

    def read_text(self, name: str) -> str | None:
        """The text, or None where there is no such file."""
        with self._told("read", name):
            try:
                with self._filesystem.open_input_stream(self._path(name)) as stream:
                    return str(stream.read().decode())
            except FileNotFoundError:
                return None

    def digest(self, name: str) -> str:
        """The checksum of a file's contents."""
        with (
            self._told("read", name),
            self._filesystem.open_input_stream(self._path(name)) as stream,
        ):
            return digest(stream)

    def write_json(self, name: str, value: Any) -> None:
        """Write JSON, which appears whole."""
        self._write(name, json.dumps(value, indent=2).encode())

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Some bytes of a file; fewer where it ends before."""
        with (
            self._told("read", name),
            self._filesystem.open_input_file(self._path(name)) as file,
        ):
            return bytes(file.read_at(length, start))

    def open_input(self, name: str) -> pa.NativeFile:
        """A file to read pieces of."""
        with self._told("read", name):
            return self._filesystem.open_input_file(self._path(name))

    def file_size(self, name: str) -> int | None:
        """Bytes of a file, or None where there is no such file."""
        with self._told("read", name):
            info = self._filesystem.get_file_info(self._path(name))
        return int(info.size) if info.type == pafs.FileType.File else None

    def exists(self, name: str) -> bool:
        with self._told("read", name):
            info = self._filesystem.get_file_info(self._path(name))
        return bool(info.type != pafs.FileType.NotFound)

    def files(self, folder: str = "", *, recursive: bool = True) -> list[StoredFile]:
        """All files below ``folder``, sorted by name; none where it does not exist."""
        found = self._infos(folder, recursive=recursive)
        return sorted(
            (
                StoredFile(info.path[len(self._base) + 1 :], info.size, info.mtime_ns or 0)
                for info in found
                if info.type == pafs.FileType.File
            ),
            key=lambda file: file.name,
        )

    def folders(self, folder: str = "") -> list[str]:
        """The names of the folders right below ``folder``, sorted."""
        found = self._infos(folder, recursive=False)
        return sorted(info.base_name for info in found if info.type == pafs.FileType.Directory)

    def upload(self, folder: Path, name: str, files: Mapping[str, int]) -> None:
        """Copy files of a local folder, and check that their sizes (``files``) arrived.

        The manifest is not among them: the caller writes it when all else is there.
        """
        in_parallel(lambda file: self.upload_file(folder / file, f"{name}/{file}"), files)
        arrived = {file.name[len(name) + 1 :]: file.bytes for file in self.files(name)}
        _require_sizes(self.location(name), arrived, files)

    def download(self, name: str, folder: Path, files: Mapping[str, int]) -> None:
        """Copy files to a local folder, and check that their sizes (``files``) arrived."""
        in_parallel(lambda file: self.download_file(f"{name}/{file}", folder / file), files)
        _require_sizes(self.location(name), local_sizes(folder), files)

    def download_folder(self, name: str, folder: Path) -> None:
        """Copy everything to a local folder, its manifest last."""
        there = {file.name[len(name) + 1 :]: file.bytes for file in self.files(name)}
        has_manifest = there.pop(MANIFEST_NAME, None) is not None
        self.download(name, folder, there)
        if has_manifest:
            self.download_file(f"{name}/{MANIFEST_NAME}", folder / MANIFEST_NAME)

    def delete(self, name: str) -> None:
        """Remove a file, or a folder with its manifest first; do nothing where there is none."""
        path = self._path(name)
        with self._told("delete", name):
            kind = self._filesystem.get_file_info(path).type
            if kind == pafs.FileType.File:
                self._filesystem.delete_file(path)
            elif kind == pafs.FileType.Directory:
                if self.exists(f"{name}/{MANIFEST_NAME}"):
                    self._filesystem.delete_file(f"{path}/{MANIFEST_NAME}")
                self._filesystem.delete_dir(path)

    @property
    def _filesystem(self) -> pafs.FileSystem:
        return self._url.filesystem if self._url else pafs.LocalFileSystem()

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}" if name else self._base

    def _infos(self, folder: str, *, recursive: bool) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(self._path(folder), recursive=recursive, allow_not_found=True)
        with self._told("list", folder):
            try:
                found: list[pafs.FileInfo] = self._filesystem.get_file_info(selector)
            except (NotADirectoryError, FileNotFoundError):  # also where it goes meanwhile
                return []
        return found

    def _write(self, name: str, data: bytes) -> None:
        with self._told("write", name):
            if self._url is None:
                with atomic_path(Path(self._path(name))) as temporary:
                    temporary.write_bytes(data)
            else:
                with self._filesystem.open_output_stream(self._path(name)) as sink:
                    sink.write(data)

    def upload_file(self, file: Path, name: str) -> None:
        """Copy a local file; it appears whole or not at all."""
        with self._told("write", name), file.open("rb") as source:
            if self._url is None:
                with atomic_path(Path(self._path(name))) as temporary, temporary.open("wb") as out:
                    shutil.copyfileobj(source, out, COPY_BYTES)
            else:
                with self._filesystem.open_output_stream(self._path(name)) as sink:
                    shutil.copyfileobj(source, sink, COPY_BYTES)

    def download_file(self, name: str, file: Path) -> None:
        """Copy to a local file, which appears whole or not at all."""
        with (
            self._told("read", name),
            atomic_path(file) as temporary,
            temporary.open("wb") as out,
            self._filesystem.open_input_stream(self._path(name)) as source,
        ):
            shutil.copyfileobj(source, out, COPY_BYTES)

    @contextmanager
    def _told(self, what: str, name: str) -> Iterator[None]:
        """Errors of pyarrow in the user's words."""
        try:
            yield
        except (OSError, pa.ArrowException, json.JSONDecodeError) as error:
            raise StorageError.of(what, self.location(name), error) from error


def local_sizes(folder: Path) -> dict[str, int]:
    """Name to bytes of the files of an artifact, without its manifest and temporary files."""
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST_NAME and path.suffix != ".tmp"
    }


def file_facts(file: str) -> dict[str, Any]:
    """What tells an input file from a changed one: its path, size and time."""
    if not is_url(file):
        local = Path(file).stat()
        return {"path": file, "bytes": local.st_size, "modified_ns": local.st_mtime_ns}
    url = ObjectUrl.parse(file)
    try:
        info = url.filesystem.get_file_info(url.path)
    except (OSError, pa.ArrowException) as error:
        raise StorageError.of("read", file, error) from error
    return {"path": file, "bytes": info.size, "modified_ns": info.mtime_ns}


def in_parallel(act: Callable[[str], object], names: Iterable[str]) -> None:
    """Do the same for every name, some side by side; the first error is raised."""
    with ThreadPoolExecutor(TRANSFERS) as pool:
        for _ in pool.map(act, names):
            pass


def _require_sizes(location: str, found: Mapping[str, int], needed: Mapping[str, int]) -> None:
    wrong = [name for name, size in needed.items() if found.get(name) != size]
    if wrong:
        raise StorageError(
            f"{len(wrong)} of {len(needed)} files of {location} did not arrive complete, first "
            f"{wrong[0]}: found {found.get(wrong[0], 'nothing')}, needed {needed[wrong[0]]} bytes; "
            "run again: the artifact counts only when all of it is there"
        )
