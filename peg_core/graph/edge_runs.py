"""Sorted runs: edges as 64-bit keys, both directions, in files of bounded size.

A key is ``(source * num_nodes + target) * 2 + direction``; direction 0 is the row
as it was read, 1 its mirror image. Sorting keys sorts the adjacency matrix, and a
hub's row can be cut anywhere between two keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.graph.edge_rows import Dirt, EdgeRows
from peg_core.graph.ids.graph_ids import KindIds

Array = npt.NDArray[Any]

# Keys this far apart are kept as samples, to cut ranges of equal size.
SAMPLE_EVERY = 4096
# When an edge came of whose list nobody knows: before all others.
ALWAYS = np.iinfo(np.int64).min


@dataclass(frozen=True)
class RunColumns:
    """What the runs of a graph hold beside keys.

    Args:
        weighted, timed: Whether any edge list has weights, or times.
        relation: The number of the edge list at hand; None where all edges are alike.
        scale: What its weights are multiplied by.
    """

    weighted: bool
    timed: bool
    relation: int | None = None
    scale: float = 1.0

    def of(self, rows: EdgeRows, keep: Array) -> dict[str, Array]:
        """The columns of some rows, [kept] each."""
        count = int(np.count_nonzero(keep))
        found: dict[str, Array] = {}
        if self.weighted:
            listed = rows.weight
            found["weights"] = np.ones(count) if listed is None else listed[keep]
            if self.scale != 1:
                found["weights"] = found["weights"] * self.scale
        if self.timed:
            found["times"] = np.full(count, ALWAYS) if rows.time is None else rows.time[keep]
        if self.relation is not None:
            found["relations"] = np.full(count, self.relation, dtype=np.uint8)
        return found


def write_runs(
    batches: Iterable[EdgeRows],
    ids: tuple[Sequence[KindIds], int],
    columns: RunColumns,
    dirt: Dirt,
    rows_per_run: int,
    out: Path,
) -> list[str]:
    """Write sorted runs of about ``rows_per_run`` rows each; returns the names of their folders.

    Without other columns a run holds each (edge, direction) once. With them all
    rows are kept, those of one edge in the order they were read.

    Args:
        ids: The ids of the two ends, and how many nodes there are of all kinds.
    """
    runs: list[str] = []
    held: list[dict[str, Array]] = []
    for rows in batches:
        held.append(_to_keys(rows, ids, columns, dirt))
        if sum(len(part["keys"]) for part in held) >= 2 * rows_per_run:
            runs.append(_write_run(held, out / f"run-{len(runs)}"))
            held = []
    if held:
        runs.append(_write_run(held, out / f"run-{len(runs)}"))
    return runs


def _to_keys(
    rows: EdgeRows, ids: tuple[Sequence[KindIds], int], columns: RunColumns, dirt: Dirt
) -> dict[str, Array]:
    """Both directions of the rows as keys [2 * rows], self-loops counted and left out."""
    ends, num_nodes = ids
    source, target = (own.lookup(end) for own, end in zip(ends, rows.ends, strict=True))
    keep = source != target
    dirt.self_loops += int(len(keep) - np.count_nonzero(keep))
    if not keep.all():
        source, target = source[keep], target[keep]
    keys = np.empty(2 * len(source), dtype=np.int64)
    keys[: len(source)] = (source * num_nodes + target) * 2
    keys[len(source) :] = (target * num_nodes + source) * 2 + 1
    return {"keys": keys} | {
        name: np.tile(values, 2) for name, values in columns.of(rows, keep).items()
    }


def _write_run(parts: list[dict[str, Array]], folder: Path) -> str:
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    parts.clear()
    keys = columns["keys"]
    if len(columns) == 1:
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) != 0]
    else:
        # mirror images stand behind all rows: order by edge alone keeps the rows' own order
        order = np.argsort(keys >> 1, kind="stable")
        for name in columns.keys() - {"keys"}:
            write_array(folder / f"{name}.npy", columns[name][order])
        keys = keys[order]
    write_array(folder / "samples.npy", keys[::SAMPLE_EVERY] >> 1)
    write_array(folder / "keys.npy", keys)
    return folder.name
