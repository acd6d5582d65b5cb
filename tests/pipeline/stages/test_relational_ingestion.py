"""Ingestion of several relations and kinds of node, step by step in one process."""

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.node_features import load_features
from pipeline.config.graph_section import GraphConfig
from pipeline.stages import ingest
from pipeline.stages.ingestion.ingestion import Ingestion
from workers.artifact_ref import ArtifactRef

USERS, ARTISTS = st.integers(0, 5), st.integers(0, 6)
LISTENS = st.lists(st.tuples(USERS, ARTISTS, st.integers(1, 9)), min_size=1, max_size=25)
PAIRS = st.lists(st.tuples(USERS, USERS), min_size=1, max_size=12).filter(
    lambda pairs: any(a != b for a, b in pairs)
)


def run_ingestion(graph, out, *, task_memory=10**9):
    """The stage's steps, with tasks that run here."""

    def run_tasks(task, shards, **_):
        return [task(**shard.arguments) for shard in shards]

    files = {f"graph.{key}": [{"path": place}] for key, place in graph.locations.items()}
    context = SimpleNamespace(
        map=run_tasks,
        tasks=SimpleNamespace(settings=SimpleNamespace(task_memory_bytes=task_memory)),
        progress=SimpleNamespace(update=lambda *_: None),
        config=SimpleNamespace(graph=graph),
        identity=SimpleNamespace(files=files),
        previous=None,
        out=ArtifactRef.of_folder(out, GraphStore),
    )
    return Ingestion.prepare(context, ingest.ingest_request(context)).run()


def listens(folder, rows, **more):
    table = {name: [row[n] for row in rows] for n, name in enumerate(("user", "artist", "plays"))}
    pl.DataFrame(table).write_parquet(folder / "listens.parquet")
    columns = {"source": "user", "target": "artist", "weight": "plays"}
    return {"name": "listens", "files": str(folder / "listens.parquet"), **columns, **more}


def pairs(folder, name, rows, **more):
    columns = {"source": "user", "target": "friend"}
    table = dict(zip(columns.values(), ([row[n] for row in rows] for n in (0, 1)), strict=True))
    pl.DataFrame(table).write_parquet(folder / f"{name}.parquet")
    kinds = {"source_kind": "user", "target_kind": "user"}
    files = str(folder / f"{name}.parquet")
    return {"name": name, "files": files, **columns, **kinds, **more}


@settings(deadline=None)
@given(LISTENS, PAIRS, PAIRS, st.sampled_from([2000, 10**9]))
def test_every_entry_has_the_relations_and_weights_of_its_rows(plays, friends, follows, memory):
    with TemporaryDirectory() as name:
        folder = Path(name)
        graph = GraphConfig(
            edges=[
                pairs(folder, "friends", friends, scale=0.5),
                listens(folder, plays),
                pairs(folder, "follows", follows, directed=True),
            ],
            predict="listens",
        )
        counts = run_ingestion(graph, folder / "graph", task_memory=memory)
        store, ids = (kind.open(folder / "graph") for kind in (GraphStore, GraphIds))
        users = sorted({u for u, *_ in plays} | {u for pair in friends + follows for u in pair})
        artists = sorted({a for _, a, _ in plays})
        assert [kind.ids.values.to_pylist() for kind in ids.kinds] == [users, artists]

        def user(u):
            return users.index(u)

        # an independent reading: bit 2r for a row u -> v at (u, v), bit 2r + 1 at (v, u)
        codes, weights, context = (defaultdict(float) for _ in range(3))
        codes = defaultdict(int)
        for u, a, count in plays:
            v = len(users) + artists.index(a)
            for key in ((user(u), v), (v, user(u))):
                codes[key] |= 0b1100
                weights[key] += count
        for u, v in friends:
            for key in ((user(u), user(v)), (user(v), user(u))) if u != v else ():
                codes[key] |= 0b11
                weights[key] += 0.5
                context[key] += 0.5
        for u, v in follows:
            if u != v:
                codes[user(u), user(v)] |= 0b010000
                codes[user(v), user(u)] |= 0b100000
                for key in ((user(u), user(v)), (user(v), user(u))):
                    weights[key] += 1
                    context[key] += 1
        rows = np.repeat(np.arange(store.num_nodes), store.degrees)
        keys = list(zip(rows.tolist(), store.indices.tolist(), strict=True))
        assert keys == sorted(codes)
        assert store.codes.tolist() == [codes[key] for key in keys]
        np.testing.assert_allclose(store.weights, [weights[key] for key in keys])
        alone = np.load(folder / "graph" / "context_weights.npy")
        np.testing.assert_allclose(alone, [context[key] for key in keys])
        assert store.relations.target.name == "listens"
        assert counts["nodes_user"] == len(users)
        assert counts["edges_listens"] == len({(u, a) for u, a, _ in plays})
        assert counts.get("edges_follows", 0) == len({(u, v) for u, v in follows if u != v})


