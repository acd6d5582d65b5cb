"""Links and non-links counted by score: all that a ranking metric needs to know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import InputError

FloatArray = npt.NDArray[np.floating[Any]]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TieGroups:
    """Pairs of equal score, best score first.

    Args:
        positive: [num_groups] links that have the score.
        negative: [num_groups] non-links that have it.
    """

    positive: Counts
    negative: Counts

    def __len__(self) -> int:
        return len(self.positive)

    @classmethod
    def of(cls, positive: FloatArray, negative: FloatArray) -> TieGroups:
        """Group the scores of links and of non-links; a score that is no number is refused."""
        _, counts = distinct_scores(positive, negative)
        return cls(counts[0, ::-1], counts[1, ::-1])

    @classmethod
    def join(cls, parts: Iterable[TieGroups]) -> TieGroups:
        """Groups that follow each other."""
        parts = list(parts)
        return cls(
            np.concatenate([part.positive for part in parts]),
            np.concatenate([part.negative for part in parts]),
        )

    def merged(self, starts: npt.NDArray[np.intp]) -> TieGroups:
        """Neighbouring groups as one, each beginning at one of ``starts``."""
        return TieGroups(
            np.add.reduceat(self.positive, starts), np.add.reduceat(self.negative, starts)
        )


def distinct_scores(positive: FloatArray, negative: FloatArray) -> tuple[FloatArray, Counts]:
    """The distinct scores, rising, and how many links and non-links have each, [2, distinct]."""
    for scores in (positive, negative):
        if np.isnan(scores).any():
            raise InputError(
                f"{int(np.isnan(scores).sum()):,} of {len(scores):,} scores are not a number; "
                "metrics need a score for every pair: look at the model's training"
            )
    both = np.concatenate([positive, negative])
    order = np.argsort(both, kind="stable")
    ordered = both[order]
    first = np.ones(len(both), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    links = np.add.reduceat(order < len(positive), starts, dtype=np.int64) if len(both) else order
    sizes = np.diff(starts, append=len(both))
    return ordered[starts], np.stack([links, sizes - links]).astype(np.int64)
