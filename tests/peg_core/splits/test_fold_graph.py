import networkx as nx
import numpy as np
import pytest

from peg_core.graph.graph_store import GraphStore
from peg_core.splits import filtered_graph
from peg_core.splits.fold_graph import open_fold_graph
from peg_core.splits.split_store import NO_FOLD, SplitStore


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_written_graph_is_the_one_made_in_memory(tmp_path, monkeypatch, weighted, chunk):
    monkeypatch.setattr(filtered_graph, "CHUNK", chunk)
    ends = np.array(nx.gnm_random_graph(40, 120, seed=3).edges()).T
    weights = np.arange(120.0) + 1 if weighted else None
    graph = GraphStore.from_edges(*ends, num_nodes=43, weights=weights)
    split = SplitStore(tmp_path / "split")
    everything = np.zeros(2 * graph.num_edges, dtype=np.uint8)
    split.write_train(graph, everything, np.arange(43), folds=3, seed=0)
    for fold in (NO_FOLD, 0, 1, 2):
        for _ in range(2):  # written, then found
            found = open_fold_graph(split, fold, tmp_path / "scratch")
            expected = split.graph_without(fold)
            np.testing.assert_array_equal(found.indptr, expected.indptr)
            np.testing.assert_array_equal(found.indices, expected.indices)
            if weighted:
                np.testing.assert_array_equal(found.weights, expected.weights)
