"""The look at a cluster: join it, ask its nodes, and say what their answers mean."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from peg_core.errors import PegError
from peg_core.object_url import is_url
from pipeline.cli.doctor.check import Check, failed
from pipeline.cli.doctor.node_checks import (
    check_answers,
    check_caches,
    check_clocks,
    check_inputs_seen,
    check_room,
    check_store_seen,
    check_versions,
)
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.job_submission import local_locations
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from workers.ray_nodes.node_report import NodeAnswer, NodeQuestions, ask_nodes, probe_in, versions


@dataclass(frozen=True)
class Findings:
    """What was found, and what the nodes answered."""

    checks: list[Check] = field(default_factory=list)
    answers: list[NodeAnswer] = field(default_factory=list)


def look_at_cluster(settings: ClusterSettings, config: PipelineConfig | None) -> Findings:
    """Join the Ray at the address of the settings, and ask all nodes what a run needs.

    Args:
        config: Whose store and inputs are looked for there.
    """
    cluster = Cluster(settings)
    try:
        Cluster.require_ray(settings.address or "")
        cluster.connect()
        answers = _ask(config)
    except PegError as error:
        return Findings([failed("cluster", error)])
    finally:
        cluster.close()
    return Findings(
        [Check("cluster", "ok", f"{settings.address} answers"),
         *_decide(answers, settings, config)],
        answers,
    )  # fmt: skip


def _ask(config: PipelineConfig | None) -> list[NodeAnswer]:
    if config is None:
        return ask_nodes(NodeQuestions())
    token = secrets.token_hex(8)
    with ExitStack() as stack:
        store = config.store
        if not is_url(store):
            try:
                store = str(stack.enter_context(probe_in(Path(store), token)))
            except OSError as error:
                raise PegError(
                    f"cannot write to {error.filename} ({error.strerror}); check its permissions"
                ) from error
        return ask_nodes(NodeQuestions(store, token, tuple(_inputs(config).values())))


def _inputs(config: PipelineConfig) -> dict[str, str]:
    """Local paths that tasks read, by setting; absolute, as a run on this machine takes them."""
    return {
        key: str(Path(path).absolute())
        for key, path in local_locations(config).items()
        if key != "store"
    }


def _decide(
    answers: list[NodeAnswer], settings: ClusterSettings, config: PipelineConfig | None
) -> Iterator[Check]:
    yield check_answers(answers)
    if all(node.report is None for node in answers):
        return
    yield check_versions(answers, versions())
    yield check_caches(answers, config.store if config else None)
    if config is not None:
        yield check_store_seen(answers, config.store)
        inputs = _inputs(config)
        if inputs:
            yield check_inputs_seen(answers, list(inputs))
        yield check_room(answers, settings)
    yield check_clocks(answers)
