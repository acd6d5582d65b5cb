"""Scores in a folder of the user's choice, with the rules of a stage: exactly once, resumable."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from peg_core.atomic_file import write_json
from peg_core.errors import ArtifactMismatch, ConfigError, InputError
from peg_core.object_url import is_url
from pipeline.config.result_sections import ScoreConfig
from pipeline.run.plan import file_facts_of
from pipeline.run.progress import RunDisplay
from pipeline.stages.score import STAGE, score_candidates
from pipeline.store.lease import Lease
from pipeline.store.manifest import Identity, Manifest
from workers.cluster import Cluster
from workers.tasks.score import ScoreRequest

REQUEST_NAME = "request.json"


class ScoreFolder:
    """A folder that is filled with the scores of one request.

    ``request.json`` says whose the folder is until ``manifest.json`` says that it is finished.

    Args:
        folder: Where ``part-*.parquet`` go.
        inputs: Fingerprints of what scores.
        score: The candidates and their columns.
    """

    def __init__(self, folder: Path, inputs: dict[str, str], score: ScoreConfig) -> None:
        if is_url(folder):
            raise ConfigError(
                f"{folder} is a URL, needed is a folder; score to a folder and copy it, or set "
                "`score` and an object store in a configuration and use `peg run`"
            )
        self.folder = folder.absolute()
        self.score = score
        self.identity = Identity(
            stage=STAGE.name,
            version=STAGE.version,
            settings={"score": score.model_dump()},
            inputs=inputs,
            files={"candidates": file_facts_of(score.candidates)},
        )

    @property
    def work(self) -> Path:
        """Room for what is needed on the way; gone when the scores are there."""
        return self.folder / "work"

    def finished(self) -> Manifest | None:
        """The manifest, if these very scores are there; another content is refused."""
        manifest = Manifest.read(self.folder)
        if manifest is not None and manifest.fingerprint != self.identity.fingerprint:
            raise self._taken("the scores of another request")
        return manifest

    def fill(
        self, cluster: Cluster, display: RunDisplay, prepare: Callable[[], ScoreRequest]
    ) -> Manifest:
        """Score; what an interrupted call finished is kept."""
        self._claim()
        try:
            with Lease(self.folder):
                return self._fill(cluster, display, prepare)
        except (InputError, ArtifactMismatch):
            # the input has to change, and with it the request: nobody would go on from here
            shutil.rmtree(self.folder)
            raise

    def _fill(
        self, cluster: Cluster, display: RunDisplay, prepare: Callable[[], ScoreRequest]
    ) -> Manifest:
        started, clock = datetime.now(UTC), time.monotonic()
        request = prepare()
        line = display.start(STAGE.name, self.score.candidates)
        try:
            result = score_candidates(cluster, request, self.score, self.folder, line)
        except BaseException:
            line.close()
            raise
        shutil.rmtree(self.work, ignore_errors=True)
        manifest = Manifest(
            identity=self.identity,
            fingerprint=self.identity.fingerprint,
            started=started.isoformat(timespec="seconds"),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - clock, 3),
            peak_memory_bytes=result.peak_memory_bytes,
            counts=result.counts,
            details=result.details,
            warnings=result.warnings,
        )
        manifest.write(self.folder)
        (self.folder / REQUEST_NAME).unlink()
        display.finish(STAGE.name, line, manifest.seconds, manifest.counts)
        for warning in manifest.warnings:
            display.warn(warning)
        return manifest

    def _claim(self) -> None:
        """Make the folder ours, unless it is somebody else's."""
        file = self.folder / REQUEST_NAME
        if file.exists():
            if json.loads(file.read_text()) != asdict(self.identity):
                raise self._taken("the unfinished scores of another request")
            return
        if self.folder.exists() and any(self.folder.iterdir()):
            raise self._taken("other files")
        write_json(file, asdict(self.identity))

    def _taken(self, what: str) -> ConfigError:
        return ConfigError(
            f"{self.folder} holds {what}; name another folder with --out, or remove it"
        )
