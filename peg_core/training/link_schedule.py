"""Which links supervise when, beside which non-links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from peg_core.random_streams import random_stream, stream_seed
from peg_core.shuffled_range import ShuffledRange
from peg_core.splits.mixture.mixed_negatives import MixedNegatives
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
        partners: Nodes that every link is held against, where there are no non-links.
        possible_partners: How many nodes these stand for.
    """

    number: int
    fold: int
    source: IntArray
    target: IntArray
    num_links: int
    partners: IntArray | None = None
    possible_partners: int = 0

    @property
    def num_known(self) -> int:
        """Links that stand in the graph while they supervise."""
        return self.num_links if self.fold == NO_FOLD else 0


class Batch(NamedTuple):
    """A piece of the random order of the links of one part.

    Args:
        part: A fold, or 0 where there are none.
        first, last: Places in the order.
    """

    part: int
    first: int
    last: int


class Turn(NamedTuple):
    """A step that is due, before its pairs are drawn.

    Args:
        number: Counts the steps of a training.
        fold: The fold that it leaves out.
    """

    number: int
    fold: int
    epoch: int
    batch: Batch


class LinkSchedule:
    """Deals the training links to steps; every link supervises once an epoch.

    The streams depend on epoch and step alone: a resumed run repeats them, and so do
    several processes, each taking its share of every step. The links stay in their file
    and their order is computed where it is needed: memory does not grow with them.

    Args:
        split: The training graph and its folds.
        folds: Number of folds; 1: links supervise without being left out.
        seed: Of order and negatives.
        share: Of this process.
        batch_size: Links of a step over all processes; None: a fold at once.
        negatives: How non-links are drawn, see :class:`NegativeSampler`; or what draws them.
        negatives_per_link: Non-links of a step for each of its links.
    """

    def __init__(
        self,
        split: SplitStore,
        *,
        folds: int,
        seed: int,
        share: Share | None = None,
        batch_size: int | None = None,
        negatives: str | MixedNegatives = "uniform",
        negatives_per_link: int = 1,
    ) -> None:
        self.graph = split.train_graph()
        self.source, self.target = split.links()
        starts = split.fold_starts()
        self.starts = starts if folds > 1 else starts[[0, -1]]
        self.folds, self.seed, self.batch_size = folds, seed, batch_size
        self.share = share or Share()
        self.negatives = (
            NegativeSampler(self.graph, negatives) if isinstance(negatives, str) else negatives
        )
        self.negatives_per_link = negatives_per_link

    def batches(self, epoch: int) -> list[Batch]:
        """What each step of an epoch takes, fold by fold."""
        rng = random_stream(seed=self.seed, purpose="epoch order", shard=epoch)
        found = []
        for part in rng.permutation(self.folds).tolist():
            size = int(self.starts[part + 1] - self.starts[part])
            cuts = np.linspace(0, size, self._num_batches(size) + 1).astype(np.int64).tolist()
            found += [Batch(part, first, last) for first, last in pairwise(cuts)]
        return found

    def links_seen(self, epoch: int) -> IntArray:
        """How many links supervised before each step of an epoch, all epochs; [num_steps + 1]."""
        sizes = [batch.last - batch.first for batch in self.batches(epoch)]
        return epoch * self.num_links + np.cumsum([0, *sizes], dtype=np.int64)

    @property
    def num_links(self) -> int:
        """Of an epoch."""
        return int(self.starts[-1] - self.starts[0])

    def _num_batches(self, links: int) -> int:
        if self.batch_size is None:
            return STEPS_WITHOUT_FOLDS if self.folds == 1 else 1
        return max(1, round(links / self.batch_size))

    def links(self, epoch: int, batch: Batch) -> IntArray:
        """Which of the links a batch holds, indices into ``source`` and ``target``."""
        start, stop = self.starts[batch.part : batch.part + 2].tolist()
        if batch.last - batch.first == stop - start:
            return np.arange(start, stop)
        shard = epoch * self.folds + batch.part
        seed = stream_seed(seed=self.seed, purpose="link order", shard=shard)
        return start + ShuffledRange(stop - start, seed=seed).take(batch.first, batch.last)

    def turns(self, epoch: int, *, start: int = 0) -> list[Turn]:
        """The steps of an epoch, from number ``start`` of it on."""
        batches = self.batches(epoch)
        return [
            Turn(
                epoch * len(batches) + index,
                NO_FOLD if self.folds == 1 else batches[index].part,
                epoch,
                batches[index],
            )
            for index in range(start, len(batches))
        ]

    def pairs(self, turn: Turn) -> Supervision:
        """What a step supervises; any thread may ask, in any order."""
        return self.supervision(turn.number, turn.fold, self.links(turn.epoch, turn.batch))

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Supervision]:
        """What the steps of an epoch supervise, from number ``start`` of it on."""
        return map(self.pairs, self.turns(epoch, start=start))

    def supervision(self, number: int, fold: int, links: IntArray) -> Supervision:
        """This process's share of the links, then of rounds of as many non-links."""
        rng = random_stream(seed=self.seed, purpose="training negatives", shard=number)
        known = self.source[links], self.target[links]
        rounds = [self.negatives.draw(*known, rng=rng) for _ in range(self.negatives_per_link)]
        mine = slice(self.share.rank, None, self.share.world_size)
        source, target = (
            np.concatenate([ends[mine] for ends in side]).astype(np.int64)
            for side in zip(known, *rounds, strict=True)
        )
        return Supervision(number, fold, source, target, len(links[mine]))
