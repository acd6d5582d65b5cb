import numpy as np
import pytest
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.peg_conv import PEGConv
from peg_core.models.message_graph import MessageGraph


def dense_peg(graph, positions, x, layer, *, squared):
    """The paper's equation, written with dense matrices."""
    n = graph.num_nodes
    adjacency = graph.adjacency(np.float64).toarray() + np.eye(n)
    inverse = np.diag(1 / np.sqrt(adjacency.sum(axis=1)))
    a_hat = inverse @ adjacency @ inverse
    difference = positions[:, None] - positions[None]
    distance = np.sqrt((difference**2).sum(-1))
    distance = distance**2 if squared else distance
    parameters = [p.detach().numpy() for p in layer.gate.parameters()]
    hidden = np.maximum(distance[..., None] * parameters[0][:, 0] + parameters[1], 0)
    xi = 1 / (1 + np.exp(-(hidden @ parameters[2][0] + parameters[3])))
    out = (a_hat * xi) @ x @ layer.linear.weight.detach().numpy().T
    if layer.residual is not None:
        out = out + x @ layer.residual.weight.detach().numpy().T
    return out + layer.bias.detach().numpy()


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_layer_equals_the_equation_in_dense_numpy(squared, residual, weighted):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 20, size=(60, 2))
    weights = rng.uniform(0.5, 2, size=60) if weighted else None
    graph = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=20, weights=weights)
    positions = rng.normal(size=(20, 3)).astype(np.float32)
    x = rng.normal(size=(20, 5)).astype(np.float32)
    torch.manual_seed(0)
    layer = PEGConv(5, 4, residual=residual)
    torch.nn.init.normal_(layer.bias)
    messages = MessageGraph.of_graph(graph, [positions], squared=squared)
    out = layer(
        torch.from_numpy(x), messages.edge_index, messages.normalisation, messages.distances
    )
    expected = dense_peg(graph, positions, x, layer, squared=squared)
    np.testing.assert_allclose(out.detach().numpy(), expected, atol=2e-5)
