from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import InputError
from peg_core.graph.edge_exchange import (
    EdgeColumns,
    build_range,
    collect_ids,
    exchange_edges,
    join_ranges,
    merge_ids,
)
from peg_core.graph.edge_table import list_row_groups
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_ids import NodeIds


def ingest(folder: Path, tables: list[pl.DataFrame], columns: EdgeColumns, num_ranges: int):
    """The steps one after the other, as the tasks do them, one exchange per file."""
    files = [folder / f"{i}.parquet" for i in range(len(tables))]
    for table, file in zip(tables, files, strict=True):
        table.write_parquet(file)
    batches = [list_row_groups([file], columns.names) for file in files]
    parts = []
    for i, batch in enumerate(batches):
        parts.append(folder / f"ids-{i}.parquet")
        collect_ids(batch, columns.ends, parts[-1])
    num_nodes = merge_ids(parts, folder)
    ids = NodeIds.open(folder)
    cuts = np.linspace(0, num_nodes, num_ranges + 1).astype(int)
    done = [
        (folder / f"x{i}", exchange_edges(batch, columns, ids, cuts, folder / f"x{i}"))
        for i, batch in enumerate(batches)
    ]
    for r in range(num_ranges):
        pieces = [(path, d["offsets"][r], d["offsets"][r + 1]) for path, d in done]
        build_range(pieces, cuts[r], cuts[r + 1], num_nodes, folder / f"range-{r}")
    join_ranges([folder / f"range-{r}" for r in range(num_ranges)], folder)
    return GraphStore.open(folder), ids, [d for _, d in done]


ids = st.one_of(
    st.just(lambda i: i * 1_000_003 - 7), st.just(lambda i: i), st.just(lambda i: f"node {i}")
)
edges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60)


@given(edges, ids, st.integers(1, 3), st.sampled_from([1, 4]), st.booleans())
def test_the_store_equals_scipys_matrix_of_the_same_edges(edges, name, files, ranges, weighted):
    frame = pl.DataFrame(
        {
            "src": [name(u) for u, _ in edges],
            "dst": [name(v) for _, v in edges],
            "weight": [0.5 + i for i in range(len(edges))],
        }
    )
    columns = EdgeColumns("src", "dst", weight="weight" if weighted else None)
    cut = -(-len(frame) // files)
    tables = [frame[i : i + cut] for i in range(0, len(frame), cut)]
    with TemporaryDirectory() as folder:
        graph, node_ids, _ = ingest(Path(folder), tables, columns, ranges)
        values = sorted({name(u) for edge in edges for u in edge})
        assert node_ids.values.to_pylist() == values
        index = {value: i for i, value in enumerate(values)}
        matrix = scipy.sparse.dok_array((len(values), len(values)))
        for (u, v), weight in zip(edges, frame["weight"], strict=True):
            if u != v:
                for a, b in ((u, v), (v, u)):
                    matrix[index[name(a)], index[name(b)]] += weight
        expected = matrix.tocsr()
        if not weighted:
            expected = (expected > 0).astype(np.float32)
        np.testing.assert_allclose(graph.adjacency(np.float64).toarray(), expected.toarray())


def test_self_loops_are_counted_and_dropped_but_their_node_is_kept(tmp_path):
    table = pl.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 3]})
    graph, node_ids, counts = ingest(tmp_path, [table], EdgeColumns("src", "dst"), 2)
    assert counts[0]["self_loops"] == 1
    assert node_ids.values.to_pylist() == [1, 2, 3]
    assert graph.degrees.tolist() == [1, 1, 0]


def test_of_repeated_edges_the_earliest_time_is_kept(tmp_path):
    table = pl.DataFrame({"src": [1, 2, 1], "dst": [2, 1, 3], "t": [30, 20, 5]})
    ingest(tmp_path, [table], EdgeColumns("src", "dst", time="t"), 1)
    assert np.load(tmp_path / "times.npy").tolist() == [20, 5, 20, 5]


@pytest.mark.parametrize("bad", [float("nan"), -1.0, 0.0, float("inf")])
def test_a_bad_weight_is_named_with_its_row(tmp_path, bad):
    table = pl.DataFrame({"src": [1, 2], "dst": [2, 3], "w": [1.0, bad]})
    with pytest.raises(InputError, match=r"'w' of .*0.parquet holds the weight .* in row 1"):
        ingest(tmp_path, [table], EdgeColumns("src", "dst", weight="w"), 1)


@pytest.mark.parametrize("column", ["weight", "time"])
def test_text_where_numbers_are_needed_is_refused(tmp_path, column):
    table = pl.DataFrame({"src": [1], "dst": [2], "x": ["heavy"]})
    with pytest.raises(InputError, match=r"column 'x' of .*0.parquet is of type .*string"):
        ingest(tmp_path, [table], EdgeColumns("src", "dst", **{column: "x"}), 1)


def test_dates_are_times(tmp_path):
    dates = pl.Series("t", ["2024-01-02", "2024-01-01"]).str.to_date()
    table = pl.DataFrame({"src": [1, 2], "dst": [2, 3], "t": dates})
    ingest(tmp_path, [table], EdgeColumns("src", "dst", time="t"), 1)
    times = np.load(tmp_path / "times.npy")
    assert times[0] > times[-1]
