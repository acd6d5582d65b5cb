import numpy as np
import pytest
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.peg_conv import PEGConv


def measured(positions, measure):
    """[nodes, nodes], by dense numpy."""
    squared = ((positions[:, None] - positions[None]) ** 2).sum(-1)
    return {"distance": np.sqrt(squared), "squared": squared, "inner": positions @ positions.T}[
        measure
    ]


def dense_gate(layer, measures):
    """phi for [nodes, nodes, num_measures]."""
    parameters = [p.detach().numpy() for p in layer.gate.parameters()]
    hidden = np.maximum(measures @ parameters[0].T + parameters[1], 0)
    return 1 / (1 + np.exp(-(hidden @ parameters[2][0] + parameters[3])))


def dense_peg(graph, positions, x, layer, measure):
    """The paper's equation, written with dense matrices."""
    adjacency = graph.adjacency(np.float64).toarray() + np.eye(graph.num_nodes)
    inverse = np.diag(1 / np.sqrt(adjacency.sum(axis=1)))
    a_hat = inverse @ adjacency @ inverse
    xi = dense_gate(layer, np.stack([measured(z, measure) for z in positions], axis=-1))
    out = (a_hat * xi) @ x @ layer.linear.weight.detach().numpy().T
    if layer.residual is not None:
        out = out + x @ layer.residual.weight.detach().numpy().T
    return out + layer.bias.detach().numpy()


@pytest.mark.parametrize("measure", ["distance", "squared", "inner"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_layer_equals_the_equation_in_dense_numpy(measure, residual, weighted):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 20, size=(60, 2))
    weights = rng.uniform(0.5, 2, size=60) if weighted else None
    graph = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=20, weights=weights)
    positions = [rng.normal(size=(20, p)).astype(np.float32) for p in (3, 2)]
    x = rng.normal(size=(20, 5)).astype(np.float32)
    torch.manual_seed(0)
    layer = PEGConv(5, 4, num_measures=2, residual=residual)
    torch.nn.init.normal_(layer.bias)
    messages = MessageGraph.of_graph(graph, positions, EdgeRule(measure))
    state = torch.from_numpy(x)
    expected = dense_peg(graph, positions, x, layer, measure)
    found = layer.pass_messages(state, state, messages)
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=2e-5)
    # few targets: the sum is taken before the product with W
    few = messages.first_targets(6, 20)
    found = layer.pass_messages(state, state[:6], few)
    np.testing.assert_allclose(found.detach().numpy(), expected[:6], atol=2e-5)


@pytest.mark.parametrize("measure", ["distance", "squared", "inner"])
@pytest.mark.parametrize("weighted", [True, False])
def test_plain_tensors_give_the_equation_too(measure, weighted):
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 20, size=(60, 2))
    weights = rng.uniform(0.5, 2, size=60) if weighted else None
    graph = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=20, weights=weights)
    positions = [rng.normal(size=(20, p)).astype(np.float32) for p in (3, 2)]
    x = rng.normal(size=(20, 5)).astype(np.float32)
    torch.manual_seed(0)
    layer = PEGConv(5, 4, num_measures=2, residual=True, measure=measure)
    found = layer(
        torch.from_numpy(x),
        torch.from_numpy(np.stack([np.repeat(np.arange(20), graph.degrees), graph.indices])).long(),
        [torch.from_numpy(z) for z in positions],
        None if graph.weights is None else torch.from_numpy(graph.weights),
    )
    expected = dense_peg(graph, positions, x, layer, measure)
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=2e-5)
