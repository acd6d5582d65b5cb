"""Which encodings of large graphs are computed by tasks on their parts."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from peg_core.encoding.deepwalk import DeepWalk
from workers.cluster_settings import ClusterSettings
from workers.distributed_encoding.eigenmaps import encode_large, is_large
from workers.distributed_encoding.netsmf import encode_large_netsmf
from workers.distributed_encoding.skip_gram_tasks import encode_large_skip_gram
from workers.task_map import TaskMap
from workers.tasks.encode import EncodeRequest, num_nodes

# Nodes above which walks are trained, and sampled matrices factorised, in shards. That gives
# other numbers than one task does, so it is fixed: no cluster setting may change a result.
SHARDED_ABOVE_NODES = 2_000_000


class LargeEncoder(Protocol):
    """Encodes one graph by tasks on its parts, and marks it in the stage's own folder.

    A graph that it leaves to one task gets no mark.
    """

    def __call__(self, tasks: TaskMap, request: EncodeRequest, *, work: Path) -> None: ...


def large_encoder(settings: ClusterSettings, request: EncodeRequest) -> LargeEncoder | None:
    """How a graph is encoded by tasks on its parts; None where one task does it.

    The settings count for eigenmaps alone, which are the same up to rotation and tolerance.
    """
    if request.kind == "le":
        return encode_large if is_large(settings, request) else None
    nodes = num_nodes(request)
    if nodes <= SHARDED_ABOVE_NODES:
        return None
    if request.kind == "node2vec":
        return encode_large_skip_gram
    if request.kind != "deepwalk":
        return None
    solvers: dict[str, LargeEncoder] = {
        "netsmf": encode_large_netsmf,
        "sgns": encode_large_skip_gram,
    }
    return solvers.get(DeepWalk(**request.parameters).choose_solver(nodes))
