"""Pairs sorted by their source, so that work on a source is done once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.thread_spans import map_spans

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]
# (sources, first pair of each, targets, scores to fill)
Kernel = Callable[[IntArray, IntArray, IntArray, FloatArray], None]


@dataclass(frozen=True)
class SourceGroups:
    """Pairs grouped by source.

    Args:
        sources: [num_sources] distinct sources.
        starts: [num_sources + 1] where the pairs of a source begin.
        targets: [num_pairs] in the new order.
        order: [num_pairs] where a pair stood before.
    """

    sources: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]

    @classmethod
    def of(cls, source: IntArray, target: IntArray) -> SourceGroups:
        order = np.argsort(source, kind="stable")
        sources, first = np.unique(np.asarray(source)[order], return_index=True)
        return cls(
            sources.astype(np.int64),
            np.append(first, len(order)).astype(np.int64),
            np.asarray(target, dtype=np.int64)[order],
            order,
        )

    def score(self, kernel: Kernel) -> FloatArray:
        """Run a kernel over ranges of sources, on all threads; scores in the first order.

        Every call has memory of its own for the whole graph, so a thread gets one range.
        """
        scores = np.zeros(len(self.targets))
        cuts = np.linspace(0, len(self.sources), numba.get_num_threads() + 1).astype(np.int64)

        def work(part: int) -> None:
            start, stop = cuts[part], cuts[part + 1]
            if start < stop:
                kernel(
                    self.sources[start:stop], self.starts[start : stop + 1], self.targets, scores
                )

        map_spans(work, range(len(cuts) - 1))
        out = np.empty_like(scores)
        out[self.order] = scores
        return out
