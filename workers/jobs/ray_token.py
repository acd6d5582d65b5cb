"""The token that a Ray cluster with authentication asks for, where Ray itself looks for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from peg_core.errors import PegError

MODE = "RAY_AUTH_MODE"
TOKEN = "RAY_AUTH_TOKEN"
TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"
DEFAULT_FILE = Path(".ray") / "auth_token"


class TokenFileRefused(PegError):
    """The token file is missing, or others can read it."""

    @classmethod
    def open_to_others(cls, file: Path, mode: int) -> Self:
        return cls(
            f"the token file {file} has mode {mode:04o}, it must be 0600: others could read it and "
            f"run code on the cluster; run `chmod 600 {file}`, and make a new token if this "
            "machine has other users"
        )

    @classmethod
    def unreadable(cls, file: Path, reason: object) -> Self:
        return cls(
            f"the token file {file} cannot be read ({reason}); check {TOKEN_PATH}, or put the "
            f"token into {TOKEN}"
        )


def read_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """The token of ``RAY_AUTH_TOKEN``, ``RAY_AUTH_TOKEN_PATH`` or ``~/.ray/auth_token``, or None.

    Raises:
        TokenFileRefused: The file is not readable, or not for its owner alone.
    """
    if environment.get(TOKEN):
        return environment[TOKEN]
    named = environment.get(TOKEN_PATH)
    file = Path(named) if named else Path.home() / DEFAULT_FILE
    if not named and not file.exists():
        return None
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & 0o077:
            raise TokenFileRefused.open_to_others(file, mode)
        return file.read_text().strip() or None
    except OSError as error:
        raise TokenFileRefused.unreadable(file, error.strerror) from error
