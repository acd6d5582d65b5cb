"""Generated graphs against what their models promise."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.stats

from peg_core.errors import ConfigError
from peg_core.generators.random_graphs import (
    GENERATORS,
    DegreeCorrectedBlockModel,
    Grid,
    RecursiveMatrix,
    StochasticBlockModel,
)


def all_rows(generator, seed=0):
    return np.concatenate(list(generator.chunks(seed=seed)), axis=1)  # [2, rows]


def pair_counts(generator):
    source, target = all_rows(generator)
    counts = np.zeros((generator.nodes, generator.nodes))
    np.add.at(counts, (source, target), 1)
    return counts


def assert_drawn_from(counts, probability):
    """A chi-squared test that an honest sample fails once in a thousand seeds."""
    probability = probability / probability.sum()
    assert counts[probability == 0].sum() == 0
    possible = probability > 0
    expected = counts.sum() * probability[possible]
    assert scipy.stats.chisquare(counts[possible], expected).pvalue > 1e-3


@pytest.mark.parametrize("inside_share", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("name", ["sbm", "dcsbm"])
def test_share_of_rows_inside_a_block_is_as_configured(name, inside_share):
    model = GENERATORS[name](5003, 200_000, blocks=7, inside_share=inside_share)
    source, target = all_rows(model)
    block = model.communities(seed=0)
    found = np.mean(block[source] == block[target])
    deviation = np.sqrt(inside_share * (1 - inside_share) / 200_000)
    assert abs(found - inside_share) <= 4 * deviation


@pytest.mark.parametrize("name", ["sbm", "dcsbm"])
def test_communities_differ_in_size_by_at_most_one(name):
    sizes = np.bincount(GENERATORS[name](1003, 1, blocks=10).communities(seed=0))
    assert sizes.sum() == 1003
    assert set(sizes) == {100, 101}


def test_block_model_draws_every_pair_with_its_probability():
    model = StochasticBlockModel(7, 100_000, blocks=2, inside_share=0.6)
    block = model.communities(seed=0)
    same = block[:, None] == block[None, :]
    inside = same & ~np.eye(7, dtype=bool)
    probability = 0.6 * inside / inside.sum(1, keepdims=True)
    probability += 0.4 * ~same / (~same).sum(1, keepdims=True)
    assert_drawn_from(pair_counts(model), probability)


def test_block_model_without_scrambling_deals_nodes_to_blocks_in_turn():
    model = StochasticBlockModel(11, 1, blocks=3, scramble=False)
    np.testing.assert_array_equal(model.communities(seed=0), np.arange(11) % 3)


@pytest.mark.parametrize("exponent", [2.2, 2.5, 3.5])
def test_degrees_of_the_corrected_model_follow_the_power_law(exponent):
    model = DegreeCorrectedBlockModel(
        40_000, 2_000_000, blocks=4, exponent=exponent, scramble=False
    )
    degrees = np.bincount(np.concatenate(all_rows(model)), minlength=model.nodes)
    by_rank = degrees.reshape(-1, 4).sum(1)  # [10_000]: rank in the block, over the blocks
    rank = np.arange(10, 1000)
    slope = np.polyfit(np.log(rank), np.log(by_rank[rank]), 1)[0]
    assert slope == pytest.approx(-1 / (exponent - 1), abs=0.05)


def test_corrected_model_has_a_heavy_tail_and_the_plain_one_has_not():
    largest = {}
    for name in ("sbm", "dcsbm"):
        model = GENERATORS[name](20_000, 200_000, blocks=20)
        degrees = np.bincount(np.concatenate(all_rows(model)), minlength=model.nodes)
        largest[name] = degrees.max() / degrees.mean()
    assert largest["sbm"] < 4
    assert largest["dcsbm"] > 20


@pytest.mark.parametrize("nodes", [2, 6, 8, 9])
def test_recursive_matrix_is_the_corner_of_a_kronecker_power(nodes):
    quarters = np.array([[0.5, 0.2], [0.18, 0.12]])
    (a, b), (c, d) = quarters
    model = RecursiveMatrix(nodes, 200_000, a, b, c, d, scramble=False)
    whole = quarters
    while len(whole) < nodes:
        whole = np.kron(whole, quarters)
    probability = whole[:nodes, :nodes] * (1 - np.eye(nodes))
    assert_drawn_from(pair_counts(model), probability)


@pytest.mark.parametrize("nodes", [1000, 1024, 1025])
def test_scrambling_renames_the_nodes_and_changes_nothing_else(nodes):
    degrees = {
        scramble: np.bincount(
            np.concatenate(all_rows(RecursiveMatrix(nodes, 50_000, scramble=scramble))),
            minlength=nodes,
        )
        for scramble in (False, True)
    }
    np.testing.assert_array_equal(np.sort(degrees[False]), np.sort(degrees[True]))
    assert np.argmax(degrees[False]) == 0
    assert abs(scipy.stats.spearmanr(np.arange(nodes), degrees[True]).statistic) < 0.15


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (2, 1), (1, 9), (9, 1), (4, 7), (6, 6)])
def test_grid_equals_the_lattice_of_networkx(rows, columns):
    lattice = nx.grid_2d_graph(rows, columns)
    expected = {frozenset(row * columns + column for row, column in edge) for edge in lattice.edges}
    source, target = all_rows(Grid(rows * columns, columns))
    assert len(source) == len(expected)
    assert set(map(frozenset, zip(source.tolist(), target.tolist(), strict=True))) == expected


def test_grid_with_an_incomplete_last_row_is_part_of_the_full_lattice():
    lattice = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6), ordering="sorted")
    expected = set(map(frozenset, lattice.subgraph(range(27)).edges))
    source, target = all_rows(Grid(27, columns=6))
    assert set(map(frozenset, zip(source.tolist(), target.tolist(), strict=True))) == expected


def test_grid_is_close_to_a_square_unless_columns_are_given():
    assert Grid(10_000).width == 100
    assert Grid(10_000).num_rows == 2 * 100 * 99


def test_grid_rewires_the_share_asked_for():
    lattice, rewired = Grid(40_000), Grid(40_000, rewired_share=0.3)
    _, straight = all_rows(lattice)
    source, target = all_rows(rewired)
    assert np.mean(straight != target) == pytest.approx(0.3, abs=0.01)
    assert not np.any(source == target)
    assert np.median(target[straight != target]) == pytest.approx(20_000, rel=0.05)


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        (StochasticBlockModel(1, 10), r"1 nodes were asked for, between 2 and"),
        (StochasticBlockModel(100, 0), "0 edges were asked for, at least 1 is needed"),
        (StochasticBlockModel(100, 10, blocks=51), r"51 blocks .* 1 to 50 .* change `blocks`"),
        (StochasticBlockModel(100, 10, inside_share=1.5), "`inside_share` is 1.5"),
        (StochasticBlockModel(100, 10, inside_share=float("nan")), "`inside_share` is nan"),
        (StochasticBlockModel(100, 10, blocks=1), "single block, which has no outside"),
        (DegreeCorrectedBlockModel(1000, 10, exponent=2.0), "exponent of 2.0 .* 2.05"),
        (RecursiveMatrix(100, 10, a=0.6), r"sum up to 1.03, needed is 1"),
        (RecursiveMatrix(100, 10, 0.5, 0.0, 0.0, 0.5), r"b \+ c is 0, each must be at least"),
        (Grid(-5), "-5 nodes were asked for"),
        (Grid(10, columns=11), r"11 columns were asked for, 10 nodes can form 1 to 10"),
        (Grid(10, columns=0), "0 columns were asked for"),
        (Grid(10, rewired_share=-0.1), "`rewired_share` is -0.1"),
    ],
)
def test_impossible_parameters_are_refused(generator, message):
    with pytest.raises(ConfigError, match=message):
        next(generator.chunks(seed=0))
