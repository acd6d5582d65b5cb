import numpy as np
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.pe_sage_conv import PESAGEConv


def test_layer_equals_a_gated_mean_over_neighbours():
    rng = np.random.default_rng(0)
    graph = GraphStore.from_edges(*rng.integers(0, 15, size=(2, 30)), num_nodes=16)
    z = rng.normal(size=(16, 3)).astype(np.float32)
    x = rng.normal(size=(16, 5)).astype(np.float32)
    torch.manual_seed(0)
    layer = PESAGEConv(5, 4)
    messages = MessageGraph.of_graph(graph, [z], EdgeRule("distance", "mean"))
    state = torch.from_numpy(x)
    found = layer.pass_messages(state, state, messages).detach().numpy()
    own, bias = (p.detach().numpy() for p in layer.own.parameters())
    for node in range(16):
        neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        total = np.zeros(5)
        for other in neighbours:
            length = torch.tensor([[np.linalg.norm(z[node] - z[other])]], dtype=torch.float32)
            total += layer.gate(length).item() * x[other]
        mean = total / max(len(neighbours), 1)
        expected = own @ x[node] + bias + layer.linear.weight.detach().numpy() @ mean
        np.testing.assert_allclose(found[node], expected, atol=2e-5)
