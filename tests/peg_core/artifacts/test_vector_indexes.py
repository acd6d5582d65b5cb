"""Indexes of positions and embeddings, in shards, in a folder and in an object store."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from peg_core.artifacts import EmbeddedGraph, Embeddings, Positions, VectorIndexes
from peg_core.artifacts import vector_indexes as module
from peg_core.atomic_file import write_array, written_files
from peg_core.errors import ArtifactMismatch
from peg_core.storage.mirror import Attempt
from peg_core.storage.object_storage import Storage
from peg_core.storage.stored_path import publish, stored_folder

NUM_NODES = 60


@pytest.fixture
def embedded(tmp_path, two_communities):
    rng = np.random.default_rng(1)
    positions, embeddings = Positions(tmp_path / "encode"), Embeddings(tmp_path / "embed")
    positions.write(rng.normal(size=(NUM_NODES, 6)).astype(np.float32), 0)
    write_array(embeddings.layer_file(1), rng.normal(size=(NUM_NODES, 9)).astype(np.float32))
    embeddings.write_components(np.zeros(NUM_NODES, dtype=np.int32))
    return EmbeddedGraph.of(two_communities, positions, embeddings)


def build(indexes, tmp_path, *, most, dtype="float32"):
    sources = Positions(tmp_path / "encode"), Embeddings(tmp_path / "embed")
    parts = [
        part
        for name in VectorIndexes.names(1)
        for part in VectorIndexes.parts(name, NUM_NODES, dtype, most=most)
    ]
    assert sum(indexes.build(part, *sources) for part in parts) == 2 * NUM_NODES
    return parts


def found(indexes, embedded):
    everyone = np.arange(NUM_NODES)
    return [index.search(everyone, count=NUM_NODES) for index in indexes.load(embedded)]


def exact(vectors):
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    return np.argsort(distances, axis=1, kind="stable")


@pytest.mark.parametrize(("most", "files"), [(NUM_NODES, 2), (16, 8)])
def test_shards_together_give_the_exact_order(embedded, tmp_path, most, files):
    indexes = VectorIndexes(tmp_path / "index")
    build(indexes, tmp_path, most=most)
    assert len(list(indexes.folder.iterdir())) == files
    assert {f"{name}.usearch" for name in ("encoding-0", "embedding")} <= {
        file.name for file in indexes.folder.iterdir()
    }
    positions, embeddings = found(indexes, embedded)
    np.testing.assert_array_equal(positions, exact(embedded.positions[0]))
    units = embedded.embeddings / np.linalg.norm(embedded.embeddings, axis=1, keepdims=True)
    np.testing.assert_array_equal(embeddings, exact(units))


def test_a_code_is_fitted_to_all_rows_whatever_the_shard(embedded, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_PLACES", 5)
    monkeypatch.setattr(module, "ROWS_PER_PLACE", 4)
    indexes = VectorIndexes(tmp_path / "index")
    build(indexes, tmp_path, most=25, dtype="int8")
    codes = {file.read_text() for file in indexes.folder.glob("embedding*.json")}
    assert len(codes) == 1
    for rows in found(indexes, embedded):
        assert (np.sort(rows, axis=1) == np.arange(NUM_NODES)).all()
        assert (rows[:, 0] == np.arange(NUM_NODES)).mean() > 0.9


def test_a_missing_shard_is_told(embedded, tmp_path):
    indexes = VectorIndexes(tmp_path / "index")
    parts = build(indexes, tmp_path, most=25)
    indexes.file(parts[-1].stem).unlink()
    with pytest.raises(ArtifactMismatch, match="found 50 rows, needed 60"):
        indexes.load(embedded)


def test_a_shard_takes_more_memory_the_wider_it_is():
    (narrow,) = VectorIndexes.parts("embedding", 1000, "int8")
    (wide,) = VectorIndexes.parts("embedding", 1000, "float32")
    assert wide.build_bytes(64) - narrow.build_bytes(64) == 1000 * 64 * 3


def test_shards_of_an_object_store_come_to_the_machine_that_searches(
    embedded, tmp_path, object_store, monkeypatch
):
    storage = Storage(f"s3://{object_store.new_bucket()}/runs{object_store.options()}")
    attempt = Attempt(storage.location(), "index/f", "token", finished=False, run="run")
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "a"))
    indexes = VectorIndexes(stored_folder(attempt))
    with written_files() as written:
        build(indexes, tmp_path, most=25, dtype="float16")
    publish(sorted(written))
    sent = pickle.dumps(indexes)
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "b"))
    elsewhere = pickle.loads(sent)
    assert not Path(str(elsewhere.folder)).exists()
    for here, there in zip(found(indexes, embedded), found(elsewhere, embedded), strict=True):
        np.testing.assert_array_equal(here, there)
