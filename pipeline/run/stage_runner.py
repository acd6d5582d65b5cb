"""Runs one stage and writes its manifest: the same way for every command."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.atomic_file import written_files
from peg_core.errors import DiskFull, InputError, PegError, is_disk_full
from peg_core.storage.file_record import FileRecord
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.facts import key_of
from pipeline.run.progress import RunDisplay, StageProgress
from pipeline.run.run_log import RunLog
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.run.stage_inputs import StageInputs
from pipeline.run.stage_metrics import StageMetrics
from workers.artifact_ref import AnyRef
from workers.cluster import Cluster
from workers.metrics import report_stage
from workers.process_memory.private_memory import watched_memory
from workers.task_map import TaskMap


class Destination(Protocol):
    """Where an artifact goes: a store, or a folder that a user names."""

    def prepare(self, stage: str, fingerprint: str, *, afresh: bool) -> AnyRef:
        """The artifact to fill; what an interrupted run finished is kept unless ``afresh``."""
        ...

    def commit(
        self, manifest: Manifest, artifact: AnyRef, files: dict[str, FileRecord]
    ) -> Manifest:
        """Declare it finished.

        Args:
            files: Of an object store: what was brought there.
        """
        ...

    def bytes_written(self, artifact: AnyRef) -> int:
        """Of all its files."""
        ...

    def abandon(self, artifact: AnyRef) -> None:
        """Remove an artifact that nobody will go on with."""
        ...


@dataclass(frozen=True)
class StageRunner:
    """What all stages of a run share.

    Args:
        config: The pipeline.
        cluster: Where tasks run.
        display: Where progress is shown.
        log: Gets what happens as events; None: nobody keeps them.
        told: Which stage was the first to warn of what.
    """

    config: PipelineConfig
    cluster: Cluster
    display: RunDisplay
    log: RunLog | None = None
    told: dict[str, str] = field(default_factory=dict)

    def run(
        self,
        stage: Stage,
        identity: Identity,
        inputs: StageInputs,
        destination: Destination,
        *,
        reason: str,
        afresh: bool = False,
        previous: tuple[Manifest, AnyRef] | None = None,
    ) -> Manifest:
        """Fill the artifact of a stage, and declare it finished.

        Args:
            reason: Why it runs, for the user.
            afresh: Begin again, whatever an interrupted run has left.
            previous: The newest earlier artifact of the stage, where it builds on one.
        """
        shown = self.display.start(stage.name, reason)
        self._note("stage_started", stage, reason=reason, fingerprint=identity.fingerprint)
        line = shown if self.log is None else self.log.watch(stage.name, shown)
        started, clock = datetime.now(UTC), time.monotonic()
        out = destination.prepare(stage.name, identity.fingerprint, afresh=afresh)
        with written_files() as written, watched_memory() as memory:
            tasks = TaskMap(self.cluster, out.folder / "done", line.update, written)
            context = StageContext(self.config, out, inputs, tasks, line, identity, previous)
            result = _execute(stage, context, line, destination)
            tasks.publish_written()
        seconds = time.monotonic() - clock
        peak = max(memory.peak_bytes, tasks.peak_bytes)
        metrics = StageMetrics.of(
            result.counts,
            seconds=seconds,
            bytes_written=destination.bytes_written(out),
            peak_memory_bytes=peak,
            driver_memory_bytes=memory.peak_bytes,
            retries=tasks.retries,
        )
        manifest = Manifest(
            identity=identity,
            fingerprint=identity.fingerprint,
            started=started.isoformat(timespec="seconds"),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=round(seconds, 3),
            peak_memory_bytes=peak,
            counts=result.counts,
            details=result.details,
            warnings=result.warnings,
            metrics=metrics.as_dict(),
        )
        manifest = destination.commit(manifest, out, tasks.files)
        self.display.finish(stage.name, shown, manifest.seconds, manifest.counts)
        self._report(stage, manifest)
        return manifest

    def reuse(self, stage: Stage, reason: str) -> None:
        """Tell that an artifact is used as it is."""
        self.display.reused(stage.name, reason)
        self._note("stage_reused", stage, reason=reason)

    def warn(self, text: str) -> None:
        """Tell of something that the user should know, whatever stage it is in."""
        self.display.warn(text)
        if self.log is not None:
            self.log.write("warning", text=text)

    def _report(self, stage: Stage, manifest: Manifest) -> None:
        """What a stage cost and warns of, to the log, to Prometheus and to the user."""
        seconds = manifest.seconds
        self._note(
            "stage_finished", stage, seconds=seconds, counts=manifest.counts, **manifest.metrics
        )
        report_stage(self.config.name, stage.name, {"seconds": seconds, **manifest.metrics})
        for warning in manifest.warnings:
            # the graph of all edges is warned of where the training graph was
            if self.told.setdefault(key_of(warning), stage.name) == stage.name:
                self.display.warn(warning)
            self._note("warning", stage, text=warning)

    def _note(self, event: str, stage: Stage, **facts: object) -> None:
        if self.log is not None:
            self.log.write(event, stage=stage.name, **facts)


def _execute(
    stage: Stage, context: StageContext, line: StageProgress, destination: Destination
) -> StageResult:
    try:
        return stage.run(context)
    except InputError:
        # the input has to change, and with it the fingerprint: nobody would go on from here
        line.close()
        destination.abandon(context.out)
        raise
    except BaseException as error:
        line.close()
        if not isinstance(error, PegError) and is_disk_full(error):
            raise DiskFull.during(f"stage {stage.name}", error) from error
        raise
