"""Confidence intervals of metrics by the bootstrap.

Every link and every non-link is weighted by a Poisson number of mean 1, links and
non-links apart (a Poisson bootstrap, stratified). Pairs of equal score share one draw of
the mean of their number. The interval is made of the quantiles of the repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.metrics.per_link_ranking import rank_values
from peg_core.metrics.ranking import RankingSums
from peg_core.metrics.tie_groups import TieGroups
from peg_core.random_streams import random_stream

# The groups on top stay as they are, as Hits@K and MRR need; below them neighbours are merged.
TOP_GROUPS = 8_192
MERGED_GROUPS = 8_192
# Weights of a step, repeats times groups: small enough for a core's cache.
STEP_SIZE = 50_000


@dataclass(frozen=True)
class Interval:
    """A metric and where it would lie with other test pairs of the same kind."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are drawn.

    Args:
        repeats: Resamples; 0 leaves intervals out (their ends are not numbers).
        level: Share of the resamples inside the interval.
    """

    repeats: int = 1000
    level: float = 0.95

    def ranking(
        self, groups: Iterable[TieGroups], *, hits: Sequence[int], pairs: int, seed: int
    ) -> dict[str, Interval]:
        """Metrics with intervals of tie groups that follow each other, best first.

        Args:
            pairs: Number of all pairs, which decides how groups are merged for the
                intervals; the metrics themselves are exact.
        """
        exact, coarse = RankingSums(hits), []
        kept = 0
        for group in groups:
            exact.add(group.positive[None], group.negative[None])
            part = _coarsen(group, top=max(TOP_GROUPS - kept, 0), block=pairs // MERGED_GROUPS)
            kept += len(part)
            coarse.append(part)
        values = {name: float(value[0]) for name, value in exact.metrics().items()}
        merged = TieGroups.join(coarse)
        centre = RankingSums(hits)
        centre.add(merged.positive[None], merged.negative[None])
        # merging moves a metric a little: the intervals are moved back by as much
        shift = {name: values[name] - float(at[0]) for name, at in centre.metrics().items()}
        resampled = self._resample(merged, hits=hits, seed=seed)
        return {
            name: self._interval(value, resampled[name] + shift[name])
            for name, value in values.items()
        }

    def per_link(
        self, ranks: npt.NDArray[np.float64], *, hits: Sequence[int], seed: int
    ) -> dict[str, Interval]:
        """Metrics with intervals of links that were ranked among their own non-links.

        Args:
            ranks: [num_links]; a link is resampled together with its non-links.
        """
        distinct, counts = np.unique(ranks, return_counts=True)
        terms = rank_values(distinct, hits=hits)
        rng = random_stream(seed=seed, purpose="bootstrap of ranks")
        weights = rng.poisson(counts, size=(self.repeats, len(counts)))  # [repeats, num_ranks]
        with np.errstate(invalid="ignore"):
            return {
                name: self._interval(
                    float(counts @ term / counts.sum()), (weights @ term) / weights.sum(axis=1)
                )
                for name, term in terms.items()
            }

    def per_node(
        self, values: dict[str, npt.NDArray[np.float64]], *, seed: int
    ) -> dict[str, Interval]:
        """Means with intervals of what was measured of nodes, which are resampled whole.

        Args:
            values: By metric, [num_nodes].
        """
        table = np.stack(list(values.values()), axis=1)  # [num_nodes, num_metrics]
        rng = random_stream(seed=seed, purpose="bootstrap of nodes")
        rows = max(1, STEP_SIZE // max(len(table), 1))
        found = [np.zeros((0, len(values)))]
        for start in range(0, self.repeats, rows):
            weights = rng.poisson(1.0, size=(min(rows, self.repeats - start), len(table)))
            with np.errstate(invalid="ignore"):
                found.append(weights @ table / weights.sum(axis=1, keepdims=True))
        resampled = np.concatenate(found)
        return {
            name: self._interval(float(table[:, column].mean()), resampled[:, column])
            for column, name in enumerate(values)
        }

    def mean(
        self, values: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], *, seed: int
    ) -> Interval:
        """The mean of values that occurred so often, [num_values] each."""
        rng = random_stream(seed=seed, purpose="bootstrap of means")
        weights = rng.poisson(counts, size=(self.repeats, len(counts)))
        with np.errstate(invalid="ignore"):
            resampled = (weights @ values) / weights.sum(axis=1)
        return self._interval(float(counts @ values / counts.sum()), resampled)

    def _resample(
        self, groups: TieGroups, *, hits: Sequence[int], seed: int
    ) -> dict[str, npt.NDArray[np.float64]]:
        """The metrics of every repeat, [repeats]."""
        rng = random_stream(seed=seed, purpose="bootstrap of pairs")
        rows = max(1, STEP_SIZE // max(len(groups), 1))
        found: dict[str, list[npt.NDArray[np.float64]]] = {}
        for start in range(0, self.repeats, rows):
            step = min(rows, self.repeats - start)
            sums = RankingSums(hits, step)
            sums.add(
                rng.poisson(groups.positive, size=(step, len(groups))),
                rng.poisson(groups.negative, size=(step, len(groups))),
            )
            for name, values in sums.metrics().items():
                found.setdefault(name, []).append(values)
        names = RankingSums(hits).metrics()
        return {name: np.concatenate(found.get(name, [np.zeros(0)])) for name in names}

    def _interval(self, value: float, resampled: npt.NDArray[np.float64]) -> Interval:
        defined = resampled[np.isfinite(resampled)]
        if not len(defined):
            return Interval(value, float("nan"), float("nan"))
        tail = (1 - self.level) / 2
        low, high = np.quantile(defined, [tail, 1 - tail])
        return Interval(value, float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1)))


def _coarsen(groups: TieGroups, *, top: int, block: int) -> TieGroups:
    """Leave the first ``top`` groups; merge the others to about ``block`` pairs each."""
    if block <= 1 or len(groups) <= top:
        return groups
    sizes = np.cumsum((groups.positive + groups.negative)[top:])
    starts = np.flatnonzero(np.diff(sizes // block, prepend=-1))
    return groups.merged(np.concatenate([np.arange(top), top + starts]).astype(np.intp))
