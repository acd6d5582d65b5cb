import networkx as nx
import numpy as np
import pytest

from peg_core.errors import ArtifactMismatch
from peg_core.graph.node_features import (
    FEATURE_KINDS,
    TABLE_KINDS,
    NodeFeatures,
    input_features,
    load_features,
)

GRAPH = nx.gnp_random_graph(40, 0.1, seed=2)
rng = np.random.default_rng(0)
TABLE = rng.normal(size=(40, 5)).astype(np.float32)
POSITIONS = [rng.normal(size=(40, 3)), rng.normal(size=(40, 2)).astype(np.float32)]


@pytest.fixture
def graph(to_store):
    return to_store(GRAPH)


def features_of(kind):
    return NodeFeatures(kind, TABLE if kind in TABLE_KINDS else None)


# What a model is given; learned features are its own.
GIVEN = [kind for kind in FEATURE_KINDS if kind != "learned"]


def expected(kind):
    """The paper's features, put together by hand."""
    degree = [[np.log(1 + GRAPH.degree[node]), 1] for node in range(40)]
    every = np.concatenate(POSITIONS, axis=1)
    special = {"degree": degree, "positional": every, "node+positional": np.hstack([TABLE, every])}
    return np.asarray(special.get(kind, TABLE), dtype=np.float32)


def test_learned_features_are_parameters_of_the_model(tmp_path, graph):
    NodeFeatures.save_kind("learned", tmp_path, learned_width=7)
    features = NodeFeatures.open(tmp_path)
    assert features.width(POSITIONS) == 7
    assert input_features(features, graph, POSITIONS, np.array([3, 1])).shape == (2, 0)


@pytest.mark.parametrize("kind", GIVEN)
def test_each_kind_reads_what_its_name_says(graph, kind):
    x = input_features(features_of(kind), graph, POSITIONS)
    np.testing.assert_allclose(x, expected(kind), rtol=1e-6)
    assert x.dtype == np.float32
    assert x.shape[1] == features_of(kind).width(POSITIONS)


@pytest.mark.parametrize("kind", FEATURE_KINDS)
def test_ranges_and_lists_of_nodes_are_rows_of_the_whole(graph, kind):
    whole = input_features(features_of(kind), graph, POSITIONS)
    for nodes in (slice(7, 19), slice(39, 40), np.array([3, 39, 0, 3])):
        part = input_features(features_of(kind), graph, POSITIONS, nodes)
        np.testing.assert_array_equal(part, whole[nodes])


def test_views_share_one_table_and_cannot_change_the_file(tmp_path, graph):
    np.save(tmp_path / "features.npy", TABLE)
    NodeFeatures.save_kind("node", tmp_path)
    features = NodeFeatures.open(tmp_path)
    first, second = (input_features(features, graph, POSITIONS) for _ in range(2))
    assert np.shares_memory(first, second)
    first[0] = 9
    np.testing.assert_array_equal(np.load(tmp_path / "features.npy"), TABLE)


@pytest.mark.parametrize("kind", GIVEN)
def test_a_folder_gives_back_what_was_saved(tmp_path, graph, kind):
    np.save(tmp_path / "features.npy", TABLE)
    NodeFeatures.save_kind(kind, tmp_path)
    x = input_features(NodeFeatures.open(tmp_path), graph, POSITIONS)
    np.testing.assert_allclose(x, expected(kind), rtol=1e-6)


def test_a_folder_without_features_has_none(tmp_path):
    assert load_features(tmp_path) is None


def test_features_of_another_graph_are_refused(graph):
    with pytest.raises(ArtifactMismatch, match="found 30 nodes, needed 40"):
        input_features(NodeFeatures("node", TABLE[:30]), graph, POSITIONS)
