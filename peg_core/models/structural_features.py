"""What the neighbourhoods of a pair have in common."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.directed_structure import NUM_DIRECTED, directed_structure
from peg_core.kernels.pair_structure import NUM_STRUCTURAL, pair_structure

IntArray = npt.NDArray[np.integer[Any]]

# The nine numbers of (v, u) among those of (u, v); the last says whether the reverse is a link.
TURNED = [2, 3, 0, 1, 5, 4, 6, 7, 8]


def structural_features(
    graph: GraphStore, source: IntArray, target: IntArray, components: IntArray
) -> npt.NDArray[np.float32]:
    """log(1 + overlap), log(1 + degree) with the smaller first, same component: [num_pairs, 6].

    A directed graph adds nine columns: log(1 + links) from and to the source, from and to the
    target; log(1 + nodes) on ways source -> w -> target and back, that both lead to, that lead
    to both; whether the reverse link exists.

    A pair that is itself an edge does not count in its own degrees, nor does it
    connect a node that has no other edge: what the head learns from a known link
    must look like a link that is not yet known.

    Args:
        graph: The edges that may be seen.
        source: [num_pairs].
        target: [num_pairs].
        components: The component of every node, [num_nodes].
    """
    source, target = (np.asarray(end, dtype=np.int64) for end in (source, target))
    out = np.empty((len(source), num_structural(directed=graph.is_directed)), dtype=np.float32)
    _structure(graph.indptr, graph.indices, components, source, target, out)
    if graph.is_directed and graph.relations is not None:
        bits = graph.relations.link_bits
        rows = graph.indptr, graph.indices, graph.codes
        _directed_structure(rows, bits, graph.directed_degrees, source, target, out)
    return out


def training_structure(
    graph: GraphStore, source: IntArray, target: IntArray, components: IntArray, num_links: int
) -> npt.NDArray[np.float32]:
    """The same, of links that stand in the graph and supervise, and of their non-links.

    A held-out link has no reverse in the training graph, since both are held out; nor must the
    reverse of a link be told by that link.

    Args:
        num_links: How many of the pairs are links; they come first.
    """
    out = structural_features(graph, source, target, components)
    if not num_links or graph.relations is None or not graph.relations.has_reverses:
        return out
    keys = np.asarray(source, dtype=np.int64) * graph.num_nodes + target
    reverse = np.asarray(target, dtype=np.int64) * graph.num_nodes + source
    known = np.isin(reverse, keys[:num_links])
    turned = np.flatnonzero(known & (np.arange(len(keys)) >= num_links))
    along = structural_features(graph, target[turned], source[turned], components)
    out[turned, :NUM_STRUCTURAL] = along[:, :NUM_STRUCTURAL]
    out[turned, NUM_STRUCTURAL:] = along[:, NUM_STRUCTURAL:][:, TURNED]
    out[known, NUM_STRUCTURAL + TURNED[-1]] = 0
    return out


def num_structural(*, directed: bool) -> int:
    """Columns of :func:`structural_features`."""
    return NUM_STRUCTURAL + (NUM_DIRECTED if directed else 0)


@numba.njit(cache=True, parallel=True)
def _structure(
    indptr: IntArray,
    indices: IntArray,
    components: IntArray,
    source: IntArray,
    target: IntArray,
    out: npt.NDArray[np.float32],
) -> None:
    for i in numba.prange(len(source)):
        pair_structure(indptr, indices, components, source[i], target[i], out, i, 0)


@numba.njit(cache=True, parallel=True)
def _directed_structure(
    rows: tuple[IntArray, IntArray, IntArray],
    bits: tuple[int, int],
    degrees: IntArray,
    source: IntArray,
    target: IntArray,
    out: npt.NDArray[np.float32],
) -> None:
    for i in numba.prange(len(source)):
        directed_structure(rows, bits, degrees, source[i], target[i], out, i, NUM_STRUCTURAL)
