"""Laws that every model obeys on graphs with directions, kinds and relations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.artifacts.trained_model import TrainedModel
from peg_core.graph.components import connected_components
from peg_core.graph.node_features import NodeFeatures
from peg_core.inference.pair_scoring import PairScorer
from peg_core.layers.message_graph import MessageGraph
from peg_core.models import MODELS
from peg_core.models.baselines import BASELINES
from peg_core.models.model_spec import ModelSpec
from peg_core.sampling.neighbour_sampler import ALL, NeighbourSampler
from peg_core.training.graph_view import FullView
from peg_core.training.layerwise import embed_in_layers
from peg_core.training.link_schedule import Supervision
from peg_core.training.pair_logits import PairLogits
from peg_core.training.sampled_view import SampledView
from tests.fixtures.relational_graphs import SHAPES, graph_of, listed_graph

NODES = 24
WIDTHS = (4, 3)
GATED = ("light_gcn, gated", "linear_peg, gated")
OURS = [*sorted(set(MODELS) - BASELINES), *GATED]
# Baselines read no relation: a direction is all that is new to their heads.
CASES = [(kind, shape) for shape in SHAPES for kind in OURS]
CASES += [(kind, "directed") for kind in sorted(BASELINES)]
every_case = pytest.mark.parametrize(("kind", "shape"), CASES)
# p_gnn draws its anchors by the numbers of the nodes, and is trained on whole graphs alone
local = [case for case in CASES if case[0] != "p_gnn"]
invariant = [case for case in CASES if case[0] not in BASELINES - {"positions_only"}]
few = settings(max_examples=6)
seeds = st.integers(0, 10**6)


def build(kind, graph):
    torch.manual_seed(1)
    kind, _, gated = kind.partition(", ")
    spec = ModelSpec(
        kind,
        "best",
        in_channels=2,
        num_encodings=2,
        hidden=2 if kind == "light_gcn" else 6,  # it does not change the width
        encoding_widths=WIDTHS,
        relation_columns=graph.num_columns,
        directed=graph.is_directed,
        gated=bool(gated),
    )
    model = MODELS[kind](spec)
    for module in model.modules():  # running statistics of a trained model
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model.eval()


def example(shape, seed):
    listed = listed_graph(shape, num_nodes=NODES, num_links=50, seed=seed)
    rng = np.random.default_rng(seed)
    positions = [rng.normal(size=(NODES, p)).astype(np.float32) for p in WIDTHS]
    return listed, positions, rng.integers(0, NODES, size=(2, 60))


@torch.no_grad()
def scores(model, graph, positions, pairs):
    view = FullView.of(graph, positions, NodeFeatures("degree"), model)
    x, own, messages = view.whole
    embeddings = model(model.first_state(x, own), messages).numpy()
    components = connected_components(graph)[1]
    return PairScorer(model, graph, embeddings, positions, components).logits(*pairs)


@pytest.mark.parametrize(("kind", "shape"), invariant)
@few
@given(seed=seeds, reflect=st.booleans())
def test_rotating_or_reflecting_positions_leaves_scores_unchanged(kind, shape, seed, reflect):
    (graph, _), positions, pairs = example(shape, seed)
    model = build(kind, graph)
    moved = []
    for z in positions:
        q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(z.shape[1], z.shape[1])))
        if (np.linalg.det(q) < 0) != reflect:
            q[:, 0] *= -1
        moved.append((z @ q).astype(np.float32))
    before = scores(model, graph, positions, pairs)
    after = scores(model, graph, moved, pairs)
    np.testing.assert_allclose(after, before, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize(("kind", "shape"), local)
@few
@given(seed=seeds)
def test_permuting_nodes_permutes_scores(kind, shape, seed):
    (graph, links), positions, pairs = example(shape, seed)
    model = build(kind, graph)
    new = np.random.default_rng(seed).permutation(NODES)  # node i becomes new[i]
    back = np.argsort(new)
    permuted = graph_of(graph.relations, [new[ends] for ends in links], NODES)
    after = scores(model, permuted, [z[back] for z in positions], new[pairs])
    before = scores(model, graph, positions, pairs)
    np.testing.assert_allclose(after, before, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize(("kind", "shape"), local)
@few
@given(seed=seeds)
def test_a_minibatch_with_all_neighbours_equals_the_full_graph(kind, shape, seed):
    (graph, _), positions, pairs = example(shape, seed)
    model = build(kind, graph)
    supervision = Supervision(0, 0, *pairs, num_links=0)
    views = [
        view.of(graph, positions, NodeFeatures("degree"), model) for view in (FullView, SampledView)
    ]
    network = PairLogits(model)
    sampler = NeighbourSampler(graph, [ALL] * model.spec.layers)
    with torch.no_grad():
        full = network(views[0].step(supervision))
        sampled = network(views[1].step(supervision, sampler, seed=seed))
    torch.testing.assert_close(sampled, full, atol=1e-4, rtol=1e-4)


@every_case
@few
@given(seed=seeds)
def test_embedding_layer_by_layer_equals_the_forward_pass(kind, shape, seed):
    (graph, _), positions, _ = example(shape, seed)
    model = build(kind, graph)
    view = FullView.of(graph, positions, NodeFeatures("degree"), model)
    x, own, messages = view.whole
    with torch.no_grad():
        expected = model(model.first_state(x, own), messages).numpy()
    np.testing.assert_allclose(embed_in_layers(model, view), expected, atol=1e-5, rtol=1e-4)


@every_case
def test_a_saved_model_scores_the_same(kind, shape, tmp_path):
    (graph, _), positions, pairs = example(shape, 0)
    model = build(kind, graph)
    TrainedModel(tmp_path).save(model)
    reopened = TrainedModel(tmp_path).network
    np.testing.assert_array_equal(
        scores(reopened, graph, positions, pairs), scores(model, graph, positions, pairs)
    )


@every_case
def test_only_directed_links_tell_their_ends_apart(kind, shape):
    (graph, _), positions, pairs = example(shape, 0)
    model = build(kind, graph)
    apart = np.abs(
        scores(model, graph, positions, pairs) - scores(model, graph, positions, pairs[::-1])
    )
    tells = graph.is_directed and kind != "positions_only"  # distances have no direction
    assert (apart.max() > 1e-2) if tells else (apart.max() < 1e-5)


@pytest.mark.parametrize("kind", sorted(set(OURS) - {"light_gcn", "linear_peg"}))
def test_which_relation_an_edge_has_matters(kind):
    (graph, links), positions, _ = example("two relations", 0)
    model = build(kind, graph)
    exchanged = graph_of(graph.relations, [links[1][:, :9], links[0]], NODES)
    before = MessageGraph.of_graph(exchanged, positions, model.rule)
    measures = before.measures.clone()
    measures[:, len(WIDTHS) :] = 0
    plain = before.each(lambda values: measures if values is before.measures else values)
    x = torch.randn(NODES, 2, generator=torch.Generator().manual_seed(0))
    state = model.first_state(x, [torch.from_numpy(z) for z in positions])
    with torch.no_grad():
        difference = (model(state, before) - model(state, plain)).abs().max()
    assert difference > 1e-3
