"""What happens in a run, as JSON lines: one file a run, ``<store>/logs/<run id>.jsonl``."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from peg_core.errors import PegError
from peg_core.object_url import is_url
from peg_core.storage.object_storage import Storage
from pipeline.config.redaction import redact_all
from pipeline.run.progress import StageProgress

FOLDER = "logs"
PROGRESS_SECONDS = 2.0
RUN_ID = "PEG_RUN_ID"
logger = logging.getLogger(__name__)


def new_run_id() -> str:
    """The name of this run: that of its job or tick, or the time with a random end."""
    return os.environ.get(RUN_ID) or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"


class RunLog:
    """Events of one run, written as they happen.

    Args:
        run: Name of the run, in every event.
        sinks: Where the lines go.
    """

    def __init__(self, run: str, sinks: Sequence[TextIO]) -> None:
        self.run = run
        self._sinks = sinks

    def write(self, event: str, **facts: Any) -> None:
        """Note an event; secrets are masked."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps(redact_all({"time": now, "run": self.run, "event": event, **facts}))
        for sink in self._sinks:
            sink.write(line + "\n")
            sink.flush()

    def watch(self, stage: str, line: StageProgress) -> StageProgress:
        """The line, with its progress noted now and then."""
        return _WatchedLine(self, stage, line)


class _WatchedLine:
    def __init__(self, log: RunLog, stage: str, line: StageProgress) -> None:
        self._log, self._stage, self._line = log, stage, line
        self._last = 0.0

    def update(self, done: float, total: float, note: str = "") -> None:
        self._line.update(done, total, note)
        if time.monotonic() - self._last >= PROGRESS_SECONDS:
            self._last = time.monotonic()
            self._log.write("progress", stage=self._stage, done=done, total=total, note=note)

    def close(self) -> None:
        self._line.close()


@contextmanager
def open_run_log(store: str, events: TextIO | None = None) -> Iterator[RunLog]:
    """The log of a new run in the store; ``events`` gets every line too.

    An object cannot be appended to: in a remote store the log arrives when the run ends.
    """
    run = new_run_id()
    extra = [events] if events is not None else []
    if not is_url(store):
        file = Path(store) / FOLDER / f"{run}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as sink:
            yield RunLog(run, [sink, *extra])
        return
    with tempfile.TemporaryDirectory(prefix="peg-log-") as folder:
        file = Path(folder) / f"{run}.jsonl"
        try:
            with file.open("a", encoding="utf-8") as sink:
                yield RunLog(run, [sink, *extra])
        finally:
            try:
                Storage(store).upload(Path(folder), FOLDER, {file.name: file.stat().st_size})
            except PegError as error:  # the run matters more than its log
                logger.warning("the log of the run did not arrive: %s", error)


def read_run_log(store: str, run: str) -> list[dict[str, Any]]:
    """The events of a run, or none; a line cut off by a kill is left out."""
    text = Storage(store).read_text(f"{FOLDER}/{run}.jsonl") or ""
    events = []
    for line in text.splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events
