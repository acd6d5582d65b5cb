import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from peg_core.metrics import bootstrap
from peg_core.metrics.bootstrap import Bootstrap
from peg_core.metrics.per_link_ranking import rank_values
from peg_core.metrics.ranking import ranking_metrics
from peg_core.metrics.tie_groups import TieGroups

HITS = [10]


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(4)
    return rng.normal(1.2, 1, 300), rng.normal(0, 1, 400)


def intervals(sample, **settings):
    groups = [TieGroups.of(*sample)]
    return Bootstrap(**settings).ranking(groups, hits=HITS, pairs=700, seed=3)


def test_the_value_is_the_metric_itself(sample):
    found = intervals(sample)
    assert {name: item.value for name, item in found.items()} == ranking_metrics(*sample, hits=HITS)
    assert all(item.low <= item.value <= item.high for item in found.values())


@pytest.mark.parametrize(
    ("name", "metric"), [("auc", roc_auc_score), ("average_precision", average_precision_score)]
)
def test_intervals_agree_with_resampled_pairs(sample, name, metric):
    positive, negative = sample
    rng = np.random.default_rng(0)
    labels = np.r_[np.ones(300), np.zeros(400)]
    resampled = [
        metric(labels, np.r_[rng.choice(positive, 300), rng.choice(negative, 400)])
        for _ in range(800)
    ]
    low, high = np.quantile(resampled, [0.025, 0.975])
    found = intervals(sample, repeats=2000)[name]
    assert found.low == pytest.approx(low, abs=0.15 * (high - low))
    assert found.high == pytest.approx(high, abs=0.15 * (high - low))


def test_a_narrower_level_gives_a_narrower_interval(sample):
    wide, narrow = intervals(sample, level=0.95)["auc"], intervals(sample, level=0.5)["auc"]
    assert wide.low < narrow.low < narrow.high < wide.high


def test_another_run_gives_the_same_interval(sample):
    assert intervals(sample) == intervals(sample)


def test_no_repeats_no_interval(sample):
    found = intervals(sample, repeats=0)["auc"]
    assert found.value == ranking_metrics(*sample, hits=[])["auc"]
    assert np.isnan(found.low)
    assert np.isnan(found.high)


def test_merging_groups_of_large_sets_hardly_moves_the_interval(monkeypatch):
    rng = np.random.default_rng(1)
    positive, negative = rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000)
    groups, settings = [TieGroups.of(positive, negative)], Bootstrap(repeats=200)
    fine = settings.ranking(groups, hits=[50], pairs=0, seed=1)
    monkeypatch.setattr(bootstrap, "TOP_GROUPS", 500)
    monkeypatch.setattr(bootstrap, "MERGED_GROUPS", 500)
    coarse = settings.ranking(groups, hits=[50], pairs=40_000, seed=1)
    for name in ("auc", "average_precision"):
        width = fine[name].high - fine[name].low
        assert coarse[name].value == fine[name].value
        assert coarse[name].low == pytest.approx(fine[name].low, abs=0.3 * width)
        assert coarse[name].high == pytest.approx(fine[name].high, abs=0.3 * width)


def test_per_link_intervals_agree_with_resampled_links():
    rng = np.random.default_rng(2)
    ranks = 1 + rng.geometric(0.2, 500) / 2
    found = Bootstrap(repeats=2000).per_link(ranks, hits=[3], seed=0)
    for name, values in rank_values(ranks, hits=[3]).items():
        means = [rng.choice(values, 500).mean() for _ in range(2000)]
        low, high = np.quantile(means, [0.025, 0.975])
        assert found[name].value == pytest.approx(values.mean())
        assert found[name].low == pytest.approx(low, abs=0.15 * (high - low))
        assert found[name].high == pytest.approx(high, abs=0.15 * (high - low))
