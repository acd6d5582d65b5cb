import networkx as nx
import numpy as np
import pytest

from peg_core.errors import LeakFound, PegError
from peg_core.splits.edge_split import split_randomly
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.leak_check import count_leaks, require_no_leaks
from peg_core.splits.split_store import NO_FOLD, SplitStore, require_folds


@pytest.fixture
def split(tmp_path, to_store):
    """A random graph split in five folds; returns (networkx graph, parts by edge, store)."""
    graph = to_store(nx.gnm_random_graph(40, 200, seed=0))
    source, target = graph.edges()
    store, keys = SplitStore(tmp_path), np.arange(graph.num_nodes)
    entries = store.new_parts(graph)
    split_randomly(graph, keys, entries, valid=0.1, test=0.1, seed=0)
    parts = entries[np.repeat(keys, graph.degrees) < graph.indices]
    store.write_train(graph, entries, keys, folds=5, seed=0)
    for name, part in (("valid", 1), ("test", 2)):
        chosen = parts == part
        links = (source[chosen].astype(np.int64), target[chosen].astype(np.int64))
        store.write_held_out(name, HeldOutPairs(*links, np.ones(chosen.sum(), np.uint8)))
    return dict(zip(zip(source, target, strict=True), parts, strict=True)), store


def test_the_training_graph_holds_the_training_edges_and_no_other(split):
    parts, store = split
    edges = set(zip(*store.train_graph().edges(), strict=True))
    assert edges == {edge for edge, part in parts.items() if part == 0}


def test_held_out_links_are_in_neither_training_nor_any_fold_graph(split):
    _, store = split
    for fold in (NO_FOLD, *range(5)):
        counts = count_leaks(store.graph_without(fold), store.held_out_links())
        assert counts == {"valid": 0, "test": 0}


def test_folds_partition_the_training_links(split):
    _, store = split
    together = [store.links(number) for number in range(5)]
    assert [len(source) for source, _ in together] == [32] * 5
    edges = set(zip(*store.train_graph().edges(), strict=True))
    assert set(zip(*store.links(), strict=True)) == edges
    assert set().union(*(zip(*links, strict=True) for links in together)) == edges
    for number in range(5):
        graph = store.graph_without(number)
        assert graph.num_edges == 4 * 32
        for fold, links in enumerate(together):
            assert (graph.contains(*links) == (fold != number)).all()


def test_a_test_edge_put_into_the_training_graph_is_found(split):
    _, store = split
    from peg_core.graph.graph_store import GraphStore

    train = store.train_graph()
    leaked = store.held_out("test")
    source, target = train.edges()
    spoiled = GraphStore.from_edges(
        np.append(source, leaked.source[:3]), np.append(target, leaked.target[:3]), num_nodes=40
    )
    with pytest.raises(LeakFound, match=r"3 test link\(s\) stand in the training graph"):
        require_no_leaks(spoiled, store.held_out_links(), found_in="the training graph")


def test_held_out_pairs_come_back(split):
    _, store = split
    pairs = store.held_out("valid")
    assert len(pairs.source) == 20
    positive, negative = pairs.by_label(np.arange(20))
    assert len(positive) == 20
    assert len(negative) == 0


def test_thinned_pairs_are_every_third_of_links_and_non_links(split, monkeypatch):
    _, store = split
    rng = np.random.default_rng(0)
    label = np.repeat(np.array([1, 0], np.uint8), [50, 30])
    pairs = HeldOutPairs(rng.integers(0, 40, 80), rng.integers(0, 40, 80), label)
    store.write_held_out("valid", pairs)
    for chunk in (7, 2**20):  # the pieces in which they are read do not matter
        monkeypatch.setattr("peg_core.splits.held_out_pairs.CHUNK", chunk)
        some = store.held_out("valid", most=30)
        for name in ("source", "target", "label"):
            np.testing.assert_array_equal(getattr(some, name), getattr(pairs, name)[::3])
    assert len(store.held_out("valid", most=80).source) == 80


def test_hidden_links_are_found_whatever_the_chunk(split, monkeypatch):
    _, store = split
    monkeypatch.setattr("peg_core.splits.split_store.CHUNK", 5)
    monkeypatch.setattr("peg_core.splits.held_out_pairs.CHUNK", 5)
    assert count_leaks(store.train_graph(), store.hidden_links(2)) == {
        "valid": 0,
        "test": 0,
        "fold 2": 32,
    }
    assert count_leaks(store.graph_without(2), store.hidden_links(2))["fold 2"] == 0
    hidden = store.hidden_links(2)
    for _ in range(2):  # the second look sees what the first one saw
        assert count_leaks(store.train_graph(), hidden)["fold 2"] == 32


def test_more_folds_than_links_are_refused():
    with pytest.raises(PegError, match="10 folds were asked for, there are 3 training links"):
        require_folds(10, 3)
