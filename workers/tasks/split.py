"""The split as a Ray task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import InputError
from peg_core.graph.edge_table import (
    find_id_type,
    find_parquet_files,
    list_row_groups,
    read_row_group,
    require_no_nulls,
)
from peg_core.graph.graph_store import GraphStore, load_times
from peg_core.graph.id_types import normalise_ids
from peg_core.graph.node_ids import NodeIds
from peg_core.random_streams import random_stream
from peg_core.splits.edge_split import TEST, TRAIN, VALID, split_by_time, split_randomly
from peg_core.splits.entry_chunk import entry_chunks, find_entries
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.leak_check import require_no_leaks
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.split_store import SplitStore
from workers.artifact_ref import ArtifactRef

PARTS = {"valid": VALID, "test": TEST}
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class SplitRequest:
    """How to split; ``*_edges`` and ``*_negatives`` are Parquet locations or None."""

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


def split_task(request: SplitRequest) -> dict[str, int]:
    """Write the training graph, its folds and the held-out pairs; prove there is no leak."""
    graph = request.graph.open()
    # by original ids: an edge keeps its part whatever number its nodes get
    node_keys = request.graph.at(NodeIds).open().hashes()
    store = request.out.open()
    parts = store.new_parts(graph)
    _write_parts(request, graph, node_keys, parts)
    train = store.write_train(graph, parts, node_keys, folds=request.folds, seed=request.seed)
    links = {name: _links_of(graph, parts, part) for name, part in PARTS.items()}
    negatives = _negatives(request, graph, {name: len(pair[0]) for name, pair in links.items()})
    for name, pair in links.items():
        store.write_held_out(name, _label(pair, negatives[name]))
    leaks = require_no_leaks(train, store.held_out_links(), found_in="the training graph")
    counts: dict[str, int] = {"train_links": train.num_edges}
    for name in PARTS:
        counts[f"{name}_links"] = len(links[name][0])
        counts[f"{name}_negatives"] = len(negatives[name][0])
    return {**counts, **{f"{name}_leaks": count for name, count in leaks.items()}}


def _write_parts(
    request: SplitRequest, graph: GraphStore, node_keys: Any, parts: npt.NDArray[np.uint8]
) -> None:
    """The part of every entry, the same for both entries of an edge."""
    shares: dict[str, Any] = {
        "valid": request.valid,
        "test": request.test,
        "seed": request.seed,
    }
    if request.by == "random":
        split_randomly(graph, node_keys, parts, **shares)
        return
    if request.by == "time":
        times = load_times(request.graph.folder)
        assert times is not None  # the configuration guarantees a time column
        split_by_time(graph, node_keys, times, parts, **shares)
        return
    parts[:] = TRAIN
    for name, part in PARTS.items():
        location = request.given_links[name]
        assert location is not None  # the configuration guarantees it
        low, high = _read_pairs(location, request)
        missing = int((~graph.contains(low, high)).sum())
        if missing:
            raise InputError(
                f"{missing:,} of {len(low):,} pairs in {location} are not edges of the graph; "
                "`graph.edges` must hold the links of all parts"
            )
        for rows, columns in ((low, high), (high, low)):
            parts[find_entries(graph, rows, columns)] = part


def _links_of(graph: GraphStore, parts: npt.NDArray[np.uint8], part: int) -> Pairs:
    """The links of one part, each once."""
    found = []
    for chunk in entry_chunks(graph):
        chosen = chunk.upper & (parts[chunk.part] == part)
        found.append((chunk.rows[chosen], graph.indices[chunk.part][chosen]))
    source, target = (np.concatenate(ends).astype(np.int64) for ends in zip(*found, strict=True))
    return source, target


def _negatives(
    request: SplitRequest, graph: GraphStore, wanted: dict[str, int]
) -> dict[str, Pairs]:
    """Given pairs, checked to be no edges, or as many distinct random ones as there are links."""
    drawn = [name for name in PARTS if request.given_negatives[name] is None]
    rng = random_stream(seed=request.seed, purpose="held-out negatives")
    source, target = sample_non_edges(graph, sum(wanted[name] for name in drawn), rng=rng)
    found: dict[str, Pairs] = {}
    first = 0
    for name in PARTS:
        location = request.given_negatives[name]
        if location is None:
            part = slice(first, first + wanted[name])
            found[name] = (source[part], target[part])
            first += wanted[name]
            continue
        found[name] = _read_pairs(location, request)
        edges = int(graph.contains(*found[name]).sum())
        if edges:
            raise InputError(
                f"{edges:,} of {len(found[name][0]):,} negatives in {location} are edges of the "
                "graph; remove them"
            )
    return found


def _read_pairs(location: str, request: SplitRequest) -> Pairs:
    """Pairs of a Parquet location as node indices, source < target, unknown ids refused."""
    files = find_parquet_files(location)
    node_ids = request.graph.at(NodeIds).open()
    groups = list_row_groups(files, request.columns)
    if not groups:
        raise InputError.no_rows(location, "pairs")
    find_id_type((file, request.columns) for file in files)
    ends: list[list[npt.NDArray[np.int64]]] = [[], []]
    for group in groups:
        table = read_row_group(group, request.columns)
        require_no_nulls(table, group, request.columns)
        for end, column in zip(ends, request.columns, strict=True):
            index = node_ids.lookup(normalise_ids(table[column]))
            if (index < 0).any():
                row = int((index < 0).argmax())
                raise InputError(
                    f"column {column!r} of {group.file} names the node {table[column][row]} in row "
                    f"{row:,} of row group {group.index}, the graph has no such node; "
                    f"remove {int((index < 0).sum()):,} such row(s)"
                )
            end.append(index)
    first, second = (np.concatenate(end) for end in ends)
    return np.minimum(first, second), np.maximum(first, second)


def _label(links: Pairs, negatives: Pairs) -> HeldOutPairs:
    label = np.repeat(np.array([1, 0], dtype=np.uint8), [len(links[0]), len(negatives[0])])
    return HeldOutPairs(
        np.concatenate([links[0], negatives[0]]), np.concatenate([links[1], negatives[1]]), label
    )
