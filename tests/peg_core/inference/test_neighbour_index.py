import numpy as np
import pytest

from peg_core.errors import ArtifactMismatch
from peg_core.inference.neighbour_index import NO_NODE, IndexShard, NeighbourIndex
from peg_core.inference.vector_code import VectorCode


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(0).normal(size=(400, 12)).astype(np.float32)


def build(folder, vectors, *, code=None, shards=1):
    """An index of some shards of about equal size."""
    code = code or VectorCode()
    cuts = [len(vectors) * i // shards for i in range(shards + 1)]
    opened = []
    for number, first in enumerate(cuts[:-1]):
        file, rows = folder / f"shard-{number}", vectors[first : cuts[number + 1]]
        blocks = [rows[start : start + 50] for start in range(0, len(rows), 50)]
        IndexShard.build(file, blocks, code, width=rows.shape[1], first=first)
        opened.append(IndexShard(file, code))
    return NeighbourIndex(opened, vectors)


def shared_with_exact(index, vectors, *, unit_rows=False):
    """How many of the nearest ten are found on average, and what was found."""
    found = index.search(np.arange(len(vectors)), count=10)
    wide = vectors.astype(np.float64)
    rows = wide / np.linalg.norm(wide, axis=1, keepdims=True) if unit_rows else wide
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, :10]
    pairs = zip(found.tolist(), nearest.tolist(), strict=True)
    return np.mean([len(set(a) & set(b)) for a, b in pairs]), found


@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize("unit_rows", [False, True])
def test_most_of_the_nearest_rows_are_found(vectors, tmp_path, unit_rows, shards):
    index = build(tmp_path, vectors, code=VectorCode(unit_rows=unit_rows), shards=shards)
    shared, found = shared_with_exact(index, vectors, unit_rows=unit_rows)
    assert shared > 9.5
    np.testing.assert_array_equal(found[:, 0], np.arange(400))


@pytest.mark.parametrize(("dtype", "least"), [("float16", 9.5), ("int8", 8.5)])
@pytest.mark.parametrize("shards", [1, 3])
def test_fewer_bytes_find_nearly_the_same_rows_however_small_they_are(
    vectors, tmp_path, dtype, least, shards
):
    tiny = 1e-9 * vectors + np.float32(1e-7)  # float16 itself knows no number below 6e-8
    code = VectorCode.fit(tiny, dtype=dtype, unit_rows=False)
    shared, _ = shared_with_exact(build(tmp_path, tiny, code=code, shards=shards), tiny)
    assert shared > least


def test_a_code_that_was_saved_writes_the_same_values(vectors, tmp_path):
    for dtype in ("float16", "int8"):
        code = VectorCode.fit(vectors, dtype=dtype, unit_rows=True)
        code.save(tmp_path / dtype)
        again = VectorCode.open(tmp_path / dtype, unit_rows=True)
        np.testing.assert_array_equal(again.encode(vectors), code.encode(vectors))
        assert code.encode(vectors).dtype == dtype


def test_values_far_out_are_cut_off(vectors):
    for dtype, most in (("float16", 1e4), ("int8", 127)):
        code = VectorCode.fit(vectors, dtype=dtype, unit_rows=False)
        assert np.abs(code.encode(1e20 * vectors).astype(np.float64)).max() == most


def test_the_same_rows_give_the_same_file(vectors, tmp_path):
    for name in ("one", "two"):
        IndexShard.build(tmp_path / name, [vectors], VectorCode(), width=12)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(("rows", "shards"), [(1, 1), (3, 1), (2, 2), (3, 2)])
def test_fewer_rows_than_asked_for_end_with_no_node(tmp_path, rows, shards):
    few = np.eye(3, dtype=np.float32)[:rows]
    found = build(tmp_path, few, shards=shards).search(np.array([0]), count=5)
    assert found[0][rows:].tolist() == [NO_NODE] * (5 - rows)
    assert sorted(found[0][:rows].tolist()) == list(range(rows))


def test_an_index_of_other_rows_is_refused(vectors, tmp_path):
    IndexShard.build(tmp_path / "index", [vectors[:50]], VectorCode(), width=12)
    with pytest.raises(ArtifactMismatch, match="found 50 rows, needed 400"):
        NeighbourIndex([IndexShard(tmp_path / "index", VectorCode())], vectors)
