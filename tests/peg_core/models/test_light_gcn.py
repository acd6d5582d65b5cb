"""LightGCN against dense numpy."""

import numpy as np
import pytest
import torch

from peg_core.errors import ConfigError
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.layerwise_embedding import LayerwiseEmbedding
from peg_core.layers.light_gcn_conv import LightGCNConv
from peg_core.layers.message_graph import MessageGraph
from peg_core.models.light_gcn import LightGCN
from peg_core.models.model_spec import ModelSpec

NODES, WIDTH = 17, 6


def example(*, weighted=False):
    """A graph with an isolated node, features and positions."""
    rng = np.random.default_rng(4)
    ends = rng.integers(0, NODES - 1, size=(2, 40))
    weights = rng.uniform(0.5, 2, size=40) if weighted else None
    graph = GraphStore.from_edges(*ends, num_nodes=NODES, weights=weights)
    x = rng.normal(size=(NODES, WIDTH)).astype(np.float32)
    return graph, x, [rng.normal(size=(NODES, 3)).astype(np.float32)]


def build(**options):
    torch.manual_seed(2)
    spec = ModelSpec(
        "light_gcn", "best", WIDTH, num_encodings=1, hidden=WIDTH, encoding_widths=(3,), **options
    )
    return LightGCN(spec).eval()


def dense_adjacency(graph):
    a = np.zeros((NODES, NODES))
    for node in range(NODES):
        rows = slice(graph.indptr[node], graph.indptr[node + 1])
        a[node, graph.indices[rows]] = 1 if graph.weights is None else graph.weights[rows]
    return a


def normalised(a):
    root = np.zeros(NODES)
    degrees = a.sum(axis=1)
    root[degrees > 0] = degrees[degrees > 0] ** -0.5
    return root[:, None] * a * root


def phi(gate, z):
    """The gate on all pairs, [NODES, NODES], from its weights."""
    w1, b1, w2, b2 = (p.detach().numpy().astype(np.float64) for p in gate.parameters())
    distance = np.linalg.norm(z[:, None] - z[None], axis=-1)[..., None]
    hidden = np.maximum(distance @ w1.T + b1, 0)
    return 1 / (1 + np.exp(-(hidden @ w2.T + b2)[..., 0]))


def dense_mean(model, graph, x, z):
    a, state, total = normalised(dense_adjacency(graph)), x, x.astype(np.float64)
    for layer in model.layers:
        state = (a if layer.gate is None else a * phi(layer.gate, z)) @ state
        total = total + state
    return total / (len(model.layers) + 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_embeddings_are_the_mean_of_the_powers_of_the_normalised_adjacency(layers, gated, weighted):
    model = build(layers=layers, gated=gated)
    graph, x, positions = example(weighted=weighted)
    messages = MessageGraph.of_graph(graph, positions, model.rule)
    found = model(torch.from_numpy(x), messages).detach().numpy()
    np.testing.assert_allclose(found, dense_mean(model, graph, x, positions[0]), atol=1e-5)


@pytest.mark.parametrize("gated", [False, True])
def test_embedding_layer_by_layer_in_ranges_carries_the_sum_along(gated):
    model = build(layers=3, gated=gated)
    graph, x, positions = example()
    embedding, state = LayerwiseEmbedding(model, graph, positions), x
    for layer in range(3):
        out = np.empty((NODES, model.state_width(layer)), dtype=np.float32)
        for start, stop in ((0, 5), (5, 6), (6, NODES)):
            embedding.fill(layer, state, start, stop, out)
        state = out
    np.testing.assert_allclose(state, dense_mean(model, graph, x, positions[0]), atol=1e-5)


def test_a_cosine_head_scales_the_mean_to_length_one():
    model = build(layers=2, head="cosine")
    graph, x, positions = example()
    found = model(torch.from_numpy(x), MessageGraph.of_graph(graph, positions, model.rule))
    mean = dense_mean(model, graph, x, positions[0])
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("gated", [False, True])
def test_the_layer_takes_plain_tensors(gated):
    torch.manual_seed(0)
    layer = LightGCNConv(gated=gated)
    graph, x, positions = example(weighted=True)
    rows = np.repeat(np.arange(NODES), graph.degrees)
    edge_index = torch.from_numpy(np.stack([graph.indices, rows]).astype(np.int64))
    tensors = torch.from_numpy(x), edge_index, torch.from_numpy(positions[0])
    found = layer(*tensors, edge_weight=torch.from_numpy(graph.weights)).detach().numpy()
    a = normalised(dense_adjacency(graph))
    expected = (a * phi(layer.gate, positions[0]) if gated else a) @ x
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_learned_features_start_with_the_deviation_that_is_asked_for():
    for given, expected in ((None, 0.1), (0.5, 0.5)):
        table = build(learned_nodes=5000, initial_deviation=given).table.weight
        assert table.std().item() == pytest.approx(expected, rel=0.03)


def test_features_of_another_width_are_refused():
    with pytest.raises(ConfigError, match=r"5 columns, `model.hidden` is 8"):
        LightGCN(ModelSpec("light_gcn", "best", 5, num_encodings=1, hidden=8))