def test_equal_ids_of_two_kinds_are_two_nodes(tmp_path):
    edges = listens(tmp_path, [(1, 1, 3), (2, 1, 1)])
    graph = GraphConfig(
        edges=edges["files"], source="user", target="artist", weight="plays", bipartite=True
    )
    run_ingestion(graph, tmp_path / "graph")
    store, ids = GraphStore.open(tmp_path / "graph"), GraphIds.open(tmp_path / "graph")
    assert store.num_nodes == 3
    assert store.codes is None
    assert ids.source.lookup(ids.source.take([0, 1])).tolist() == [0, 1]
    assert ids.target.take([2]).to_pylist() == [1]
    np.testing.assert_allclose(store.adjacency().toarray()[:2, 2], [3, 1])


def test_features_of_two_kinds_stand_in_columns_of_their_own(tmp_path):
    edges = listens(tmp_path, [(1, 1, 3), (2, 1, 1)])
    pl.DataFrame({"id": [2, 1], "age": [20.0, 10.0]}).write_parquet(tmp_path / "users.parquet")
    pl.DataFrame({"key": [1, 9], "x": [[1.0, 2.0], [3.0, 4.0]]}).write_parquet(
        tmp_path / "artists.parquet"
    )
    tables = {
        "user": {"files": str(tmp_path / "users.parquet"), "features": ["age"]},
        "artist": {"files": str(tmp_path / "artists.parquet"), "id": "key", "features": ["x"]},
    }
    counts = run_ingestion(GraphConfig(edges=[edges], nodes=tables), tmp_path / "graph")
    expected = [[10, 0, 0], [20, 0, 0], [0, 1, 2], [0, 3, 4]]
    np.testing.assert_array_equal(load_features(tmp_path / "graph"), expected)
    assert counts["isolated_nodes"] == 1
    assert counts["nodes_without_row"] == 0


def test_the_time_of_a_link_is_that_of_the_predicted_relation(tmp_path):
    table = pl.DataFrame({"a": [1, 1, 2], "b": [2, 3, 3], "t": [5, 6, 7]})
    table.write_parquet(tmp_path / "cites.parquet")
    pl.DataFrame({"a": [2], "b": [1], "t": [1]}).write_parquet(tmp_path / "knows.parquet")
    pl.DataFrame({"a": [3], "b": [4]}).write_parquet(tmp_path / "timeless.parquet")
    shared = {"source": "a", "target": "b", "source_kind": "p", "target_kind": "p"}
    edges = [
        {"name": name, "files": str(tmp_path / f"{name}.parquet"), **shared, **more}
        for name, more in (
            ("knows", {"time": "t"}), ("cites", {"time": "t", "directed": True}), ("timeless", {})
        )
    ]  # fmt: skip
    run_ingestion(GraphConfig(edges=edges, predict="cites"), tmp_path / "graph")
    store, times = GraphStore.open(tmp_path / "graph"), np.load(tmp_path / "graph" / "times.npy")
    found = dict(zip(zip(*store.adjacency().nonzero(), strict=True), times.tolist(), strict=True))
    assert {(int(u), int(v)): time for (u, v), time in found.items() if u < v} == {
        (0, 1): 5, (0, 2): 6, (1, 2): 7, (2, 3): np.iinfo(np.int64).min
    }  # fmt: skip
    assert store.is_directed
    links = store.contains_link(np.array([0, 1, 2]), np.array([1, 0, 3]))
    assert links.tolist() == [True, False, False]


def test_a_relation_without_an_edge_is_refused_by_name(tmp_path):
    empty = pairs(tmp_path, "friends", [(1, 1)])
    graph = GraphConfig(edges=[listens(tmp_path, [(1, 1, 3)]), empty], predict="listens")
    with pytest.raises(InputError, match=r"friends\.parquet.*1 lead from a node to itself"):
        run_ingestion(graph, tmp_path / "graph")
