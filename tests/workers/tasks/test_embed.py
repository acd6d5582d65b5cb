"""The tasks of an embedding, called in this process, range by range."""

import numpy as np
import pytest
import torch

from peg_core.artifacts.embedded_graph import Embeddings
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures, input_features
from peg_core.layers.message_graph import MessageGraph
from peg_core.models import MODELS
from peg_core.models.baselines import BASELINES
from peg_core.models.model_spec import ModelSpec
from workers.artifact_ref import ArtifactRef
from workers.tasks.embed import (
    EmbedRequest,
    components_task,
    embed_task,
    layout_task,
    state_task,
)

NODES = 90


def artifacts(folder, kind, dtype, model="peg"):
    rng = np.random.default_rng(0)
    graph = GraphStore.from_edges(*rng.integers(0, NODES, size=(2, 200)), num_nodes=NODES)
    graph.save(folder)
    Positions(folder).write(rng.normal(size=(NODES, 4)).astype(np.float32), 0)
    if kind != "degree":
        np.save(folder / "features.npy", rng.normal(size=(NODES, 3)).astype(np.float32))
    NodeFeatures.save_kind(kind, folder)
    width = {"degree": 2, "node": 3, "node+positional": 7}[kind]
    torch.manual_seed(0)
    spec = ModelSpec(model, "best", width, 1, hidden=6, encoding_widths=(4,))
    TrainedModel(folder / "model").save(MODELS[model](spec))
    kinds = (GraphStore, NodeFeatures, Positions)
    trained = ArtifactRef.of_folder(folder / "model", TrainedModel)
    out = ArtifactRef.of_folder(folder / "out", Embeddings)
    inputs = (ArtifactRef.of_folder(folder, kind) for kind in kinds)
    return EmbedRequest(*inputs, trained, out, dtype=dtype)


@pytest.mark.parametrize("kind", ["degree", "node", "node+positional"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_ranges_in_any_order_and_twice_give_the_forward_of_the_model(tmp_path, kind, dtype):
    request = artifacts(tmp_path, kind, dtype)
    layout = layout_task(request, 10)
    layers, needs_state = layout["layers"], layout["needs_state"]
    assert (layers, needs_state, layout["nodes"]) == (2, kind != "node", NODES)
    assert [layout["ranges"][0][0], layout["ranges"][-1][1]] == [0, NODES]
    ranges = [(40, NODES), (0, 40), (40, NODES)]
    components_task(request)
    if needs_state:
        for start, stop in ranges:
            state_task(request, start, stop)
    for layer in range(layers):
        for start, stop in ranges:
            embed_task(request, layer, start, stop)

    graph = GraphStore.open(tmp_path)
    positions = [np.load(tmp_path / "encoding-0" / "all.npy")]
    model = request.model.open().network
    x = torch.from_numpy(input_features(NodeFeatures.open(tmp_path), graph, positions))
    messages = MessageGraph.of_graph(graph, positions)
    with torch.no_grad():
        expected = model(x, messages).numpy()
    out = request.out.open()
    assert out.file.name == "layer-1.npy"
    found = out.array()
    assert found.dtype == dtype
    assert out.state_file.exists() == needs_state
    precision = {"float32": 1e-5, "float16": 1e-3}[dtype]
    np.testing.assert_allclose(found, expected, atol=precision, rtol=precision)
    assert len(out.components()) == NODES


@pytest.mark.parametrize("kind", sorted(BASELINES))
def test_baselines_are_embedded_range_by_range(tmp_path, kind):
    request = artifacts(tmp_path, "node", "float32", kind)
    layout = layout_task(request, 10)
    for start, stop in layout["ranges"] if layout["needs_state"] else ():
        state_task(request, start, stop)
    for layer in range(layout["layers"]):
        for start, stop in layout["ranges"]:
            embed_task(request, layer, start, stop)
    graph = GraphStore.open(tmp_path)
    positions = [np.load(tmp_path / "encoding-0" / "all.npy")]
    model = request.model.open().network
    x = torch.from_numpy(input_features(NodeFeatures.open(tmp_path), graph, positions))
    with torch.no_grad():
        state = model.first_state(x, [torch.from_numpy(z) for z in positions])
        expected = model(state, model.whole_messages(graph, positions)).numpy()
    assert len(layout["ranges"]) > 1
    np.testing.assert_allclose(request.out.open().array(), expected, atol=1e-5, rtol=1e-5)
