"""The tasks of an embedding, called in this process, range by range."""

import numpy as np
import pytest
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures, input_features
from peg_core.layers.message_graph import MessageGraph
from peg_core.models.link_predictor import ModelSpec
from peg_core.models.model_file import load_model, save_model
from peg_core.models.peg import PEG
from workers.tasks.embed import (
    EmbedRequest,
    allocate_layers,
    components_file,
    components_task,
    embed_task,
    layer_file,
    state_file,
    state_task,
)
from workers.tasks.encode import positions_file

NODES = 90


def artifacts(folder, kind, dtype):
    rng = np.random.default_rng(0)
    graph = GraphStore.from_edges(*rng.integers(0, NODES, size=(2, 200)), num_nodes=NODES)
    graph.save(folder)
    file = positions_file(folder, 0)
    file.parent.mkdir()
    np.save(file, rng.normal(size=(NODES, 4)).astype(np.float32))
    if kind != "degree":
        np.save(folder / "features.npy", rng.normal(size=(NODES, 3)).astype(np.float32))
    NodeFeatures.save_kind(kind, folder)
    width = {"degree": 2, "node": 3, "node+positional": 7}[kind]
    torch.manual_seed(0)
    save_model(PEG(ModelSpec("peg", "best", width, 1, hidden=6)), folder / "model")
    out = folder / "out"
    return EmbedRequest(folder, folder, folder, folder / "model", out, 1, dtype=dtype)


@pytest.mark.parametrize("kind", ["degree", "node", "node+positional"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_ranges_in_any_order_and_twice_give_the_forward_of_the_model(tmp_path, kind, dtype):
    request = artifacts(tmp_path, kind, dtype)
    layers, needs_state = allocate_layers(request)
    assert (layers, needs_state) == (2, kind != "node")
    ranges = [(40, NODES), (0, 40), (40, NODES)]
    components_task(request)
    if needs_state:
        for start, stop in ranges:
            state_task(request, start, stop)
    for layer in range(layers):
        for start, stop in ranges:
            embed_task(request, layer, start, stop)

    graph = GraphStore.open(tmp_path)
    positions = [np.load(positions_file(tmp_path, 0))]
    model = load_model(request.model)
    x = torch.from_numpy(input_features(NodeFeatures.open(tmp_path), graph, positions))
    messages = MessageGraph.of_graph(graph, positions)
    with torch.no_grad():
        expected = model(x, messages).numpy()
    found = np.load(layer_file(request.out, 1))
    assert found.dtype == dtype
    assert state_file(request.out).exists() == needs_state
    precision = {"float32": 1e-5, "float16": 1e-3}[dtype]
    np.testing.assert_allclose(found, expected, atol=precision, rtol=precision)
    assert len(np.load(components_file(layer_file(request.out, 1)))) == NODES
