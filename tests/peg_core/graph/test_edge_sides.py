"""The two columns of an edge list, against sets."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from peg_core.graph import edge_sides
from peg_core.graph.edge_rows import EdgeColumns
from peg_core.graph.edge_sides import compare_sides, look_bipartite
from peg_core.graph.edge_table import list_row_groups
from pipeline.stages.ingest import side_warnings


def compare(folder, source, target, id_type=None, rows=97):
    table = pl.DataFrame({"a": source, "b": target})
    table.write_parquet(folder / "edges.parquet", row_group_size=rows)
    groups = list_row_groups([folder / "edges.parquet"], ["a", "b"])
    return compare_sides(groups, EdgeColumns("a", "b"), id_type or pa.int64())


def test_users_and_items_stand_on_one_side_each(tmp_path):
    rng = np.random.default_rng(0)
    users, items = 2 * rng.integers(0, 50, 500), 2 * rng.integers(0, 80, 500) + 1
    sides = compare(tmp_path, users, items)
    assert sides == {
        "rows": 500, "sources": len(set(users)), "targets": len(set(items)), "both": 0
    }  # fmt: skip
    assert look_bipartite(sides)
    (text,) = side_warnings(sides, "a", "b")
    assert f"'a' ({len(set(users))} nodes) and 'b' ({len(set(items))}) in 500 rows" in text
    texts = [f"u{user}" for user in users], [f"i{item}" for item in items]
    assert compare(tmp_path, *texts, id_type=pa.string()) == sides


def test_one_node_on_both_sides_is_enough(tmp_path):
    rng = np.random.default_rng(1)
    sides = compare(tmp_path, rng.integers(0, 50, 500), rng.integers(49, 90, 500))
    assert sides["both"] == 1
    assert side_warnings(sides, "a", "b") == []


def test_a_handful_of_rows_says_nothing(tmp_path):
    assert not look_bipartite(compare(tmp_path, np.arange(99), 200 + np.arange(99)))
    assert side_warnings(None, "a", "b") == []


@pytest.mark.parametrize("most", [1, 3, 40])
def test_of_many_rows_some_of_many_row_groups_are_read(tmp_path, monkeypatch, most):
    monkeypatch.setattr(edge_sides, "MOST_ROWS", most)
    sides = compare(tmp_path, np.arange(1000), np.arange(1000) + 1, rows=100)
    assert 0 < sides["rows"] <= most
    assert sides["sources"] == sides["rows"]


def test_nulls_are_no_nodes(tmp_path):
    assert compare(tmp_path, [1, None, 2], [None, 4, 4])["targets"] == 1
