"""What a stage is: a name, what it depends on, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peg_core.artifacts.manifest import Identity, Manifest
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import StageProgress
from pipeline.run.stage_inputs import StageInputs
from workers.artifact_ref import AnyRef
from workers.shard import Shard
from workers.task_map import OnProgress, Result, TaskMap


@dataclass(frozen=True)
class StageContext:
    """What a stage gets.

    Args:
        config: The whole configuration; a stage reads only the slice that it named.
        out: Its own artifact, to be filled; shards of an interrupted run are still there.
        inputs: The artifacts of the stages that it named.
        tasks: The way to Ray.
        progress: Tells the user how far it is.
        identity: What the artifact depends on, raw files included.
        previous: The newest earlier artifact of the same stage, if there is one.
    """

    config: PipelineConfig
    out: AnyRef
    inputs: StageInputs
    tasks: TaskMap
    progress: StageProgress
    identity: Identity
    previous: tuple[Manifest, AnyRef] | None = None

    @property
    def folder(self) -> Path:
        """Where this machine fills the artifact."""
        return self.out.folder

    def map(
        self,
        task: Callable[..., Result],
        shards: Sequence[Shard],
        *,
        note: str = "",
        markers: Path | None = None,
        cpus: int | None = None,
        gpus: float = 0,
        memory_bytes: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Result]:
        """Run a task for every shard on Ray; see :meth:`workers.task_map.TaskMap.map`."""
        return self.tasks.map(
            task,
            shards,
            note=note,
            markers=markers,
            cpus=cpus,
            gpus=gpus,
            memory_bytes=memory_bytes,
            on_progress=on_progress,
        )


@dataclass(frozen=True)
class StageResult:
    """What goes into the manifest.

    Args:
        counts: A few numbers shown on screen and in the report.
        details: Anything else worth keeping, JSON-ready.
        warnings: Sentences the user should read.
    """

    counts: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def no_files(config: PipelineConfig) -> dict[str, str]:
    del config
    return {}


def no_comment(identity: Identity, before: Manifest) -> str | None:
    del identity, before
    return None


def always(config: PipelineConfig) -> bool:
    del config
    return True


@dataclass(frozen=True)
class Stage:
    """One room of the pipeline.

    Args:
        name: As users type it.
        version: Goes up when the same settings and inputs give another artifact.
        inputs: Stages whose artifacts are read.
        settings: The slice of the configuration that matters to this stage.
        run: Does the work.
        files: Raw inputs, by the name of their setting; path, size and time enter the fingerprint.
        enabled: Whether the stage takes part with this configuration.
        explain: Why it runs, where the stage knows better than a list of differences.
    """

    name: str
    version: int
    inputs: tuple[str, ...]
    settings: Callable[[PipelineConfig], dict[str, Any]]
    run: Callable[[StageContext], StageResult]
    files: Callable[[PipelineConfig], dict[str, str]] = no_files
    enabled: Callable[[PipelineConfig], bool] = always
    explain: Callable[[Identity, Manifest], str | None] = no_comment
