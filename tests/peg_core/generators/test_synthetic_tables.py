"""Tables beside the edges against what they promise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.spatial
import scipy.stats

from peg_core.errors import ConfigError
from peg_core.generators.synthetic_tables import (
    community_features,
    edge_times,
    edge_weights,
    sample_candidates,
)


def test_features_are_centres_plus_noise_of_the_given_size():
    communities = np.arange(40_000) % 4
    features = community_features(communities, dimensions=8, seed=1, noise=0.5)
    assert features.shape == (40_000, 8)
    assert features.dtype == np.float32
    centres = np.stack([features[communities == k].mean(0) for k in range(4)])
    residual = features - centres[communities]
    assert residual.std() == pytest.approx(0.5, rel=0.01)
    assert scipy.spatial.distance.pdist(centres).min() > 0.5


def test_feature_shards_share_their_centres_and_not_their_noise():
    whole = community_features(np.array([0, 1, 2, 1]), dimensions=5, seed=1, noise=0.0)
    part = community_features(np.array([1, 0]), dimensions=5, seed=1, noise=0.0, shard=3)
    np.testing.assert_array_equal(part, whole[[1, 0]])
    noisy = [
        community_features(np.zeros(2, int), dimensions=5, seed=1, shard=shard) for shard in (0, 1)
    ]
    assert not np.any(noisy[0] == noisy[1])


@pytest.mark.parametrize("nodes", [2, 3, 10, 13])
def test_all_candidates_are_all_pairs_of_nodes(nodes):
    expected = set(map(frozenset, itertools.combinations(range(nodes), 2)))
    source, target = sample_candidates(nodes=nodes, rows=len(expected), seed=4)
    pairs = [frozenset(pair) for pair in zip(source.tolist(), target.tolist(), strict=True)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


def test_candidates_drawn_in_parts_are_one_list_of_evenly_spread_nodes():
    whole = sample_candidates(nodes=100, rows=2000, seed=4)
    parts = [sample_candidates(nodes=100, rows=1000, seed=4, first_row=row) for row in (0, 1000)]
    np.testing.assert_array_equal(whole, np.concatenate(parts, axis=1))
    for end in whole:
        assert scipy.stats.chisquare(np.bincount(end, minlength=100)).pvalue > 1e-3


def test_candidates_of_a_huge_graph_are_distinct():
    source, target = sample_candidates(nodes=2**32, rows=1000, seed=0)
    assert np.all((source >= 0) & (target >= 0) & (source < 2**32) & (target < 2**32))
    assert len(set(zip(source.tolist(), target.tolist(), strict=True))) == 1000


def test_weights_are_positive_and_times_lie_within_2020():
    weights = edge_weights(100_000, seed=0, chunk=0)
    assert weights.dtype == np.float32
    assert weights.min() > 0
    assert weights.max() <= 1
    times = edge_times(100_000, seed=0, chunk=0).astype("datetime64[s]")
    assert times.min() >= np.datetime64("2020-01-01")
    assert times.max() < np.datetime64("2021-01-01")


@pytest.mark.parametrize(
    ("nodes", "rows", "message"),
    [
        (10, 46, "46 candidates were asked for, 10 nodes form only 45"),
        (10, 0, "0 candidates were asked for, at least 1 is needed"),
        (1, 1, "1 nodes were asked for, between 2 and"),
    ],
)
def test_impossible_candidates_are_refused(nodes, rows, message):
    with pytest.raises(ConfigError, match=message):
        sample_candidates(nodes=nodes, rows=rows, seed=0)


def test_parts_of_more_candidates_than_pairs_are_refused():
    with pytest.raises(ConfigError, match="46 candidates were asked for, 10 nodes form only 45"):
        sample_candidates(nodes=10, rows=6, seed=0, first_row=40)


@pytest.mark.parametrize(
    ("dimensions", "noise", "message"),
    [
        (0, 1.0, "0 features were asked for"),
        (4, -1.0, "a feature noise of -1.0 was asked for"),
        (4, float("inf"), "a feature noise of inf was asked for, needed is a finite number"),
        (4, float("nan"), "a feature noise of nan was asked for, needed is a finite number"),
    ],
)
def test_impossible_features_are_refused(dimensions, noise, message):
    with pytest.raises(ConfigError, match=message):
        community_features(np.zeros(3, int), dimensions=dimensions, noise=noise, seed=0)
