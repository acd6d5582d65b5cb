from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from peg_core.errors import ArtifactMismatch
from pipeline.report.curves import plot_stability
from pipeline.report.data import MAX_ROC_POINTS, finite_pairs
from pipeline.report.figures import (
    plot_calibration,
    plot_candidate_scores,
    plot_roc,
    plot_test_scores,
)
from tests.fixtures.scored_pairs import scored_pairs
from tests.fixtures.svg_content import curves, texts

NAN = float("nan")


def test_roc_names_its_area_and_stays_small_for_many_pairs():
    labels, scores = scored_pairs(200_000)
    plot = plot_roc(labels, scores)
    assert f"AUC {roc_auc_score(labels, scores):.4f}" in texts(plot.svg)
    assert "chance" in texts(plot.svg)
    assert len(plot.svg) < 40_000
    assert max(outline.count("L") for outline in curves(plot.svg)) < MAX_ROC_POINTS


@pytest.mark.parametrize("labels", [[], [True, True], [False, False]])
def test_roc_of_one_class_is_a_notice(labels):
    plot = plot_roc(np.array(labels, dtype=bool), np.linspace(0, 1, len(labels)))
    assert curves(plot.svg) == []
    assert "needs scored links" in " ".join(texts(plot.svg))
    assert "needs scored links" in plot.svg.partition(">")[0]


def test_roc_of_equal_scores_is_the_diagonal():
    plot = plot_roc(np.array([True, False, True]), np.full(3, 0.5))
    assert "AUC 0.5000" in texts(plot.svg)


def test_pairs_without_finite_score_are_left_out_and_mentioned():
    labels, scores, note = finite_pairs(
        np.array([1, 0, 1, 0]), np.array([0.9, NAN, 0.8, float("inf")])
    )
    assert labels.tolist() == [True, True]
    assert scores.tolist() == [0.9, 0.8]
    assert note == " Left out, without a finite score: 2."
    assert plot_test_scores(labels, scores, note).caption.endswith(note)


def test_test_scores_show_both_kinds():
    labels, scores = scored_pairs(400)
    plot = plot_test_scores(labels, scores)
    assert {"links", "non-links"} <= set(texts(plot.svg))
    assert f"links {np.median(scores[labels]):.3f}" in plot.caption


def test_test_scores_of_one_kind_say_so():
    plot = plot_test_scores(np.zeros(5, dtype=bool), np.linspace(0, 1, 5))
    assert plot.caption.endswith("The test pairs are all non-links.")
    assert "links" not in texts(plot.svg)


def test_no_test_scores_are_a_notice():
    plot = plot_test_scores(np.zeros(0, dtype=bool), np.zeros(0))
    assert texts(plot.svg) == ["No test pair has a finite score."]


def test_calibration_tells_the_mean_distance_from_the_diagonal():
    rows = [
        {"probability": 0.1, "links": 0.2, "pairs": 30.0},
        {"probability": 0.8, "links": 0.6, "pairs": 10.0},
    ]
    plot = plot_calibration(rows)
    assert plot.caption == "Scores and shares of links differ by 0.1250 on average (2 bins)."
    assert texts(plot_calibration([]).svg) == ["No test pair has a finite score."]


def test_candidate_scores_count_all_pairs():
    plot = plot_candidate_scores((np.array([3, 1, 4, 2]), np.linspace(0, 1, 5)))
    assert plot.caption == "10 pairs, 60.0% of them score 0.5 or more."
    assert "pairs" in texts(plot.svg)


def test_candidate_scores_of_very_different_counts_are_logarithmic():
    plot = plot_candidate_scores((np.array([10**6, 10, 0, 20]), np.linspace(0, 1, 5)))
    assert {"pairs, logarithmic", "1 M", "10"} <= set(texts(plot.svg))


def test_no_axis_shows_the_source_of_a_formula():
    shaky = plot_stability({"le": [0.1, 0.1000001, 0.2, 0.4]})
    counts = plot_candidate_scores((np.array([10**6, 10, 0, 20]), np.linspace(0, 1, 5)))
    for plot in (shaky, counts):
        assert len(texts(plot.svg)) > 3
        assert not [text for text in texts(plot.svg) if "$" in text or "\\" in text]


def test_fine_candidate_histogram_is_merged_and_stays_small():
    plot = plot_candidate_scores((np.arange(10_007), np.linspace(0, 1, 10_008)))
    assert len(plot.svg) < 40_000


@pytest.mark.parametrize(
    "histogram",
    [
        None,
        (np.zeros(0), np.zeros(1)),
        (np.zeros(4), np.linspace(0, 1, 5)),
        (np.array([1, NAN]), np.linspace(0, 1, 3)),
        (np.ones(2), np.array([0, NAN, 1])),
    ],
)
def test_no_candidate_scores_are_a_notice(histogram):
    plot = plot_candidate_scores(histogram)
    assert curves(plot.svg) == []
    assert len(texts(plot.svg)) == 1


def test_histogram_with_wrong_edges_is_refused():
    with pytest.raises(ArtifactMismatch, match="found 3 edges, needed 4"):
        plot_candidate_scores((np.ones(3), np.ones(3)))
