from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import GraphTooSmall, InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.splits import edge_split, entry_chunk, order_statistic
from peg_core.splits.edge_split import (
    LEFT_OUT,
    TEST,
    TRAIN,
    VALID,
    assign_folds,
    split_by_time,
    split_randomly,
)
from peg_core.splits.pair_hash import pair_hash


def random_graph(edges, seed=0, nodes=200):
    ends = np.array(nx.gnm_random_graph(nodes, edges, seed=seed).edges()).T
    return GraphStore.from_edges(*ends, num_nodes=nodes)


def parts_of(graph, split, *arguments, keys=None, **shares):
    """The part of every edge by (source, target); both entries must agree."""
    out = np.full(len(graph.indices), 99, np.uint8)
    keys = np.arange(graph.num_nodes) if keys is None else keys
    split(graph, keys, *arguments, out, **shares)
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    entries = dict(zip(zip(rows, graph.indices, strict=True), out, strict=True))
    assert all(entries[v, u] == part for (u, v), part in entries.items())
    return {pair: part for pair, part in entries.items() if pair[0] < pair[1]}


@pytest.fixture(params=[1, 13, 2**22])
def chunk(request, monkeypatch):
    """The pieces that entries are read in make no difference."""
    monkeypatch.setattr(entry_chunk, "CHUNK", request.param)
    monkeypatch.setattr(order_statistic, "MOST_SORTED", request.param)
    monkeypatch.setattr(edge_split, "MOST_RANKED", max(request.param, 40))


def test_shares_are_exact(chunk):
    parts = parts_of(random_graph(1000), split_randomly, valid=0.05, test=0.10, seed=0)
    assert np.bincount(list(parts.values())).tolist() == [850, 50, 100]


def test_the_smallest_hashes_test_and_the_next_validate(chunk):
    graph = random_graph(300)
    keys = np.random.default_rng(0).permutation(10**6)[: graph.num_nodes]
    parts = parts_of(graph, split_randomly, keys=keys, valid=0.1, test=0.2, seed=5)
    source, target = graph.edges()
    order = np.argsort(pair_hash(keys[source], keys[target], seed=5, purpose="edge split"))
    found = np.array([parts[pair] for pair in zip(source, target, strict=True)])
    assert found[order].tolist() == [TEST] * 60 + [VALID] * 30 + [TRAIN] * 210


@given(st.integers(0, 10**6))
def test_an_edges_part_does_not_depend_on_the_numbers_of_its_nodes(seed):
    graph = random_graph(200, nodes=60)
    number = np.random.default_rng(seed).permutation(60)
    source, target = graph.edges()
    renumbered = GraphStore.from_edges(number[source], number[target], num_nodes=60)
    first = parts_of(graph, split_randomly, valid=0.1, test=0.2, seed=seed)
    again = parts_of(
        renumbered, split_randomly, keys=np.argsort(number), valid=0.1, test=0.2, seed=seed
    )
    moved = {tuple(sorted((number[u], number[v]))): part for (u, v), part in first.items()}
    assert moved == again


def test_another_seed_gives_another_split():
    graph = random_graph(500)
    one, two = (parts_of(graph, split_randomly, valid=0.1, test=0.1, seed=s) for s in (0, 1))
    assert one != two


def test_parts_are_spread_evenly_over_the_ids():
    graph = random_graph(10_000, nodes=1024)
    parts = parts_of(graph, split_randomly, valid=0.25, test=0.25, seed=3)
    source = np.array([u for u, _ in parts])
    tested = np.array(list(parts.values())) == TEST
    for bit in range(10):
        assert tested[(source >> bit) & 1 == 1].mean() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("distinct", [100, 7, 2])
def test_the_newest_edges_are_tested_and_those_before_validate(chunk, distinct):
    """Ties by the hash of the pair; times before 1970 are older than those after."""
    graph = random_graph(100)
    source, target = graph.edges()
    time = np.random.default_rng(1).permutation(100) % distinct - 50
    both = {**dict(zip(zip(source, target, strict=True), time, strict=True))}
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    times = np.array([both[min(p), max(p)] for p in zip(rows, graph.indices, strict=True)])
    parts = parts_of(graph, split_by_time, times, valid=0.1, test=0.2, seed=0)
    tie = pair_hash(source, target, seed=0, purpose="edge split")
    newest = np.lexsort((tie, time))[::-1]
    found = np.array([parts[pair] for pair in zip(source, target, strict=True)])
    assert found[newest].tolist() == [TEST] * 20 + [VALID] * 10 + [TRAIN] * 70


