"""Quality by degree, beside scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from workers.tasks.reporting.nodes_and_pairs import classify

SPANS = {"0": (0, 0), "1": (1, 1), "2": (2, 2), "3–4": (3, 4), "5–8": (5, 8), "9–16": (9, 16)}


def test_links_of_a_class_are_ranked_among_all_non_links():
    stream = np.random.default_rng(5)
    degrees, links = stream.integers(0, 13, 900), stream.random(900) < 0.5
    scores = [stream.random(900) + 0.3 * links, stream.random(900).round(1)]
    found = classify(degrees, links, scores)
    assert [each["degrees"] for each in found] == list(SPANS)
    for each in found:
        low, high = SPANS[each["degrees"]]
        chosen = links & (degrees >= low) & (degrees <= high)
        assert each["links"] == chosen.sum()
        kept = chosen | ~links
        assert each["aucs"] == pytest.approx(
            [roc_auc_score(links[kept], values[kept]) for values in scores]
        )


def test_classes_of_few_links_are_left_out():
    degrees, links = np.array([1] * 9 + [7] * 10 + [2] * 5), np.arange(24) < 19
    assert [each["degrees"] for each in classify(degrees, links, [degrees * 1.0])] == ["5–8"]
