"""What a run would do: a pure function of configuration, files and artifacts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.errors import ConfigError, nearest_hint
from peg_core.graph.edge_table import find_parquet_files
from peg_core.storage.object_storage import file_facts
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.formats import format_time
from pipeline.run.stage import Stage


class Action(Enum):
    RUN = "run"
    REUSE = "reuse"


@dataclass(frozen=True)
class Step:
    """A stage, what happens to it, and why.

    Args:
        forced: Whether it runs although it was done.
        damage: What is wrong with the artifact that there is.
        kept: Whether the artifact is used although its inputs may have changed.
    """

    stage: Stage
    identity: Identity
    action: Action
    reason: str
    forced: bool = False
    damage: str | None = None
    kept: bool = False

    @property
    def fingerprint(self) -> str:
        return self.identity.fingerprint


def make_plan(
    stages: Iterable[Stage],
    config: PipelineConfig,
    *,
    find: Callable[[str, str], Manifest | None],
    newest: Callable[[str], Manifest | None],
    damage: Callable[[str, str], str | None] = lambda *_: None,
    forced: Collection[str] = (),
    pinned: Mapping[str, Manifest] | None = None,
) -> list[Step]:
    """Decide RUN or REUSE for every stage that takes part, with a reason.

    Artifacts in ``pinned`` are used although their inputs may have changed.
    """
    steps: dict[str, Step] = {}
    for stage in stages:
        if not stage.enabled(config):
            continue
        if pinned and stage.name in pinned:
            kept = pinned[stage.name]
            reason = f"kept, done on {format_time(kept.finished)}"
            steps[stage.name] = Step(stage, kept.identity, Action.REUSE, reason, kept=True)
            continue
        identity = Identity(
            stage=stage.name,
            version=stage.version,
            settings=stage.settings(config),
            inputs={name: steps[name].fingerprint for name in stage.inputs if name in steps},
            files={name: file_facts_of(location) for name, location in stage.files(config).items()},
        )
        found = find(stage.name, identity.fingerprint)
        broken = damage(stage.name, identity.fingerprint) if found is None else None
        if stage.name in forced:
            action, reason = Action.RUN, "asked for"
        elif found is not None:
            action, reason = Action.REUSE, f"done on {format_time(found.finished)}"
        elif broken is not None:
            action, reason = Action.RUN, f"damaged: {broken}"
        else:
            action, reason = Action.RUN, _why(stage, identity, newest(stage.name))
        steps[stage.name] = Step(stage, identity, action, reason, stage.name in forced, broken)
    return list(steps.values())


def needed_stages(stages: Iterable[Stage], target: str) -> list[Stage]:
    """The stages that ``target`` is made from, directly or not, and itself; in order."""
    needed = {target}
    chosen = []
    for stage in reversed(list(stages)):
        if stage.name in needed:
            needed |= set(stage.inputs)
            chosen.append(stage)
    return chosen[::-1]


def forced_stages(
    names: Collection[str], *, start_from: str | None, force: Iterable[str]
) -> set[str]:
    """The stages that run again although their artifacts exist."""
    ordered = list(names)
    for name in [*force, *([start_from] if start_from else [])]:
        if name not in ordered:
            raise ConfigError(
                f"no stage {name!r}; known: {', '.join(ordered)}{nearest_hint(name, ordered)}"
            )
    after = ordered[ordered.index(start_from) :] if start_from else []
    return {*force, *after}


def file_facts_of(location: str) -> list[dict[str, Any]]:
    """What tells the files behind a location from changed ones."""
    return [file_facts(file) for file in find_parquet_files(location)]


def _why(stage: Stage, identity: Identity, before: Manifest | None) -> str:
    comment = stage.explain(identity, before) if before is not None else None
    return comment or _what_changed(identity, before)


def _what_changed(identity: Identity, before: Manifest | None) -> str:
    """In the user's words: which setting, file or earlier stage differs from the last time."""
    if before is None:
        return "not done yet"
    old = before.identity
    if old.version != identity.version:
        return f"the stage's code changed (version {old.version} -> {identity.version})"
    settings = differences(old.settings, identity.settings)
    if settings:
        return "; ".join(settings)
    for name, files in identity.files.items():
        if old.files.get(name) != files:
            return f"{name} changed on disk"
    changed = [name for name, value in identity.inputs.items() if old.inputs.get(name) != value]
    return f"{', '.join(changed)} changed" if changed else "artifact was removed"


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Values of two JSON-ready trees that are not the same, a text each."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}" if path else key
            found += differences(old.get(key), new.get(key), inner)
        return found
    return [] if old == new else [f"{path} {old} -> {new}"]
