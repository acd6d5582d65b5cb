import pickle
from pathlib import Path

import numpy as np

from peg_core.artifacts.positions import Positions
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import TRAIN_GRAPH, SplitStore
from pipeline.store.local_store import ArtifactStore
from workers.artifact_ref import ArtifactFolder, ArtifactRef


def test_a_reference_survives_pickling_and_opens_the_artifact(tmp_path):
    ref = ArtifactRef(str(tmp_path), "encode", "0123", Positions)
    Positions(tmp_path / "encode" / "0123").write(np.ones((3, 2), np.float32), 0)
    read = pickle.loads(pickle.dumps(ref))
    assert read == ref
    np.testing.assert_array_equal(read.open().arrays(num_nodes=3)[0], np.ones((3, 2)))


def test_a_part_of_an_artifact_is_opened_as_what_it_is(tmp_path, two_communities):
    two_communities.save(tmp_path / "split" / "f" / TRAIN_GRAPH)
    ref = ArtifactRef(str(tmp_path), "split", "f", SplitStore)
    train = ref.at(GraphStore, TRAIN_GRAPH)
    assert train.open().num_edges == ref.open().train_graph().num_edges
    assert train.at(ArtifactFolder, "inner").folder == train.folder / "inner"
    assert ref.at(ArtifactFolder).folder == ref.folder


def test_a_store_named_by_a_relative_path_means_one_folder_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ref = ArtifactStore(Path("store")).ref("train", "f")
    monkeypatch.chdir("/")
    assert ref.folder == tmp_path / "store" / "train" / "f"


def test_an_object_store_is_read_where_the_run_keeps_its_artifacts(tmp_path):
    url = "s3://bucket/runs"
    ref = ArtifactRef(url, "train", "f", ArtifactFolder, cache=str(tmp_path))
    assert ref.folder == tmp_path / "train" / "f"
    assert ref.at(ArtifactFolder, "seed-0").folder == tmp_path / "train" / "f" / "seed-0"
