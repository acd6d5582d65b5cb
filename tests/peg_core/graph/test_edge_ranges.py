from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import InputError
from peg_core.graph import edge_runs
from peg_core.graph.edge_ranges import allocate, cut_ranges, merge_range, place_range
from peg_core.graph.edge_rows import Dirt, EdgeColumns, read_edges
from peg_core.graph.edge_runs import RunColumns, write_runs
from peg_core.graph.edge_table import list_row_groups, open_parquet
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import KindIds
from peg_core.graph.ids.id_runs import IdRange, collect_ids, merge_parts, number_ids
from peg_core.graph.ids.id_types import common_id_type
from peg_core.graph.ids.node_ids import NodeIds


def ingest(folder, tables, columns, *, rows_per_run=10**6, entries=10**6, drop=False, **options):
    """The steps one after the other, as the tasks do them, one task per file."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{i}.parquet" for i in range(len(tables))]
    for table, file in zip(tables, files, strict=True):
        table.write_parquet(file)
    kinds = [
        (str(f), name, open_parquet(f).schema_arrow.field(name).type)
        for f in files
        for name in columns.ends
    ]
    kind = common_id_type(kinds)
    groups = [list_row_groups([file], columns.names) for file in files]
    policy = "drop" if drop else "error"

    def rows(batch, dirt):
        return read_edges(batch, columns, [kind] * 2, on_bad_rows=policy, dirt=dirt)

    parts = [folder / f"ids-{i}.parquet" for i in range(len(groups))]
    for batch, part in zip(groups, parts, strict=True):
        collect_ids(rows(batch, Dirt()), [part], [(0, 1)])
    before = options.pop("before_ids", None)
    new = merge_parts(parts, IdRange(), before=before)
    nodes = number_ids([new], len(new), folder, before=before)
    ids, dirt, runs = NodeIds.open(folder), Dirt(), []
    both = [KindIds(ids)] * 2, nodes
    extra = RunColumns(weighted=columns.weight is not None, timed=columns.time is not None)
    for i, batch in enumerate(groups):
        home = folder / f"rows-{i}"
        written = write_runs(rows(batch, dirt), both, extra, dirt, rows_per_run, home)
        runs += [home / run for run in written]
    options.setdefault("duplicates", "sum")
    ranges, facts = [], []
    for i, part in enumerate(cut_ranges(runs, nodes, entries)):
        ranges.append(folder / f"range-{i}")
        facts.append(merge_range(part, runs, nodes, ranges[-1], **options))
    allocate(folder, ranges, facts, nodes)
    offset = 0
    for part, fact in zip(ranges, facts, strict=True):
        place_range(folder, part, offset)
        offset += fact["entries"]
    return GraphStore.open(folder), ids, dirt, facts


ids = st.one_of(
    st.just(lambda i: i * 1_000_003 - 7), st.just(lambda i: i), st.just(lambda i: f"node {i}")
)
edges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60)


@given(edges, ids, st.integers(1, 3), st.sampled_from([1, 4]), st.booleans())
def test_the_store_equals_scipys_matrix_of_the_same_edges(edges, name, files, parts, weighted):
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
    sampling = patch.multiple("peg_core.graph.edge_runs", SAMPLE_EVERY=1)
    with TemporaryDirectory() as folder, sampling:
        entries = max(1, 2 * len(edges) // parts)
        graph, node_ids, _, _ = ingest(
            Path(folder), tables, columns, rows_per_run=7, entries=entries
        )
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
    graph, node_ids, dirt, _ = ingest(tmp_path, [table], EdgeColumns("src", "dst"))
    assert dirt.self_loops == 1
    assert node_ids.values.to_pylist() == [1, 2, 3]
    assert graph.degrees.tolist() == [1, 1, 0]


@pytest.mark.parametrize("weight", [None, "w"])
def test_repeated_and_reversed_rows_are_told_apart(tmp_path, weight):
    table = pl.DataFrame({"src": [1, 1, 2, 3, 3, 5], "dst": [2, 2, 1, 4, 4, 6], "w": [1.0] * 6})
    _, _, dirt, facts = ingest(tmp_path, [table], EdgeColumns("src", "dst", weight=weight))
    directed = sum(fact["directed"] for fact in facts) // 2
    distinct = sum(fact["new"] for fact in facts) // 2
    assert distinct == 3
    assert directed - distinct == 1  # 2 -> 1 mirrors 1 -> 2
    assert dirt.rows - directed == 2  # 1 -> 2 and 3 -> 4 once more


def test_a_hub_is_cut_into_several_ranges(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_runs, "SAMPLE_EVERY", 8)
    table = pl.DataFrame({"src": [0] * 500, "dst": range(1, 501)})
    graph, _, _, facts = ingest(tmp_path, [table], EdgeColumns("src", "dst"), entries=64)
    assert sum(fact["first_row"] == 0 for fact in facts) > 5
    assert max(fact["entries"] for fact in facts) <= 128
    assert graph.neighbours(0).tolist() == list(range(1, 501))
    assert graph.degrees.tolist() == [500] + [1] * 500


@pytest.mark.parametrize(("policy", "expected"), [("sum", 7.0), ("max", 4.0), ("first", 2.0)])
def test_weights_of_repeated_edges_follow_the_policy(tmp_path, policy, expected):
    tables = [
        pl.DataFrame({"src": [1, 1], "dst": [2, 3], "w": [2.0, 9.0]}),
        pl.DataFrame({"src": [2, 1], "dst": [1, 2], "w": [4.0, 1.0]}),
    ]
    columns = EdgeColumns("src", "dst", weight="w")
    graph, *_ = ingest(tmp_path, tables, columns, duplicates=policy)
    assert graph.weights.tolist() == [expected, 9.0, expected, 9.0]


def test_of_repeated_edges_the_earliest_time_is_kept(tmp_path):
    table = pl.DataFrame({"src": [1, 2, 1], "dst": [2, 1, 3], "t": [30, 20, 5]})
    ingest(tmp_path, [table], EdgeColumns("src", "dst", time="t"))
    assert np.load(tmp_path / "times.npy").tolist() == [20, 5, 20, 5]


@pytest.mark.parametrize("weighted", [True, False])
def test_merging_into_an_earlier_store_equals_reading_everything(tmp_path, weighted):
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 60, size=(400, 2)) * 3
    frame = pl.DataFrame(
        {"src": ends[:, 0], "dst": ends[:, 1], "w": rng.random(400) + 0.1, "t": range(400)}
    )
    old, new = frame.filter(pl.col("src") < 120, pl.col("dst") < 120), frame[250:]
    extra = {"weight": "w", "time": "t"} if weighted else {}
    columns = EdgeColumns("src", "dst", **extra)
    first, first_ids, *_ = ingest(tmp_path / "old", [old], columns)
    times = np.load(tmp_path / "old" / "times.npy") if weighted else None
    grown, ids, *_ = ingest(
        tmp_path / "grown", [new], columns,
        before=first, times_before=times, before_ids=first_ids,
    )  # fmt: skip
    whole, whole_ids, *_ = ingest(tmp_path / "whole", [old, new], columns)
    assert ids.values.to_pylist()[: len(first_ids)] == first_ids.values.to_pylist()
    added = ids.values.to_pylist()[len(first_ids) :]
    assert added == sorted(added)
    row = whole_ids.lookup(ids.values)
    expected = whole.adjacency(np.float64).toarray()[np.ix_(row, row)]
    np.testing.assert_allclose(grown.adjacency(np.float64).toarray(), expected, rtol=1e-6)
    if weighted:

        def by_time(folder, graph):
            times = np.load(folder / "times.npy")
            return scipy.sparse.csr_array((times, graph.indices, graph.indptr)).toarray()

        found = by_time(tmp_path / "grown", grown)
        np.testing.assert_array_equal(found, by_time(tmp_path / "whole", whole)[np.ix_(row, row)])


@pytest.mark.parametrize("bad", [float("nan"), -1.0, 0.0, float("inf")])
def test_a_bad_weight_is_named_with_its_row_or_dropped(tmp_path, bad):
    table = pl.DataFrame({"src": [1, 2], "dst": [2, 3], "w": [1.0, bad]})
    columns = EdgeColumns("src", "dst", weight="w")
    with pytest.raises(InputError, match=r"'w' of .*0.parquet holds the weight .* in row 1 of row"):
        ingest(tmp_path, [table], columns)
    graph, ids, dirt, _ = ingest(tmp_path, [table], columns, drop=True)
    assert (dirt.rows, dirt.bad_weights) == (2, 1)
    assert (graph.num_edges, len(ids)) == (1, 2)


@pytest.mark.parametrize(("column", "counter"), [("src", "null_ids"), ("w", "null_values")])
def test_a_null_is_named_with_its_row_or_dropped(tmp_path, column, counter):
    table = pl.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 4], "w": [1.0, 1.0, 1.0]})
    missing = pl.when(pl.int_range(3) == 2).then(None).otherwise(column)
    table = table.with_columns(missing.alias(column))
    columns = EdgeColumns("src", "dst", weight="w")
    with pytest.raises(InputError, match=rf"'{column}' of .*0.parquet holds 1 null.*row 2 of row"):
        ingest(tmp_path, [table], columns)
    graph, ids, dirt, _ = ingest(tmp_path, [table], columns, drop=True)
    assert getattr(dirt, counter) == 1
    assert (graph.num_edges, len(ids)) == (2, 3)


@pytest.mark.parametrize("column", ["weight", "time"])
def test_text_where_numbers_are_needed_is_refused(tmp_path, column):
    table = pl.DataFrame({"src": [1], "dst": [2], "x": ["heavy"]})
    with pytest.raises(InputError, match=r"column 'x' of .*0.parquet is of type .*string"):
        ingest(tmp_path, [table], EdgeColumns("src", "dst", **{column: "x"}))


def test_dates_are_times(tmp_path):
    dates = pl.Series("t", ["2024-01-02", "2024-01-01"]).str.to_date()
    table = pl.DataFrame({"src": [1, 2], "dst": [2, 3], "t": dates})
    ingest(tmp_path, [table], EdgeColumns("src", "dst", time="t"))
    times = np.load(tmp_path / "times.npy")
    assert times[0] > times[-1]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pl.Int8, [-128, 127, 5]),
        (pl.UInt32, [0, 2**32 - 1, 7]),
        (pl.UInt64, [0, 2**64 - 1, 2**63]),
        (pl.Int64, [-(2**63), 2**63 - 1, 0]),
        (pl.String, ["", "ä", "z" * 300]),
        (pl.Categorical, ["x", "y", "z"]),
        (pl.Binary, [b"\x00", b"\x00\x01", bytes(16)]),
    ],
)
def test_ids_of_every_kind_are_numbered_in_sorted_order(tmp_path, kind, values):
    ends = pl.Series(values, dtype=kind)
    table = pl.DataFrame({"src": ends, "dst": ends.gather([1, 2, 0])})
    graph, ids, *_ = ingest(tmp_path, [table], EdgeColumns("src", "dst"))
    assert ids.values.to_pylist() == sorted(values)
    assert graph.num_edges == 3
    assert ids.lookup(table["src"].to_arrow()).tolist() == [sorted(values).index(v) for v in values]
