"""The training graph of a large split and its folds as tasks on ranges of entries.

A fold goes by the rank of an edge's hash among all of them: hashes are brought together by ranges
of hashes, and folds come back. A lower entry has the fold of the upper one of its edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.edge_split import CONTEXT_FOLD, FOLDS, TRAIN, folds_in_order
from peg_core.splits.entry_chunk import entry_chunks, find_entries, hashed_chunks
from peg_core.splits.filtered_graph import kept_rows
from peg_core.splits.split_store import links_by_fold
from peg_core.splits.split_work import Rows, sort_into
from workers.tasks.split_ranges import RangeRequest

NoResult = dict[str, Any]


class HashedResult(TypedDict):
    """Edges of a range of entries in each range of hashes; none where there is one fold."""

    counts: list[int]


def train_task(
    request: RangeRequest,
    number: int,
    span: slice,
    first: int,
    bounds: Sequence[int],
    newest: int | None = None,
) -> HashedResult:
    """Write the entries of a range that train, and sort their edges into ranges of hashes.

    Args:
        number, span: The range of entries.
        first: Where its entries begin in the training graph.
        bounds: The first hash of each range of hashes; none where there is one fold.
        newest: When the newest training edge came, where weights fade.
    """
    graph, store = request.split.fading_from(newest), request.split.out.open()
    keep = store.parts()[span] == TRAIN
    store.write_train_rows(kept_rows(graph, span, keep, first), first)
    if not bounds:
        return {"counts": []}
    hashes = _fold_hashes(request, graph, span, keep)
    order, counts = sort_into(bounds, hashes)
    request.work.open().write_hashes(number, hashes[order])
    return {"counts": counts}


def deal_task(request: RangeRequest, number: int, rank: int, rows: Sequence[Rows]) -> NoResult:
    """Deal out the folds to the edges of a range of hashes.

    Args:
        number: Of the range of hashes.
        rank: Edges with smaller hashes than all of these.
        rows: Where its hashes stand among those of each range of entries.
    """
    work = request.work.open()
    work.write_folds(number, folds_in_order(work.hashes_between(rows), rank, request.split.folds))
    return {}


def fold_task(
    request: RangeRequest,
    number: int,
    span: slice,
    bounds: Sequence[int],
    rows: Sequence[Rows],
) -> NoResult:
    """Take the folds of the edges in a range of the training graph; keep its links by fold.

    Args:
        number, span: The range of entries.
        bounds: The first hash of each range of hashes; none where there is one fold.
        rows: Where its folds stand among those of each range of hashes.
    """
    train, work, folds = request.train_graph(), request.work.open(), request.split.folds
    supervises_nothing = CONTEXT_FOLD if train.codes is not None else 0
    own = np.full(span.stop - span.start, supervises_nothing, dtype=np.uint8)
    dealt = None
    if bounds:
        order, _ = sort_into(bounds, _fold_hashes(request, train, span))
        dealt = np.empty(len(order), dtype=np.uint8)
        dealt[order] = work.folds_of_range(rows)
    pieces, first = [], 0
    for chunk in entry_chunks(train, span):
        part = own[chunk.part.start - span.start : chunk.part.stop - span.start]
        count = int(np.count_nonzero(chunk.pairs))
        part[chunk.pairs] = 0 if dealt is None else dealt[first : first + count]
        first += count
        pieces.append(links_by_fold(train, chunk, part, folds))
    work.write_upper_folds(span.start, own)
    work.write_links(number, pieces)
    return {}


def mirror_task(request: RangeRequest, span: slice) -> NoResult:
    """Write the fold of every entry of a range: lower entries ask the upper ones of their edges."""
    train, upper_folds = request.train_graph(), request.work.open().upper_folds()
    folds = np.array(upper_folds[span])
    for chunk in entry_chunks(train, span):
        lower = ~chunk.upper
        places = find_entries(train, train.indices[chunk.part][lower], chunk.rows[lower])
        part = folds[chunk.part.start - span.start : chunk.part.stop - span.start]
        part[lower] = upper_folds[places]
    request.split.out.open().write_entry_folds(span.start, folds)
    return {}


def _fold_hashes(
    request: RangeRequest,
    graph: GraphStore,
    span: slice,
    keep: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.uint64]:
    """The hashes by which folds are dealt, of the edges among some entries, or of those kept."""
    keys, seed = request.work.open().node_keys(), request.split.seed
    found = []
    for chunk, hashes in hashed_chunks(graph, keys, span, seed=seed, purpose=FOLDS):
        chosen = chunk.pairs
        if keep is not None:
            chosen = chosen & keep[chunk.part.start - span.start : chunk.part.stop - span.start]
        found.append(hashes[chosen])
    return np.concatenate(found)
