"""Laws that every registered model obeys."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from peg_core.artifacts.trained_model import TrainedModel
from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.pair_scoring import PairScorer
from peg_core.models import MODELS
from peg_core.models.baselines import BASELINES
from peg_core.models.model_spec import ModelSpec

NODES = 24
WIDTHS = (4, 3)
GATED = "gated light_gcn"
RANKING = "gated linear_peg for ranking"
OURS = [kind for kind in MODELS if kind not in BASELINES] + [GATED, RANKING]
# Presets of baselines differ in dropout alone.
PRESETS = [(kind, preset) for preset in ("best", "faithful") for kind in OURS]
CASES = PRESETS + [(kind, "best") for kind in sorted(BASELINES)]
every_model = pytest.mark.parametrize("kind", [*OURS, *sorted(BASELINES)])
every_case = pytest.mark.parametrize(("kind", "preset"), CASES)


def build(kind, preset, num_encodings=2):
    torch.manual_seed(1)
    if kind == RANKING:  # its own preset takes the place of the others
        kind, preset, head, gated = "linear_peg", "ranking", "preset", True
    else:
        gated = kind == GATED
        kind = "light_gcn" if gated else kind
        head = "cosine" if gated else "preset"  # positions speak through the gate alone
    spec = ModelSpec(
        kind,
        preset,
        in_channels=5,
        num_encodings=num_encodings,
        hidden=5 if kind == "light_gcn" else 6,  # it does not change the width
        head=head,
        encoding_widths=WIDTHS,
        gated=gated,
    )
    model = MODELS[kind](spec)
    for module in model.modules():  # running statistics of a trained model
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model.eval()


@torch.no_grad()
def embed(model, graph, x, positions):
    state = model.first_state(torch.from_numpy(x), [torch.from_numpy(z) for z in positions])
    return model(state, model.whole_messages(graph, positions)).numpy()


def scores(model, graph, x, positions, source, target):
    embeddings = embed(model, graph, x, positions)
    components = connected_components(graph)[1]
    return PairScorer(model, graph, embeddings, positions, components).logits(source, target)


def example(seed):
    rng = np.random.default_rng(seed)
    ends = np.array(nx.gnm_random_graph(NODES, 60, seed=seed).edges())
    graph = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=NODES)
    x = rng.normal(size=(NODES, 5)).astype(np.float32)
    positions = [rng.normal(size=(NODES, p)).astype(np.float32) for p in WIDTHS]
    source, target = rng.integers(0, NODES, size=(2, 80))
    return graph, x, positions, source, target


@pytest.mark.parametrize(("kind", "preset"), [*PRESETS, ("positions_only", "best")])
@given(seed=st.integers(0, 10**6), reflect=st.booleans())
def test_rotating_or_reflecting_positions_leaves_scores_unchanged(kind, preset, seed, reflect):
    model = build(kind, preset)
    graph, x, positions, source, target = example(seed)
    moved = []
    for z in positions:
        q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(z.shape[1], z.shape[1])))
        if (np.linalg.det(q) < 0) != reflect:
            q[:, 0] *= -1
        moved.append((z @ q).astype(np.float32))
    before = scores(model, graph, x, positions, source, target)
    np.testing.assert_allclose(
        scores(model, graph, x, moved, source, target), before, atol=2e-4, rtol=1e-4
    )


@pytest.mark.parametrize(("kind", "preset"), [case for case in CASES if case[0] != "p_gnn"])
@given(seed=st.integers(0, 10**6))
def test_permuting_nodes_permutes_scores(kind, preset, seed):
    model = build(kind, preset)
    graph, x, positions, source, target = example(seed)
    new = np.random.default_rng(seed).permutation(NODES)  # node i becomes new[i]
    old_source, old_target = graph.edges()
    permuted = GraphStore.from_edges(new[old_source], new[old_target], num_nodes=NODES)
    back = np.argsort(new)
    after = scores(model, permuted, x[back], [z[back] for z in positions], new[source], new[target])
    np.testing.assert_allclose(
        after, scores(model, graph, x, positions, source, target), atol=2e-4, rtol=1e-4
    )


@every_case
def test_stretching_positions_changes_scores_of_models_that_read_them(kind, preset):
    model = build(kind, preset)
    graph, x, positions, source, target = example(0)
    stretched = [z * np.linspace(1, 3, z.shape[1], dtype=np.float32) for z in positions]
    before = scores(model, graph, x, positions, source, target)
    change = np.abs(scores(model, graph, x, stretched, source, target) - before).max()
    assert change > 1e-2 if model.reads_geometry or model.reads_positions else change == 0


@every_case
def test_scores_do_not_depend_on_direction_or_chunk(kind, preset):
    model = build(kind, preset)
    graph, x, positions, source, target = example(0)
    before = scores(model, graph, x, positions, source, target)
    np.testing.assert_allclose(
        scores(model, graph, x, positions, target, source), before, atol=1e-5
    )
    embeddings = embed(model, graph, x, positions)
    components = connected_components(graph)[1]
    scorer = PairScorer(model, graph, embeddings, positions, components)
    chunked = scorer.logits(source, target, chunk=7)
    np.testing.assert_allclose(chunked, before, atol=1e-5)


@every_case
def test_a_saved_model_scores_the_same(kind, preset, tmp_path):
    model = build(kind, preset)
    TrainedModel(tmp_path).save(model)
    case = example(0)
    np.testing.assert_array_equal(
        scores(TrainedModel(tmp_path).network, *case), scores(model, *case)
    )


@every_model
def test_weights_of_another_shape_are_refused(kind, tmp_path):
    TrainedModel(tmp_path).save(build(kind, "best"))
    # these have weights for encodings alone
    placed = "light_gcn" in kind or kind == "positions_only"
    name, width = ("num_encodings", 2) if placed else ("hidden", 6)
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace(f'"{name}": {width}', f'"{name}": 9'))
    with pytest.raises(ArtifactMismatch, match="weights and description"):
        _ = TrainedModel(tmp_path).network


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no trained model"):
        _ = TrainedModel(tmp_path).network
