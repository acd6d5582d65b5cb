"""Carries out a plan."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from peg_core.errors import InputError
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.history import recorded
from pipeline.run.plan import Action, Step, make_plan, needed_stages
from pipeline.run.progress import RunDisplay, StageLine
from pipeline.run.run_log import RunLog, open_run_log
from pipeline.run.stage import StageContext, StageResult, no_comment
from pipeline.run.stage_metrics import StageMetrics
from pipeline.stages import STAGES
from pipeline.store.local_store import AnyStore, open_store
from pipeline.store.manifest import Manifest
from pipeline.store.object_storage import local_sizes
from workers.cluster import Cluster, ClusterSettings
from workers.metrics import report_stage


def plan_run(
    config: PipelineConfig, *, forced: Collection[str] = (), target: str | None = None
) -> list[Step]:
    """What :func:`run_pipeline` would do."""
    store = open_store(config.store)
    stages = list(STAGES.values()) if target is None else needed_stages(STAGES.values(), target)
    return make_plan(stages, config, find=store.find, newest=store.newest, forced=forced)


def run_pipeline(
    config: PipelineConfig,
    display: RunDisplay,
    *,
    forced: Collection[str] = (),
    cluster: Cluster | None = None,
    target: str | None = None,
    only: Collection[str] | None = None,
    events: TextIO | None = None,
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
    """

    def plan() -> list[Step]:
        return plan_run(config, forced=forced, target=target)

    return run_plan(config, display, plan, cluster=cluster, only=only, events=events)


def run_plan(
    config: PipelineConfig,
    display: RunDisplay,
    plan: Callable[[], list[Step]],
    *,
    cluster: Cluster | None = None,
    only: Collection[str] | None = None,
    events: TextIO | None = None,
) -> dict[str, Manifest]:
    """Run what ``plan`` asks for, as :func:`run_pipeline` does."""
    store = open_store(config.store)
    plan()  # bad input is told before anything is written
    own = cluster is None
    cluster = cluster or open_cluster(config)
    manifests: dict[str, Manifest] = {}
    with (
        store.lease(),
        open_run_log(config.store, events) as log,
        recorded(config, log) as history,
    ):
        try:
            for step in plan():
                if only is not None and step.stage.name not in only:
                    continue
                if step.action is Action.REUSE:
                    display.reused(step.stage.name, step.reason)
                    log.write("stage_reused", stage=step.stage.name, reason=step.reason)
                    found = store.find(step.stage.name, step.fingerprint)
                else:
                    found = _run_step(step, config, store, cluster, display, log)
                assert found is not None
                history.add(found, step.action.value)
                manifests[step.stage.name] = found
                store.point_current(step.stage.name, step.fingerprint)
        finally:
            if own:
                cluster.close()
            store.close()
    return manifests


def _run_step(
    step: Step,
    config: PipelineConfig,
    store: AnyStore,
    cluster: Cluster,
    display: RunDisplay,
    log: RunLog,
) -> Manifest:
    name = step.stage.name
    shown = display.start(name, step.reason)
    log.write("stage_started", stage=name, reason=step.reason, fingerprint=step.fingerprint)
    started, clock, retries = datetime.now(UTC), time.monotonic(), cluster.retries_seen
    folder = store.prepare(name, step.fingerprint, afresh=step.forced)
    result = _execute(step, config, store, cluster, folder, log.watch(name, shown))
    seconds = time.monotonic() - clock
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = max(own_peak, result.peak_memory_bytes)
    metrics = StageMetrics.of(
        result.counts,
        seconds=seconds,
        bytes_written=sum(local_sizes(folder).values()),
        peak_memory_bytes=peak,
        retries=cluster.retries_seen - retries,
    ).as_dict()
    manifest = Manifest(
        identity=step.identity,
        fingerprint=step.fingerprint,
        started=started.isoformat(timespec="seconds"),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        peak_memory_bytes=peak,
        counts=result.counts,
        details=result.details,
        warnings=result.warnings,
        metrics=metrics,
    )
    manifest = store.commit(manifest, folder)
    display.finish(name, shown, manifest.seconds, manifest.counts)
    _tell(manifest, config.name, display, log)
    return manifest


def _execute(
    step: Step,
    config: PipelineConfig,
    store: AnyStore,
    cluster: Cluster,
    folder: Path,
    line: StageLine,
) -> StageResult:
    """Fetch what the stage reads, and run it."""
    inputs = {
        other: store.fetch(other, fingerprint)
        for other, fingerprint in step.identity.inputs.items()
    }
    # only a stage that explains its reruns builds on its previous artifact: others need no copy
    name = step.stage.name
    newest = store.newest(name) if step.stage.explain is not no_comment else None
    previous = (newest, store.fetch(name, newest.fingerprint)) if newest is not None else None
    try:
        return step.stage.run(
            StageContext(config, folder, inputs, cluster, line, step.identity, previous)
        )
    except InputError:
        # the input has to change, and with it the fingerprint: nobody would go on from here
        line.close()
        shutil.rmtree(folder)
        raise
    except BaseException:
        line.close()
        raise


def _tell(manifest: Manifest, pipeline: str, display: RunDisplay, log: RunLog) -> None:
    """What a stage cost and warns of, to the log, to Prometheus and to the user."""
    name, seconds = manifest.identity.stage, manifest.seconds
    log.write(
        "stage_finished", stage=name, seconds=seconds, counts=manifest.counts, **manifest.metrics
    )
    report_stage(pipeline, name, {"seconds": seconds, **manifest.metrics})
    for warning in manifest.warnings:
        display.warn(warning)
        log.write("warning", stage=name, text=warning)


def open_cluster(config: PipelineConfig) -> Cluster:
    """The cluster of a configuration; it starts with the first task."""
    return Cluster(cluster_settings(config))


def cluster_settings(config: PipelineConfig) -> ClusterSettings:
    """Decode the `cluster:` section for the workers, which know no configuration."""
    cluster = config.cluster
    return ClusterSettings(
        address=cluster.address,
        workers=cluster.workers,
        train_workers=cluster.train_workers,
        cpus_per_worker=cluster.cpus_per_worker,
        gpus_per_worker=cluster.gpus_per_worker,
        task_memory_bytes=cluster.task_memory,
        retries=cluster.retries,
        distribute_encoding_above=cluster.distribute_encoding_above,
    )
