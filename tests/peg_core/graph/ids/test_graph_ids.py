"""Ids of a graph with several kinds of node."""

import numpy as np
import pyarrow as pa

from peg_core.graph.ids.graph_ids import GraphIds, kind_folder
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.relations import NodeKind, Relation, Relations

RELATIONS = Relations(
    (NodeKind("user", 0, 3), NodeKind("artist", 3, 5)),
    (Relation("friends", "user", "user"), Relation("listens", "user", "artist")),
    predicted=1,
)


def save(folder):
    RELATIONS.save(folder)
    for place, ids in enumerate(([7, 8, 9], ["8", "x"])):
        kind_folder(folder, place).mkdir()
        NodeIds(pa.array(ids)).save(kind_folder(folder, place))


def test_equal_ids_of_two_kinds_are_two_nodes(tmp_path):
    save(tmp_path)
    ids = GraphIds.open(tmp_path)
    assert len(ids) == 5
    assert ids.source.lookup(pa.array([8, 9, 10, None])).tolist() == [1, 2, -1, -1]
    assert ids.target.lookup(pa.array(["x", "8", "7"])).tolist() == [4, 3, -1]
    assert ids.source.take(np.array([2, 0])).to_pylist() == [9, 7]
    assert ids.target.take(np.array([4, 3])).to_pylist() == ["x", "8"]
    assert GraphIds.stored_types(tmp_path) == (pa.int64(), pa.large_string())


def test_hashes_tell_kinds_apart_and_stay_those_of_a_single_kind(tmp_path):
    NodeIds(pa.array([7, 8, 9])).save(tmp_path)
    alone = GraphIds.open(tmp_path)
    np.testing.assert_array_equal(alone.hashes(), NodeIds.open(tmp_path).hashes())
    twice = GraphIds([*alone.kinds, *alone.kinds])
    assert len(np.unique(twice.hashes())) == 6


def test_both_ends_of_one_edge_list_are_looked_up_among_all_nodes(tmp_path):
    NodeIds(pa.array([7, 8, 9])).save(tmp_path)
    ids = GraphIds.open(tmp_path)
    assert ids.source is ids.target
    assert ids.source.lookup(pa.array([9, 7])).tolist() == [2, 0]
    assert GraphIds.stored_types(tmp_path) == (pa.int64(), pa.int64())
