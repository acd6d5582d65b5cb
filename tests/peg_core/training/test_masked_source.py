"""Steps on the whole graph less the links that they supervise."""

import networkx as nx
import numpy as np
import pytest
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.message_graph import TENSORS, MessageGraph
from peg_core.models.structural_features import structural_features
from peg_core.training.link_schedule import Share


def supervised(trainer, epoch=0):
    """The steps with the links of the whole batch, whoever takes them."""
    schedule = trainer.source.schedule
    for turn, step in zip(schedule.turns(epoch), trainer.source.steps(epoch), strict=True):
        links = schedule.links(turn.epoch, turn.batch)
        yield step, (np.asarray(schedule.source[links]), np.asarray(schedule.target[links]))


@pytest.mark.parametrize("share", [None, Share(1, 2)])
@pytest.mark.parametrize("folds", [1, 4])
def test_no_link_of_a_batch_is_in_its_messages(make_trainer, split, folds, share):
    """Counted in every edge of every step; all other links are there."""
    trainer = make_trainer(folds, masked=True, batch_size=30, share=share)
    graph, steps = split.train_graph(), 0
    for step, links in supervised(trainer):
        target, source = step.messages.targets.numpy(), step.messages.sources.numpy()
        seen = set(zip(source.tolist(), target.tolist(), strict=True))
        batch = {(u, v) for u, v in zip(*links, strict=True)}
        batch |= {(v, u) for u, v in batch}
        assert not seen & batch
        if folds == 1:
            everything = {(u, v) for u, v in zip(*graph.edges(), strict=True)}
            assert seen | batch == everything | {(v, u) for u, v in everything}
        steps += 1
    assert steps > 4


def test_messages_counts_and_features_are_those_of_the_graph_that_is_left(make_trainer, split):
    """As computed from it alone: nothing of the links that are gone is left behind."""
    trainer = make_trainer(1, masked=True, batch_size=30)
    view, graph = trainer.source.view_of(-1), split.train_graph()
    for step, links in supervised(trainer):
        left = nx.Graph(list(zip(*graph.edges(), strict=True)))
        left.add_nodes_from(range(graph.num_nodes))
        left.remove_edges_from(list(zip(*links, strict=True)))
        ends = np.array(left.edges())
        rest = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=graph.num_nodes)
        expected = MessageGraph.of_graph(rest, view.positions, trainer.model.rule)
        for name in TENSORS:
            torch.testing.assert_close(getattr(step.messages, name), getattr(expected, name))
        degrees = [left.degree(node) for node in range(graph.num_nodes)]
        np.testing.assert_allclose(step.x[:, 0], np.log1p(degrees), rtol=1e-6)
        label = np.empty(graph.num_nodes, dtype=np.int32)
        for number, nodes in enumerate(nx.connected_components(left)):
            label[list(nodes)] = number
        counts = structural_features(rest, *step.pairs.numpy(), label)
        np.testing.assert_allclose(step.structure, counts, rtol=1e-6)


def test_masked_training_learns(make_trainer):
    fitted = make_trainer(1, masked=True, batch_size=30, kind="linear_peg")
    losses = [fitted.run_epoch(epoch) for epoch in range(12)]
    assert losses[-1] < losses[0]
    assert fitted.validate()["auc"] > 0.75
