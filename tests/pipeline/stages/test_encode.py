"""Graphs without a fold are kept on disk where they are large."""

import networkx as nx
import numpy as np
import pytest

from peg_core.artifacts.positions import Positions
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.split_store import SplitStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import StageContext
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages import encode
from workers.artifact_ref import ArtifactRef
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from workers.task_map import TaskMap

pytestmark = pytest.mark.ray

LE = {"kind": "le", "dimensions": 5, "null_vectors": "deflate"}
NARROW = {**LE, "dimensions": 3}
NODES = 700


@pytest.fixture
def split(tmp_path):
    """Three folds of a weighted graph of one large component and some small ones."""
    parts = [nx.connected_watts_strogatz_graph(674, 8, 0.1, seed=1), nx.cycle_graph(26)]
    ends = np.array(nx.disjoint_union_all(parts).edges()).T
    ends = np.random.default_rng(0).permutation(NODES)[ends]
    weights = np.random.default_rng(1).uniform(0.5, 2, ends.shape[1])
    graph = GraphStore.from_edges(*ends, num_nodes=NODES, weights=weights)
    store = SplitStore(tmp_path / "split")
    everything = np.zeros(2 * graph.num_edges, dtype=np.uint8)
    store.write_train(graph, everything, np.arange(NODES), folds=3, seed=0)
    held_out = np.array([[0, 2], [1, 3], [1, 1]])
    held_out = held_out[:, ~graph.contains(*held_out[:2])]
    for part in ("valid", "test"):
        store.write_held_out(part, HeldOutPairs(*held_out[:2], held_out[2].astype(np.uint8)))
    return store


def run_stage(folder, split, encodings, settings):
    config = PipelineConfig(
        name="folds",
        store=str(folder),
        graph={"edges": "none"},
        split={"folds": 3},
        encodings=encodings,
    )
    context = StageContext(
        config,
        ArtifactRef.of_folder(folder, Positions),
        StageInputs({"split": ArtifactRef.of_folder(split.folder, SplitStore)}),
        TaskMap(Cluster(settings), folder / "done"),
        None,
        None,
    )
    return encode.STAGE.run(context)


@pytest.mark.parametrize("above", [10**6, 600])
def test_encodings_are_the_same_as_with_graphs_in_memory(
    cluster, tmp_path, split, monkeypatch, above
):
    """By one task each, and by many tasks on the largest component."""
    encodings = [LE, NARROW] if above > NODES else [LE]
    settings = ClusterSettings(workers=2, distribute_encoding_above=above)
    held = run_stage(tmp_path / "held", split, encodings, settings)
    monkeypatch.setattr(encode, "MOST_HELD_ENTRIES", 0)
    kept = run_stage(tmp_path / "kept", split, encodings, settings)
    assert kept == held
    assert ("distributed" in str(kept.details)) == (above < NODES)
    assert kept.counts["graphs"] == 4 * len(encodings)
    for fold in range(3):
        leaks = kept.details[f"encoding-0-without-fold-{fold}"]["leaks"]
        assert leaks == {"valid": 0, "test": 0, f"fold {fold}": 0}
    files = sorted(
        path.relative_to(tmp_path / "held") for path in (tmp_path / "held").rglob("*.npy")
    )
    assert len(files) == 4 * len(encodings)
    for file in files:
        np.testing.assert_array_equal(
            np.load(tmp_path / "kept" / file), np.load(tmp_path / "held" / file)
        )
    assert not (tmp_path / "kept" / "work").exists()


def test_what_all_graphs_warn_about_is_said_once_with_a_count(tmp_path):
    """Folds differ in the numbers of a warning, not in what it says."""
    reports = [
        {"warnings": ["the gap is 1.5e-05: a cut; larger gaps follow 2, 30 dimensions", "odd"]},
        {"warnings": ["the gap is 7e-06: a cut; no number of dimensions has a gap"]},
        {"warnings": ["the gap is 0.2: a cut; larger gaps follow 9 dimensions"]},
    ]
    requests = [
        encode.EncodeRequest("le", {}, 0, ArtifactRef.of_folder(tmp_path, Positions), fold=fold)
        for fold in (-1, 0, 1)
    ]
    results = [{"report": report, "leaks": {}, "edges": 1} for report in reports]
    assert encode.warnings_once(requests, results) == [
        "encoding-0-all: the gap is 1.5e-05: a cut; larger gaps follow 2, 30 dimensions "
        "(3 of 3 graphs)",
        "encoding-0-all: odd (1 of 3 graphs)",
    ]


def test_ten_encodings_that_split_an_eigenspace_are_one_warning(tmp_path):
    requests = [
        encode.EncodeRequest(
            "le", {}, 0, ArtifactRef.of_folder(tmp_path, Positions), encoding=encoding, fold=fold
        )
        for encoding in range(2)
        for fold in range(-1, 4)
    ]
    results = [
        {"report": {"warnings": [f"the cut at {number} splits an eigenspace; advice {number}"]}}
        for number in range(10)
    ]
    assert encode.warnings_once(requests, results) == [
        "encoding-0-all: the cut at 0 splits an eigenspace; advice 0 (10 of 10 graphs)"
    ]
