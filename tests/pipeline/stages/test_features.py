import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

from peg_core.errors import InputError
from peg_core.graph.feature_transform import FeatureTransform
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from pipeline.run.stage import StageContext
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages import features as features_stage
from pipeline.stages.features import build_features
from workers.artifact_ref import ArtifactRef
from workers.task_map import TaskMap
from workers.tasks.features import FeatureRequest

pytestmark = pytest.mark.ray

RAW = (np.random.default_rng(3).normal(size=(60, 10)) * np.arange(1, 11)).astype(np.float32)


@pytest.fixture
def request_of(tmp_path, two_communities):
    """A request for features of the graph of sixty nodes; its node table is ten wide."""
    two_communities.save(tmp_path / "graph")
    np.save(tmp_path / "graph" / "features.npy", RAW)

    def make(name, **settings):
        out = tmp_path / name
        out.mkdir()
        graph = ArtifactRef.of_folder(tmp_path / "graph", GraphStore)
        return FeatureRequest(graph, ArtifactRef.of_folder(out, NodeFeatures), **settings)

    return make


def build(cluster, request):
    tasks = TaskMap(cluster, request.out.folder / "done")
    inputs = StageInputs({"ingest": request.graph})
    context = StageContext(None, request.out, inputs, tasks, None, None)
    facts = build_features(context, request)
    return request.out.open(), facts


def test_the_default_is_unit_rows_and_their_principal_components(cluster, request_of):
    features, facts = build(cluster, request_of("out", kind="node", dimensions=4))
    unit = normalize(RAW.astype(np.float64))
    theirs = PCA(4, svd_solver="full").fit(unit)
    expected = theirs.transform(unit)
    signs = np.sign((features.table * expected).sum(axis=0))
    np.testing.assert_allclose(features.table * signs, expected, atol=1e-5)
    assert facts["explained_variance"] == pytest.approx(theirs.explained_variance_ratio_.sum())
    np.testing.assert_allclose(facts["variances"], theirs.explained_variance_)
    assert (facts["kind"], facts["input_width"], facts["width"]) == ("node", 10, 4)


def test_features_that_are_narrow_enough_are_not_reduced(cluster, request_of):
    features, facts = build(cluster, request_of("out", kind="node", dimensions=10))
    np.testing.assert_allclose(features.table, normalize(RAW), atol=1e-6)
    assert "explained_variance" not in facts
    plain = request_of("plain", kind="node", row_normalise=False, reduce="none", dimensions=2)
    np.testing.assert_array_equal(build(cluster, plain)[0].table, RAW)


def test_columns_are_standardised_before_rows_are_normalised(cluster, request_of):
    features, _ = build(cluster, request_of("out", kind="node", standardise=True))
    expected = normalize(StandardScaler().fit_transform(RAW.astype(np.float64)))
    np.testing.assert_allclose(features.table, expected, atol=1e-5)


def test_a_random_projection_is_one_linear_map_of_all_rows(cluster, request_of):
    settings = {"kind": "node", "reduce": "random", "dimensions": 3, "row_normalise": False}
    features, facts = build(cluster, request_of("out", **settings))
    solved, *_ = np.linalg.lstsq(RAW.astype(np.float64), features.table, rcond=None)
    np.testing.assert_allclose(RAW @ solved, features.table, atol=1e-3)
    assert facts["width"] == 3
    other, _ = build(cluster, request_of("other", **settings, seed=1))
    assert not np.allclose(other.table, features.table)


@pytest.mark.parametrize("kind", ["node", "random", "one_hot"])
def test_ranges_and_a_rerun_do_not_change_the_table(cluster, request_of, monkeypatch, kind):
    settings = {"kind": kind, "standardise": True, "dimensions": 4}
    whole, _ = build(cluster, request_of("whole", **settings))
    width = {"node": 10, "random": 4, "one_hot": 60}[kind]
    monkeypatch.setattr(features_stage, "VALUES_PER_TASK", 25 * width)
    request = request_of("ranges", **settings)
    ranges, _ = build(cluster, request)
    assert len(list((request.out.folder / "done").glob("fill-*.json"))) == 3
    if kind != "random":  # a range has a stream of its own
        np.testing.assert_allclose(ranges.table, whole.table, atol=1e-6)
    before = np.array(ranges.table)
    for marker in (request.out.folder / "done").glob("fill-0-*.json"):
        marker.unlink()
    again, _ = build(cluster, request)
    np.testing.assert_array_equal(again.table, before)


def test_random_features_lie_between_0_and_1_and_follow_their_seed(cluster, request_of):
    first, second, other = (
        build(cluster, request_of(name, kind="random", dimensions=50, seed=seed))[0].table
        for name, seed in (("first", 0), ("second", 0), ("other", 1))
    )
    assert first.shape == (60, 50)
    assert 0 <= first.min() < 0.01 < 0.99 < first.max() <= 1
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_one_hot_features_are_the_identity(cluster, request_of):
    features, facts = build(cluster, request_of("out", kind="one_hot"))
    np.testing.assert_array_equal(features.table, np.eye(60))
    assert facts["width"] == 60


@pytest.mark.parametrize(("kind", "width"), [("degree", 2), ("positional", 3)])
def test_what_depends_on_the_edges_is_left_to_the_view(cluster, request_of, kind, width):
    request = request_of("out", kind=kind)
    features, _ = build(cluster, request)
    assert features.table is None
    assert features.width([np.zeros((60, 3))]) == width
    assert not (request.out.folder / "features.npy").exists()


def test_other_nodes_can_be_treated_alike(cluster, request_of):
    request = request_of("out", kind="node", standardise=True, dimensions=4)
    features, _ = build(cluster, request)
    transform = FeatureTransform.open(request.out.folder / "transform.safetensors")
    np.testing.assert_allclose(transform.apply(RAW[10:20]), features.table[10:20], atol=1e-6)


def test_what_would_be_too_large_is_refused_with_advice(request_of, monkeypatch):
    monkeypatch.setattr(features_stage, "MAX_ONE_HOT_NODES", 59)
    monkeypatch.setattr(features_stage, "MAX_PCA_WIDTH", 9)
    with pytest.raises(InputError, match=r"60 nodes .* at most 59 .*`features.kind` to random"):
        build(None, request_of("one_hot", kind="one_hot"))
    with pytest.raises(InputError, match=r"10 wide, .* at most 9 .*`features.reduce` to random"):
        build(None, request_of("wide", kind="node", dimensions=4))


def test_a_graph_without_features_is_told_what_to_set(tmp_path, two_communities):
    two_communities.save(tmp_path)
    graph, out = (ArtifactRef.of_folder(tmp_path, kind) for kind in (GraphStore, NodeFeatures))
    request = FeatureRequest(graph, out, kind="node+positional")
    with pytest.raises(InputError, match=r"set `graph.nodes` and `graph.features`, or another"):
        build(None, request)
