"""Which encodings of large graphs are computed by all workers together."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from peg_core.encoding.deepwalk import DeepWalk
from workers.cluster import Cluster, ClusterSettings
from workers.distributed_encoding.eigenmaps import encode_large, is_large
from workers.distributed_encoding.netsmf import encode_large_netsmf
from workers.distributed_encoding.skip_gram_tasks import encode_large_skip_gram
from workers.distributed_encoding.subspace_iteration import Tell
from workers.tasks.encode import EncodeRequest, num_nodes


class LargeEncoder(Protocol):
    """Encodes one graph by tasks on its parts."""

    def __call__(
        self, cluster: Cluster, request: EncodeRequest, *, work: Path, marker: Path, tell: Tell
    ) -> None: ...


def large_encoder(settings: ClusterSettings, request: EncodeRequest) -> LargeEncoder | None:
    """How a graph is encoded by all workers; None where one task does it."""
    if request.kind == "le":
        return encode_large if is_large(settings, request) else None
    nodes = num_nodes(request)
    if settings.workers == 1 or nodes <= settings.distribute_encoding_above:
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
