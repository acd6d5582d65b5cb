"""What the neighbourhoods of a pair have in common."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.directed_structure import NUM_DIRECTED, directed_structure
from peg_core.kernels.intrinsics import prefetch_row
from peg_core.kernels.marked_overlap import pair_overlaps
from peg_core.kernels.node_rows import frozen_rows
from peg_core.kernels.pair_structure import NUM_STRUCTURAL, pair_structure
from peg_core.kernels.thread_spans import map_spans, row_spans

IntArray = npt.NDArray[np.integer[Any]]

# The nine numbers of (v, u) among those of (u, v); the last says whether the reverse is a link.
TURNED = [2, 3, 0, 1, 5, 4, 6, 7, 8]
# Pairs whose rows are asked for ahead.
PAIRS_AHEAD = 8


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
    overlaps = pair_overlaps(graph.indptr, graph.indices, source, target)
    indptr, components = frozen_rows(graph.indptr), frozen_rows(components)
    degrees = graph.directed_degrees if graph.is_directed else None

    def fill(span: slice) -> None:
        ends = source[span], target[span]
        _structure(indptr, components, overlaps[span], *ends, out[span])
        if degrees is not None and graph.relations is not None:
            rows, bits = (graph.indptr, graph.indices, graph.codes), graph.relations.link_bits
            _directed_structure(rows, bits, degrees, *ends, out[span])

    map_spans(fill, row_spans(len(source)))
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


@numba.njit(cache=True, nogil=True)
def _structure(
    indptr: IntArray,
    components: IntArray,
    overlaps: npt.NDArray[np.float64],
    source: IntArray,
    target: IntArray,
    out: npt.NDArray[np.float32],
) -> None:
    for i in range(len(source)):
        if i + PAIRS_AHEAD < len(source):
            for node in (source[i + PAIRS_AHEAD], target[i + PAIRS_AHEAD]):
                prefetch_row(indptr, node)
                prefetch_row(components, node)
        pair_structure(indptr, components, overlaps[i], source[i], target[i], out[i])


@numba.njit(cache=True, nogil=True)
def _directed_structure(
    rows: tuple[IntArray, IntArray, IntArray],
    bits: tuple[int, int],
    degrees: IntArray,
    source: IntArray,
    target: IntArray,
    out: npt.NDArray[np.float32],
) -> None:
    indptr, indices, codes = rows
    for i in range(len(source)):
        if i + PAIRS_AHEAD < len(source):
            for node in (source[i + PAIRS_AHEAD], target[i + PAIRS_AHEAD]):
                prefetch_row(indices, indptr[node])
                prefetch_row(codes, indptr[node])
        directed_structure(rows, bits, degrees, source[i], target[i], out, i, NUM_STRUCTURAL)
