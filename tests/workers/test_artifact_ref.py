import pickle
from pathlib import Path

import numpy as np

from peg_core.artifacts.positions import Positions
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import TRAIN_GRAPH, SplitStore
from peg_core.storage.mirror import Attempt
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


def test_an_artifact_of_an_object_store_lies_in_the_cache_of_the_machine(tmp_path, monkeypatch):
    attempt = Attempt("s3://bucket/runs", "train/f", "token", finished=True, run="run")
    ref = ArtifactRef("s3://bucket/runs", "train", "f", ArtifactFolder, attempt=attempt)
    sent = pickle.dumps(ref)
    for machine in ("a", "b"):
        monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / machine))
        part = pickle.loads(sent).at(ArtifactFolder, "seed-0")
        assert str(part.folder).startswith(str(tmp_path / machine))
        assert part.folder.parent.parent.name == "f"
        assert part.location == "s3://bucket/runs/train/f/seed-0"
        inner = ArtifactRef.of_folder(part.folder / "inner", ArtifactFolder)
        assert inner.folder == part.folder / "inner"
