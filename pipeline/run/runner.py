"""Carries out a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, TextIO

from peg_core.artifacts.manifest import Manifest
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.artifact_guard import ArtifactGuard
from pipeline.run.history import recorded
from pipeline.run.plan import Action, Step, make_plan, needed_stages
from pipeline.run.progress import RunDisplay
from pipeline.run.run_log import open_run_log
from pipeline.run.sizing.expectation import estimate_run
from pipeline.run.sizing.graph_extent import resolve_here
from pipeline.run.sizing.space_check import require_space
from pipeline.run.stage import no_comment
from pipeline.run.stage_inputs import StageInputs
from pipeline.run.stage_runner import StageRunner
from pipeline.stages import STAGES
from pipeline.store.local_store import AnyStore, open_store
from workers.artifact_ref import AnyRef
from workers.cluster import Cluster


def plan_run(
    config: PipelineConfig, *, forced: Collection[str] = (), target: str | None = None
) -> list[Step]:
    """What :func:`run_pipeline` would do."""
    store = open_store(config.store)
    config, _ = resolve_here(config, store)
    stages = list(STAGES.values()) if target is None else needed_stages(STAGES.values(), target)
    return make_plan(stages, config, **lookups(store), forced=forced)


def run_pipeline(
    config: PipelineConfig,
    display: RunDisplay,
    *,
    forced: Collection[str] = (),
    cluster: Cluster | None = None,
    target: str | None = None,
    only: Collection[str] | None = None,
    events: TextIO | None = None,
    anyway: bool = False,
) -> dict[str, Manifest]:
    """Run what the plan asks for; returns the manifests of all stages.

    Args:
        config: The pipeline.
        display: Where progress is shown.
        forced: Stages that run although their artifacts exist.
        cluster: An open one that stays open; None: one of its own.
        target: Run this stage and what it needs, and nothing else.
        only: Run these stages alone; what they need exists.
        events: Gets the lines of the run's log too.
        anyway: Start although it does not seem to fit.
    """

    def plan() -> list[Step]:
        return plan_run(config, forced=forced, target=target)

    return run_plan(config, display, plan, cluster=cluster, only=only, events=events, anyway=anyway)


def run_plan(
    config: PipelineConfig,
    display: RunDisplay,
    plan: Callable[[], list[Step]],
    *,
    cluster: Cluster | None = None,
    only: Collection[str] | None = None,
    events: TextIO | None = None,
    anyway: bool = False,
) -> dict[str, Manifest]:
    """Run what ``plan`` asks for, as :func:`run_pipeline` does."""
    store = open_store(config.store)
    # bad input is reported before anything is written
    steps = [step for step in plan() if only is None or step.stage.name in only]
    expected = estimate_run(config, store, steps)
    if not anyway:
        require_space(config, steps, expected.by_stage)
    own = cluster is None
    cluster = cluster or open_cluster(config)
    manifests: dict[str, Manifest] = {}
    with (
        store.lease(),
        open_run_log(config.store, events) as log,
        recorded(config, log) as history,
    ):
        runner = StageRunner(resolve_here(config, store)[0], cluster, display, log)
        try:
            guard = ArtifactGuard(store, config.integrity, runner.warn)
            guard.check(plan(), only)
            for step in _in_turn(plan):
                if only is not None and step.stage.name not in only:
                    continue
                found = store.find(step.stage.name, step.fingerprint)
                if step.action is Action.REUSE:
                    runner.reuse(step.stage, step.reason)
                else:
                    found = runner.run(
                        step.stage,
                        step.identity,
                        _inputs(step, store),
                        store,
                        reason=step.reason,
                        afresh=step.forced,
                        previous=_previous(step, store, guard),
                    )
                assert found is not None
                history.add(found, step.action.value, expected.work_done(found))
                manifests[step.stage.name] = found
                store.point_current(step.stage.name, step.fingerprint)
                if step.stage is STAGES["ingest"]:
                    runner = replace(runner, config=resolve_here(config, store)[0])
                    expected = estimate_run(config, store, plan())
        finally:
            if own:
                cluster.close()
            store.close()
    return manifests


def _in_turn(plan: Callable[[], list[Step]]) -> Iterator[Step]:
    """The steps of a plan, made anew once the graph is there: `auto` goes by its size."""
    first, *others = plan()
    yield first
    if first.stage is STAGES["ingest"] and first.action is Action.RUN:
        others = plan()[1:]
    yield from others


def _inputs(step: Step, store: AnyStore) -> StageInputs:
    """What the stage reads, brought to this machine."""
    return StageInputs(
        {name: store.fetch(name, found) for name, found in step.identity.inputs.items()}
    )


def lookups(store: AnyStore) -> dict[str, Any]:
    """What a plan asks a store."""

    def damage(stage: str, fingerprint: str) -> str | None:
        return store.damage(stage, fingerprint, contents=False)

    return {"find": store.find, "newest": store.newest, "damage": damage}


def _previous(step: Step, store: AnyStore, guard: ArtifactGuard) -> tuple[Manifest, AnyRef] | None:
    """Only a stage that explains its reruns builds on its previous artifact."""
    if step.stage.explain is no_comment:
        return None
    newest = store.newest(step.stage.name)
    if newest is None or not guard.is_whole(step.stage.name, newest.fingerprint):
        return None
    return newest, store.fetch(step.stage.name, newest.fingerprint)


def open_cluster(config: PipelineConfig) -> Cluster:
    """The cluster of a configuration; it starts with the first task."""
    return Cluster(config.cluster.settings())
