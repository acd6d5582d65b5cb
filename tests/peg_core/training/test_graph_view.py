import networkx as nx
import numpy as np
import pytest

from peg_core.graph.node_features import NodeFeatures
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from peg_core.splits.split_store import NO_FOLD, SplitStore
from peg_core.training.graph_view import GraphView

SPEC = ModelSpec("peg", "best", in_channels=2, num_encodings=1, hidden=4)


@pytest.fixture
def split(tmp_path, to_store):
    graph = to_store(nx.gnp_random_graph(50, 0.15, seed=4))
    store = SplitStore(tmp_path)
    everything = np.zeros(2 * graph.num_edges, dtype=np.uint8)
    store.write_train(graph, everything, np.arange(graph.num_nodes), folds=3, seed=0)
    return store


@pytest.mark.parametrize("fold", [NO_FOLD, 0, 1, 2])
def test_degrees_are_counted_without_the_fold_that_supervises(split, fold):
    counted = np.zeros(50, dtype=int)
    for other in {0, 1, 2} - {fold}:
        for first, second in zip(*split.links(other), strict=True):
            counted[first] += 1
            counted[second] += 1
    graph = split.graph_without(fold)
    view = GraphView.of(graph, [np.zeros((50, 1))], NodeFeatures("degree"), PEG(SPEC))
    x, _ = view.node_inputs()
    np.testing.assert_allclose(np.expm1(x[:, 0].numpy()), counted, atol=1e-4)
    hidden = 0 if fold == NO_FOLD else 2 * len(split.links(fold)[0])
    assert counted.sum() == 2 * split.train_graph().num_edges - hidden
    assert (hidden > 0) == (fold != NO_FOLD)


def test_positional_features_are_the_positions_of_the_view(split):
    positions = [np.random.default_rng(fold).normal(size=(50, 3)) for fold in range(3)]
    for fold in range(3):
        graph = split.graph_without(fold)
        view = GraphView.of(graph, [positions[fold]], NodeFeatures("positional"), PEG(SPEC))
        np.testing.assert_allclose(view.node_inputs()[0], positions[fold], rtol=1e-6)
