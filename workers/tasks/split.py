"""The split as a Ray task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.graph.fading import Fading, fade_from, find_newest
from peg_core.graph.graph_store import GraphStore, load_times
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.random_streams import random_stream
from peg_core.splits.edge_split import (
    TEST,
    TRAIN,
    VALID,
    mark_training,
    split_by_time,
    split_randomly,
)
from peg_core.splits.entry_chunk import entry_chunks, list_links
from peg_core.splits.given_links import require_disjoint
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.leak_check import require_no_leaks
from peg_core.splits.matched_negatives import MatchedNegatives
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.partners import Partners
from peg_core.splits.reversed_links import reversed_links
from peg_core.splits.split_store import SplitStore
from peg_core.splits.time_ties import find_tie
from workers.artifact_ref import ArtifactRef
from workers.tasks.given_negatives import GivenFile, GivenNegatives, count_known
from workers.tasks.given_pairs import Pairs, mark_given_links, read_pairs

PARTS = {"valid": VALID, "test": TEST}
ORDERED = {"train": TRAIN, **PARTS}
# With fewer a fold may hold every link of a node's neighbourhood, and nothing can be learned.
FEWEST_TRAIN_LINKS = 10
# The stream that negatives are drawn from.
NEGATIVES = "held-out negatives"


class TieResult(TypedDict):
    """The time of a tie between two parts, or None, and how many of its edges are in each."""

    older: str
    newer: str
    time: int | None
    in_older: int
    in_newer: int


@dataclass(frozen=True)
class SplitRequest:
    """How to split; ``*_edges`` and ``*_negatives`` are Parquet locations or None.

    ``negatives`` says how non-links that no file gives are drawn: ``random`` or ``matched``;
    ``leave_out`` is the share of the edges, the newest of all, that are in no part;
    ``negatives_link`` the column with the link that a given non-link belongs to, ``on_known`` what
    is done with given non-links that are links; ``keep_connected`` whether nodes keep an edge.
    """

    by: str
    valid: float
    test: float
    folds: int
    seed: int
    given_links: dict[str, str | None]
    given_negatives: dict[str, str | None]
    columns: tuple[str, str]
    graph: ArtifactRef[GraphStore]
    out: ArtifactRef[SplitStore]
    negatives: str = "random"
    leave_out: float = 0.0
    negatives_link: str | None = None
    on_known: str = "error"
    keep_connected: bool = False

    def times(self) -> npt.NDArray[Any]:
        """When each entry of the graph came."""
        times = load_times(self.graph.folder)
        assert times is not None  # the configuration guarantees a time column
        return times

    def fading_from(self, newest: int | None) -> GraphStore:
        """The graph whose weights count from the newest training edge, where they fade."""
        graph = self.graph.open()
        return graph if newest is None else fade_from(graph, self.graph.folder, newest)

    def matched_negatives(self) -> MatchedNegatives:
        """What draws non-links of the links' own population; the training graph is there."""
        graph, train = self.graph.open(), self.out.open().train_graph()
        return MatchedNegatives(graph, load_times(self.graph.folder), train, self.seed)

    def ids(self) -> GraphIds:
        return self.graph.at(GraphIds).open()

    def require_disjoint(self) -> None:
        """Refuse files with a link that both validates and tests."""
        valid, test = self.given_links["valid"], self.given_links["test"]
        if valid is not None and test is not None:
            require_disjoint(valid, test, self.columns, self.ids())

    def read_pairs(self, location: str) -> Pairs:
        """Pairs that a file names by their ids."""
        graph = self.graph.open()
        return read_pairs(location, self.columns, self.ids(), ordered=Partners.of(graph).ordered)

    def read_negatives(self, part: str, graph: GraphStore, links: Pairs) -> GivenNegatives | None:
        """The non-links that a file gives for the links of a part; none where there is no file."""
        location = self.given_negatives[part]
        if location is None:
            return None
        file = GivenFile(
            location,
            self.columns,
            Partners.of(graph).ordered,
            self.on_known,
            self.negatives_link,
            self.given_links[part],
        )
        return file.read(graph, self.ids(), links)


