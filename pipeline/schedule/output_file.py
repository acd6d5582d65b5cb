"""Where the output of a run goes that the daemon starts on its own machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from peg_core.errors import PegError
from peg_core.object_url import is_url
from peg_core.storage.node_cache import cache_folder
from pipeline.run.run_log import FOLDER as LOGS

FOLDER = "output"
# The last line is looked for in as many bytes; a run may have written gigabytes.
TAIL_BYTES = 64 * 1024


def output_path(store: str, run: str) -> Path:
    """Below the store; of a remote store in the user's own cache, never in a shared folder."""
    folder = cache_folder() / FOLDER if is_url(store) else Path(store) / LOGS
    return folder / f"{run}.out"


def open_output(store: str, run: str) -> BinaryIO:
    """A new file for the output; a link in its place is not followed."""
    path = output_path(store, run)
    if is_url(store):
        _make_private(path.parent)
        mode = 0o600
    else:  # whoever may read the store may read this too
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, mode), "wb")


def last_line(path: Path) -> str:
    """The last line that is not empty, or nothing where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line.strip()), "")


def _make_private(folder: Path) -> None:
    """Make a folder that nobody else can look into, or see that the one there is such a folder."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True, mode=0o700)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise PegError(
            f"{folder} is a link or belongs to another user; the output of runs needs a folder of "
            "your own: set PEG_CACHE_DIR to one, or remove it"
        )
    if stat.S_IMODE(facts.st_mode) != 0o700:
        folder.chmod(0o700)
