"""How large a graph will be, before it is read."""

import polars as pl
import pytest

from pipeline.config.graph_section import GraphConfig
from pipeline.run.sizing.automatic import GraphExtent
from pipeline.run.sizing.graph_extent import table_extent


@pytest.fixture
def edges(tmp_path):
    (tmp_path / "edges").mkdir()
    for part in range(2):
        ids = pl.int_range(100 + part, 700 + part, eager=True)
        table = pl.DataFrame({"src": ids, "dst": ids + 5, "other": ids * 1000})
        table.write_parquet(tmp_path / f"edges/{part}.parquet", row_group_size=100)
    return tmp_path / "edges"


def test_whole_numbers_tell_how_many_nodes_there_are_at_most(edges):
    # ids from 100 to 700 + 5
    assert table_extent(GraphConfig(edges=str(edges))) == GraphExtent(606, 1200, exact=False)


def test_a_node_table_says_it_itself(edges, tmp_path):
    pl.DataFrame({"id": range(100, 900)}).write_parquet(tmp_path / "nodes.parquet")
    graph = GraphConfig(edges=str(edges), nodes=str(tmp_path / "nodes.parquet"))
    assert table_extent(graph).nodes == 800


def test_scattered_ids_are_no_more_nodes_than_ends(edges):
    graph = GraphConfig(edges=str(edges), source="src", target="other")
    assert table_extent(graph).nodes == 2400


def test_texts_say_nothing(tmp_path):
    names = [f"n{number}" for number in range(1000)]
    pl.DataFrame({"src": names, "dst": names[::-1]}).write_parquet(tmp_path / "e.parquet")
    assert table_extent(GraphConfig(edges=str(tmp_path / "e.parquet"))) == GraphExtent(
        200, 1000, exact=False
    )
