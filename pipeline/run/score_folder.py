"""Scores in a folder of the user's choice, with the rules of a stage: exactly once, resumable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from peg_core.artifacts.manifest import Identity, Manifest, require_whole
from peg_core.atomic_file import remove_leftovers, write_json
from peg_core.errors import ArtifactMismatch, ConfigError, InputError
from peg_core.object_url import is_url
from peg_core.storage.file_record import FileRecord
from peg_core.storage.object_storage import local_sizes
from pipeline.config.result_sections import ScoreConfig
from pipeline.run.plan import file_facts_of
from pipeline.run.stage_inputs import StageInputs
from pipeline.run.stage_runner import StageRunner
from pipeline.stages.score import STAGE
from pipeline.store.lease import LEASE_NAME, Lease
from workers.artifact_ref import AnyRef, ArtifactFolder, ArtifactRef

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
            settings={"score": score.dependencies(exclude={"explain"})},
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
        require_whole(self.folder, contents=True)
        return manifest

    def fill(self, runner: StageRunner, read: Callable[[], StageInputs]) -> Manifest:
        """Score; what an interrupted call finished is kept.

        Args:
            runner: Its configuration has the candidates.
            read: Gives what scores; called when the folder is ours.
        """
        self._claim()
        try:
            with Lease(self.folder):
                inputs = read()
                return runner.run(STAGE, self.identity, inputs, self, reason=self.score.candidates)
        except (InputError, ArtifactMismatch):
            # the input has to change, and with it the request: nobody would go on from here
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def prepare(self, stage: str, fingerprint: str, *, afresh: bool) -> AnyRef:
        """The folder itself is the artifact."""
        del stage, fingerprint, afresh
        return ArtifactRef.of_folder(self.folder, ArtifactFolder)

    def commit(
        self, manifest: Manifest, artifact: AnyRef, files: dict[str, FileRecord]
    ) -> Manifest:
        """What was needed on the way goes; the manifest says that the scores are whole."""
        del files
        shutil.rmtree(self.work, ignore_errors=True)
        remove_leftovers(artifact.folder)
        manifest = manifest.sealed(artifact.folder, without={REQUEST_NAME, LEASE_NAME})
        manifest.write(artifact.folder)
        (self.folder / REQUEST_NAME).unlink()
        return manifest

    def bytes_written(self, artifact: AnyRef) -> int:
        """By all tasks."""
        return sum(local_sizes(artifact.folder).values())

    def abandon(self, artifact: AnyRef) -> None:
        """Remove everything."""
        shutil.rmtree(artifact.folder)

    def _claim(self) -> None:
        """Make the folder ours, unless it is somebody else's."""
        file = self.folder / REQUEST_NAME
        if file.exists():
            if _decoded(file) != asdict(self.identity):
                raise self._taken("the unfinished scores of another request")
            return
        if self.folder.exists() and any(self.folder.iterdir()):
            raise self._taken("other files")
        write_json(file, asdict(self.identity))

    def _taken(self, what: str) -> ConfigError:
        return ConfigError(
            f"{self.folder} holds {what}; name another folder with --out, or remove it"
        )


def _decoded(file: Path) -> object:
    """What a file says, or None where it cannot be read."""
    try:
        return json.loads(file.read_bytes())
    except ValueError:
        return None
