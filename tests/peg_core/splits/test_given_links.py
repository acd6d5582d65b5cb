import polars as pl
import pyarrow as pa
import pytest

from peg_core.errors import InputError, LeakFound
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.splits.given_links import require_disjoint

IDS = GraphIds([KindIds(NodeIds(pa.array([10, 20, 30, 40])))])


def check(folder, valid, test):
    """Check two files of links, each written as [(source, target), ...]."""
    for name, links in (("valid", valid), ("test", test)):
        table = pl.DataFrame(links, schema=["a", "b"], orient="row")
        table.write_parquet(folder / f"{name}.parquet")
    places = (str(folder / "valid.parquet"), str(folder / "test.parquet"))
    require_disjoint(*places, ["a", "b"], IDS)


def test_links_in_both_files_are_refused_in_either_direction(tmp_path):
    message = r"2 link\(s\) stand in both .*valid\.parquet and .*test\.parquet, none may"
    with pytest.raises(LeakFound, match=message):
        check(tmp_path, [(10, 20), (20, 30), (10, 20)], [(20, 10), (30, 20), (40, 10)])


def test_files_without_a_common_link_are_accepted(tmp_path):
    check(tmp_path, [(10, 20), (20, 30)], [(10, 30), (40, 10), (99, 98)])


def test_columns_that_hold_no_ids_are_named(tmp_path):
    with pytest.raises(InputError, match=r"'a' of .*valid\.parquet is of type double"):
        check(tmp_path, [(1.5, 20)], [(10, 20)])
