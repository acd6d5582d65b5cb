"""Every link against non-links of its own (OGB's MRR protocol, HeaRT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]


def link_ranks(positive: FloatArray, negative: FloatArray) -> npt.NDArray[np.float64]:
    """Rank of every link among its own non-links, the best is 1, [num_links].

    Ties take the middle of the best and the worst rank that they allow, as OGB does.

    Args:
        positive: [num_links] scores.
        negative: [num_links, count] scores; not a number where a link has fewer non-links.
    """
    above = (negative > positive[:, None]).sum(axis=1)
    not_below = (negative >= positive[:, None]).sum(axis=1)
    return 1 + (above + not_below) / 2


def rank_values(
    ranks: npt.NDArray[np.float64], *, hits: Sequence[int]
) -> dict[str, npt.NDArray[np.float64]]:
    """What each link adds to a metric: 1 / rank, and whether the rank is at most K."""
    values = {"mrr": 1 / ranks}
    values |= {f"hits@{k}": (ranks <= k).astype(np.float64) for k in hits}
    return values


def per_link_metrics(
    positive: FloatArray, negative: FloatArray, *, hits: Sequence[int]
) -> dict[str, float]:
    """MRR and Hits@K of links ranked among their own non-links."""
    values = rank_values(link_ranks(positive, negative), hits=hits)
    return {name: float(value.mean()) for name, value in values.items()}
