import networkx as nx
import numpy as np
import pytest
import torch

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph
from peg_core.models import MODELS
from peg_core.models.model_spec import ModelSpec


@pytest.mark.parametrize("kind", [kind for kind in MODELS if MODELS[kind].is_local])
def test_ranges_of_rows_give_the_full_graphs_embeddings(to_store, kind):
    graph = to_store(nx.gnm_random_graph(50, 160, seed=1))
    rng = np.random.default_rng(0)
    positions = [rng.normal(size=(50, 4)).astype(np.float32) for _ in range(2)]
    torch.manual_seed(0)
    spec = ModelSpec(kind, "best", 7, num_encodings=2, hidden=7, encoding_widths=(4, 4))
    model = MODELS[kind](spec).eval()
    state = model.first_state(torch.randn(50, 7), [torch.from_numpy(z) for z in positions])
    full = model(state, MessageGraph.of_graph(graph, positions, model.rule))
    for layer in range(2):
        rows = []
        for start, stop in graph.balanced_ranges(3):
            degrees = graph.weighted_degrees
            part = MessageGraph.of_rows(graph, start, stop, positions, degrees, model.rule)
            ends = (state[part.source_nodes], state[start:stop])
            rows.append(model.embed_layer(layer, ends, part))
        state = torch.cat(rows)
    torch.testing.assert_close(state, full, atol=1e-5, rtol=1e-5)


def test_an_isolated_node_hears_only_itself(to_store):
    nxg = nx.path_graph(3)
    nxg.add_node(3)
    messages = MessageGraph.of_graph(to_store(nxg), [np.zeros((4, 2), np.float32)])
    assert 3 not in messages.edge_index
    assert messages.loop_weights[3] == 1


@pytest.mark.parametrize("measure", ["distance", "squared", "inner"])
def test_measures_are_those_of_numpy(measure):
    rng = np.random.default_rng(1)
    positions = rng.normal(size=(30, 5)).astype(np.float32)
    source, target = rng.integers(0, 30, size=(2, 100))
    expected = {
        "distance": np.linalg.norm(positions[source] - positions[target], axis=1),
        "squared": ((positions[source] - positions[target]) ** 2).sum(axis=1),
        "inner": (positions[source] * positions[target]).sum(axis=1),
    }[measure]
    rule = EdgeRule(measure)
    found = rule.edge_measures(positions, source, target)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    nodes = np.arange(30)
    loops = rule.edge_measures(positions, nodes, nodes)
    np.testing.assert_allclose(rule.loop_measures(positions), loops, rtol=1e-5, atol=1e-6)


def test_mean_weights_of_a_node_add_up_to_one(to_store):
    graph = to_store(nx.gnm_random_graph(30, 60, seed=3))
    messages = MessageGraph.of_graph(graph, [np.zeros((30, 1))], EdgeRule(normalisation="mean"))
    sums = torch.zeros(30).index_add(0, messages.targets, messages.weights)
    np.testing.assert_allclose(sums, graph.degrees > 0, rtol=1e-5)
    assert not messages.loop_weights.any()
