"""Kinds of node that may be another kind under a second name."""

import pyarrow as pa
import pytest

from peg_core.graph.ids.graph_ids import KindIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.ids.shared_ids import shared_share
from pipeline.config.graph_section import GraphConfig
from pipeline.stages.ingestion.doubtful_kinds import doubtful_kinds

PLAYS = {"name": "plays", "files": "p", "source": "user", "target": "item"}
FRIENDS = {"name": "friends", "files": "f", "source": "user", "target": "friend"}


def found(friends, **more):
    return doubtful_kinds(GraphConfig(edges=[PLAYS, FRIENDS | friends], predict="plays", **more))


def test_a_kind_that_was_forgotten_or_mistyped_is_doubtful():
    assert found({}) == [("friends", "target_kind", "friend", "user")]
    typo = {"source_kind": "usr", "target_kind": "user"}
    assert found(typo) == [("friends", "source_kind", "usr", "user")]


def test_a_kind_that_somebody_else_names_is_not():
    assert found({"source_kind": "user", "target_kind": "user"}) == []
    assert found({"target_kind": "city"}) == []
    assert found({}, nodes={"friend": {"files": "n"}}) == []
    assert doubtful_kinds(GraphConfig(edges=[FRIENDS])) == []
    assert doubtful_kinds(GraphConfig(edges="e", bipartite=True)) == []


@pytest.mark.parametrize("type_", [pa.int64(), pa.large_string()])
def test_shares_of_ids(tmp_path, monkeypatch, type_):
    def kind(place, ids, first):
        values = pa.array(ids).cast(type_)
        return KindIds(NodeIds(values), first, place)

    users, friends = kind("user", range(10, 50), 0), kind("friend", range(40, 60), 40)
    assert shared_share(friends, users) == 0.5
    assert shared_share(users, friends) == 0.25
    other = KindIds(NodeIds(pa.array(["a"] if type_ == pa.int64() else [1])), 60, "other")
    assert shared_share(users, other) == 0.0
