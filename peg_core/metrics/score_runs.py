"""Tie groups of more scores than fit into memory, each score read once.

Scores arrive in pieces. Each piece is sorted and written as a run of its distinct scores
with their counts, 12 bytes each; at the end all runs are cut at the same scores, and every
slice between two cuts, small enough for memory, is merged. That is a merge sort on disk:
exact, ties included, in memory that does not depend on the number of scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.metrics.tie_groups import TieGroups, distinct_scores

FloatArray = npt.NDArray[np.floating[Any]]
# Candidates for a cut that each run offers, for every slice that is wanted.
CUTS_PER_SLICE = 8


@dataclass(frozen=True)
class _Run:
    """Distinct scores of a piece, rising, memory-mapped, [num_distinct] each."""

    scores: npt.NDArray[np.float32]
    counts: npt.NDArray[np.uint32]  # [2, num_distinct], links and non-links


class ScoreRuns:
    """Collects scores of links and non-links in a folder.

    Args:
        folder: Scratch space; its runs are overwritten.
        slice_scores: Distinct scores that are merged in memory at once, about.
    """

    def __init__(self, folder: Path, *, slice_scores: int = 4_000_000) -> None:
        self._folder = folder
        self._slice_scores = slice_scores
        self._num_runs = 0
        self.num_scores = 0

    def add(self, positive: FloatArray, negative: FloatArray) -> None:
        """Take a piece: scores of links and of non-links; they are compared as float32."""
        pieces = [np.asarray(side, dtype=np.float32) for side in (positive, negative)]
        scores, counts = distinct_scores(*pieces)
        write_array(self._file("scores", self._num_runs), scores)
        write_array(self._file("counts", self._num_runs), counts.astype(np.uint32))
        self._num_runs += 1
        self.num_scores += len(positive) + len(negative)

    def groups(self) -> Iterator[TieGroups]:
        """All tie groups, best first, in pieces."""
        runs = [
            _Run(*(np.load(self._file(name, n), mmap_mode="r") for name in ("scores", "counts")))
            for n in range(self._num_runs)
        ]
        cuts = self._cuts([run.scores for run in runs])
        ends = [
            np.concatenate([[0], np.searchsorted(run.scores, cuts), [len(run.scores)]])
            for run in runs
        ]
        for piece in range(len(cuts), -1, -1):
            parts = [slice(end[piece], end[piece + 1]) for end in ends]
            scores = np.concatenate(
                [run.scores[part] for run, part in zip(runs, parts, strict=True)]
            )
            if not len(scores):
                continue
            counts = np.concatenate(
                [run.counts[:, part] for run, part in zip(runs, parts, strict=True)], axis=1
            ).astype(np.int64)
            order = np.argsort(scores, kind="stable")
            starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
            merged = np.add.reduceat(counts[:, order], starts, axis=1)[:, ::-1]
            yield TieGroups(merged[0], merged[1])

    def _file(self, name: str, number: int) -> Path:
        return self._folder / f"{name}-{number:06}.npy"

    def _cuts(self, runs: list[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """Scores that cut all runs into slices of about the wanted size, rising."""
        sizes = np.array([len(run) for run in runs])
        slices = -(-int(sizes.sum()) // self._slice_scores)
        if slices <= 1:
            return np.zeros(0, dtype=np.float32)
        count = slices * CUTS_PER_SLICE
        filled = [run for run in runs if len(run)]
        offered = np.concatenate(
            [run[np.linspace(0, len(run) - 1, count).astype(np.int64)] for run in filled]
        )
        weight = np.repeat(sizes[sizes > 0], count)
        order = np.argsort(offered, kind="stable")
        share = np.cumsum(weight[order]) / weight.sum()
        indices = np.searchsorted(share, np.arange(1, slices) / slices)
        return np.unique(offered[order][indices])
