"""PyG's layers on prepared messages against PyG's layers as PyG calls them."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, TransformerConv

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.pyg_layers import GATLayer, GCNLayer, SAGELayer, TransformerLayer

NODES = 19
LAYERS = {
    "symmetric": (lambda: GCNLayer(5, 8, normalize=False), lambda: GCNConv(5, 8)),
    "mean": (lambda: SAGELayer(5, 8), lambda: SAGEConv(5, 8)),
    "attention": (lambda: GATLayer(5, 8, heads=2), lambda: GATConv(5, 4, heads=2)),
    "transformer": (
        lambda: TransformerLayer(5, 8, heads=2),
        lambda: TransformerConv(5, 4, heads=2, root_weight=False),
    ),
}


def example(name):
    """A graph with an isolated node, its edges as PyG writes them, features, messages."""
    rng = np.random.default_rng(3)
    graph = GraphStore.from_edges(*rng.integers(0, NODES - 1, size=(2, 40)), num_nodes=NODES)
    rows = np.repeat(np.arange(NODES), graph.degrees)
    edge_index = torch.from_numpy(np.stack([graph.indices, rows]).astype(np.int64))
    positions = [rng.normal(size=(NODES, 3)).astype(np.float32)]
    rule = EdgeRule(normalisation=name if name in ("symmetric", "mean") else "mean")
    x = torch.from_numpy(rng.normal(size=(NODES, 5)).astype(np.float32))
    return graph, edge_index, x, positions, rule


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_what_pyg_gives(name):
    torch.manual_seed(0)
    ours, theirs = (make() for make in LAYERS[name])
    left = theirs.load_state_dict(ours.state_dict(), strict=False)
    assert not left.unexpected_keys
    assert all(name.startswith("lin_skip") for name in left.missing_keys)  # not read by PyG either
    graph, edge_index, x, positions, rule = example(name)
    found = ours.pass_messages(x, x, MessageGraph.of_graph(graph, positions, rule))
    torch.testing.assert_close(found, theirs(x, edge_index), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_a_range_of_rows_gives_those_rows(name):
    torch.manual_seed(0)
    layer = LAYERS[name][0]()
    graph, _, x, positions, rule = example(name)
    whole = layer.pass_messages(x, x, MessageGraph.of_graph(graph, positions, rule))
    degrees = graph.weighted_degrees
    for start, stop in ((0, 7), (7, NODES - 1), (NODES - 1, NODES)):
        part = MessageGraph.of_rows(graph, start, stop, positions, degrees, rule)
        found = layer.pass_messages(x[part.source_nodes], x[start:stop], part)
        torch.testing.assert_close(found, whole[start:stop], atol=1e-5, rtol=1e-5)
