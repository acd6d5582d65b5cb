"""Anchors against networkx, the P-GNN layer against loops in numpy."""

import networkx as nx
import numpy as np
import pytest
import torch

from peg_core.layers.anchor_messages import anchor_messages, anchor_sets, nearest_members
from peg_core.layers.pgnn_conv import PGNNConv

NODES, HOPS = 40, 3


@pytest.fixture
def example(to_store):
    """A sparse graph with several components, so that some sets are out of reach."""
    graph = nx.gnm_random_graph(NODES, 38, seed=2)
    return graph, to_store(graph), anchor_sets(NODES, 12)


def test_sets_are_halves_quarters_and_so_on_down_to_single_nodes():
    sets = anchor_sets(NODES, 12)
    assert [len(anchors) for anchors in sets] == [20, 10, 5, 2, 1] * 2 + [20, 10]
    assert not np.array_equal(sets[0], sets[5])
    for anchors, again in zip(sets, anchor_sets(NODES, 12), strict=True):
        np.testing.assert_array_equal(anchors, again)
        assert len(set(anchors.tolist())) == len(anchors)


def test_the_nearest_member_is_at_the_shortest_distance(example):
    graph, store, sets = example
    member, closeness = nearest_members(store, sets, hops=HOPS)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    beyond = 0
    for node in range(NODES):
        for column, anchors in enumerate(sets):
            away = {int(u): lengths[node][u] for u in anchors if u in lengths[node]}
            shortest = min(away.values(), default=HOPS + 1)
            if shortest > HOPS:
                beyond += 1
                assert closeness[node, column] == 0
                continue
            assert closeness[node, column] == pytest.approx(1 / (1 + shortest))
            assert away[int(member[node, column])] == shortest
    assert beyond > 10


@pytest.mark.parametrize("last", [False, True])
def test_the_layer_is_what_its_docstring_says(example, last):
    _, store, sets = example
    torch.manual_seed(0)
    layer, x = PGNNConv(3, 4, last=last), torch.randn(NODES, 3)
    messages = anchor_messages(store, sets, hops=HOPS)
    found = layer.pass_messages(x, x, messages).detach().numpy()
    weights = {name: value.detach().numpy() for name, value in layer.named_parameters()}
    member, closeness = nearest_members(store, sets, hops=HOPS)
    for node in range(NODES):
        own = weights["own.weight"] @ x[node].numpy() + weights["own.bias"]
        met = [
            np.maximum(s * (weights["anchor.weight"] @ x[u].numpy()) + own, 0)
            for u, s in zip(member[node], closeness[node], strict=True)
        ]
        expected = np.mean(met, axis=0)
        if last:
            w, c = weights["position.weight"][0], weights["position.bias"][0]
            expected = [w @ m + c for m in met]
        np.testing.assert_allclose(found[node], expected, atol=1e-5)
