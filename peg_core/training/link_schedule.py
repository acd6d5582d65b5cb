"""Which links supervise when, beside which non-links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.random_streams import random_stream
from peg_core.splits.negative_sampling import NegativeSampler
from peg_core.splits.split_store import NO_FOLD, SplitStore

IntArray = npt.NDArray[np.int64]

# Without folds and batches, an epoch still takes this many steps.
STEPS_WITHOUT_FOLDS = 10


@dataclass(frozen=True)
class Share:
    """Which part of every step this process supervises."""

    rank: int = 0
    world_size: int = 1


@dataclass(frozen=True)
class Supervision:
    """The pairs of one step.

    Args:
        number: Counts the steps of a training.
        fold: The fold that no encoding, message or feature may hold; ``NO_FOLD``: none is left out.
        source, target: [num_pairs], links first.
        num_links: How many are links.
    """

    number: int
    fold: int
    source: IntArray
    target: IntArray
    num_links: int


class LinkSchedule:
    """Deals the training links to steps; every link supervises once an epoch.

    The streams depend on epoch and step alone: a resumed run repeats them, and so do
    several processes, each taking its share of every step.

    Args:
        split: The training graph and its folds.
        folds: Number of folds; 1: links supervise without being left out.
        seed: Of order and negatives.
        share: Of this process.
        batch_size: Links of a step over all processes; None: a fold at once.
        negatives: How non-links are drawn, see :class:`NegativeSampler`.
    """

    def __init__(
        self,
        split: SplitStore,
        *,
        folds: int,
        seed: int,
        share: Share | None = None,
        batch_size: int | None = None,
        negatives: str = "uniform",
    ) -> None:
        self.graph = split.train_graph()
        self.source, self.target, self.fold = split.train_links()
        self.folds, self.seed, self.batch_size = folds, seed, batch_size
        self.share = share or Share()
        self.negatives = NegativeSampler(self.graph, negatives)

    def links(self, epoch: int) -> list[tuple[int, IntArray]]:
        """(fold that is left out, links that supervise), in the order of this epoch."""
        rng = random_stream(seed=self.seed, purpose="epoch order", shard=epoch)
        if self.folds == 1:
            shuffled = rng.permutation(len(self.source))
            parts = self._num_batches(len(shuffled), STEPS_WITHOUT_FOLDS)
            return [(NO_FOLD, part) for part in np.array_split(shuffled, parts)]
        steps = []
        for fold in rng.permutation(self.folds):
            links = np.flatnonzero(self.fold == fold)
            parts = self._num_batches(len(links), 1)
            links = rng.permutation(links) if parts > 1 else links
            steps += [(int(fold), part) for part in np.array_split(links, parts)]
        return steps

    def _num_batches(self, links: int, otherwise: int) -> int:
        if self.batch_size is None:
            return otherwise
        return max(1, round(links / self.batch_size))

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Supervision]:
        """The steps of an epoch, from number ``start`` of it on."""
        steps = self.links(epoch)
        for place, (fold, links) in enumerate(steps):
            if place >= start:
                yield self.supervision(epoch * len(steps) + place, fold, links)

    def supervision(self, number: int, fold: int, links: IntArray) -> Supervision:
        """This process's share of the links, beside as many non-links."""
        rng = random_stream(seed=self.seed, purpose="training negatives", shard=number)
        free = self.negatives.draw(self.source[links], self.target[links], rng=rng)
        mine = slice(self.share.rank, None, self.share.world_size)
        known: tuple[npt.NDArray[Any], ...] = (self.source[links][mine], self.target[links][mine])
        source = np.concatenate([known[0], free[0][mine]]).astype(np.int64)
        target = np.concatenate([known[1], free[1][mine]]).astype(np.int64)
        return Supervision(number, fold, source, target, len(known[0]))
