"""Skip-gram steps against the same steps in numpy."""

from __future__ import annotations

import networkx as nx
import numba
import numpy as np
import pytest

from peg_core.encoding.walks.alias_table import alias_table
from peg_core.encoding.walks.random_walks import WalkGraph, WalkRule
from peg_core.encoding.walks.skip_gram import SigmoidTable, find_slopes, train_edges
from peg_core.encoding.walks.walk_training import (
    SkipGram,
    TrainingState,
    WalkTraining,
    start_tables,
    train_passes,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.row_updates import move_rows, padded_columns, row_products


@numba.njit
def step(inputs, row, outputs, targets, first, numbers, slopes, tile):
    row_products(inputs, row, outputs, targets, first, numbers, tile)
    move_rows(inputs, row, outputs, targets, first, slopes, tile)


@pytest.mark.parametrize("columns", [8, 24, 128])
@pytest.mark.parametrize("targets", [[4, 0, 2, 5], [3, 3, 1, 3], [1]])
def test_a_step_equals_numpy(columns, targets):
    rng = np.random.default_rng(columns)
    inputs = rng.normal(size=(6, columns)).astype(np.float32)
    outputs = rng.normal(size=(6, columns)).astype(np.float32)
    slopes = rng.normal(size=len(targets)).astype(np.float32)
    row, expected = inputs[2].copy(), outputs.copy()
    moved = row.copy()
    products = outputs[targets] @ row
    for slope, target in zip(slopes, targets, strict=True):  # one after the other
        moved += slope * expected[target]
        expected[target] += slope * row
    found = np.empty(len(targets), np.float32)
    rows = np.array([9, *targets])  # begins at 1
    step(inputs, 2, outputs, rows, 1, found, slopes, (0,) * len(targets))
    np.testing.assert_allclose(found, products, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(inputs[2], moved, rtol=1e-4, atol=1e-4)


def test_slopes_are_the_gradient_of_the_logistic_loss():
    products = np.array([0.7, -1.3, 2.0, 7.0, 0.1], dtype=np.float32)
    targets = np.array([4, 1, 2, 3, 4])  # the last one is the true node, drawn as noise
    sigmoid = 1 / (1 + np.exp(-products.astype(np.float64)))
    expected = 0.1 * (np.array([1, 0, 0, 0, 0]) - sigmoid)
    expected[3:] = 0
    loss = -np.log(sigmoid[0]) - np.log(1 - sigmoid[[1, 2, 4]]).sum()
    found = products.copy()
    total = find_slopes(found, targets, 0, 0.1, *SigmoidTable.build(), 5)
    np.testing.assert_allclose(found, expected, atol=0.1 * 0.25 * 12 / 1000)
    assert total == pytest.approx(loss + 6.0, abs=0.05)  # a product of 7 counts as 6


def test_edges_are_drawn_by_weight_and_trained_on():
    """Every draw ends in the only edge of positive weight: inputs of its ends move, no others."""
    graph = GraphStore.from_edges([0, 2], [1, 3], num_nodes=5, weights=[1.0, 1e-30])
    noise = alias_table(np.array([0.0, 0, 0, 0, 1]))
    tables = start_tables(5, 8, seed=0, one_table=False)
    before = tables.inputs.copy()
    arguments = (alias_table(graph.weighted_degrees), noise, *SigmoidTable.build(), *tables)
    key = np.uint64(7)
    train_edges(*WalkGraph.of(graph), 0, 500, key, *arguments, 0.1, 0.0, (0, 0))
    changed = np.any(tables.inputs != before, axis=1)
    assert changed.tolist() == [True, True, False, False, False]
    ends = np.any(tables.outputs != 0, axis=1)
    assert ends.tolist() == [True, True, False, False, True]


def tables_after(graph, settings, seed, folder=None):
    training = WalkTraining(graph, settings, WalkRule(20), seed=seed)
    tables = start_tables(graph.num_nodes, settings.dimensions, seed=seed, one_table=False)
    state = TrainingState(tables) if folder is None else TrainingState.load(folder)
    return train_passes(training.run_pass, state, settings.passes, folder)


@pytest.mark.parametrize("shared", [False, True])
def test_training_is_deterministic_and_lowers_the_loss(two_communities, shared):
    settings = SkipGram(dimensions=12, passes=8, window=4, shared=shared, learning_rate=0.1)
    first = tables_after(two_communities, settings, 3)
    again = tables_after(two_communities, settings, 3)
    np.testing.assert_array_equal(first.tables.inputs, again.tables.inputs)
    assert first.losses[-1] < 0.9 * first.losses[0]
    assert first.tables.inputs.shape[1] == padded_columns(12) == 16
    assert not first.tables.inputs[:, 12:].any()


def test_a_training_goes_on_after_any_pass(two_communities, tmp_path):
    settings = SkipGram(dimensions=8, passes=4, window=3)
    whole = tables_after(two_communities, settings, 1)
    for passes in (1, 3):
        folder = tmp_path / str(passes)
        training = WalkTraining(two_communities, settings, WalkRule(20), seed=1)
        start = TrainingState(start_tables(60, 8, seed=1, one_table=False))
        train_passes(training.run_pass, start, passes, folder)
        resumed = tables_after(two_communities, settings, 1, folder)
        assert resumed.losses == whole.losses
        np.testing.assert_array_equal(resumed.tables.inputs, whole.tables.inputs)
        assert [home.name for home in folder.glob("pass-*")] == ["pass-4"]


def losses_with(threads, graph):
    settings = SkipGram(dimensions=16, passes=3, window=3)
    training = WalkTraining(graph, settings, WalkRule(60), seed=0)
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    try:
        state = TrainingState(start_tables(1_500, 16, seed=0, one_table=False))
        return train_passes(training.run_pass, state, 3)
    finally:
        numba.set_num_threads(before)


def test_threads_train_on_the_same_walks(to_store):
    """Their rounds change the order of the steps, not what is learnt."""
    graph = to_store(nx.barabasi_albert_graph(1_500, 3, seed=4))
    one, two, again = (losses_with(threads, graph) for threads in (1, 2, 2))
    np.testing.assert_allclose(one.losses, two.losses, rtol=0.04)
    assert two.losses == again.losses
    np.testing.assert_array_equal(two.tables.inputs, again.tables.inputs)
