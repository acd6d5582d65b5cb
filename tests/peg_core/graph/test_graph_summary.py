from __future__ import annotations

import dataclasses
import os
import statistics
import tempfile
from pathlib import Path
from unittest import mock

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import ArtifactMismatch, PegError
from peg_core.graph import graph_summary
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.graph_summary import DegreeTable, bin_degrees, summarise_graph
from peg_core.graph.ids.node_ids import NodeIds


@st.composite
def simple_graphs(draw):
    graph = nx.empty_graph(draw(st.integers(1, 25)))
    end = st.integers(0, len(graph) - 1)
    pairs = draw(st.lists(st.tuples(end, end), max_size=60))
    graph.add_edges_from((a, b) for a, b in pairs if a != b)
    return graph


def summarise(graph: GraphStore):
    with tempfile.TemporaryDirectory() as folder:
        graph.save(Path(folder))
        return summarise_graph(Path(folder))


@pytest.fixture
def star(tmp_path):
    """Node 2 in the middle of 0 .. 4, and node 5 alone; a folder."""
    GraphStore.from_edges([2, 2, 2, 2], [0, 1, 3, 4], num_nodes=6).save(tmp_path)
    return tmp_path


@given(simple_graphs(), st.integers(1, 30))
def test_every_number_equals_that_of_networkx_whatever_the_chunks(to_store, graph, chunk_nodes):
    with mock.patch.object(graph_summary, "CHUNK_NODES", chunk_nodes):
        summary = summarise(to_store(graph))
    degrees = dict(graph.degree())
    assert (summary.nodes, summary.edges) == (len(graph), graph.number_of_edges())
    assert summary.density == pytest.approx(nx.density(graph))
    assert summary.mean_degree == pytest.approx(statistics.fmean(degrees.values()))
    assert summary.median_degree == statistics.median(degrees.values())
    assert summary.max_degree == max(degrees.values())
    assert summary.isolated_nodes == nx.number_of_isolates(graph)
    sizes = sorted(map(len, nx.connected_components(graph)), reverse=True)
    assert summary.components == len(sizes)
    assert summary.largest_components == sizes[:5]
    ranked = sorted((node for node in graph if degrees[node]), key=lambda n: (-degrees[n], n))
    assert [(hub.index, hub.degree) for hub in summary.hubs] == [
        (node, degrees[node]) for node in ranked[:10]
    ]
    for item in summary.degree_distribution:
        inside = [node for node in graph if item.low <= degrees[node] <= item.high]
        assert item.nodes == len(inside)
    assert sum(item.nodes for item in summary.degree_distribution) == len(graph)


def test_hubs_are_the_same_for_any_chunks_on_a_graph_with_many_equal_degrees(to_store):
    graph = to_store(nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20, periodic=True)))
    assert [hub.index for hub in summarise(graph).hubs] == list(range(10))
    with mock.patch.object(graph_summary, "CHUNK_NODES", 7):
        assert [hub.index for hub in summarise(graph).hubs] == list(range(10))


@pytest.mark.parametrize("max_degree", [0, 1, 2, 3, 4, 1_000, 2**15 - 1, 2**15, 10**6, 2**40])
def test_bins_are_few_adjoin_and_grow_by_one_factor(max_degree):
    bins = bin_degrees(DegreeTable(np.array([max_degree]), np.array([7])))
    assert len(bins) <= 16
    assert (bins[0].low, bins[0].high) == (0, 0)
    assert bins[-1].low <= max_degree <= bins[-1].high
    assert [item.nodes for item in bins] == [0] * (len(bins) - 1) + [7]
    assert [item.low for item in bins[1:]] == [item.high + 1 for item in bins[:-1]]
    assert len({(item.high + 1) // item.low for item in bins[1:]}) <= 1


def test_bins_are_powers_of_two_while_they_are_few():
    table = DegreeTable(np.array([0, 1, 2, 3, 9]), np.array([1, 2, 3, 4, 5]))
    assert [dataclasses.astuple(item) for item in bin_degrees(table)] == [
        (0, 0, 1),
        (1, 1, 2),
        (2, 3, 7),
        (4, 7, 0),
        (8, 15, 5),
    ]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([10, 20, -30, 40, 50, 60]), -30),
        (pa.array(["a", "b", "hub", "d", "e", "f"]), "hub"),
    ],
)
def test_hubs_have_their_original_ids(star, ids, expected):
    NodeIds(ids).save(star)
    first = summarise_graph(star).hubs[0]
    assert (first.id, first.index, first.degree) == (expected, 2, 4)


def test_bytes_as_ids_become_hexadecimal():
    ids = mock.Mock(take=lambda indices: pa.array([b"\x00\xff", b"\x10"]).take(pa.array(indices)))
    assert graph_summary.plain_ids(ids, np.array([1, 0])) == ["10", "00ff"]


def test_a_store_without_ids_has_hubs_without_ids(star):
    assert {hub.id for hub in summarise_graph(star).hubs} == {None}


def test_ids_of_another_graph_are_refused(star):
    NodeIds(pa.array([1, 2, 3])).save(star)
    with pytest.raises(ArtifactMismatch, match="found 3 ids, needed 6"):
        summarise_graph(star)


def test_weights_features_and_sizes(tmp_path):
    weights = [0.5, 2.0, 1.0]
    GraphStore.from_edges([0, 1, 2], [1, 2, 3], num_nodes=5, weights=weights).save(tmp_path)
    np.save(tmp_path / "features.npy", np.zeros((5, 12), np.float32))
    summary = summarise_graph(tmp_path)
    assert summary.weighted
    assert summary.feature_width == 12
    assert summary.mapped_bytes == 6 * 8 + 6 * 4 + 6 * 4  # indptr, indices, weights
    assert summary.disk_bytes == sum(entry.stat().st_size for entry in os.scandir(tmp_path))
    assert summary.median_degree == 1  # neighbours, not weights


@pytest.mark.parametrize("num_nodes", [0, 1, 4])
def test_a_graph_without_edges(num_nodes):
    summary = summarise(GraphStore.from_edges([], [], num_nodes=num_nodes))
    assert (summary.nodes, summary.edges, summary.density) == (num_nodes, 0, 0.0)
    assert (summary.mean_degree, summary.median_degree, summary.max_degree) == (0.0, 0.0, 0)
    assert summary.isolated_nodes == summary.components == num_nodes
    assert summary.hubs == []
    assert not summary.weighted
    assert summary.feature_width is None


def test_a_truncated_store_is_told(star):
    file = star / "indices.npy"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(PegError, match=r"cannot be read .*write it again"):
        summarise_graph(star)


def test_a_store_that_lacks_a_file_is_told(star):
    (star / "indices.npy").unlink()
    with pytest.raises(PegError, match=r"cannot be read .*indices\.npy.*write it again"):
        summarise_graph(star)
