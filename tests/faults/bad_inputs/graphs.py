"""Readable tables that hold a graph of an awkward shape."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import polars as pl

from tests.faults.bad_inputs.kind import ACCEPTED, REFUSED, Group, Make
from tests.faults.bad_inputs.place import NUM_NODES, Place

EXPLAINED = r"edges|links|graph|nodes|split"
graphs = Group("graphs", command="peg run CONFIG", says=EXPLAINED)


def edges_of(pairs: Any, **sections: dict[str, Any]) -> Make:
    """The graph has these edges and no node table; sections of the settings change."""

    def make(place: Place) -> None:
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)  # [num_edges, 2]
        order = range(len(ends))
        columns = {"src": ends[:, 0], "dst": ends[:, 1], "time": order}
        pl.DataFrame(columns).write_parquet(place.edges)
        for key in ("nodes", "features"):
            del place.settings["graph"][key]
        change_settings(place, sections)

    return make


def change_settings(place: Place, sections: dict[str, Any]) -> None:
    """Merge sections into the settings."""
    for name, values in sections.items():
        if isinstance(values, dict):
            place.settings[name] = {**place.settings.get(name, {}), **values}
        else:
            place.settings[name] = values


def settings(**sections: Any) -> Make:
    """The tiny graph, asked for in another way."""
    return lambda place: change_settings(place, sections)


def split_by_files(valid: str, test: str, **more: str) -> Make:
    """Links are given: rows of the edges, chosen by expressions such as ``time < 30``."""

    def make(place: Place) -> None:
        table = pl.read_parquet(place.edges)
        chosen = {"valid_edges": valid, "test_edges": test, **more}
        for name, rows in chosen.items():
            file = place.folder / f"{name}.parquet"
            table.sql(f"SELECT src, dst FROM self WHERE {rows}").write_parquet(file)
            place.settings["split"][name] = str(file)
        place.settings["split"]["by"] = "files"

    return make


def node_table_of(ids: Any) -> Make:
    """The node table lists these nodes alone."""

    def make(place: Place) -> None:
        rows = [[float(i % 3), 1.0] for i in range(len(ids))]
        table = {"id": ids, "x": rows}
        pl.DataFrame(table, schema_overrides={"id": pl.Int64}).write_parquet(place.nodes)

    return make


def equal_times(place: Place) -> None:
    pl.read_parquet(place.edges).with_columns(time=pl.lit(7)).write_parquet(place.edges)
    change_settings(place, {"graph": {"time": "time"}, "split": {"by": "time"}})


pairs = [(2 * i, 2 * i + 1) for i in range(30)]
TOO_SMALL = {
    "no edges": [],
    "one node with a self-loop": [(0, 0)],
    "one edge": [(0, 1)],
    "two edges": [(0, 1), (1, 2)],
    "only self-loops": [(i, i) for i in range(NUM_NODES)],
    "one edge, many times": [(0, 1), (1, 0)] * 50,
    "a triangle": [(0, 1), (1, 2), (2, 0)],
    "too few links to split": list(nx.path_graph(8).edges()),
}
for name, found in TOO_SMALL.items():
    graphs.add(name, edges_of(found), REFUSED)

# A user may be told that nothing can be learned here, or get a result.
AWKWARD = {
    "a star": list(nx.star_graph(NUM_NODES).edges()),
    "a path": list(nx.path_graph(NUM_NODES).edges()),
    "pairs without connection": pairs,
    "a complete graph": list(nx.complete_graph(25).edges()),
    "a complete graph of two sides": list(nx.complete_bipartite_graph(12, 12).edges()),
}
for name, found in AWKWARD.items():
    graphs.add(name, edges_of(found), ACCEPTED, REFUSED, warns=False)

blocks = list(nx.stochastic_block_model([30, 30], [[0.3, 0], [0, 0.3]], seed=1).edges())
FINE = {
    "two components": blocks,
    "self-loops among the edges": [*blocks, *((i, i) for i in range(NUM_NODES))],
    "nodes with nothing but a self-loop": [*blocks, (100, 100), (101, 101)],
    "every edge in both directions": [*blocks, *((b, a) for a, b in blocks)],
    "ids far apart": [(a * 10**15, b * 10**15) for a, b in blocks],
}
for name, found in FINE.items():
    graphs.add(name, edges_of(found), ACCEPTED, says="")

graphs.add("equal times", equal_times, ACCEPTED, REFUSED, says="time")
graphs.add(
    "validation links are the test links",
    split_by_files("time < 30", "time < 30"),
    REFUSED,
    ACCEPTED,
    says="valid_edges|test_edges|overlap|both|share",
)
graphs.add(
    "all edges are test links",
    split_by_files("time < 30", "time >= 30"),
    REFUSED,
    says="test_edges|train",
)
graphs.add("no validation links", split_by_files("time < 0", "time < 30"), REFUSED, says="valid")
graphs.add(
    "a file of non-links without rows",
    split_by_files("time < 30", "time > 270", valid_negatives="src < 0"),
    REFUSED,
    says="valid_negatives",
)
graphs.add(
    "non-links that are links",
    split_by_files("time < 30", "time > 270", test_negatives="time > 270"),
    REFUSED,
    ACCEPTED,
    says="test_negatives|negatives.*links|links.*negatives",
)
graphs.add("split by files that are missing", settings(
    split={"by": "files", "valid_edges": "none.parquet", "test_edges": "none.parquet"}
), REFUSED, says=r"none\.parquet", stage="split")  # fmt: skip
graphs.add(
    "a validation share of nothing", settings(split={"valid": 0.0001}), REFUSED, says="valid"
)
graphs.add(
    "more folds than links", edges_of(nx.path_graph(40).edges(), split={"folds": 100}), REFUSED,
    ACCEPTED, says="fold",
)  # fmt: skip
graphs.add(
    "more dimensions than nodes", settings(encodings=[{"kind": "le", "dimensions": 100}]), REFUSED,
    ACCEPTED, says="dimensions",
)  # fmt: skip
graphs.add(
    "features of 3 % of the nodes", node_table_of([3, 4]), ACCEPTED,
    says=r"58 of|2 of|3(\.\d)? ?%|9[67](\.\d)? ?%|without a row|no features",
)  # fmt: skip
graphs.add(
    "features of other nodes alone", node_table_of(range(1000, 1060)), REFUSED, ACCEPTED,
    says=r"nodes\.parquet|graph\.node_id|60 of",
)  # fmt: skip
graphs.add("features of no node", node_table_of([]), REFUSED, says=r"nodes\.parquet")
graphs.add("features of many more nodes", node_table_of(range(20_000)), ACCEPTED, says="")
