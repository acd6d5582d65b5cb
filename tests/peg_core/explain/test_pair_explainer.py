"""Reasons for scores: parts that add up to the model's own logit, and facts that can be counted."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
import torch
from torch import nn

from peg_core.explain.attribution import attribute
from peg_core.explain.explanation import WHY_TYPE, why_column
from peg_core.explain.head_inputs import COMMON, PRODUCT, head_inputs, input_parts, split_inputs
from peg_core.explain.pair_explainer import PairExplainer, distinct_names
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.node_features import NodeFeatures
from peg_core.inference.pair_scoring import PairScorer
from peg_core.metrics.stack import Stack
from peg_core.models.heads import HEADS
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from tests.fixtures.relational_graphs import listed_graph

NODES, PAIRS, HIDDEN = 120, 16, 12


def undirected_graph():
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, NODES - 5, size=(2, 700))
    weights = rng.uniform(0.5, 2, 700)
    return GraphStore.from_edges(source, target, num_nodes=NODES, weights=weights)


def build(name, *, directed=False):
    """A scorer whose head has weights of some size, over random embeddings."""
    graph = undirected_graph()
    if directed:
        graph = listed_graph("directed", num_nodes=NODES, num_links=600, seed=5).graph
    torch.manual_seed(2)
    spec = ModelSpec("peg", "best", 3, num_encodings=2, hidden=HIDDEN, head=name, directed=directed)
    model = PEG(spec).eval()
    for module in model.head.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.5)
            if module.bias is not None:
                nn.init.normal_(module.bias)
    rng = np.random.default_rng(1)
    embeddings = rng.normal(size=(NODES, HIDDEN)).astype(np.float32)
    positions = [rng.normal(size=(NODES, p)).astype(np.float32) for p in (7, 5)]
    return PairScorer(model, graph, embeddings, positions, connected_components(graph)[1])


@pytest.fixture(scope="module")
def ids():
    return GraphIds([KindIds(NodeIds(pa.array([f"n{i}" for i in range(NODES)])))])


@pytest.fixture(scope="module")
def pairs():
    ends = np.random.default_rng(3).integers(0, NODES, size=(2, PAIRS))
    return ends[:, ends[0] != ends[1]]


def explain(scorer, ids, pairs, **more):
    return PairExplainer(scorer, ids, ["le", "deepwalk"], **more).explain(*pairs)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", HEADS)
def test_parts_and_the_baseline_come_to_the_logit_of_the_model(name, directed, ids, pairs):
    scorer = build(name, directed=directed)
    found = explain(scorer, ids, pairs)
    inputs = torch.from_numpy(head_inputs(scorer, *pairs).astype(np.float32))
    geometry, structure = split_inputs(scorer.model.head, inputs, 2)[1:]
    rows = [torch.from_numpy(scorer.embeddings[end]) for end in pairs]
    with torch.no_grad():
        logits = scorer.model.decode(*rows, geometry, structure).numpy()
    sums = [each.baseline + sum(part.added for part in each.parts) for each in found]
    np.testing.assert_allclose(sums, logits, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose([each.logit for each in found], logits, rtol=1e-4, atol=1e-4)
    assert np.std(logits) > 0.5


@pytest.mark.parametrize("name", ["inner_product", "structural"])
def test_parts_come_to_the_logit_with_stacked_counts(name, ids, pairs):
    scorer = build(name)
    alone = explain(scorer, ids, pairs)
    stacked = dataclasses.replace(scorer, stack=Stack(0.5, (2.0, -1.0, 3.0)))
    found = explain(stacked, ids, pairs)
    logits = stacked.logits(*pairs)
    sums = [each.baseline + sum(part.added for part in each.parts) for each in found]
    np.testing.assert_allclose(sums, logits, rtol=1e-3, atol=1e-3)
    for before, after in zip(alone, found, strict=True):
        halves = {part.name: part.added / 2 for part in before.parts}
        added = {part.name: part.added for part in after.parts}
        moved = {name for name in added if abs(added[name] - halves.get(name, 0)) > 1e-6}
        assert moved == {COMMON}


@pytest.mark.parametrize("name", HEADS)
def test_each_input_adds_its_integrated_gradient(name, pairs):
    scorer = build(name)
    head, inputs = scorer.model.head, head_inputs(scorer, *pairs)[:4]
    baseline = head_inputs(scorer, *pairs)[4:].mean(axis=0)
    found = attribute(head, inputs, baseline, num_encodings=2)
    double = head.double()
    for row, added in zip(inputs, found.added, strict=True):
        # Simpson's rule, unlike the midpoints of the program
        shares = np.linspace(0, 1, 20_001)
        way = torch.from_numpy(baseline + shares[:, None] * (row - baseline)).requires_grad_()
        total = double.combine(*split_inputs(double, way, 2)).sum()
        gradients = torch.autograd.grad(total, way)[0].numpy()
        weights = np.ones(20_001)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        mean = (weights[:, None] * gradients).sum(axis=0) / weights.sum()
        np.testing.assert_allclose(added, (row - baseline) * mean, atol=2e-3)


def test_a_linear_head_adds_weight_times_difference(ids, pairs):
    scorer = build("inner_product")
    explainer = PairExplainer(scorer, ids, ["le", "deepwalk"])
    first = explainer.explain(*pairs)[0]
    drawn = explainer.random_pairs
    u, v = pairs[:, 0]
    inner = (scorer.embeddings[u] * scorer.embeddings[v]).sum()
    usual = (scorer.embeddings[drawn.source] * scorer.embeddings[drawn.target]).sum(axis=1).mean()
    weight = scorer.model.head.linear.weight[0, 0].item()
    added = {part.name: part.added for part in first.parts}
    assert added[PRODUCT] == pytest.approx(weight * (inner - usual), rel=1e-4)
    assert set(added) == {PRODUCT, "position geometry, le", "position geometry, deepwalk"}


def test_common_neighbours_are_those_of_the_graph_the_rarest_first(ids, pairs):
    scorer = build("structural")
    graph = nx.from_scipy_sparse_array(scorer.graph.adjacency())
    for each in explain(scorer, ids, pairs, most_common=3):
        u, v = int(each.source[1:]), int(each.target[1:])
        shared = sorted(nx.common_neighbors(graph, u, v), key=lambda w: (graph.degree(w), w))
        assert each.num_common == len(shared)
        assert [int(one.id[1:]) for one in each.common] == shared[:3]
        assert each.degrees == (graph.degree(u), graph.degree(v))
        assert each.same_component == nx.has_path(graph, u, v)
        assert each.linked == graph.has_edge(u, v)
        for one in each.common:
            weight = graph.edges[u, int(one.id[1:])]["weight"]
            assert one.source_weight == pytest.approx(weight)


def test_closeness_is_a_share_of_random_pairs(ids, pairs):
    scorer = build("structural")
    x = np.random.default_rng(8).normal(size=(NODES, 4)).astype(np.float32)
    explainer = PairExplainer(scorer, ids, ["le", "deepwalk"], NodeFeatures("node", x))
    drawn = explainer.random_pairs
    z = scorer.positions[0]
    usual = np.linalg.norm(z[drawn.source] - z[drawn.target], axis=1)
    for each in explainer.explain(*pairs)[:10]:
        u, v = int(each.source[1:]), int(each.target[1:])
        distance = np.linalg.norm(z[u] - z[v])
        assert each.encodings[0].distance == pytest.approx(distance, rel=1e-5)
        share = scipy.stats.percentileofscore(-usual, -distance, kind="strict") / 100
        assert each.encodings[0].closer_than == pytest.approx(share, abs=2e-4)
        cosine = x[u] @ x[v] / np.linalg.norm(x[u]) / np.linalg.norm(x[v])
        assert each.feature_similarity == pytest.approx(cosine, abs=1e-5)


def test_columns_have_parts_and_explanations_a_type(ids, pairs):
    for directed in (False, True):
        scorer = build("structural", directed=directed)
        parts = input_parts(scorer.model.head, ["le", "deepwalk"])
        assert len(parts) == head_inputs(scorer, *pairs).shape[1]
    found = explain(scorer, ids, pairs, line=(1.0, 0.5))
    column = why_column([*found, None])
    assert column.type == WHY_TYPE
    assert column.null_count == 1
    logit = found[0].logit
    assert found[0].score == pytest.approx(1 / (1 + np.exp(-logit - 0.5)))
    assert column[0].as_py()["parts"][0]["name"] == found[0].parts[0].name
    assert distinct_names(["le", "line", "le"]) == ["le 1", "line", "le 3"]
