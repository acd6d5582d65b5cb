"""Ranges of the adjacency matrix: cut so that all are equally large, merged from sorted runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.graph import edge_runs
from peg_core.graph.edge_entries import (
    Duplicates,
    EdgeKeys,
    Entries,
    combine_entries,
    combine_relations,
    combine_rows,
)
from peg_core.graph.fading import LISTED, Fading
from peg_core.graph.graph_store import GraphStore, index_dtype
from peg_core.graph.relations import Relations
from peg_core.storage.shared_array import create_array, read_rows, write_rows
from peg_core.storage.stored_path import is_there

Array = npt.NDArray[Any]
# The arrays of a graph that are as long as its entries.
ARRAYS = ("indices", "weights", "times", "codes", "context_weights")


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


def merge_range(
    part: KeyRange,
    runs: Sequence[Path],
    num_nodes: int,
    out: Path,
    *,
    duplicates: Duplicates,
    relations: Relations | None = None,
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
    keys, weights, times, numbers = (
        _read(part, runs, name) for name in ("keys", "weights", "times", "relations")
    )
    assert keys is not None
    rows_of_runs = EdgeKeys(keys, weights, times)
    if relations is None:
        new, directed = combine_rows(rows_of_runs, duplicates)
        distinct = len(new.keys)
    else:
        numbers = np.zeros(len(keys), np.uint8) if numbers is None else numbers
        new, directed, distinct = combine_relations(rows_of_runs, numbers, relations, duplicates)
    if before is not None:
        old = _slice_of_graph(part, before, num_nodes, times_before)
        new = combine_entries(old, new, duplicates)
    first_row = part.first // num_nodes
    rows = new.keys // num_nodes
    write_array(out / "indices.npy", (new.keys - rows * num_nodes).astype(index_dtype(num_nodes)))
    counts = np.bincount(rows - first_row) if len(rows) else np.zeros(0, np.int64)
    write_array(out / "counts.npy", counts)
    if new.weights is not None:
        write_array(out / "weights.npy", new.weights.astype(np.float32))
    if new.times is not None:
        write_array(out / "times.npy", new.times)
    if new.codes is not None:
        write_array(out / "codes.npy", new.codes)
    if new.context_weights is not None:
        write_array(out / "context_weights.npy", new.context_weights.astype(np.float32))
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


def _slice_of_graph(
    part: KeyRange, graph: GraphStore, num_nodes: int, times: Array | None
) -> Entries:
    """The entries of an earlier graph that fall into the range."""
    start = min(part.first // num_nodes, graph.num_nodes)
    stop = min(-(-part.last // num_nodes), graph.num_nodes)
    piece = graph.csr_slice(start, stop)
    rows = np.repeat(np.arange(start, stop, dtype=np.int64), np.diff(piece.indptr))
    keys = rows * num_nodes + piece.indices
    first, last = np.searchsorted(keys, [part.first, part.last])
    offset = int(graph.indptr[start])
    return Entries(
        keys[first:last],
        None if piece.weights is None else piece.weights[first:last].astype(np.float64),
        None if times is None else times[offset + first : offset + last],
    )


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
    for name in ARRAYS:
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
    for name in ARRAYS:
        if (part / f"{name}.npy").exists():
            found[name] = np.load(part / f"{name}.npy", mmap_mode="r")
            file = LISTED if fading and name == "weights" else f"{name}.npy"
            write_rows(folder / file, offset, found[name])
    if fading is not None:
        faded = fading.fade(found["times"], newest, found.get("weights"))
        write_rows(folder / "weights.npy", offset, faded)
