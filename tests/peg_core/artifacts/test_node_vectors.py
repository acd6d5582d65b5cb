"""Vectors beside ids, as other tools read them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peg_core.artifacts import node_vectors
from peg_core.artifacts.node_vectors import write_node_vectors
from peg_core.errors import ArtifactMismatch
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.node_ids import NodeIds


@pytest.fixture
def two_kinds(tmp_path):
    """Five users with numbers, their ids stored, and three items with names."""
    NodeIds(pa.array([50, 40, 30, 20, 10])).save(tmp_path / "ids")
    users, items = NodeIds.open(tmp_path / "ids"), NodeIds(pa.array(["a", "b", "c"]))
    return GraphIds([KindIds(users, 0, "user"), KindIds(items, 5, "item")], 0, 1)


def test_rows_have_kind_id_and_vectors_whatever_the_size_of_a_part(
    two_kinds, tmp_path, monkeypatch
):
    monkeypatch.setattr(node_vectors, "GROUP_VALUES", 10)  # two rows
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(8, 3)).astype(np.float32), rng.normal(size=(8, 2)).astype(np.float16)
    file = tmp_path / "vectors.parquet"
    assert write_node_vectors(file, two_kinds, {"embedding": x, "le": z}) == 8
    table = pl.read_parquet(file)
    assert table.columns == ["kind", "id", "embedding", "le"]
    assert table["kind"].to_list() == ["user"] * 5 + ["item"] * 3
    assert table["id"].to_list() == ["50", "40", "30", "20", "10", "a", "b", "c"]
    assert table.schema["embedding"] == pl.Array(pl.Float32, 3)
    np.testing.assert_array_equal(table["embedding"].to_numpy(), x)
    np.testing.assert_array_equal(table["le"].to_numpy(), z.astype(np.float32))
    assert pq.ParquetFile(file).num_row_groups == 3 + 2


def test_one_kind_has_ids_as_they_are_and_other_sizes_are_refused(tmp_path):
    ids = GraphIds([KindIds(NodeIds(pa.array([7, 8])))])
    write_node_vectors(tmp_path / "v.parquet", ids, {"le": np.ones((2, 4), np.float32)})
    assert pl.read_parquet(tmp_path / "v.parquet").columns == ["id", "le"]
    with pytest.raises(ArtifactMismatch, match="found 3 rows, needed 2"):
        write_node_vectors(tmp_path / "w.parquet", ids, {"le": np.ones((3, 4), np.float32)})
    assert not (tmp_path / "w.parquet").exists()
