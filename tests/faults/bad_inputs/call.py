"""Calls ``peg`` as a user would, and takes down all that it says."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from types import FrameType

from pipeline.cli.app import main

TIMEOUT_SECONDS = 60
# In a new clone the first run compiles every kernel, perhaps on a busy machine.
FIRST_RUN_SECONDS = 500


@dataclass(frozen=True)
class Answer:
    """What came of a call.

    Args:
        code: Exit code; None: it did not end in time.
        out: Standard output.
        err: Standard error, with the traceback of an error that nobody caught.
    """

    code: int | None
    out: str
    err: str


class TooLong(BaseException):
    """Time is up; nobody catches this by accident."""


def call_here(arguments: list[str], *, timeout_seconds: int = TIMEOUT_SECONDS) -> Answer:
    """Run the command in this process, so that it finds the Ray that is running."""
    out, err = io.StringIO(), io.StringIO()
    code: int | None = 0
    with redirect_stdout(out), redirect_stderr(err), _as_a_command(arguments, err):
        signal.setitimer(signal.ITIMER_REAL, timeout_seconds)
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except TooLong:
            code = None
        except BaseException:  # noqa: BLE001  that is what is looked for
            code = 1
            traceback.print_exc(file=err)
    return Answer(code, out.getvalue(), err.getvalue())


def call_alone(arguments: list[str]) -> Answer:
    """Run the command in a process of its own, which can be ended whatever it does."""
    command = [sys.executable, "-m", "pipeline", *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return Answer(None, "", "")
    return Answer(done.returncode, done.stdout, done.stderr)


@contextmanager
def _as_a_command(arguments: list[str], err: io.StringIO) -> Iterator[None]:
    """Arguments, width, warnings and time as in a process of its own."""
    before = (sys.argv, os.environ.get("COLUMNS"))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    handler = logging.StreamHandler(err)
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    sys.argv, os.environ["COLUMNS"] = ["peg", *arguments], "200"
    alarm = signal.signal(signal.SIGALRM, _time_is_up)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        for number, answer in handlers.items():
            signal.signal(number, answer)
        logging.getLogger().removeHandler(handler)
        sys.argv = before[0]
        if before[1] is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before[1]


def _time_is_up(_number: int, _frame: FrameType | None) -> None:
    raise TooLong
