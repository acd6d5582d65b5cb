"""What a Ray of our own is given: a private folder, a token, and loopback alone."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import ray

from workers.jobs.ray_token import DEFAULT_FILE, MODE, TOKEN, TOKEN_PATH
from workers.local_ray.ray_internals import loopback_kept, reload_authentication

# Whether Ray's processes may form a cluster; without, they listen on 127.0.0.1 alone.
CLUSTER_MODE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
PREFIX = "pegray-"
# The path of a socket holds 107 bytes. Ray needs 64 of them below its folder
# (/session_<time>_<process>/sockets/plasma_store), /ray 4 and the session's folder 16.
LONGEST_BASE = 107 - 64 - 4 - 16
REMOVE_SECONDS = 10.0
RAY_PROGRAMS = f"{Path(ray.__file__).parent}/"


class PrivateSession:
    """The folder and the token of one local Ray; both are gone when it is closed.

    The folder is locked as long as its process lives, however that ends: the next session removes
    what a killed one left, and never what a live one uses.
    """

    def __init__(self) -> None:
        base = temporary_base()
        remove_dead_sessions(base)
        mend_token_file(Path.home() / DEFAULT_FILE)
        self.folder, self._lock = _locked_folder(base)
        # not the folder itself: Ray opens its own to everybody
        self.ray_folder = self.folder / "ray"
        self._before: dict[str, str | None] = {}
        if not _names_a_token(os.environ):
            # in the environment, which only this user can read, and in no file
            self._set({TOKEN: secrets.token_hex(32), MODE: "token"})
            reload_authentication()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """While Ray starts: what its processes inherit."""
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        inherited = {"TMPDIR": str(scratch), CLUSTER_MODE: "0"}
        before = {name: os.environ.get(name) for name in inherited}
        os.environ.update(inherited)
        try:
            with loopback_kept():
                yield
        finally:
            _restore(before)

    def close(self) -> None:
        """Forget the token and remove the folder; Ray has ended."""
        if self._before:
            _restore(self._before)
            self._before = {}
            reload_authentication()
        end_processes(self.folder)
        _remove(self.folder)
        os.close(self._lock)

    def _set(self, variables: Mapping[str, str]) -> None:
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)


def temporary_base() -> Path:
    """Where session folders are made; /tmp where the usual place has too long a path."""
    base = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    return base if len(os.fsencode(base)) <= LONGEST_BASE else Path("/tmp")


def remove_dead_sessions(base: Path) -> None:
    """Remove session folders of this user whose process has ended."""
    for folder in base.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another run was faster, or is using it
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                end_processes(folder)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def end_processes(folder: Path) -> None:
    """End what is left of the Ray of a session folder: its agents outlive it by a minute."""
    found = [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if _belongs_to(process, folder)
    ]
    for process in found:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(found, timeout=REMOVE_SECONDS)


def _belongs_to(process: psutil.Process, folder: Path) -> bool:
    """Whether it is a process of Ray, not just of somebody who reads Ray's logs, and of ours."""
    words = process.info["cmdline"] or []
    if not (process.info["name"] or "").startswith("ray::") and not any(
        word.startswith(RAY_PROGRAMS) for word in words
    ):
        return False
    within = f"{folder}/"
    if any(within in word for word in words):
        return True
    with suppress(psutil.Error):  # it has ended, or is another user's
        return any(file.path.startswith(within) for file in process.open_files())
    return False


def mend_token_file(file: Path) -> None:
    """Make the token file and its folder private: Ray writes it for everybody to read."""
    for path, private in ((file.parent, 0o700), (file, 0o600)):
        with suppress(OSError):
            found = path.lstat()
            is_link = stat.S_ISLNK(found.st_mode)
            if not is_link and found.st_uid == os.getuid() and found.st_mode & 0o077:
                path.chmod(private)


def _locked_folder(base: Path) -> tuple[Path, int]:
    """A new folder and its lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)  # taken for a dead one before it was locked


def _names_a_token(environment: Mapping[str, str]) -> bool:
    """Whether the user chose a token, or none."""
    chosen = environment.get(TOKEN) or environment.get(TOKEN_PATH)
    return bool(chosen) or environment.get(MODE, "token").lower() != "token"


def _restore(before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _remove(folder: Path) -> None:
    """Remove the folder; processes that are just ending may still write into it."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            time.sleep(0.1)
