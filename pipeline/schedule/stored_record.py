"""Records of a store that may be broken: cut off, edited by hand, or of another version."""

from __future__ import annotations

import shlex
from typing import Any, Self

from pyarrow import ArrowException

from peg_core.errors import PegError
from peg_core.object_url import StorageError
from peg_core.storage.object_storage import Storage

LONGEST_REASON = 300


class UnreadableRecord(PegError):
    """A schedule, tick or request in the store that cannot be used; the others can."""

    @classmethod
    def schedule(cls, name: str, location: str, store: str, reason: str) -> Self:
        remove = shlex.join(["peg", "schedule", "remove", store, name])
        return cls(
            f"{location} is not a schedule that this version can read ({_short(reason)}); remove "
            f"it with `{remove}` and add it again, or use the version that wrote it"
        )

    @classmethod
    def tick(cls, location: str, reason: str) -> Self:
        return cls(
            f"{location} is not a tick that this version can read ({_short(reason)}); it is left "
            "out: delete this file, or use the version that wrote it"
        )


def read_record(storage: Storage, file: str) -> Any | None:
    """The JSON value of a file, or None where there is none.

    Raises:
        ValueError: The file is there, but holds no JSON or may not be read.
        StorageError: The store does not answer; this says nothing about the file.
    """
    try:
        return _read(storage, file)
    except ValueError:
        # an object that is rewritten meanwhile may arrive torn: the second time it is whole
        return _read(storage, file)


def _read(storage: Storage, file: str) -> Any | None:
    try:
        return storage.read_json(file)
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, PermissionError):
            raise ValueError("permission denied") from error
        if isinstance(cause, ValueError | RecursionError) and not isinstance(cause, ArrowException):
            raise ValueError(f"no JSON: {cause}") from error
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from error


def _short(reason: str) -> str:
    text = " ".join(reason.split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."
