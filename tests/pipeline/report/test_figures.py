from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from peg_core.errors import ArtifactMismatch
from pipeline.report.data import MAX_ROC_POINTS, finite_pairs, roc_points, thin_roc
from pipeline.report.figures import (
    format_compact,
    plot_calibration,
    plot_candidate_scores,
    plot_chosen_by,
    plot_eigenvalues,
    plot_epochs,
    plot_roc,
    plot_stability,
    plot_test_scores,
)

NAN = float("nan")


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).findall(".//{*}text")]


def curves(svg: str) -> list[str]:
    """Outlines in one of the colours of a series."""
    paths = ElementTree.fromstring(svg).findall(".//{*}path")
    return [path.attrib["d"] for path in paths if "stroke: var(--series" in path.get("style", "")]


def pairs(count: int, *, decimals: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.random(count) < 0.3
    scores = np.clip(generator.normal(0.4 + 0.2 * labels, 0.15), 0, 1)
    return labels, scores.round(decimals)


def log(values: list[float], seed: int = 0) -> list[dict[str, float]]:
    return [
        {"seed": seed, "epoch": epoch, "loss": value} for epoch, value in enumerate(values, start=1)
    ]


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_roc_points_are_those_of_scikit_learn(decimals):
    labels, scores = pairs(500, decimals=decimals)
    false_rates, true_rates, _ = roc_curve(labels, scores, drop_intermediate=False)
    found = roc_points(labels, scores)
    np.testing.assert_allclose(found[0], false_rates)
    np.testing.assert_allclose(found[1], true_rates)


def test_thinned_roc_keeps_the_ends_and_the_area():
    labels, scores = pairs(200_000)
    false_rates, true_rates = thin_roc(*roc_points(labels, scores))
    assert len(false_rates) <= MAX_ROC_POINTS
    assert (false_rates[0], true_rates[0]) == (0, 0)
    assert (false_rates[-1], true_rates[-1]) == (1, 1)
    area = np.trapezoid(true_rates, false_rates)
    assert area == pytest.approx(roc_auc_score(labels, scores), abs=1e-4)


def test_short_roc_is_not_thinned():
    rates = np.linspace(0, 1, 10)
    assert thin_roc(rates, rates)[0] is rates


def test_roc_names_its_area_and_stays_small_for_many_pairs():
    labels, scores = pairs(200_000)
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


def test_labels_and_scores_of_different_lengths_are_refused():
    with pytest.raises(ArtifactMismatch, match=r"test labels and test scores .* found \(2,\)"):
        finite_pairs(np.ones(3), np.ones(2))


def test_test_scores_show_both_kinds():
    labels, scores = pairs(400)
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


def test_one_epoch_is_a_visible_dot():
    plot = plot_epochs(log([0.7]), "loss", key="loss", title="Loss")
    assert plot.caption == "Lowest: 0.7000 at epoch 1."
    uses = [
        use
        for use in ElementTree.fromstring(plot.svg).findall(".//{*}use")
        if "style" in use.attrib
    ]
    assert sum("--series-1" in use.attrib["style"] for use in uses) == 1


def test_undefined_losses_leave_a_gap():
    values = np.linspace(1, 0.1, 40).tolist()
    values[20] = NAN
    plot = plot_epochs(log(values), "loss", key="loss", title="Loss")
    assert plot.caption == "Lowest: 0.1000 at epoch 40. Left out, without a finite value: 1."
    assert [outline.count("M") for outline in curves(plot.svg)] == [2]


@pytest.mark.parametrize("values", [[], [NAN], [NAN, float("inf")]])
def test_no_finite_loss_is_a_notice(values):
    plot = plot_epochs(log(values), "loss", key="loss", title="Loss")
    assert texts(plot.svg) == ["No epoch logged a finite value."]


def test_a_column_nobody_logged_is_a_notice():
    plot = plot_epochs(log([1.0, 0.5]), "valid_auc", key="valid-auc", title="AUC")
    assert texts(plot.svg) == ["No epoch logged a finite value."]


def test_the_metric_that_chose_the_epoch_has_a_curve_of_its_own():
    epochs = [
        {"seed": 0, "epoch": epoch, "loss": 1.0, "valid_auc": 0.9, "valid_hits@20": hits}
        for epoch, hits in enumerate([0.1, 0.6, 0.4])
    ]
    [plot] = plot_chosen_by(epochs)
    assert plot.title == "Validation hits@20"
    assert plot.caption == "Highest: 0.6000 at epoch 1."


def test_the_auc_is_not_drawn_twice():
    assert plot_chosen_by([{"seed": 0, "epoch": 0, "loss": 1.0, "valid_auc": 0.9}]) == []
    assert plot_chosen_by([]) == []


def test_each_seed_has_a_curve_and_a_name():
    epochs = log([1, 0.5, 0.4], seed=0) + log([1, 0.3, 0.6], seed=7)
    plot = plot_epochs(epochs, "loss", key="loss", title="Loss")
    assert plot.caption == "Lowest: 0.3000 at epoch 2 of seed 7."
    assert {"seed 0", "seed 7"} <= set(texts(plot.svg))


def test_best_of_a_rising_curve_is_the_first_highest():
    plot = plot_epochs(log([0.5, 0.9, 0.9]), "loss", key="auc", title="AUC", rising=True)
    assert plot.caption == "Highest: 0.9000 at epoch 2."


def test_many_seeds_share_one_legend_entry():
    epochs = [row for seed in range(12) for row in log([1, 0.5], seed=seed)]
    plot = plot_epochs(epochs, "loss", key="loss", title="Loss")
    assert "12 seeds" in texts(plot.svg)
    assert "seed 3" not in texts(plot.svg)


def test_long_training_stays_small():
    generator = np.random.default_rng(0)
    epochs = [row for seed in range(5) for row in log(generator.random(5000).tolist(), seed=seed)]
    assert len(plot_epochs(epochs, "loss", key="loss", title="Loss").svg) < 80_000


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


def test_eigenvalues_have_a_curve_per_encoding():
    values = np.linspace(0, 1, 50)
    plot = plot_eigenvalues({"le": values.tolist(), "$a_b$": (values**2).tolist(), "none": [NAN]})
    assert {"le", "$a_b$"} <= set(texts(plot.svg))
    assert "none" not in texts(plot.svg)
    assert plot.caption == "le: 50 from 0 to 1; $a_b$: 50 from 0 to 1."


def test_the_stability_ratio_is_the_gap_over_the_smallest_gap_before_it():
    values = [0.1, 0.2, 0.25, 0.55, 0.6]
    plot = plot_stability({"le": values, "constant": [1.0]})
    steps = np.diff(values)
    expected = [steps[p] / steps[: p + 1].min() for p in range(4)]
    assert int(np.argmax(expected)) + 1 == 3
    assert "le: largest after 3" in plot.caption
    assert "constant" not in plot.caption


def test_undefined_eigenvalues_are_a_notice():
    assert texts(plot_eigenvalues({"le": [NAN]}).svg) == ["No encoding has finite eigenvalues."]


def test_figure_bytes_do_not_depend_on_the_users_matplotlib_settings():
    labels, scores = pairs(300)
    first = plot_roc(labels, scores).svg
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": None}):
        assert plot_roc(labels, scores).svg == first
        assert matplotlib.rcParams["font.size"] == 30


def test_figure_takes_colours_and_font_from_the_page():
    labels, scores = pairs(300)
    svg = plot_roc(labels, scores).svg
    assert "font-family" not in svg
    assert "<style" not in svg
    outside = re.sub(r"var\(--[\w-]+, #[0-9a-f]{6}\)", "", svg)
    assert (
        re.findall(r"#[0-9a-f]{6}\b(?!-)", re.sub(r'(href|id|clip-path)="[^"]*"', "", outside))
        == []
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1500, "1.5 k"), (61_859_140, "61.9 M"), (1.6e9, "1.6 B")],
)
def test_compact_counts(count, text):
    assert format_compact(count) == text
