import numpy as np
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.egnn_conv import EGNNConv
from peg_core.layers.message_graph import MessageGraph


def example():
    rng = np.random.default_rng(0)
    graph = GraphStore.from_edges(*rng.integers(0, 15, size=(2, 40)), num_nodes=15)
    z = rng.normal(size=(15, 3)).astype(np.float32)
    x = torch.from_numpy(rng.normal(size=(15, 5)).astype(np.float32))
    torch.manual_seed(0)
    messages = MessageGraph.of_graph(graph, [z], EdgeRule("squared", "mean"))
    return graph, x, torch.from_numpy(z), EGNNConv(5, 4), messages


def test_rotating_and_shifting_the_input_does_the_same_to_the_output():
    _, x, z, layer, messages = example()
    rotation = torch.linalg.qr(torch.randn(3, 3))[0]
    shift = torch.randn(1, 3)
    features, (moved,) = layer.pass_messages(x, x, [z], [z], messages)
    other = z @ rotation + shift
    features_after, (moved_after,) = layer.pass_messages(x, x, [other], [other], messages)
    torch.testing.assert_close(features_after, features, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(moved_after, moved @ rotation + shift, atol=1e-5, rtol=1e-4)
    assert (moved - z).abs().max() > 1e-3


def test_layer_equals_a_loop_over_edges():
    graph, x, z, layer, messages = example()
    features, (moved,) = layer.pass_messages(x, x, [z], [z], messages)
    silu = torch.nn.functional.silu
    for node in range(graph.num_nodes):
        gathered, movement = torch.zeros(4), torch.zeros(3)
        neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        for other in neighbours.tolist():
            step = z[node] - z[other]
            squared = (step**2).sum().reshape(1)
            hidden = (
                layer.edge_source(x[other])
                + layer.edge_target(x[node])
                + layer.edge_distance(squared)
            )
            message = silu(layer.edge_out(silu(hidden)))
            gathered += message / len(neighbours)
            movement += step * layer.movement(message).tanh() / (1 + squared) / len(neighbours)
        torch.testing.assert_close(moved[node], z[node] + movement, atol=1e-5, rtol=1e-4)
        expected = layer.node(torch.cat([x[node], gathered]))
        torch.testing.assert_close(features[node], expected, atol=1e-5, rtol=1e-4)
