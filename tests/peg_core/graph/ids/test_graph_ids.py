"""Ids of a graph with several kinds of node."""

import numpy as np
import pyarrow as pa
import pytest

from peg_core.graph.ids.graph_ids import GraphIds, KindIds, kind_folder
from peg_core.graph.ids.id_types import cast_ids, joint_id_type
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


def test_nodes_of_any_kind_have_an_id_and_the_name_of_their_kind(tmp_path):
    save(tmp_path)
    ids = GraphIds.open(tmp_path)
    nodes = np.array([4, 0, 2, 3, 0])
    assert ids.take(nodes).to_pylist() == ["x", "7", "9", "8", "7"]
    assert ids.names(nodes).to_pylist() == ["artist", "user", "user", "artist", "user"]
    assert GraphIds.stored(tmp_path)
    assert not GraphIds.stored(tmp_path / "kind-3")


def test_nodes_of_another_graph_are_found_by_kind_and_id():
    def graph(**kinds):
        first, made = 0, []
        for name, ids in kinds.items():
            made.append(KindIds(NodeIds(pa.array(ids)), first, name))
            first += len(ids)
        return GraphIds(made)

    before = graph(user=[7, 8, 9], artist=[8, 3], song=[1])
    now = graph(artist=[3, 4, 8], user=[9, 7, 1])
    assert now.find(before).tolist() == [4, -1, 3, 2, 0, -1]
    plain = GraphIds([KindIds(NodeIds(pa.array(["b", "a"])))])
    assert plain.find(GraphIds([KindIds(NodeIds(pa.array(["a", "c"])))])).tolist() == [1, -1]
    assert plain.names(np.array([0])) is None


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        ([pa.int64(), pa.int64()], pa.int64()),
        ([pa.int64(), pa.large_string()], pa.large_string()),
        ([pa.int64(), pa.uint64()], pa.large_string()),
        ([pa.int64(), pa.large_binary()], pa.large_binary()),
    ],
)
def test_ids_of_two_types_are_written_as_text(kinds, wanted):
    assert joint_id_type(kinds) == wanted
    assert cast_ids(pa.array([1, 2]), wanted).cast(wanted).type == wanted
