"""Ranges of the adjacency matrix: cut so that all are equally large, merged from sorted runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.graph import edge_runs
from peg_core.graph.fading import LISTED, Fading
from peg_core.graph.graph_store import GraphStore, index_dtype
from peg_core.storage.shared_array import create_array, read_rows, write_rows
from peg_core.storage.stored_path import is_there

Array = npt.NDArray[Any]
Duplicates = Literal["sum", "max", "first"]
COMBINE = {"sum": np.add, "max": np.maximum}


@dataclass(frozen=True)
class KeyRange:
    """Edges ``first <= source * num_nodes + target < last``; cuts may fall inside a hub's row."""

    first: int
    last: int


def cut_ranges(runs: Sequence[Path], num_nodes: int, entries_per_range: int) -> list[KeyRange]:
    """Equal shares of the entries of all runs, by their samples."""
    samples = np.concatenate([np.load(run / "samples.npy") for run in runs])
    samples.sort()
    step = max(1, entries_per_range // edge_runs.SAMPLE_EVERY)
    inner = np.unique(samples[step::step])
    bounds = [0, *inner[inner > 0].tolist(), num_nodes * num_nodes]
    return [KeyRange(a, b) for a, b in pairwise(bounds)]


def cut_with_graph(
    ranges: Sequence[KeyRange], graph: GraphStore, num_nodes: int, entries_per_range: int
) -> list[KeyRange]:
    """Cut further where an existing graph already fills the ranges."""
    rows = np.searchsorted(
        graph.indptr, np.arange(0, len(graph.indices), max(1, entries_per_range))
    )
    bounds = {0, num_nodes * num_nodes, *(int(row) * num_nodes for row in rows)}
    bounds |= {part.first for part in ranges}
    ordered = sorted(bounds)
    return [KeyRange(a, b) for a, b in pairwise(ordered)]


@dataclass(frozen=True)
class _Entries:
    """Distinct edges of a range, sorted: keys without direction, weights and times or None."""

    keys: Array
    weights: Array | None
    times: Array | None


def merge_range(
    part: KeyRange,
    runs: Sequence[Path],
    num_nodes: int,
    out: Path,
    *,
    duplicates: Duplicates,
    before: GraphStore | None = None,
    times_before: Array | None = None,
) -> dict[str, int]:
    """Merge the runs (after an earlier graph, if there is one) and write one range.

    Of the times of an edge the earliest is kept. Writes ``indices.npy``, ``counts.npy``
    (entries of the rows from ``first_row`` on) and, where the input has them,
    ``weights.npy`` and ``times.npy``.

    Returns:
        Entries written and the first row; of the runs, the distinct (edge, direction)
        entries and the distinct edges; with times, the newest.
    """
    keys, weights, times = (_read(part, runs, name) for name in ("keys", "weights", "times"))
    assert keys is not None
    new, directed = _combine_rows(keys, weights, times, duplicates)
    distinct = len(new.keys)
    if before is not None:
        old = _slice_of_graph(part, before, num_nodes, times_before)
        new = _combine_entries(old, new, duplicates)
    first_row = part.first // num_nodes
    rows = new.keys // num_nodes
    write_array(out / "indices.npy", (new.keys - rows * num_nodes).astype(index_dtype(num_nodes)))
    counts = np.bincount(rows - first_row) if len(rows) else np.zeros(0, np.int64)
    write_array(out / "counts.npy", counts)
    if new.weights is not None:
        write_array(out / "weights.npy", new.weights.astype(np.float32))
    if new.times is not None:
        write_array(out / "times.npy", new.times)
    facts = {
        "entries": len(new.keys),
        "first_row": first_row,
        "directed": directed,
        "new": distinct,
    }
    if new.times is not None and len(new.times):
        facts["newest"] = int(new.times.max())
    return facts


def _read(part: KeyRange, runs: Sequence[Path], name: str) -> Array | None:
    pieces = []
    for run in runs:
        file = run / f"{name}.npy"
        if is_there(file):
            pieces.append(read_rows(file, *_rows_of(part, run)))
    return np.concatenate(pieces) if pieces else None


def _rows_of(part: KeyRange, run: Path) -> tuple[int, int]:
    """The rows of a run that fall into a range: samples say where to look, then a few keys."""
    samples = np.load(run / "samples.npy")
    found = []
    for bound in (part.first, part.last):
        after = int(np.searchsorted(samples, bound)) * edge_runs.SAMPLE_EVERY
        start = max(after - edge_runs.SAMPLE_EVERY, 0)
        keys = read_rows(run / "keys.npy", start, after)
        found.append(start + int(np.searchsorted(keys, 2 * bound)))
    return found[0], found[1]


def _combine_rows(
    keys: Array, weights: Array | None, times: Array | None, duplicates: Duplicates
) -> tuple[_Entries, int]:
    """Distinct edges of the rows, and how many distinct (edge, direction) there are."""
    if weights is None and times is None:
        keys.sort()
        directed = int(np.count_nonzero(np.diff(keys, prepend=-1)))
        keys >>= 1
        return _Entries(keys[np.diff(keys, prepend=-1) != 0], None, None), directed
    order = np.argsort(keys >> 1, kind="stable")
    keys = keys[order]
    edges = keys >> 1
    starts = np.flatnonzero(np.diff(edges, prepend=-1))
    seen = np.bitwise_or.reduceat((1 << (keys & 1)), starts) if len(starts) else keys
    directed = int(np.count_nonzero(seen & 1) + np.count_nonzero(seen & 2))
    return _Entries(
        edges[starts],
        None if weights is None else _reduce(weights[order], starts, duplicates),
        None if times is None else _earliest(times[order], starts),
    ), directed


def _reduce(values: Array, starts: Array, duplicates: Duplicates) -> Array:
    if duplicates == "first" or not len(starts):
        return values[starts]
    return COMBINE[duplicates].reduceat(values, starts)


def _earliest(values: Array, starts: Array) -> Array:
    return np.minimum.reduceat(values, starts) if len(starts) else values


def _slice_of_graph(
    part: KeyRange, graph: GraphStore, num_nodes: int, times: Array | None
) -> _Entries:
    """The entries of an earlier graph that fall into the range."""
    start = min(part.first // num_nodes, graph.num_nodes)
    stop = min(-(-part.last // num_nodes), graph.num_nodes)
    piece = graph.csr_slice(start, stop)
    rows = np.repeat(np.arange(start, stop, dtype=np.int64), np.diff(piece.indptr))
    keys = rows * num_nodes + piece.indices
    first, last = np.searchsorted(keys, [part.first, part.last])
    offset = int(graph.indptr[start])
    return _Entries(
        keys[first:last],
        None if piece.weights is None else piece.weights[first:last].astype(np.float64),
        None if times is None else times[offset + first : offset + last],
    )


def _combine_entries(old: _Entries, new: _Entries, duplicates: Duplicates) -> _Entries:
    """Two sorted lists of distinct edges as one; the old ones came first."""
    keys = np.concatenate([old.keys, new.keys])
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    weights = times = None
    if old.weights is not None and new.weights is not None:
        weights = _reduce(np.concatenate([old.weights, new.weights])[order], starts, duplicates)
    if old.times is not None and new.times is not None:
        times = _earliest(np.concatenate([old.times, new.times])[order], starts)
    return _Entries(keys[order][starts], weights, times)


def allocate(
    folder: Path,
    ranges: Sequence[Path],
    facts: Sequence[dict[str, Any]],
    nodes: int,
    fading: Fading | None = None,
) -> None:
    """Write ``indptr.npy`` and make room for the arrays that the ranges are copied into."""
    counts = np.zeros(nodes + 1, dtype=np.int64)
    for part, fact in zip(ranges, facts, strict=True):
        piece = np.load(part / "counts.npy")
        counts[fact["first_row"] + 1 : fact["first_row"] + 1 + len(piece)] += piece
    write_array(folder / "indptr.npy", np.cumsum(counts))
    total = sum(fact["entries"] for fact in facts)
    for name in ("indices", "weights", "times"):
        sample = ranges[0] / f"{name}.npy"
        if is_there(sample):
            file = LISTED if fading and name == "weights" else f"{name}.npy"
            create_array(folder / file, (total,), read_rows(sample, 0, 0).dtype)
    if fading is not None:
        create_array(folder / "weights.npy", (total,), np.float32)
        fading.save(folder)


def place_range(
    folder: Path, part: Path, offset: int, fading: Fading | None = None, newest: int = 0
) -> None:
    """Copy one range to where it belongs; doing it twice changes nothing.

    Args:
        fading: How weights fade; None: they do not.
        newest: When the newest edge of all ranges came.
    """
    found = {}
    for name in ("indices", "weights", "times"):
        if (part / f"{name}.npy").exists():
            found[name] = np.load(part / f"{name}.npy", mmap_mode="r")
            file = LISTED if fading and name == "weights" else f"{name}.npy"
            write_rows(folder / file, offset, found[name])
    if fading is not None:
        faded = fading.fade(found["times"], newest, found.get("weights"))
        write_rows(folder / "weights.npy", offset, faded)
