"""What ingestion says of lists that are not what the configuration takes them for."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from peg_core.errors import InputError
from peg_core.generators.citation_graph import CitationGraph
from peg_core.generators.taste_graph import TasteGraph
from peg_core.graph.graph_store import GraphStore
from pipeline.config.graph_section import GraphConfig
from pipeline.stages import ingest
from workers.artifact_ref import ArtifactRef

TASTES = TasteGraph(users=100, items=60, edges=500, tastes=5)
FRIENDS = {"name": "friends", "source": "user", "target": "friend"}
USERS = {"source_kind": "user", "target_kind": "user"}


@pytest.fixture
def files(tmp_path):
    """Plays and friendships of users, and citations, all with integer ids from 0."""
    user, item = TASTES.likes(seed=0)
    pl.DataFrame({"user": user, "item": item}).write_parquet(tmp_path / "plays.parquet")
    first, second = TASTES.friendships(rows=300, seed=0)
    pl.DataFrame({"user": first, "friend": second}).write_parquet(tmp_path / "friends.parquet")
    citing, cited = CitationGraph(200, 800, 5).citations(seed=0)
    pl.DataFrame({"citing": citing, "cited": cited}).write_parquet(tmp_path / "cites.parquet")
    return {path.stem: str(path) for path in tmp_path.iterdir()}


def warnings_of(tmp_path, **graph):
    """Those of the stage, with tasks that run here."""
    config = GraphConfig(**graph)
    places = {f"graph.{key}": [{"path": place}] for key, place in config.locations.items()}
    context = SimpleNamespace(
        map=lambda task, shards, **_: [task(**shard.arguments) for shard in shards],
        tasks=SimpleNamespace(settings=SimpleNamespace(task_memory_bytes=10**9)),
        progress=SimpleNamespace(update=lambda *_: None),
        config=SimpleNamespace(graph=config),
        identity=SimpleNamespace(files=places),
        previous=None,
        out=ArtifactRef.of_folder(Path(tempfile.mkdtemp(dir=tmp_path)), GraphStore),
    )
    return ingest.run(context).warnings


def relations(files, **friends):
    plays = {"name": "plays", "files": files["plays"], "source": "user", "target": "item"}
    return [plays, {**FRIENDS, "files": files["friends"], **friends}]


def test_graphs_that_are_what_they_are_said_to_be(files, tmp_path):
    bipartite = {"source": "user", "target": "item", "bipartite": True}
    assert warnings_of(tmp_path, edges=files["plays"], **bipartite) == []
    assert warnings_of(tmp_path, edges=relations(files, **USERS), predict="plays") == []
    directed = {"source": "citing", "target": "cited", "directed": True}
    assert warnings_of(tmp_path, edges=files["cites"], **directed) == []
    assert warnings_of(tmp_path, edges=files["friends"], source="user", target="friend") == []


@pytest.mark.parametrize("directed", [False, True])
def test_two_kinds_that_share_numbers_in_a_list_of_one(files, tmp_path, directed):
    columns = {"source": "user", "target": "item", "directed": directed}
    text = warnings_of(tmp_path, edges=files["plays"], **columns)[0]
    users, items = TASTES.likes(seed=0)
    beyond = len(set(users[users > items.max()]))
    assert text.startswith(f"{beyond} numbers in one of the columns 'user' (")
    assert "set `graph.bipartite: true`" in text


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({}, "`target_kind: user` in the relation 'friends'"),
        ({"source_kind": "usr", "target_kind": "user"}, "`source_kind: user` in the relation"),
    ],
)
def test_a_kind_that_was_forgotten_or_mistyped(files, tmp_path, given, remedy):
    (text,) = warnings_of(tmp_path, edges=relations(files, **given), predict="plays")
    assert remedy in text


def test_a_directed_list_that_gives_every_link_both_ways(files, tmp_path):
    table = pl.read_parquet(files["friends"])
    both = pl.concat([table, table.select(user="friend", friend="user")])
    both.write_parquet(files["friends"])
    columns = {"source": "user", "target": "friend", "directed": True}
    (text,) = warnings_of(tmp_path, edges=files["friends"], **columns)
    assert text.startswith("300 of 300 duplicates in 600 rows are reversed")
    del columns["directed"]
    assert warnings_of(tmp_path, edges=files["friends"], **columns) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"friend": pl.lit(None, pl.Int64)}, r"'friend' of .*friends\.parquet holds 300 null"),
        ({"friend": pl.col("user")}, r"friends\.parquet holds no edge that can be used: of 300"),
        ({"day": pl.lit(datetime.date(2999, 1, 1))}, r"'day' of .*friends.*300 date\(s\) in the f"),
        ({"friend": pl.col("friend").cast(pl.String)}, r"'friend' of .*large_string, needed is"),
    ],
)
def test_bad_rows_of_context_are_refused_by_file_and_column(files, tmp_path, change, message):
    table = pl.read_parquet(files["friends"]).with_columns(**change)
    table.write_parquet(files["friends"])
    more = {"time": "day"} if "day" in change else {}
    edges = relations(files, **USERS, **more)
    with pytest.raises(InputError, match=message):
        warnings_of(tmp_path, edges=edges, predict="plays")
