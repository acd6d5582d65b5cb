"""Weights that fade, against the formula on dense matrices."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.graph.edge_ranges import allocate, cut_ranges, merge_range, place_range
from peg_core.graph.edge_rows import Dirt, EdgeColumns, read_edges
from peg_core.graph.edge_runs import RunColumns, write_runs
from peg_core.graph.edge_table import list_row_groups, open_parquet
from peg_core.graph.fading import LISTED, Fading, fade_from
from peg_core.graph.graph_store import GraphStore, load_times
from peg_core.graph.ids.graph_ids import KindIds
from peg_core.graph.ids.id_runs import IdRange, collect_ids, merge_parts, number_ids
from peg_core.graph.ids.id_types import id_type
from peg_core.graph.ids.node_ids import NodeIds


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20), st.floats(1, 10**12))
def test_a_weight_halves_in_a_half_life(times, half_life):
    fading, newest = Fading(half_life), max(times)
    weights = fading.fade(np.array(times), newest, None)
    for time, weight in zip(times, weights.tolist(), strict=True):
        assert weight == pytest.approx(max(0.5 ** ((newest - time) / half_life), 2.0**-20))
    listed = np.arange(1, len(times) + 1, dtype=np.float32)
    np.testing.assert_allclose(
        fading.fade(np.array(times), newest, listed), weights * listed, rtol=1e-6
    )


def ingest(folder, table, columns, fading, entries):
    """The steps one after the other, as the tasks do them."""
    table.write_parquet(folder / "edges.parquet")
    groups = list_row_groups([folder / "edges.parquet"], columns.names)
    kind = id_type(open_parquet(folder / "edges.parquet").schema_arrow.field("src").type)

    def rows():
        return read_edges(groups, columns, [kind] * 2, on_bad_rows="error", dirt=Dirt())

    collect_ids(rows(), [folder / "ids.parquet"], [(0, 1)])
    ids = merge_parts([folder / "ids.parquet"], IdRange())
    nodes = number_ids([ids], len(ids), folder)
    ids = [KindIds(NodeIds.open(folder))] * 2, nodes
    extra = RunColumns(weighted=columns.weight is not None, timed=True)
    runs = write_runs(rows(), ids, extra, Dirt(), 10**6, folder / "rows")
    runs = [folder / "rows" / run for run in runs]
    ranges, facts = [], []
    for number, part in enumerate(cut_ranges(runs, nodes, entries)):
        ranges.append(folder / f"range-{number}")
        facts.append(merge_range(part, runs, nodes, ranges[-1], duplicates="sum"))
    allocate(folder, ranges, facts, nodes, fading)
    newest = max(fact["newest"] for fact in facts)
    offset = 0
    for part, fact in zip(ranges, facts, strict=True):
        place_range(folder, part, offset, fading, newest)
        offset += fact["entries"]
    return GraphStore.open(folder)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("entries", [8, 10**6])
def test_a_stored_graph_has_faded_and_from_an_earlier_day_it_is_younger(
    tmp_path, weighted, entries
):
    rng = np.random.default_rng(0)
    pairs = np.array([(u, v) for u in range(12) for v in range(u) if rng.random() < 0.5])
    days, weights = rng.integers(0, 40, len(pairs)), rng.uniform(0.5, 3, len(pairs))
    table = pl.DataFrame({"src": pairs[:, 0], "dst": pairs[:, 1], "day": days, "w": weights})
    columns = EdgeColumns("src", "dst", weight="w" if weighted else None, time="day")
    graph = ingest(tmp_path, table, columns, Fading(7.0), entries)
    ids = np.asarray(NodeIds.open(tmp_path).values)

    def dense(newest):
        matrix = np.zeros((12, 12))
        for (u, v), day, weight in zip(pairs, days, weights, strict=True):
            age = newest - min(day, newest)
            matrix[u, v] = matrix[v, u] = (weight if weighted else 1) * 2 ** (-age / 7)
        return matrix[np.ix_(ids, ids)]

    np.testing.assert_allclose(graph.adjacency().toarray(), dense(days.max()), rtol=1e-6)
    assert (tmp_path / LISTED).exists() == weighted
    earlier = fade_from(graph, tmp_path, 20)
    keep = load_times(tmp_path) <= 20
    span = slice(0, len(graph.indices))
    expected = dense(20)[np.repeat(np.arange(12), graph.degrees), graph.indices]
    np.testing.assert_allclose(earlier.weights[span][keep], expected[keep], rtol=1e-6)


def test_a_graph_that_does_not_fade_stays_as_it_is(tmp_path):
    graph = GraphStore.from_edges([0, 1], [1, 2], num_nodes=3)
    graph.save(tmp_path)
    np.save(tmp_path / "times.npy", np.arange(4))
    assert fade_from(graph, tmp_path, 3) is graph
