"""Messages from anchors: of some sets of nodes, the nearest member speaks to every node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.message_graph import MessageGraph
from peg_core.random_streams import random_stream

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float32]


def anchor_sets(num_nodes: int, count: int) -> list[npt.NDArray[np.int64]]:
    """Sets of a half, a quarter, ... of the nodes in turn, at least one; the same every time."""
    rng = random_stream(seed=0, purpose="anchor sets")
    sizes = max(1, int(np.log2(num_nodes)))
    return [
        np.sort(rng.choice(num_nodes, size=max(1, num_nodes >> (1 + j % sizes)), replace=False))
        for j in range(count)
    ]


def nearest_members(
    graph: GraphStore, sets: Sequence[IntArray], *, hops: int
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Of every set the nearest member of a node, and 1 / (1 + distance); both [num_nodes, sets].

    A set that is more than ``hops`` away is at closeness 0, and node 0 stands for its member. Of
    members at one distance the one with the smallest index counts.
    """
    indices = np.asarray(graph.indices)
    ones = np.ones(len(indices), dtype=np.int8)
    shape = (graph.num_nodes, graph.num_nodes)
    adjacency = scipy.sparse.csr_array((ones, indices, np.asarray(graph.indptr)), shape=shape)
    member = np.zeros((graph.num_nodes, len(sets)), dtype=np.int64)
    closeness = np.zeros((graph.num_nodes, len(sets)), dtype=np.float32)
    for column, anchors in enumerate(sets):
        owner = np.full(graph.num_nodes, graph.num_nodes, dtype=np.int64)  # none
        owner[anchors] = anchors
        closeness[anchors, column] = 1
        front = anchors
        for distance in range(1, hops + 1):
            rows = adjacency[front]
            reached, speaker = rows.indices, np.repeat(owner[front], np.diff(rows.indptr))
            fresh = owner[reached] == graph.num_nodes
            reached, speaker = reached[fresh], speaker[fresh]
            np.minimum.at(owner, reached, speaker)
            front = np.unique(reached)
            closeness[front, column] = 1 / (1 + distance)
        member[:, column] = np.where(owner < graph.num_nodes, owner, 0)
    return member, closeness


def anchor_messages(graph: GraphStore, sets: Sequence[IntArray], *, hops: int) -> MessageGraph:
    """One edge from every set to every node; its weight is their closeness."""
    member, closeness = nearest_members(graph, sets, hops=hops)
    nodes, edges = graph.num_nodes, member.size
    return MessageGraph(
        torch.arange(0, edges + 1, len(sets)),
        torch.from_numpy(member.reshape(-1)),
        torch.from_numpy(closeness.reshape(-1)),
        torch.zeros(edges, 0),
        torch.zeros(nodes),
        torch.zeros(nodes, 0),
        nodes,
    )
