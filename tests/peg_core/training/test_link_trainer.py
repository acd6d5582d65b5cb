from functools import cache

import networkx as nx
import numpy as np
import pytest
import torch

from peg_core.encoding import ENCODERS
from peg_core.graph.node_features import NodeFeatures
from peg_core.models.link_predictor import ModelSpec
from peg_core.models.peg import PEG
from peg_core.random_streams import random_stream
from peg_core.splits.edge_split import split_randomly
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.split_store import LabelledPairs, SplitStore, spread_to_entries
from peg_core.training.graph_view import GraphView
from peg_core.training.link_trainer import LinkTrainer, PairLogits, Share


@pytest.fixture
def split(tmp_path, to_store):
    graph = to_store(nx.stochastic_block_model([25] * 3, np.eye(3) * 0.4 + 0.01, seed=1))
    source, target = graph.edges()
    parts = split_randomly(source, target, valid=0.1, test=0.1, seed=0)
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    store = SplitStore(tmp_path)
    entries = spread_to_entries(graph, rows, parts)
    store.write_train(graph, entries, np.arange(graph.num_nodes), folds=4, seed=0)
    for name, part in (("valid", 1), ("test", 2)):
        links = [end[parts == part].astype(np.int64) for end in (source, target)]
        rng = random_stream(seed=0, purpose=name)
        free = sample_non_edges(graph, len(links[0]), rng=rng)
        ends = [np.concatenate(pair) for pair in zip(links, free, strict=True)]
        label = np.repeat(np.array([1, 0], np.uint8), len(links[0]))
        store.write_held_out(name, LabelledPairs(*ends, label))
    return store


def trainer(split, folds, share=None):
    torch.manual_seed(0)
    model = PEG(ModelSpec("peg", "best", in_channels=2, num_encodings=1, hidden=8))

    @cache
    def view_of(fold):
        graph = split.graph_without(fold)
        positions = [ENCODERS["le"](dimensions=4).encode(graph, seed=0)]
        return GraphView.of(graph, positions, NodeFeatures("degree"), squared=False)

    return LinkTrainer(
        PairLogits(model),
        torch.optim.Adam(model.parameters(), lr=0.01),
        view_of,
        split,
        folds=folds,
        seed=0,
        device=torch.device("cpu"),
        share=share or Share(),
    )


@pytest.mark.parametrize("folds", [1, 4])
def test_training_separates_links_from_non_links(split, folds):
    fitted = trainer(split, folds)
    losses = [fitted.run_epoch(epoch) for epoch in range(15)]
    assert losses[-1] < losses[0]
    assert fitted.validation_auc() > 0.75


def test_an_epoch_supervises_every_training_link_once_without_its_fold(split):
    fitted = trainer(split, 4)
    steps = fitted._steps(epoch=3)
    assert sorted(np.concatenate([links for _, links in steps]).tolist()) == list(
        range(len(fitted.source))
    )
    for fold, links in steps:
        graph = fitted.view_of(fold).graph
        assert not graph.contains(fitted.source[links], fitted.target[links]).any()


def test_two_shares_supervise_every_link_once(split):
    seen = []
    for rank in (0, 1):
        fitted = trainer(split, 4, share=Share(rank, 2))
        fitted.network.register_forward_pre_hook(
            lambda _, inputs: seen.append(inputs[2].numpy()[:, : (inputs[2].shape[1] + 1) // 2])
        )
        fitted.run_epoch(0)
    links = np.concatenate(seen, axis=1).T  # positives stand before the negatives
    assert sorted(map(tuple, links)) == list(zip(*split.train_graph().edges(), strict=True))


def test_two_runs_with_one_seed_are_the_same(split):
    first, second = trainer(split, 4), trainer(split, 4)
    assert [first.run_epoch(e) for e in range(2)] == [second.run_epoch(e) for e in range(2)]
