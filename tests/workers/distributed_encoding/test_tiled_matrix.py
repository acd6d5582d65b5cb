import numpy as np
import pytest

from workers.distributed_encoding.tiled_matrix import TiledMatrix, TileLayout, join_rows

LAYOUT = TileLayout(bounds=(0, 5, 5, 12), num_columns=10, width=8)


@pytest.fixture
def values():
    return np.random.default_rng(0).normal(size=(12, 10)).astype(np.float32)


def test_what_is_written_by_columns_is_read_by_rows(tmp_path, values):
    matrix = TiledMatrix.within(LAYOUT, tmp_path)
    for block in LAYOUT.blocks:
        matrix.write_block(block, values[:, LAYOUT.columns(block)])
    for chunk in LAYOUT.chunks:
        tiles = matrix.open_chunk(chunk, LAYOUT.blocks)
        read = join_rows(tiles, slice(None), np.float64)
        np.testing.assert_array_equal(read, values[LAYOUT.rows(chunk)])


def test_what_is_written_by_rows_is_read_by_columns_padded_with_zeros(tmp_path, values):
    matrix = TiledMatrix.within(LAYOUT, tmp_path)
    for chunk in LAYOUT.chunks:
        matrix.write_chunk(chunk, LAYOUT.blocks[:1], values[LAYOUT.rows(chunk), :8])
        matrix.write_chunk(chunk, LAYOUT.blocks[1:], values[LAYOUT.rows(chunk), 8:])
    np.testing.assert_array_equal(matrix.read_block(0, np.float32), values[:, :8])
    last = matrix.read_block(1, np.float32)
    np.testing.assert_array_equal(last[:, :2], values[:, 8:])
    assert last.shape == (12, 8)
    assert not last[:, 2:].any()


def test_column_blocks_may_lie_in_different_folders(tmp_path, values):
    matrix = TiledMatrix(LAYOUT, (tmp_path / "old", tmp_path / "new"))
    for block in LAYOUT.blocks:
        matrix.write_block(block, values[:, LAYOUT.columns(block)])
    assert sorted(p.parts[-3] for p in tmp_path.glob("*/block-*/chunk-00000.npy")) == ["new", "old"]


def test_strips_cover_a_chunk_once(monkeypatch):
    monkeypatch.setattr("workers.distributed_encoding.tiled_matrix.STRIP_ROWS", 3)
    assert [list(range(s.start, s.stop)) for s in LAYOUT.strips(2)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert sum(s.stop - s.start for s in LAYOUT.strips(1)) == 0
