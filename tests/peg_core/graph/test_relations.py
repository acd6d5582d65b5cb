"""Kinds of node and relations."""

import numpy as np
import pytest

from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.relations import NodeKind, Relation, Relations

KINDS = (NodeKind("artist", 0, 2), NodeKind("user", 2, 5))
LISTENS = Relation("listens", "user", "artist")
FOLLOWS = Relation("follows", "user", "user", directed=True)


def test_one_undirected_relation_needs_no_codes():
    assert not Relations(KINDS, (LISTENS,)).has_codes
    assert Relations(KINDS, (LISTENS,)).num_columns == 0
    assert Relations(KINDS, (FOLLOWS,)).has_codes


def test_a_directed_relation_has_a_column_each_way():
    relations = Relations(KINDS, (LISTENS, FOLLOWS), predicted=1)
    listed, reverse = relations.bits(1)
    codes = np.array([sum(relations.bits(0)), listed, reverse, listed | reverse], dtype=np.uint16)
    # columns: listens, from column to row, from row to column
    expected = [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert relations.columns(codes).tolist() == expected
    assert relations.num_columns == 3


def test_the_ends_of_predicted_links_are_ranges_of_nodes():
    relations = Relations(KINDS, (LISTENS, FOLLOWS))
    assert (relations.source_nodes.start, relations.target_nodes.size) == (2, 2)
    with pytest.raises(InputError, match=r"no kind of node 'usr'.*did you mean 'user'"):
        relations.kind("usr")


def test_a_graph_keeps_codes_and_relations(tmp_path):
    relations = Relations(KINDS, (LISTENS, FOLLOWS))
    plain = GraphStore.from_edges([2, 3, 2], [0, 1, 3], num_nodes=5)
    codes = np.arange(6, dtype=np.uint16)
    graph = GraphStore(plain.indptr, plain.indices, None, codes, relations=relations)
    graph.save(tmp_path)
    opened = GraphStore.open(tmp_path)
    assert opened.relations == relations
    assert opened.codes.tolist() == codes.tolist()
    assert opened.csr_slice(2, 4).codes.tolist() == [2, 3, 4, 5]
    keep = np.array([True, False, True, True, False, True])
    assert opened.filter_entries(keep).codes.tolist() == [0, 2, 3, 5]
    assert opened.filter_entries(keep).relations == relations
    plain.save(tmp_path / "plain")
    assert GraphStore.open(tmp_path / "plain").relations is None
