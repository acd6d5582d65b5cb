"""Ranges of nodes, layer by layer, give the embeddings of the whole graph."""

import numpy as np
import pytest
import torch

from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.folded_layer import fold_layer
from peg_core.inference.layerwise_embedding import LayerwiseEmbedding
from peg_core.layers.message_graph import MessageGraph
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from tests.fixtures.relational_graphs import SHAPES, listed_graph

NODES = 200


class AnotherModel(PEG):
    """A model that the kernel does not know."""


def example(weighted):
    rng = np.random.default_rng(4)
    ends = rng.integers(0, 190, size=(2, 900))  # the last nodes have no edge
    weights = rng.uniform(0.5, 2, size=900) if weighted else None
    graph = GraphStore.from_edges(*ends, num_nodes=NODES, weights=weights)
    positions = [rng.normal(size=(NODES, p)).astype(np.float32) for p in (5, 3)]
    return graph, positions, rng.normal(size=(NODES, 7)).astype(np.float32)


def build(model, preset, columns=0):
    torch.manual_seed(3)
    spec = ModelSpec(
        "peg", preset, in_channels=7, num_encodings=2, hidden=12, layers=3, relation_columns=columns
    )
    built = model(spec)
    for layer in built.layers:
        torch.nn.init.normal_(layer.bias)
    return built.eval()


@pytest.mark.parametrize("preset", ["best", "faithful"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", [PEG, AnotherModel])
@pytest.mark.parametrize("memory_bytes", [1_000, 10**8])
def test_ranges_equal_the_whole_graph(preset, weighted, kind, memory_bytes):
    graph, positions, x = example(weighted)
    model = build(kind, preset)
    assert (fold_layer(model, 0) is None) == (kind is AnotherModel)
    check_ranges(model, graph, positions, x, memory_bytes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("preset", ["best", "faithful"])
@pytest.mark.parametrize("weighted", [True, False])
def test_ranges_equal_the_whole_graph_of_several_relations(preset, weighted, shape):
    graph = listed_graph(shape, num_nodes=NODES, num_links=700, seed=2, weighted=weighted).graph
    _, positions, x = example(False)
    for kind in (PEG, AnotherModel):
        check_ranges(build(kind, preset, graph.num_columns), graph, positions, x, 4_000)


def test_a_graph_of_other_relations_is_refused():
    graph, positions, _ = example(False)
    with pytest.raises(ArtifactMismatch, match="found 0 columns of relations"):
        LayerwiseEmbedding(build(PEG, "best", 2), graph, positions)


def check_ranges(model, graph, positions, x, memory_bytes):
    messages = MessageGraph.of_graph(graph, positions, model.rule)
    with torch.no_grad():
        expected = model(torch.from_numpy(x), messages).numpy()
    embedding = LayerwiseEmbedding(model, graph, positions, memory_bytes)
    state = x
    for layer in range(3):
        out = np.full((NODES, 12), np.nan, dtype=np.float32)
        for start, stop in ((0, 71), (71, 72), (72, NODES)):
            embedding.fill(layer, state, start, stop, out)
        state = out
    np.testing.assert_allclose(state, expected, atol=1e-5, rtol=1e-5)
