import numpy as np
import pytest

from peg_core.errors import ArtifactMismatch
from peg_core.inference.neighbour_index import NO_NODE, NeighbourIndex


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(0).normal(size=(400, 12)).astype(np.float32)


@pytest.mark.parametrize("unit_rows", [False, True])
def test_most_of_the_nearest_rows_are_found(vectors, tmp_path, unit_rows):
    NeighbourIndex.build(vectors, tmp_path / "index", unit_rows=unit_rows)
    index = NeighbourIndex(tmp_path / "index", vectors, unit_rows=unit_rows)
    found = index.search(np.arange(400), count=10)
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if unit_rows else vectors
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, :10]
    shared = [len(set(a) & set(b)) for a, b in zip(found.tolist(), nearest.tolist(), strict=True)]
    assert np.mean(shared) > 9.5
    np.testing.assert_array_equal(found[:, 0], np.arange(400))


def test_the_same_rows_give_the_same_file(vectors, tmp_path):
    for name in ("one", "two"):
        NeighbourIndex.build(vectors, tmp_path / name, unit_rows=False)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("rows", [1, 3])
def test_fewer_rows_than_asked_for_end_with_no_node(tmp_path, rows):
    few = np.eye(3, dtype=np.float32)[:rows]
    NeighbourIndex.build(few, tmp_path / "index", unit_rows=True)
    found = NeighbourIndex(tmp_path / "index", few, unit_rows=True).search(np.array([0]), count=5)
    assert sorted(found[0].tolist()) == [NO_NODE] * (5 - rows) + list(range(rows))


def test_an_index_of_other_rows_is_refused(vectors, tmp_path):
    NeighbourIndex.build(vectors[:50], tmp_path / "index", unit_rows=True)
    with pytest.raises(ArtifactMismatch, match="found 50 rows, needed 400"):
        NeighbourIndex(tmp_path / "index", vectors, unit_rows=True)
