"""Links among the partners that their nodes might have had, against dense numpy and torch."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.relations import NodeKind, Relation, Relations
from peg_core.splits.negative_sampling import NegativeSampler
from peg_core.splits.partners import Partners
from peg_core.training import partner_schedule
from peg_core.training.objective import partner_surprise
from peg_core.training.partner_schedule import PartnerSchedule

USERS, ITEMS, TEMPERATURE = 6, 9, 0.3


def embeddings(seed=0):
    return np.random.default_rng(seed).normal(size=(USERS + ITEMS, 4))


def bipartite(links=None):
    rng = np.random.default_rng(1)
    source = np.repeat(np.arange(USERS), 3)
    target = USERS + np.concatenate([rng.permutation(ITEMS)[:3] for _ in range(USERS)])
    kinds = (NodeKind("user", 0, USERS), NodeKind("item", USERS, USERS + ITEMS))
    relations = Relations(kinds, (Relation("likes", "user", "item"),))
    graph = GraphStore.from_edges(source, target, num_nodes=USERS + ITEMS)
    return GraphStore(graph.indptr, graph.indices, relations=relations), source, target


def surprise(x, links, partners, possible):
    return partner_surprise(
        x,
        torch.from_numpy(links),
        torch.from_numpy(partners),
        possible=possible,
        temperature=TEMPERATURE,
    )


def dense_surprise(x, links, partners):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = unit @ unit.T / TEMPERATURE
    found = []
    for anchor, partner in links.T:
        others = [node for node in partners if node != anchor]
        found.append(logsumexp(cosine[anchor, others]) - cosine[anchor, partner])
    return np.array(found)


@pytest.mark.parametrize("partners", [np.arange(USERS, USERS + ITEMS), np.arange(USERS + ITEMS)])
def test_surprise_is_minus_the_log_softmax_of_the_cosines(partners):
    links = np.array([[0, 0, 3, 5], [6, 8, 14, 7]])
    found = surprise(torch.from_numpy(embeddings()), links, partners, len(partners))
    np.testing.assert_allclose(
        found.numpy(), dense_surprise(embeddings(), links, partners), rtol=1e-5
    )


def test_the_gradient_is_that_of_torch_on_the_dense_matrix():
    links, partners = np.array([[0, 0, 3], [6, 8, 14]]), np.arange(USERS, USERS + ITEMS)
    x = torch.from_numpy(embeddings()).requires_grad_()
    surprise(x, links, partners, len(partners)).mean().backward()
    dense = torch.from_numpy(embeddings()).requires_grad_()
    unit = dense / dense.norm(dim=1, keepdim=True)
    scores = unit[:USERS] @ unit[USERS:].T / TEMPERATURE
    torch.nn.functional.cross_entropy(
        scores[links[0]], torch.from_numpy(links[1] - USERS)
    ).backward()
    np.testing.assert_allclose(x.grad.numpy(), dense.grad.numpy(), rtol=1e-4, atol=1e-7)


def test_a_sampled_partner_stands_for_many_and_the_link_is_added():
    links, partners = np.array([[1], [9]]), np.array([7, 11, 13])
    unit = embeddings() / np.linalg.norm(embeddings(), axis=1, keepdims=True)
    cosine = unit[1] @ unit.T / TEMPERATURE
    whole = ITEMS / 3 * np.exp(cosine[partners]).sum() + np.exp(cosine[9])
    found = surprise(torch.from_numpy(embeddings()), links, partners, ITEMS)
    assert found.item() == pytest.approx(np.log(whole) - cosine[9], rel=1e-5)


def test_links_are_turned_from_anchor_to_partner():
    graph, source, target = bipartite()
    mixed = np.where(np.arange(len(source)) % 2, source, target)
    other = np.where(np.arange(len(source)) % 2, target, source)
    users = Partners.of(graph).anchored(mixed, other)
    items = Partners.of(graph, anchors="item").anchored(mixed, other)
    np.testing.assert_array_equal(users, [source, target])
    np.testing.assert_array_equal(items, [target, source])


def test_in_a_graph_of_one_kind_both_ends_of_a_link_are_anchors():
    graph = GraphStore.from_edges(np.array([0, 1]), np.array([2, 3]), num_nodes=5)
    anchor, partner = Partners.of(graph).anchored(np.array([0]), np.array([2]))
    assert (anchor.tolist(), partner.tolist()) == ([0, 2], [2, 0])


def test_non_links_of_bpr_keep_the_anchor_and_are_of_the_other_kind():
    graph, source, target = bipartite()
    kept, other = NegativeSampler(graph, "partner").draw(
        source, target, rng=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(kept, source)
    assert (other >= USERS).all()
    assert not graph.contains(kept, other).any()


@pytest.mark.parametrize("most", [None, 20])
def test_all_partners_are_taken_where_they_are_few_else_some_of_them(split, most):
    schedule = PartnerSchedule(split, folds=1, seed=0, batch_size=30, most_partners=most)
    steps = list(schedule.epoch(0))
    assert all(step.possible_partners == 75 for step in steps)
    assert all(len(set(step.partners.tolist())) == (most or 75) for step in steps)
    assert len({tuple(step.partners.tolist()) for step in steps}) == (
        1 if most is None else len(steps)
    )


def test_partners_of_a_step_are_bounded_by_memory(split, monkeypatch):
    monkeypatch.setattr(partner_schedule, "MOST_SIMILARITIES", 600)
    step = next(PartnerSchedule(split, folds=1, seed=0, batch_size=30).epoch(0))
    assert len(np.unique(step.source)) * len(step.partners) <= 600


@pytest.mark.parametrize("fan_outs", [None, (5, 5)])
@pytest.mark.parametrize("objective", ["softmax", "bpr"])
def test_training_against_partners_separates_links_from_non_links(
    make_trainer, fan_outs, objective
):
    fitted = make_trainer(
        1, kind="peg", fan_outs=fan_outs, learned=True, objective=objective, batch_size=40
    )
    losses = [fitted.run_epoch(epoch) for epoch in range(12)]
    assert losses[-1] < losses[0]
    assert fitted.validate()["auc"] > 0.7


@pytest.mark.parametrize("fan_outs", [None, (-1, -1)])
def test_validation_by_recall_ranks_all_partners_that_are_not_known(make_trainer, split, fan_outs):
    trainer = make_trainer(
        1, kind="light_gcn", fan_outs=fan_outs, learned=True, objective="softmax", metric="recall@7"
    )
    graph, (source, target) = split.train_graph(), split.held_out("valid").links
    scorer = trainer.source.scorer(trainer.average.averaged_model(), torch.device("cpu"))
    recalls = []
    for node in np.union1d(source, target):
        known = {node, *graph.neighbours(node)}
        free = np.array([other for other in range(graph.num_nodes) if other not in known])
        logits = scorer.logits(np.full(len(free), node), free)
        best = set(free[np.argsort(-logits, kind="stable")[:7]])
        wanted = {*target[source == node], *source[target == node]}
        recalls.append(len(best & wanted) / len(wanted))
    assert trainer.validate()["recall@7"] == pytest.approx(np.mean(recalls))
