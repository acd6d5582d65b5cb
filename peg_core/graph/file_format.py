"""Files that are not Parquet: what they are instead, and how they become it."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow as pa

from peg_core.errors import InputError
from peg_core.object_url import ObjectUrl, is_url

# Bytes that are looked at.
HEAD = 4096

SPECIAL: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class FileFormat:
    """A format of tables other than Parquet.

    Args:
        name: With its article, as in "found a CSV file".
        read: The expression that reads ``FILE`` with polars; empty where there is none.
    """

    name: str
    read: str = ""

    def advice(self, file: str) -> str:
        """How to make Parquet of a file, in one line of Python."""
        if not self.read:
            return "write the table as Parquet"
        out = str(PurePosixPath(file).with_suffix(".parquet")) if not is_url(file) else ""
        out = out if out and out != file else "table.parquet"
        written = self.read.replace("FILE", repr(file))
        return f"convert it: import polars as pl; {written}.write_parquet({out!r})"


CSV = FileFormat("a text file, perhaps CSV", "pl.read_csv(FILE)")
TSV = FileFormat("a text file, perhaps CSV with tabs", "pl.read_csv(FILE, separator='\\t')")
JSON = FileFormat("a text file, perhaps JSON", "pl.read_ndjson(FILE)")
ARROW = FileFormat("an Arrow IPC file", "pl.read_ipc(FILE)")
ORC = FileFormat("an ORC file", "import pyarrow.orc as orc; pl.from_arrow(orc.read_table(FILE))")
ZIP = FileFormat(
    "a zip archive, perhaps of CSV",
    "import zipfile; z = zipfile.ZipFile(FILE); pl.read_csv(z.read(z.namelist()[0]))",
)
BY_SUFFIX = {
    ".csv": CSV, ".tsv": TSV, ".txt": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON,
    ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW, ".orc": ORC, ".gz": CSV, ".zip": ZIP,
}  # fmt: skip
BY_FIRST_BYTES = {
    b"ARROW1": ARROW,
    b"FEA1": ARROW,
    b"\xff\xff\xff\xff": FileFormat("an Arrow IPC stream", "pl.read_ipc_stream(FILE)"),
    b"ORC": ORC,
    b"PK\x03\x04": ZIP,
    b"\x1f\x8b": FileFormat("a file packed with gzip, perhaps CSV", CSV.read),
    b"\x28\xb5\x2f\xfd": FileFormat("a file packed with zstd, perhaps CSV", CSV.read),
    b"Obj\x01": FileFormat("an Avro file", "pl.read_avro(FILE)"),
    b"\x89HDF": FileFormat("an HDF5 file"),
    b"SQLite format 3": FileFormat("an SQLite database"),
    b"PARE": FileFormat("an encrypted Parquet file"),
}


def convertible(name: str) -> bool:
    """Whether a file of this name may be a table that becomes Parquet."""
    return PurePosixPath(name).suffix.lower() in BY_SUFFIX


def require_regular(file: Path | str) -> None:
    """Refuse pipes, sockets, devices and folders before anything opens them, and waits."""
    try:
        mode = Path(file).stat().st_mode
    except FileNotFoundError as error:
        raise InputError.no_such_file(file) from error
    for is_kind, name in SPECIAL:
        if is_kind(mode):
            raise InputError.not_a_file(file, name)
    if not stat.S_ISREG(mode):
        raise InputError.not_a_file(file, "a folder")


def other_format(file: Path | str) -> FileFormat | None:
    """What a file is that could not be read as Parquet; None where that is not known."""
    try:
        head = _first_bytes(str(file))
    except (OSError, pa.ArrowException):
        return None
    if not head:
        return FileFormat("an empty file")
    for start, kind in BY_FIRST_BYTES.items():
        if head.startswith(start):
            return kind
    return _text_format(head)


def _first_bytes(file: str) -> bytes:
    if is_url(file):
        url = ObjectUrl.parse(file)
        with url.filesystem.open_input_file(url.path) as stream:
            return bytes(stream.read(HEAD))
    with Path(file).open("rb") as local:
        return local.read(HEAD)


def _text_format(head: bytes) -> FileFormat | None:
    """The format of a text by its first characters."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or not error.start:  # a character may be cut in two
            return None
        text = head[: error.start].decode("utf-8-sig")
    if not all(character.isprintable() or character.isspace() for character in text):
        return None
    if text.lstrip().startswith(("{", "[")):
        return JSON
    return TSV if "\t" in text.partition("\n")[0] else CSV
