"""Ids that a user names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from peg_core.errors import InputError
from peg_core.explain.pair_nodes import pair_nodes, parse_id
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.node_ids import NodeIds

USERS, ITEMS = NodeIds(pa.array([7, 8, 9])), NodeIds(pa.array(["cup", "pot"]))
TWO_KINDS = GraphIds([KindIds(USERS, 0, "user"), KindIds(ITEMS, 3, "item")], 0, 1)
ONE_KIND = GraphIds([KindIds(USERS)])


def test_ends_are_looked_up_in_their_kinds():
    ends = pair_nodes(TWO_KINDS, parse_id(TWO_KINDS.source, "8"), parse_id(TWO_KINDS.target, "pot"))
    assert [end.tolist() for end in ends] == [[1], [4]]


@pytest.mark.parametrize(
    ("ids", "pair", "fault"),
    [
        (ONE_KIND, (7, 10), "the target 10 is no node of the graph"),
        (ONE_KIND, (7, 7), "7 is at both ends"),
        (ONE_KIND, ("x", 7), "the source 'x' is of type"),
        (TWO_KINDS, (7, "jug"), "the target 'jug' is no item of the graph"),
        (ONE_KIND, (7, [1]), "no id|is of type"),
        (ONE_KIND, (None, 7), "the source None"),
    ],
)
def test_others_are_refused(ids, pair, fault):
    with pytest.raises(InputError, match=fault):
        pair_nodes(ids, *pair)


def test_what_is_typed_becomes_an_id():
    assert parse_id(TWO_KINDS.target, "7") == "7"
    assert parse_id(KindIds(NodeIds(pa.array([b"\x01"]))), "01ff") == b"\x01\xff"
    with pytest.raises(InputError, match="whole numbers"):
        parse_id(ONE_KIND.source, "cup")
