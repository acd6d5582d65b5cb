"""The split of a large graph as tasks on ranges of its entries.

The same split as that of :func:`workers.tasks.split.split_task`. No task holds more than a
range, and each can be run twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import OPTIONAL, GraphStore
from peg_core.random_streams import random_stream
from peg_core.splits.edge_split import (
    TRAIN,
    EdgeOrder,
)
from peg_core.splits.entry_chunk import entry_chunks, list_links
from peg_core.splits.filtered_graph import staying_entries
from peg_core.splits.held_out_pairs import count_row_groups, write_pair_chunks
from peg_core.splits.leak_check import count_links_and_leaks
from peg_core.splits.order_statistic import DIGIT_BITS, DigitSearch, Key, join_keys
from peg_core.splits.reversed_links import reversed_links
from peg_core.splits.split_store import TRAIN_GRAPH
from peg_core.splits.split_work import SplitWork
from peg_core.splits.stored_non_edges import StoredNonEdges
from peg_core.splits.time_ties import require_times_that_differ
from peg_core.storage.stored_path import remove
from workers.artifact_ref import ArtifactRef
from workers.tasks.given_negatives import count_known
from workers.tasks.given_pairs import Pairs
from workers.tasks.split import (
    NEGATIVES,
    PARTS,
    SplitRequest,
    given_negatives,
    join_pairs,
    newest_of,
    num_links,
    write_given_parts,
)

NoResult = dict[str, Any]

# Of what is drawn, a folder beside what tasks leave to each other.
SCRATCH = "non_edges"


class PreparedResult(TypedDict):
    """Arrays of entries that the graph has, its linked pairs, and links of these."""

    columns: list[str]
    pairs: int
    links: int


class SearchResult(TypedDict):
    """How far searches have come: rank, known digits and keys that are left of each."""

    searches: list[tuple[int, list[int], int]]


class PickResult(TypedDict):
    """What searches found: the words of a key each."""

    keys: list[list[int]]


class PairsResult(TypedDict):
    """Negatives and row groups of the tables of pairs, by part."""

    negatives: dict[str, int]
    known: dict[str, int]
    row_groups: dict[str, int]


class LeakResult(TypedDict):
    """Links that were looked at, and how many of them stand in the training graph."""

    links: int
    leaks: int


@dataclass(frozen=True)
class RangeRequest:
    """A split by ranges.

    Args:
        split: How to split.
        work: What tasks leave to each other.
    """

    split: SplitRequest
    work: ArtifactRef[SplitWork]

    def order(self) -> EdgeOrder:
        """In which order edges are set aside."""
        split = self.split
        times = split.times() if split.by == "time" else None
        return EdgeOrder(split.graph.open(), self.work.open().node_keys(), split.seed, times)

    def train_graph(self) -> GraphStore:
        return self.split.out.open().train_graph()


def prepare_task(request: RangeRequest) -> PreparedResult:
    """Keep what every range reads, and look at what is given."""
    split = request.split
    split.require_disjoint()
    graph = split.graph.open()
    # by original ids: an edge keeps its part whatever number its nodes get
    request.work.open().write_node_keys(split.ids().hashes())
    if split.by == "time":
        require_times_that_differ(graph, split.times())
    if split.by == "files":
        write_given_parts(split, graph, split.out.open().new_parts(graph))
    if graph.relations is not None:
        graph.relations.save(split.out.folder / TRAIN_GRAPH)
    columns = [name for name in OPTIONAL if getattr(graph, name) is not None]
    return {"columns": columns, "pairs": graph.num_linked_pairs, "links": num_links(graph)}


def count_task(
    request: RangeRequest, number: int, span: slice, turn: int, searches: Sequence[DigitSearch]
) -> NoResult:
    """Count the next digits of the keys in a range of entries, for every search."""
    counts = np.zeros((len(searches), 2**DIGIT_BITS), dtype=np.int64)
    for keys in request.order().edge_keys(span):
        for own, search in zip(counts, searches, strict=True):
            own += search.count_next(keys)
    request.work.open().write_counts(turn, number, counts)
    return {}


def narrow_task(
    request: RangeRequest, turn: int, ranges: int, searches: Sequence[DigitSearch]
) -> SearchResult:
    """Go on with every search by the counts of all ranges."""
    counts = request.work.open().counts(turn, ranges)
    narrowed = [s.narrowed(own) for s, own in zip(searches, counts, strict=True)]
    return {"searches": [(s.rank, list(s.digits), s.left or 0) for s in narrowed]}


def collect_task(
    request: RangeRequest, number: int, span: slice, searches: Sequence[DigitSearch]
) -> NoResult:
    """Keep the keys of a range of entries that are left to each search."""
    order = request.order()
    for own, search in enumerate(searches):
        keys = join_keys([search.beginning_alike(keys) for keys in order.edge_keys(span)])
        request.work.open().write_candidates(number, own, keys)
    return {}


def pick_task(request: RangeRequest, ranges: int, searches: Sequence[DigitSearch]) -> PickResult:
    """What every search finds among the keys that ranges have kept."""
    work = request.work.open()
    return {"keys": [list(work.pick(s, number, ranges)) for number, s in enumerate(searches)]}


def mark_task(
    request: RangeRequest, number: int, span: slice, last: dict[int, Key] | None
) -> dict[str, int]:
    """Write the part of every entry of a range, and keep the links that are held out.

    Args:
        number, span: The range of entries.
        last: Key of the last edge to test and to validate; None where files gave the parts.

    Returns:
        Links of each part, in ``train`` linked pairs, each counted at its upper entry;
        ``train_entries``, ``train_links``; where weights fade, when the newest of them came.
    """
    split, store = request.split, request.split.out.open()
    graph = split.graph.open()
    if last is None:
        parts = np.array(store.parts()[span])
    else:
        parts = np.concatenate([own for _, own in request.order().parts(last, span)])
        store.write_parts(span.start, parts)
    held_out: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in PARTS}
    train = links = 0
    for chunk in entry_chunks(graph, span):
        own = parts[chunk.part.start - span.start : chunk.part.stop - span.start]
        train += int(np.count_nonzero(chunk.pairs & (own == TRAIN)))
        links += list_links(graph, chunk, chunk.pairs & (own == TRAIN))[0].shape[1]
        for name, part in PARTS.items():
            chosen = chunk.pairs & (own == part)
            held_out[name].append(list_links(graph, chunk, chosen)[0])
    for name, pieces in held_out.items():
        request.work.open().write_held_out(name, number, pieces)
    counts = {name: sum(piece.shape[1] for piece in pieces) for name, pieces in held_out.items()}
    entries = int(np.count_nonzero(staying_entries(graph, span, parts == TRAIN)))
    marked = {"train": train, "train_links": links, "train_entries": entries, **counts}
    newest = newest_of(split, graph, parts, span)
    return marked if newest is None else {**marked, "newest": newest}


def finish_task(
    request: RangeRequest, what: Literal["links", "pairs"], ranges: int, totals: dict[str, int]
) -> PairsResult | NoResult:
    """Join what the ranges found: the training links by fold, or the tables of held-out pairs.

    Args:
        what: Which of the two.
        ranges: How many ranges of entries there are.
        totals: Links of each part.
    """
    if what == "pairs":
        return _write_pairs(request, ranges, totals)
    sizes = np.sum([counts for _, counts in request.work.open().links(ranges)], axis=0)
    kind = request.train_graph().indices.dtype
    request.split.out.open().write_links(request.work.open().links(ranges), sizes, kind)
    return {}


def leak_task(request: RangeRequest, part: str, row_groups: Sequence[int]) -> LeakResult:
    """Count the held-out links in some row groups of a table, and those in the training graph."""
    links = request.split.out.open().some_held_out_links(part, row_groups)
    seen, leaks = count_links_and_leaks(request.train_graph(), links)
    return {"links": seen, "leaks": leaks}


def _write_pairs(request: RangeRequest, ranges: int, totals: dict[str, int]) -> PairsResult:
    """Write the held-out links and as many non-links, or those that files give."""
    split, work = request.split, request.work.open()
    store = split.out.open()
    listed = {name: _listed(request, name, ranges) for name in PARTS}
    given = given_negatives(split, split.graph.open(), listed)
    drawn = _drawn_negatives(request, ranges, {n: totals[n] for n in PARTS if n not in given})
    for name in PARTS:
        links = ((ends[0], ends[1], 1) for ends in work.held_out(name, ranges))
        negatives: Iterable[Pairs] = [given[name].pairs] if name in given else drawn[name]
        labelled = ((source, target, 0) for source, target in negatives)
        places = _places(work, name, ranges, given[name].link if name in given else None)
        write_pair_chunks(store.held_out_file(name), chain(links, labelled), places)
    remove(work.folder / SCRATCH)
    return {
        "negatives": {n: len(given[n]) if n in given else totals[n] for n in PARTS},
        "known": count_known(given),
        "row_groups": {n: count_row_groups(store.held_out_file(n)) for n in PARTS},
    }


def _listed(request: RangeRequest, name: str, ranges: int) -> Pairs:
    """The links of a part where their non-links name them, as many as those; else none."""
    if request.split.negatives_link is None:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    pieces = request.work.open().held_out(name, ranges)
    return join_pairs((ends[0].astype(np.int64), ends[1].astype(np.int64)) for ends in pieces)


def _places(
    work: SplitWork, name: str, ranges: int, link: npt.NDArray[np.int64] | None
) -> Iterable[npt.NDArray[np.int64]] | None:
    """Which link every pair is ranked with, links first; None where non-links do not say."""
    if link is None:
        return None
    sizes = [ends.shape[1] for ends in work.held_out(name, ranges)]
    starts = accumulate(sizes, initial=0)
    own = (np.arange(first, first + size) for first, size in zip(starts, sizes, strict=False))
    return chain(own, [link])


def _drawn_negatives(
    request: RangeRequest, ranges: int, wanted: dict[str, int]
) -> dict[str, Iterable[Pairs]]:
    """Non-links by part, some at a time; they are drawn while they are read."""
    split, work = request.split, request.work.open()
    if split.negatives == "matched":
        matched = split.matched_negatives()
        return {
            name: matched.chunks((ends[0], ends[1]) for ends in work.held_out(name, ranges))
            for name in wanted
        }
    graph = split.graph.open()

    def turned(name: str) -> Iterator[Pairs]:
        for ends in work.held_out(name, ranges):
            yield reversed_links(graph, ends[0], ends[1], seed=split.seed)

    left = {n: count - sum(len(some[0]) for some in turned(n)) for n, count in wanted.items()}
    non_edges = StoredNonEdges(
        graph,
        sum(left.values()),
        rng=random_stream(seed=split.seed, purpose=NEGATIVES),
        folder=work.folder / SCRATCH,
    )
    starts = accumulate(left.values(), initial=0)
    return {
        name: chain(turned(name), non_edges.chunks(first, first + count))
        for first, (name, count) in zip(starts, left.items(), strict=False)
    }