def split_task(request: SplitRequest) -> dict[str, int]:
    """Write the training graph, its folds and the held-out pairs; prove there is no leak."""
    request.require_disjoint()
    graph = request.graph.open()
    # by original ids: an edge keeps its part whatever number its nodes get
    node_keys = request.ids().hashes()
    store = request.out.open()
    parts = store.new_parts(graph)
    _write_parts(request, graph, node_keys, parts)
    require_enough(int(np.count_nonzero(parts == TRAIN)) // 2, graph.num_linked_pairs)
    listed = request.fading_from(newest_of(request, graph, parts))
    train = store.write_train(listed, parts, node_keys, folds=request.folds, seed=request.seed)
    links = {name: _links_of(graph, parts, part) for name, part in PARTS.items()}
    negatives = _negatives(request, graph, links)
    for name, pair in links.items():
        store.write_held_out(name, negatives[name].labelled(pair))
    leaks = require_no_leaks(train, store.held_out_links(), found_in="the training graph")
    counts: dict[str, int] = {"train_links": num_links(train)}
    for name in PARTS:
        counts[f"{name}_links"] = len(links[name][0])
        counts[f"{name}_negatives"] = len(negatives[name])
    counts |= count_left_out(num_links(graph), counts) | count_known(negatives)
    return {**counts, **{f"{name}_leaks": count for name, count in leaks.items()}}


def all_links_task(request: SplitRequest) -> dict[str, int]:
    """Write every edge as a training link, in folds; nothing is held out."""
    graph, store = request.graph.open(), request.out.open()
    parts = store.new_parts(graph)
    mark_training(graph, parts)
    listed = request.fading_from(newest_of(request, graph, parts))
    keys = request.ids().hashes()
    train = store.write_train(listed, parts, keys, folds=request.folds, seed=request.seed)
    nothing = np.zeros(0, dtype=np.int64)
    for name in PARTS:
        store.write_held_out(name, HeldOutPairs(nothing, nothing, nothing.astype(np.uint8)))
    return {"train_links": num_links(train)}


def tie_task(request: SplitRequest, older: str, newer: str) -> TieResult:
    """Whether the boundary between two parts falls between edges of one time."""
    graph, parts = request.graph.open(), request.out.open().parts()
    tie = find_tie(graph, request.times(), parts, ORDERED[older], ORDERED[newer])
    return {
        "older": older,
        "newer": newer,
        "time": None if tie is None else int(tie.time),
        "in_older": 0 if tie is None else tie.older,
        "in_newer": 0 if tie is None else tie.newer,
    }


def newest_of(
    request: SplitRequest,
    graph: GraphStore,
    parts: npt.NDArray[np.uint8],
    span: slice | None = None,
) -> int | None:
    """When the newest training edge came, where weights fade.

    Args:
        parts: Of all entries, or of those in ``span``.
        span: A range of entries; None: all.
    """
    if Fading.read(request.graph.folder) is None:
        return None
    first, times = 0 if span is None else span.start, request.times()
    newest = []
    for chunk in entry_chunks(graph, span):
        own = parts[chunk.part.start - first : chunk.part.stop - first]
        newest.append(find_newest(times[chunk.part], own == TRAIN))
    return max((time for time in newest if time is not None), default=None)


def num_links(graph: GraphStore) -> int:
    """Links of the predicted relation; of a pair with both directions, two."""
    if graph.relations is None or not graph.is_directed:
        return graph.num_linked_pairs
    return int(graph.directed_degrees[0].sum())


def count_left_out(links: int, counts: dict[str, int]) -> dict[str, int]:
    """Links that are in no part; nothing where there are none."""
    left = links - sum(counts[f"{name}_links"] for name in ORDERED)
    return {"left_out_links": left} if left else {}


def require_enough(left: int, edges: int) -> None:
    """Refuse a graph that leaves next to nothing to learn from."""
    if left < FEWEST_TRAIN_LINKS:
        raise GraphTooSmall.for_training(left=left, needed=FEWEST_TRAIN_LINKS, edges=edges)


def _write_parts(
    request: SplitRequest, graph: GraphStore, node_keys: Any, parts: npt.NDArray[np.uint8]
) -> None:
    """The part of every entry, the same for both entries of an edge."""
    shares: dict[str, Any] = {"valid": request.valid, "test": request.test, "seed": request.seed}
    if request.by == "random":
        shares["keep_connected"] = request.keep_connected
        split_randomly(graph, node_keys, parts, **shares)
        return
    if request.by == "time":
        shares["leave_out"] = request.leave_out
        split_by_time(graph, node_keys, request.times(), parts, **shares)
        return
    write_given_parts(request, graph, parts)


def write_given_parts(
    request: SplitRequest, graph: GraphStore, parts: npt.NDArray[np.uint8]
) -> None:
    """The part of every entry by the files that name the links of each part."""
    mark_given_links(graph, _given_links(request), parts)


def _given_links(request: SplitRequest) -> Iterator[tuple[int, str, Pairs]]:
    """Part, location and pairs of the files; the pairs of one file at a time are in memory."""
    for name, part in PARTS.items():
        location = request.given_links[name]
        assert location is not None  # the configuration guarantees it
        yield part, location, request.read_pairs(location)


def _links_of(graph: GraphStore, parts: npt.NDArray[np.uint8], part: int) -> Pairs:
    """The links of one part, each once."""
    found = [
        list_links(graph, chunk, chunk.pairs & (parts[chunk.part] == part))[0]
        for chunk in entry_chunks(graph)
    ]
    source, target = np.concatenate(found, axis=1).astype(np.int64)
    return source, target


def _negatives(
    request: SplitRequest, graph: GraphStore, links: dict[str, Pairs]
) -> dict[str, GivenNegatives]:
    """Given pairs, checked to be no edges, or as many others as there are links."""
    drawn = [name for name in PARTS if request.given_negatives[name] is None]
    found = given_negatives(request, graph, links)
    if request.negatives == "matched":
        matched = request.matched_negatives()
        for name in drawn:
            found[name] = GivenNegatives(join_pairs(matched.chunks(iter([links[name]]))))
        return found
    rng = random_stream(seed=request.seed, purpose=NEGATIVES)
    turned = {name: reversed_links(graph, *links[name], seed=request.seed) for name in drawn}
    wanted = {name: len(links[name][0]) - len(turned[name][0]) for name in drawn}
    source, target = sample_non_edges(graph, sum(wanted.values()), rng=rng)
    first = 0
    for name in drawn:
        part = slice(first, first + wanted[name])
        both = iter([turned[name], (source[part], target[part])])
        found[name] = GivenNegatives(join_pairs(both))
        first += wanted[name]
    return found


def join_pairs(chunks: Iterator[Pairs]) -> Pairs:
    """Pairs that come some at a time, together."""
    source, target = (np.concatenate(ends) for ends in zip(*chunks, strict=True))
    return source, target


def given_negatives(
    request: SplitRequest, graph: GraphStore, links: dict[str, Pairs]
) -> dict[str, GivenNegatives]:
    """What files give for the links of a part, known links among them treated as asked for."""
    found = {name: request.read_negatives(name, graph, links[name]) for name in links}
    return {name: given for name, given in found.items() if given is not None}
