"""Layers on graphs whose edges differ in relation and direction."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import PegError
from peg_core.layers import EGNNConv, PEGConv, PESAGEConv
from peg_core.layers.message_graph import MessageGraph
from tests.fixtures.relational_graphs import SHAPES, dense_columns, listed_graph

NODES, IN, OUT = 18, 5, 4
LAYERS = [PEGConv, PESAGEConv, EGNNConv]
every_layer = pytest.mark.parametrize("kind", LAYERS)
every_shape = pytest.mark.parametrize("shape", SHAPES)


def build(kind, edge_dim):
    torch.manual_seed(3)
    count = "num_encodings" if kind is EGNNConv else "num_measures"
    return kind(IN, OUT, **{count: 2, "edge_dim": edge_dim})


def example(shape, seed, *, weighted):
    listed = listed_graph(shape, num_nodes=NODES, num_links=30, seed=seed, weighted=weighted)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(NODES, IN)).astype(np.float32)
    return listed, x, [rng.normal(size=(NODES, p)).astype(np.float32) for p in (3, 2)]


def phi(layer, inputs):
    """The gate of one edge, by numpy."""
    parameters = [p.detach().numpy().astype(np.float64) for p in layer.gate.parameters()]
    hidden = np.maximum(parameters[0] @ inputs + parameters[1], 0)
    return 1 / (1 + np.exp(-(parameters[2][0] @ hidden + parameters[3][0])))


def edge_by_edge(kind, layer, listed, x, positions):
    """The layer's equation: a loop over edges, those of every relation told apart."""
    graph, columns = listed.graph, dense_columns(listed)
    adjacency = graph.adjacency(np.float64).toarray()
    degrees = adjacency.sum(axis=1)
    loops = kind is PEGConv
    summed = np.zeros((NODES, IN))
    for u in range(NODES):
        for v in range(NODES):
            if not adjacency[u, v] and not (loops and u == v):
                continue
            distances = [np.linalg.norm(z[u].astype(np.float64) - z[v]) for z in positions]
            gate = phi(layer, np.array([*distances, *columns[u, v]]))
            if loops:
                weight = (adjacency[u, v] or 1) / np.sqrt((1 + degrees[u]) * (1 + degrees[v]))
            else:
                weight = adjacency[u, v] / degrees[u]
            summed[u] += weight * gate * x[v]
    out = summed @ layer.linear.weight.detach().numpy().T
    if loops:
        return out + layer.bias.detach().numpy()
    return out + x @ layer.own.weight.detach().numpy().T + layer.own.bias.detach().numpy()


@every_shape
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", [PEGConv, PESAGEConv])
def test_a_layer_equals_its_equation_edge_by_edge(kind, weighted, shape):
    listed, x, positions = example(shape, 1, weighted=weighted)
    layer = build(kind, listed.graph.num_columns)
    messages = MessageGraph.of_graph(listed.graph, positions, layer.rule)
    state = torch.from_numpy(x)
    found = layer.pass_messages(state, state, messages).detach().numpy()
    expected = edge_by_edge(kind, layer, listed, x, positions)
    np.testing.assert_allclose(found, expected, atol=2e-5)


@every_shape
@every_layer
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_plain_tensors_and_a_stored_graph_give_the_same(kind, shape, seed, weighted):
    listed, x, positions = example(shape, seed, weighted=weighted)
    graph = listed.graph
    layer = build(kind, graph.num_columns)
    messages = MessageGraph.of_graph(graph, positions, layer.rule)
    tensors = torch.from_numpy(x), [torch.from_numpy(z) for z in positions]
    moves = [tensors[1], tensors[1]] if kind is EGNNConv else []
    expected = layer.pass_messages(tensors[0], tensors[0], *moves, messages)
    order = np.random.default_rng(seed).permutation(len(graph.indices))
    rows = np.repeat(np.arange(NODES), graph.degrees)[order]
    columns = graph.indices[order]
    found = layer(
        tensors[0],
        torch.from_numpy(np.stack([columns, rows]).astype(np.int64)),
        tensors[1],
        None if graph.weights is None else torch.from_numpy(graph.weights[order]),
        torch.from_numpy(dense_columns(listed)[rows, columns]),
    )
    if kind is EGNNConv:
        torch.testing.assert_close(found[1], expected[1], atol=1e-5, rtol=1e-4)
        found, expected = found[0], expected[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@every_layer
@pytest.mark.parametrize("shape", ["directed", "two relations"])
def test_which_way_an_edge_points_matters(kind, shape):
    listed, x, positions = example(shape, 2, weighted=False)
    graph = listed.graph
    layer = build(kind, graph.num_columns)
    before = MessageGraph.of_graph(graph, positions, layer.rule)
    turned = before.measures.clone()
    turned[:, -2:] = before.measures[:, [-1, -2]]
    state, z = torch.from_numpy(x), [torch.from_numpy(z) for z in positions]
    outputs = []
    for measures in (before.measures, turned):
        messages = MessageGraph(
            before.indptr, before.sources, before.weights, measures,
            before.loop_weights, before.loop_measures, NODES,
        )  # fmt: skip
        moves = [z, z] if kind is EGNNConv else []
        found = layer.pass_messages(state, state, *moves, messages)
        outputs.append(found[0] if kind is EGNNConv else found)
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3


@every_layer
def test_columns_of_another_number_are_refused(kind):
    listed, x, positions = example("directed", 0, weighted=False)
    rows = np.repeat(np.arange(NODES), listed.graph.degrees)
    edges = torch.from_numpy(np.stack([listed.graph.indices, rows]).astype(np.int64))
    tensors = [torch.from_numpy(z) for z in positions]
    with pytest.raises(PegError, match="edge_attr has 0 columns, the layer reads 2"):
        build(kind, 2)(torch.from_numpy(x), edges, tensors)
    with pytest.raises(PegError, match="edge_attr has 3 columns, the layer reads 0"):
        build(kind, 0)(torch.from_numpy(x), edges, tensors, None, torch.zeros(len(rows), 3))
