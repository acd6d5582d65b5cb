from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from pipeline.report.curves import plot_chosen_by, plot_eigenvalues, plot_epochs, plot_stability
from tests.fixtures.svg_content import curves, texts

NAN = float("nan")


def log(values: list[float], seed: int = 0) -> list[dict[str, float]]:
    return [
        {"seed": seed, "epoch": epoch, "loss": value} for epoch, value in enumerate(values, start=1)
    ]


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


def test_large_stability_ratios_have_numbers_at_their_axis():
    plot = plot_stability({"le": [0.0, 1e-4, 0.5, 0.6]})
    assert ">1000</text>" in plot.svg
    assert "mathdefault" not in plot.svg


def test_undefined_eigenvalues_are_a_notice():
    assert texts(plot_eigenvalues({"le": [NAN]}).svg) == ["No encoding has finite eigenvalues."]
