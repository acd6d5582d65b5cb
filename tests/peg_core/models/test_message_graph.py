import networkx as nx
import numpy as np
import torch

from peg_core.models.link_predictor import ModelSpec
from peg_core.models.message_graph import MessageGraph
from peg_core.models.peg import PEG


def test_ranges_of_rows_give_the_full_graphs_embeddings(to_store):
    graph = to_store(nx.gnm_random_graph(50, 160, seed=1))
    rng = np.random.default_rng(0)
    positions = [rng.normal(size=(50, 4)).astype(np.float32) for _ in range(2)]
    torch.manual_seed(0)
    model = PEG(ModelSpec("peg", "best", in_channels=6, num_encodings=2, hidden=7)).eval()
    x = torch.randn(50, 6)
    full = model(x, MessageGraph.of_graph(graph, positions, squared=False))
    degrees = 1.0 + graph.weighted_degrees
    for layer in range(2):
        rows = []
        for start, stop in graph.balanced_ranges(3):
            part = MessageGraph.of_rows(graph, start, stop, positions, degrees, squared=False)
            rows.append(model.embed_layer(layer, (x[part.source_nodes], x[start:stop]), part))
        x = torch.cat(rows)
    torch.testing.assert_close(x, full, atol=1e-5, rtol=1e-5)


def test_an_isolated_node_hears_only_itself(to_store):
    nxg = nx.path_graph(3)
    nxg.add_node(3)
    messages = MessageGraph.of_graph(to_store(nxg), [np.zeros((4, 2), np.float32)], squared=False)
    incoming = messages.edge_index[:, messages.edge_index[1] == 3]
    assert incoming.tolist() == [[3], [3]]
    assert messages.normalisation[messages.edge_index[1] == 3].tolist() == [1.0]
