"""Laws of scores that are stacked on counts, for models of every kind."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.pair_scoring import PairScorer
from peg_core.inference.partner_ranking import PartnerRanking
from peg_core.metrics.stack import Stack
from peg_core.splits.partners import Partners
from tests.contracts.test_models import NODES, build, embed, example

STACK = Stack(0.75, (-1.5, 2.0, 6.0))
every_model = pytest.mark.parametrize(
    ("kind", "preset"), [("peg", "best"), ("peg", "faithful"), ("linear_peg", "ranking")]
)


def scorer_of(kind, preset, graph, x, positions):
    model = build(kind, preset)
    components = connected_components(graph)[1]
    embeddings = embed(model, graph, x, positions)
    return PairScorer(model, graph, embeddings, positions, components, STACK)


def counts_of(graph, source, target):
    """Common neighbours, Adamic-Adar and resource allocation by networkx, [num_pairs, 3]."""
    known = nx.Graph(zip(*graph.edges(), strict=True))
    known.add_nodes_from(range(graph.num_nodes))
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    common = [len(list(nx.common_neighbors(known, *pair))) for pair in pairs]
    rest = [
        [value for *_, value in index(known, pairs)]
        for index in (nx.adamic_adar_index, nx.resource_allocation_index)
    ]
    return np.array([common, *rest]).T


@every_model
def test_the_sum_is_that_of_the_logit_and_of_networkx(kind, preset):
    graph, x, positions, source, target = example(0)
    source, target = source[source != target], target[source != target]
    scorer = scorer_of(kind, preset, graph, x, positions)
    alone = replace(scorer, stack=None).logits(source, target)
    counted = np.log1p(counts_of(graph, source, target)) @ STACK.counts
    expected = STACK.logit * alone + counted
    np.testing.assert_allclose(scorer.logits(source, target), expected, rtol=1e-4, atol=1e-4)


@every_model
@given(seed=st.integers(0, 10**6))
def test_rotating_positions_and_permuting_nodes_leave_the_sum_as_it_is(kind, preset, seed):
    graph, x, positions, source, target = example(seed)
    before = scorer_of(kind, preset, graph, x, positions).logits(source, target)
    rng = np.random.default_rng(seed)
    new = rng.permutation(NODES)  # node i becomes new[i]
    back = np.argsort(new)
    permuted = GraphStore.from_edges(*(new[end] for end in graph.edges()), num_nodes=NODES)
    turns = [np.linalg.qr(rng.normal(size=(z.shape[1], z.shape[1])))[0] for z in positions]
    moved = [(z @ q).astype(np.float32)[back] for z, q in zip(positions, turns, strict=True)]
    after = scorer_of(kind, preset, permuted, x[back], moved).logits(new[source], new[target])
    np.testing.assert_allclose(after, before, atol=4e-4, rtol=1e-4)


@every_model
def test_the_sum_depends_on_its_pair_alone(kind, preset):
    graph, x, positions, source, target = example(0)
    scorer = scorer_of(kind, preset, graph, x, positions)
    whole = scorer.logits(source, target)
    one_by_one = [scorer.logits(source[i : i + 1], target[i : i + 1])[0] for i in range(40)]
    np.testing.assert_array_equal(one_by_one, whole[:40])
    np.testing.assert_allclose(scorer.logits(target, source), whole, atol=1e-5)


@pytest.mark.parametrize("preset", ["faithful", "best"])
def test_lists_of_partners_are_ranked_by_the_sum(preset):
    graph, x, positions, *_ = example(0)
    scorer = scorer_of("peg", preset, graph, x, positions)
    (best,) = PartnerRanking.by_model(scorer, [graph], Partners.of(graph)).lists(np.array([3]), 5)
    strangers = np.setdiff1d(np.arange(NODES), [3, *graph.neighbours(3)])
    logits = scorer.logits(np.full(len(strangers), 3), strangers)
    assert best.tolist() == strangers[np.argsort(-logits, kind="stable")[:5]].tolist()
