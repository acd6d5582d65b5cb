"""The two columns of an edge list, against sets."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from peg_core.graph import edge_sides
from peg_core.graph.edge_rows import EdgeColumns
from peg_core.graph.edge_sides import compare_sides, lie_apart, look_bipartite
from peg_core.graph.edge_table import list_row_groups


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
        "rows": 500, "whole": True, "sources": len(set(users)), "targets": len(set(items)),
        "both": 0, "outside": sum(item > users.max() for item in set(items)),
    }  # fmt: skip
    assert look_bipartite(sides)
    texts = [f"u{user}" for user in users], [f"i{item}" for item in items]
    assert compare(tmp_path, *texts, id_type=pa.string()) == sides | {"outside": 0}


def test_one_node_on_both_sides_is_enough(tmp_path):
    rng = np.random.default_rng(1)
    sides = compare(tmp_path, rng.integers(0, 50, 500), rng.integers(49, 90, 500))
    assert sides["both"] == 1
    assert not look_bipartite(sides)


def test_few_nodes_on_both_sides_may_be_a_mistake(tmp_path):
    source, target = np.arange(1000), 1000 + np.arange(1000)
    assert look_bipartite(compare(tmp_path, source, np.append(target[:990], np.arange(10))))
    assert not look_bipartite(compare(tmp_path, source, np.append(target[:989], np.arange(11))))


def test_of_a_part_of_the_rows_no_node_may_be_on_both_sides(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_sides, "MOST_ROWS", 500)
    sides = compare(tmp_path, np.arange(1000), 1000 + np.arange(1000))
    assert not sides["whole"]
    assert sides["both"] == 0
    assert look_bipartite(sides)
    assert not look_bipartite(sides | {"both": 1})


def test_numbers_that_are_counted_apart(tmp_path):
    """Users 0 to 99 and items 0 to 299: of the items 200 are beyond all users."""
    rng = np.random.default_rng(2)
    users, items = rng.permutation(np.arange(600) % 100), rng.permutation(np.arange(600) % 300)
    sides = compare(tmp_path, users, items)
    assert (sides["both"], sides["outside"]) == (100, 200)
    assert lie_apart(sides)
    assert not look_bipartite(sides)
    assert compare(tmp_path, items, users)["outside"] == 200


def test_ends_of_one_kind_are_from_one_range(tmp_path):
    """Also where the smaller end always stands first, and the rows are sorted by it."""
    rng = np.random.default_rng(3)
    ends = np.sort(rng.integers(0, 400, (2000, 2)), axis=1)
    ends = ends[np.argsort(ends[:, 0])]
    assert not lie_apart(compare(tmp_path, *ends.T))


def test_the_range_is_that_of_all_rows_also_of_those_that_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_sides, "MOST_ROWS", 300)
    source, target = np.arange(1000), np.random.default_rng(4).permutation(1000)
    sides = compare(tmp_path, source, target, rows=1000)
    assert sides["rows"] == 300
    assert sides["sources"] == 300  # 0 to 299; most targets are above
    assert sides["outside"] == 0


def test_a_handful_of_rows_says_nothing(tmp_path):
    assert not look_bipartite(compare(tmp_path, np.arange(99), 200 + np.arange(99)))


@pytest.mark.parametrize("most", [1, 3, 40])
def test_of_many_rows_some_of_many_row_groups_are_read(tmp_path, monkeypatch, most):
    monkeypatch.setattr(edge_sides, "MOST_ROWS", most)
    sides = compare(tmp_path, np.arange(1000), np.arange(1000) + 1, rows=100)
    assert 0 < sides["rows"] <= most
    assert sides["sources"] == sides["rows"]


def test_nulls_are_no_nodes(tmp_path):
    assert compare(tmp_path, [1, None, 2], [None, 4, 4])["targets"] == 1
