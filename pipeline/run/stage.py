"""What a stage is: a name, what it depends on, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import StageProgress
from pipeline.store.manifest import Identity, Manifest
from workers.cluster import Cluster


@dataclass(frozen=True)
class StageContext:
    """What a stage gets.

    Args:
        config: The whole configuration; a stage reads only the slice that it named.
        folder: Its own artifact, to be filled; shards of an interrupted run are still there.
        inputs: The artifacts of the stages that it named.
        identity: What the artifact depends on, raw files included.
        previous: The newest earlier artifact of the same stage, if there is one.
        cluster: Where tasks run.
        progress: Tells the user how far it is.
    """

    config: PipelineConfig
    folder: Path
    inputs: dict[str, Path]
    cluster: Cluster
    progress: StageProgress
    identity: Identity
    previous: tuple[Manifest, Path] | None = None


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
    peak_memory_bytes: int = 0


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
