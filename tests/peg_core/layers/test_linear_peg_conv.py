import numpy as np
import pytest
import torch

from peg_core.layers.linear_peg_conv import LinearPEGConv
from peg_core.layers.message_graph import MessageGraph


def dense(graph, positions, gate):
    """``I + A_hat * gate`` of the distances, [num_nodes, num_nodes]."""
    adjacency = graph.adjacency(np.float64).toarray() + np.eye(graph.num_nodes)
    roots = np.sqrt(adjacency.sum(axis=1))
    difference = positions[:, None] - positions[None]
    distance = np.linalg.norm(difference, axis=-1)
    return np.eye(graph.num_nodes) + adjacency / np.outer(roots, roots) * gate(distance)


@pytest.mark.parametrize("gated", [False, True])
def test_it_is_a_dense_matrix_product(two_communities, gated):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(two_communities.num_nodes, 5)).astype(np.float32)
    z = rng.normal(size=(two_communities.num_nodes, 3)).astype(np.float32)
    layer = LinearPEGConv(gated=gated)

    def gate(distance):
        if not gated:
            return np.ones_like(distance)
        inner, bias, outer, shift = (p.detach().numpy() for p in layer.gate.parameters())
        hidden = np.maximum(distance[..., None] * inner[:, 0] + bias, 0)
        return 1 / (1 + np.exp(-(hidden @ outer[0] + shift[0])))

    messages = MessageGraph.of_graph(two_communities, [z], layer.rule)
    out = layer.pass_messages(torch.from_numpy(x), torch.from_numpy(x), messages)
    np.testing.assert_allclose(out.detach().numpy(), dense(two_communities, z, gate) @ x, atol=1e-4)
    source, target = two_communities.edges()
    both = np.stack([np.append(source, target), np.append(target, source)]).astype(np.int64)
    tensors = torch.from_numpy(x), torch.from_numpy(both), torch.from_numpy(z)
    torch.testing.assert_close(layer(*tensors), out, atol=1e-5, rtol=1e-5)
