import numpy as np

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.edge_split import TEST, TRAIN, VALID, split_by_time
from peg_core.splits.time_ties import TimeTie, find_tie


def split_path(edge_times):
    """A path whose edges have the given times, with the part of every entry: 0.2 and 0.2."""
    nodes = np.arange(len(edge_times) + 1)
    graph = GraphStore.from_edges(nodes[:-1], nodes[1:], num_nodes=len(nodes))
    rows = np.repeat(nodes, graph.degrees)
    times = np.asarray(edge_times)[np.minimum(rows, graph.indices)]
    parts = np.zeros(len(graph.indices), np.uint8)
    split_by_time(graph, nodes, times, parts, valid=0.2, test=0.2, seed=0)
    return graph, times, parts


def test_distinct_times_have_no_tie():
    split = split_path(np.arange(10))
    assert find_tie(*split, TRAIN, VALID) is None
    assert find_tie(*split, VALID, TEST) is None


def test_edges_of_one_time_on_both_sides_of_a_boundary_are_counted():
    split = split_path([0, 0, 0, 0, 0, 5, 5, 5, 9, 9])
    assert find_tie(*split, TRAIN, VALID) == TimeTie(time=5, older=1, newer=2)
    assert find_tie(*split, VALID, TEST) is None


def test_one_time_may_lie_on_both_boundaries():
    split = split_path([0] * 4 + [9] * 6)
    assert find_tie(*split, TRAIN, VALID) == TimeTie(time=9, older=2, newer=2)
    assert find_tie(*split, VALID, TEST) == TimeTie(time=9, older=2, newer=2)
