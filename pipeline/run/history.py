"""What ran when, and what it cost: one small Parquet file a run, for any tool to query."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import PegError
from peg_core.object_url import is_url
from peg_core.storage.object_storage import Storage
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.redaction import redact
from pipeline.run.run_log import RunLog
from pipeline.run.stage_metrics import METRIC_NAMES

FOLDER = "history"
SCHEMA: dict[str, Any] = {
    "run": pl.String,
    "pipeline": pl.String,
    "outcome": pl.String,
    "error": pl.String,
    "started": pl.Datetime("ms", "UTC"),
    "finished": pl.Datetime("ms", "UTC"),
    "seconds": pl.Float64,
    "stage": pl.String,
    "action": pl.String,
    "fingerprint": pl.String,
    "stage_seconds": pl.Float64,
    "work": pl.Float64,
    **{name: pl.Float64 if name == "rows_per_second" else pl.Int64 for name in METRIC_NAMES},
}
logger = logging.getLogger(__name__)


class RunHistory:
    """The rows of one run: a row for every stage that it came to."""

    def __init__(self, config: PipelineConfig, run: str) -> None:
        self._store = config.store
        self._common: dict[str, Any] = {"run": run, "pipeline": config.name}
        self._started, self._clock = datetime.now(UTC), time.monotonic()
        self._stages: list[dict[str, Any]] = []

    def add(self, manifest: Manifest, action: str, work: float = 0.0) -> None:
        """A stage is done, by this run or an earlier one.

        Args:
            work: What it was estimated to have to do, see :mod:`pipeline.run.sizing.estimate`.
        """
        row: dict[str, Any] = {
            "stage": manifest.identity.stage,
            "action": action,
            "fingerprint": manifest.fingerprint,
        }
        if action == "run":
            row |= {"stage_seconds": manifest.seconds, "work": work, **manifest.metrics}
        self._stages.append(row)

    def write(self, outcome: str, error: str | None = None) -> None:
        """Keep the run in the store."""
        common = {
            **self._common,
            "outcome": outcome,
            "error": error,
            "started": self._started,
            "finished": datetime.now(UTC),
            "seconds": round(time.monotonic() - self._clock, 3),
        }
        rows = [{**common, **stage} for stage in self._stages or [{}]]
        table = pl.DataFrame([{key: row.get(key) for key in SCHEMA} for row in rows], SCHEMA)
        with tempfile.TemporaryDirectory(prefix="peg-history-") as folder:
            file = Path(folder) / f"runs-{common['run']}.parquet"
            table.write_parquet(file)
            Storage(self._store).upload(Path(folder), FOLDER, {file.name: file.stat().st_size})


@contextmanager
def recorded(config: PipelineConfig, log: RunLog) -> Iterator[RunHistory]:
    """A run's beginning and end, in its log and in the history."""
    history = RunHistory(config, log.run)
    log.write("run_started", pipeline=config.name, store=config.store)
    try:
        yield history
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        outcome = "interrupted" if interrupted else "failed"
        message = redact(f"{type(error).__name__}: {error}")
        facts = {"error": type(error).__name__, "message": str(error)}
        if error.__cause__ is not None:
            facts["cause"] = str(error.__cause__)
        log.write("run_failed", outcome=outcome, **facts)
        _keep(history, outcome, message)
        raise
    log.write("run_finished", outcome="succeeded")
    _keep(history, "succeeded")


def _keep(history: RunHistory, outcome: str, error: str | None = None) -> None:
    try:
        history.write(outcome, error)
    except (OSError, PegError) as problem:  # the run itself matters more
        logger.warning("the run was not added to the history: %s", problem)


def read_history(store: str) -> pl.DataFrame:
    """All runs of a store, a row for every stage, the newest run first."""
    with tempfile.TemporaryDirectory(prefix="peg-history-") as temporary:
        folder = Path(store) / FOLDER
        if is_url(store):
            folder = Path(temporary)
            Storage(store).download_folder(FOLDER, folder)
        tables = [_read(file) for file in sorted(folder.glob("runs-*.parquet"))]
    found = pl.concat([pl.DataFrame(schema=SCHEMA), *tables], how="diagonal")
    return found.sort("started", descending=True, maintain_order=True)


def _read(file: Path) -> pl.DataFrame:
    """The rows of one run; none where the file cannot be read, which is told."""
    try:
        table = pl.read_parquet(file)
        return table.select(*(pl.col(name).cast(SCHEMA[name]) for name in SCHEMA if name in table))
    except (OSError, pl.exceptions.PolarsError) as error:
        logger.warning("%s is left out: it cannot be read (%s); remove it", file, error)
        return pl.DataFrame(schema=SCHEMA)
