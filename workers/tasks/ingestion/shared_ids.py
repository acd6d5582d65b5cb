"""Whether two kinds of node are one under two names."""

from __future__ import annotations

from typing import TypedDict

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.shared_ids import shared_share
from workers.artifact_ref import ArtifactRef


class SharedIds(TypedDict):
    """Shares of the ids of one kind that are ids of the other, and the other way round."""

    shared: float
    covered: float


def shared_ids_task(graph: ArtifactRef[GraphStore], kind: int, other: int) -> SharedIds:
    """Compare the ids of two kinds, named by their places."""
    ids = graph.at(GraphIds).open().kinds
    return {
        "shared": shared_share(ids[kind], ids[other]),
        "covered": shared_share(ids[other], ids[kind]),
    }