def test_times_that_are_all_the_same_are_refused():
    graph = random_graph(100)
    with pytest.raises(InputError, match=r"all 100 edges have the same time, 7, .*`graph\.time`"):
        parts_of(graph, split_by_time, np.full(200, 7), valid=0.1, test=0.2, seed=0)


def test_a_share_without_an_edge_is_refused():
    with pytest.raises(GraphTooSmall, match=r"a valid share of 0\.01 of 10 edges leaves no edge"):
        parts_of(random_graph(10), split_randomly, valid=0.01, test=0.5, seed=0)


def test_folds_are_dealt_in_the_order_of_hashes(chunk):
    graph = random_graph(103)
    sizes = assign_folds(graph, np.arange(200), np.zeros(206, np.uint8), folds=10, seed=0)
    assert sizes.tolist() == [11] * 3 + [10] * 7
    folds = parts_of(graph, assign_folds, folds=10, seed=0)
    source, target = graph.edges()
    order = np.argsort(pair_hash(source, target, seed=0, purpose="folds"))
    found = np.array([folds[pair] for pair in zip(source, target, strict=True)])
    assert found[order].tolist() == [index % 10 for index in range(103)]


@pytest.mark.parametrize(("leave_out", "newest"), [(0.0, 200), (0.2, 160), (0.4, 120)])
def test_windows_of_time_follow_one_another(leave_out, newest):
    """Sorted by time: training, validation, the window, and what came after it."""
    graph = random_graph(200)
    edges = list(zip(*(ends.tolist() for ends in graph.edges()), strict=True))
    ages = dict(zip(edges, np.random.default_rng(0).permutation(200).tolist(), strict=True))
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees).tolist()
    entries = zip(rows, graph.indices.tolist(), strict=True)
    times = np.array([ages[min(pair), max(pair)] for pair in entries])
    shares = {"valid": 0.1, "test": 0.2, "leave_out": leave_out}
    parts = parts_of(graph, split_by_time, times, seed=0, **shares)
    bounds = [0, newest - 60, newest - 40, newest, 200]
    for part, (first, last) in zip((TRAIN, VALID, TEST, LEFT_OUT), pairwise(bounds), strict=True):
        assert {ages[u, v] for (u, v), own in parts.items() if own == part} == set(
            range(first, last)
        )


def test_no_node_loses_its_last_edge_where_that_is_asked_for(chunk):
    graph = random_graph(260, nodes=150)  # many nodes of one or two edges
    shares = {"valid": 0.1, "test": 0.2, "seed": 3}
    parts = parts_of(graph, split_randomly, **shares, keep_connected=True)
    assert np.bincount(list(parts.values())).tolist() == [182, 26, 52]
    trained = {node for pair, part in parts.items() if part == TRAIN for node in pair}
    assert trained == {node for pair in parts for node in pair}
    # the smallest hashes of those that are not the largest of either end
    ends = np.array(list(parts))
    hashes = pair_hash(ends[:, 0], ends[:, 1], seed=3, purpose="edge split")
    largest = {node: max(h for p, h in zip(parts, hashes, strict=True) if node in p)
               for node in trained}  # fmt: skip
    spare = sorted((h, p) for p, h in zip(parts, hashes, strict=True)
                   if all(h < largest[node] for node in p))  # fmt: skip
    assert {p for p, part in parts.items() if part == TEST} == {p for _, p in spare[:52]}
    assert {p for p, part in parts.items() if part == VALID} == {p for _, p in spare[52:78]}
    # without it some do
    others = parts_of(graph, split_randomly, **shares)
    assert {node for p, part in others.items() if part == TRAIN for node in p} < trained


def test_a_graph_whose_edges_are_all_somebodys_last_cannot_spare_any():
    star = GraphStore.from_edges([0] * 20, range(1, 21), num_nodes=21)
    with pytest.raises(GraphTooSmall, match=r"6 of 20 edges are to be held out, 0 can be without"):
        parts_of(star, split_randomly, valid=0.1, test=0.2, seed=0, keep_connected=True)
