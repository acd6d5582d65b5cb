"""What baselines read, and what they refuse."""

import numpy as np
import pytest
import torch

from peg_core.errors import ConfigError
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.pair_scoring import PairScorer
from peg_core.layers.message_graph import MessageGraph
from peg_core.models import MODELS
from peg_core.models.baselines import BASELINES
from peg_core.models.heads import HEADS
from peg_core.models.model_spec import ModelSpec
from peg_core.models.pair_geometry import pair_geometry
from peg_core.models.structural_features import structural_features

NODES = 30


def build(kind, *, head="preset", hidden=6, **options):
    torch.manual_seed(0)
    spec = ModelSpec(
        kind, "best", 5, num_encodings=1, hidden=hidden, head=head, encoding_widths=(4,), **options
    )
    return MODELS[kind](spec).eval()


def example(seed=0):
    rng = np.random.default_rng(seed)
    graph = GraphStore.from_edges(*rng.integers(0, NODES, size=(2, 70)), num_nodes=NODES)
    positions = [rng.normal(size=(NODES, 4)).astype(np.float32)]
    x = torch.from_numpy(rng.normal(size=(NODES, 5)).astype(np.float32))
    return graph, positions, x


@torch.no_grad()
def embed(model, graph, positions, x):
    state = model.first_state(x, [torch.from_numpy(z) for z in positions])
    return model(state, MessageGraph.of_graph(graph, positions, model.rule))


def test_the_registry_holds_every_baseline():
    assert set(MODELS) >= BASELINES
    for kind in MODELS:
        assert (".baselines." in MODELS[kind].__module__) == (kind in BASELINES)


@pytest.mark.parametrize("head", sorted(set(HEADS) - {"placed_branches"}))
def test_kernels_score_a_head_without_geometry_as_torch_does(head):
    model = build("gcn", head=head)
    graph, positions, x = example()
    embeddings, components = embed(model, graph, positions, x), connected_components(graph)[1]
    source, target = np.random.default_rng(1).integers(0, NODES, size=(2, 50))
    structure = torch.from_numpy(structural_features(graph, source, target, components))
    with torch.no_grad():
        expected = model.decode(
            embeddings[source], embeddings[target], torch.zeros(50, 0), structure
        )
    scorer = PairScorer(model, graph, embeddings.numpy(), positions, components)
    np.testing.assert_allclose(scorer.logits(source, target), expected, atol=1e-5, rtol=1e-4)


def test_an_auto_encoder_scores_by_the_inner_product():
    model = build("gae", head="dot")
    graph, positions, x = example()
    embeddings, components = embed(model, graph, positions, x).numpy(), np.zeros(NODES, np.int32)
    source, target = np.random.default_rng(1).integers(0, NODES, size=(2, 50))
    scorer = PairScorer(model, graph, embeddings, positions, components)
    expected = np.einsum("ij,ij->i", embeddings[source], embeddings[target])
    np.testing.assert_allclose(scorer.logits(source, target), expected, rtol=1e-5, atol=1e-6)


def test_positions_alone_read_neither_edges_nor_features():
    model = build("positions_only")
    source, target = np.random.default_rng(1).integers(0, NODES, size=(2, 50))
    found = []
    _, positions, _ = example()
    for seed in (0, 1):  # other edges, other features, the same positions
        graph, _, x = example(seed)
        embeddings = embed(model, graph, positions, x).numpy()
        scorer = PairScorer(model, graph, embeddings, positions, connected_components(graph)[1])
        found.append(scorer.logits(source, target))
    np.testing.assert_array_equal(*found)
    with torch.no_grad():
        geometry = torch.from_numpy(pair_geometry(positions, source, target))
        nothing = torch.zeros(50, 1)
        expected = model.decode(nothing, nothing, geometry, torch.zeros(50, 6))
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["gcn", "vgae", "graph_transformer"])
def test_a_head_that_reads_positions_is_refused(kind):
    with pytest.raises(
        ConfigError, match=f"reads positions, {kind} reads none; set it to branches"
    ):
        build(kind, head="placed_branches")


def test_positions_alone_refuse_a_head_that_reads_none():
    with pytest.raises(ConfigError, match=r"`model.head: dot` reads none"):
        build("positions_only", head="dot")


def test_a_transformer_flips_columns_of_positions_in_training_alone():
    model = build("graph_transformer", dropout=0.0)
    _, positions, x = example()
    z = torch.from_numpy(positions[0])
    with torch.no_grad():
        plain = model.first_state(x, [z])
        flipped = [
            model.first_state(x, [z * torch.tensor(signs)])
            for signs in torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 4).tolist()
        ]
        torch.testing.assert_close(flipped[-1], plain)
        model.train()
        drawn = [model.first_state(x, [z]) for _ in range(60)]
    which = [min(range(16), key=lambda k: float((one - flipped[k]).abs().max())) for one in drawn]
    assert all(
        torch.allclose(one, flipped[k], atol=1e-6) for one, k in zip(drawn, which, strict=True)
    )
    assert len(set(which)) > 8


def test_attention_heads_share_the_width():
    assert [build("gat", hidden=width).layers[0].heads for width in (128, 6, 5)] == [4, 2, 1]


def test_p_gnn_refuses_a_graph_whose_messages_it_cannot_hold():
    graph = GraphStore.from_edges([0], [1], num_nodes=20_000)
    with pytest.raises(ConfigError, match=r"20,000 nodes 128 messages .* 1.3 GB .* 15,258 nodes"):
        build("p_gnn", hidden=128).whole_messages(graph, [])
