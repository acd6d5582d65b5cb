"""Do pairs with a score of 0.8 turn out to be links in 8 of 10 cases?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]
BINS = 20


def reliability_sums(
    probabilities: FloatArray, labels: npt.NDArray[Any], *, bins: int = BINS
) -> npt.NDArray[np.float64]:
    """Pairs, links and summed probabilities by bins of equal width, [3, bins]; sums add up."""
    bin_index = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    return np.stack(
        [
            np.bincount(bin_index, minlength=bins).astype(np.float64),
            np.bincount(bin_index, weights=labels == 1, minlength=bins),
            np.bincount(bin_index, weights=probabilities, minlength=bins),
        ]
    )


def expected_calibration_error(sums: npt.NDArray[np.float64]) -> float:
    """Mean distance of mean probability and share of links, bins weighted by their pairs."""
    pairs, links, total = sums
    return float(np.abs(links - total).sum() / pairs.sum())


def reliability_curve(sums: npt.NDArray[np.float64]) -> list[dict[str, float]]:
    """Mean probability, share of links and pairs of every bin that has any."""
    return [
        {"probability": p / count, "links": links / count, "pairs": count}
        for count, links, p in sums.T.tolist()
        if count
    ]
