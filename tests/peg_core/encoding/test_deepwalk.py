"""DeepWalk, node2vec and LINE on graphs with a known answer."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from peg_core.encoding import ENCODERS, DeepWalk, Line, Node2Vec
from peg_core.encoding.parameter_checks import WeightNotPositive
from peg_core.encoding.row_length import PositionsNotFinite, place_rows
from peg_core.encoding.walks.walk_training import TrainingState, WalkTraining
from peg_core.graph.graph_store import GraphStore

TRAINED = {
    "deepwalk": DeepWalk(dimensions=16, solver="sgns"),
    "deepwalk, shared": DeepWalk(dimensions=16, solver="sgns", negatives="shared"),
    "node2vec": Node2Vec(dimensions=16, p=2.0, q=0.5),
    "line": Line(dimensions=16, order="second"),
    "line, both": Line(dimensions=16, samples=600),
}
FACTORISED = {
    "netmf": DeepWalk(dimensions=16, solver="netmf"),
    "netmf, plain": DeepWalk(dimensions=16, solver="netmf", propagate=False),
    "netsmf": DeepWalk(dimensions=16, solver="netsmf"),
    "netsmf, plain": DeepWalk(dimensions=16, solver="netsmf", propagate=False, samples=5),
}


@pytest.fixture(scope="module")
def partition() -> tuple[GraphStore, np.ndarray]:
    blocks = np.repeat(np.arange(4), 50)
    chances = np.full((4, 4), 0.01) + 0.24 * np.eye(4)
    ends = np.array(nx.stochastic_block_model([50] * 4, chances, seed=2).edges())
    order = np.random.default_rng(1).permutation(200)
    labels = np.empty(200, dtype=np.int64)
    labels[order] = blocks
    return GraphStore.from_edges(*order[ends.T], num_nodes=200), labels


@pytest.mark.parametrize("name", [*TRAINED, *FACTORISED])
def test_a_planted_partition_is_recovered(name, partition):
    graph, labels = partition
    positions = {**TRAINED, **FACTORISED}[name].encode(graph, seed=0)
    found = KMeans(4, n_init=5, random_state=0).fit_predict(positions)
    assert adjusted_rand_score(labels, found) >= 0.9


def test_node2vec_without_memory_is_deepwalk(partition):
    graph, _ = partition
    settings = {"dimensions": 8, "walks": 2, "walk_length": 20}
    first = DeepWalk(solver="sgns", **settings).encode(graph, seed=4)
    np.testing.assert_array_equal(first, Node2Vec(**settings).encode(graph, seed=4))
    other = Node2Vec(p=0.2, q=3.0, **settings).encode(graph, seed=4)
    assert np.abs(first - other).max() > 0.01


@pytest.mark.parametrize("encoder", [*TRAINED.values(), *FACTORISED.values()])
def test_rows_have_length_1_and_isolated_nodes_0(encoder, to_store):
    graph = to_store(nx.disjoint_union(nx.karate_club_graph(), nx.empty_graph(3)))
    length = np.linalg.norm(encoder.encode(graph, seed=0), axis=1)
    np.testing.assert_allclose(length[:34], 1, atol=1e-5)
    assert not length[34:].any()


@pytest.mark.parametrize("kind", ["deepwalk", "node2vec", "line"])
def test_a_graph_without_edges_stays_at_the_origin(kind, to_store):
    encoding = ENCODERS[kind](dimensions=4).solve(to_store(nx.empty_graph(5)), seed=0)
    assert encoding.positions.shape == (5, 4)
    assert not encoding.positions.any()
    assert "no edges" in encoding.report["warnings"][0]


@pytest.mark.parametrize("kind", ["deepwalk", "node2vec", "line"])
def test_weights_count_and_must_be_positive(kind):
    source, target = np.array(nx.karate_club_graph().edges()).T
    weights = np.linspace(0.1, 9, len(source))
    build = GraphStore.from_edges
    encoder = ENCODERS[kind](dimensions=8)
    plain = encoder.encode(build(source, target, num_nodes=34), seed=0)
    weighted = encoder.encode(build(source, target, num_nodes=34, weights=weights), seed=0)
    assert np.abs(plain @ plain.T - weighted @ weighted.T).max() > 0.05
    weights[3] = -1
    with pytest.raises(WeightNotPositive, match="needed are positive"):
        encoder.encode(build(source, target, num_nodes=34, weights=weights), seed=0)


def test_netmf_does_not_depend_on_the_order_of_the_nodes(partition):
    graph, _ = partition
    order = np.random.default_rng(3).permutation(200)
    source, target = graph.edges()
    permuted = GraphStore.from_edges(order[source], order[target], num_nodes=200)
    encoder = DeepWalk(dimensions=200, solver="netmf", rows="plain")
    first, second = encoder.encode(graph, seed=0), encoder.encode(permuted, seed=1)[order]
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=1e-3)


def test_auto_takes_the_exact_matrix_for_small_graphs(two_communities):
    assert DeepWalk().choose_solver(20_000) == "netmf"
    assert DeepWalk().choose_solver(20_001) == "netsmf"
    assert DeepWalk(solver="sgns").choose_solver(20_001) == "sgns"
    report = DeepWalk(dimensions=4).solve(two_communities, seed=0).report
    assert report["solver"] == "netmf"
    assert len(report["singular_values"]) == 4


def test_more_dimensions_than_nodes_are_zero_and_said(two_communities):
    encoding = DeepWalk(dimensions=70).solve(two_communities, seed=0)
    assert encoding.positions.shape == (60, 70)
    assert not encoding.positions[:, 60:].any()
    assert "70 dimensions were asked for" in encoding.report["warnings"][0]


@pytest.mark.parametrize(
    "encoder",
    [Node2Vec(dimensions=4, walks=3), Line(dimensions=4, samples=20), TRAINED["deepwalk"]],
)
def test_a_killed_training_goes_on(encoder, two_communities, tmp_path, monkeypatch):
    expected = encoder.solve(two_communities, seed=0)
    folder = tmp_path / "state"
    save, saved = TrainingState.save, []

    def save_twice(state: TrainingState, home: Path) -> None:
        save(state, home)
        saved.append(home)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(TrainingState, "save", save_twice)
    with pytest.raises(KeyboardInterrupt):
        encoder.solve(two_communities, seed=0, checkpoint=folder)
    monkeypatch.undo()
    passes = []
    run_pass = WalkTraining.run_pass
    monkeypatch.setattr(WalkTraining, "run_pass", lambda *a: passes.append(a[2]) or run_pass(*a))
    resumed = encoder.solve(two_communities, seed=0, checkpoint=folder)
    np.testing.assert_array_equal(resumed.positions, expected.positions)
    assert resumed.report == expected.report
    assert 0 not in passes


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("rows", ["unit", "plain"])
def test_positions_that_are_not_finite_are_refused(value, rows, two_communities):
    table = np.ones((60, 8), dtype=np.float32)
    table[7, 3] = value
    with pytest.raises(PositionsNotFinite, match="lower `learning_rate`"):
        place_rows(table, two_communities, dimensions=8, rows=rows)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("deepwalk", {"solver": "magic"}, "needed is one of"),
        ("deepwalk", {"window": 0}, "window is 0"),
        ("deepwalk", {"walk_length": 1}, "whole number, 2 or more"),
        ("deepwalk", {"learning_rate": float("nan")}, "above 0"),
        ("node2vec", {"p": 0.0}, "p is 0.0"),
        ("line", {"order": "third"}, "needed is one of"),
        ("line", {"dimensions": 1}, "at least 2"),
    ],
)
def test_wrong_parameters_are_refused(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        ENCODERS[kind].check_parameters(parameters)
