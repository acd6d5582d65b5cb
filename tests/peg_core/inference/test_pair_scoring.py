"""The kernel gives what the model gives, pair by pair and bit by bit the same in any company."""

import numba
import numpy as np
import pytest
import torch
from torch import nn

from peg_core.errors import ArtifactMismatch, PegError
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.folded_branches import fold_branches
from peg_core.inference.folded_head import fold_head
from peg_core.inference.pair_scoring import PairScorer
from peg_core.models.heads import HEADS
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from peg_core.models.structural_features import structural_features
from tests.fixtures.relational_graphs import listed_graph

NODES = 300
BRANCHES = ["branches", "placed_branches"]


@pytest.fixture(scope="module")
def graph():
    """A hub, a dense part, and nodes without an edge."""
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 200, size=(2, 900))
    hub = np.arange(1, 180)
    return GraphStore.from_edges(
        np.concatenate([source, np.zeros(len(hub), int)]),
        np.concatenate([target, hub]),
        num_nodes=NODES,
    )


def build(graph, preset, hidden=21, dtype=np.float32, **spec):
    """A scorer with sizes that fill neither vectors nor tiles."""
    torch.manual_seed(2)
    model = PEG(ModelSpec("peg", preset, 3, num_encodings=2, hidden=hidden, **spec))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
        if isinstance(module, nn.LayerNorm):
            nn.init.normal_(module.weight)  # some below 0
    rng = np.random.default_rng(1)
    embeddings = rng.normal(size=(NODES, hidden)).astype(dtype)
    positions = [rng.normal(size=(NODES, p)).astype(np.float32) for p in (17, 5)]
    positions[0][7] = 0  # a node at the origin has no direction
    components = connected_components(graph)[1]
    return PairScorer(model.eval(), graph, embeddings, positions, components)


def pairs(count, seed=3):
    source, target = np.random.default_rng(seed).integers(0, NODES, size=(2, count))
    source[:5] = 7
    return source, target


def by_torch(scorer, source, target):
    """The model's own ``decode`` on rows gathered by numpy."""
    rows = [torch.from_numpy(scorer.embeddings[n].astype(np.float32)) for n in (source, target)]
    columns = []
    for z in scorer.positions:
        first, second = z[source].astype(np.float64), z[target].astype(np.float64)
        inner = (first * second).sum(axis=1)
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        cosine = np.divide(inner, lengths, out=np.zeros(len(source)), where=lengths > 0)
        columns += [inner, ((first - second) ** 2).sum(axis=1), cosine]
    geometry = torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))
    structure = structural_features(scorer.graph, source, target, scorer.components)
    with torch.no_grad():
        return scorer.model.decode(*rows, geometry, torch.from_numpy(structure)).numpy()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_kernel_equals_the_model(graph, head, dtype):
    scorer = build(graph, "best", dtype=dtype, head=head)
    folded = fold_head(scorer.model.head, hidden=21, num_encodings=2)
    assert (fold_branches(scorer.model.head) if head in BRANCHES else folded) is not None
    case = pairs(1_000)
    expected = by_torch(scorer, *case)
    np.testing.assert_allclose(scorer.logits(*case), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module", params=["directed", "two relations"])
def directed_graph(request):
    return listed_graph(request.param, num_nodes=NODES, num_links=900, seed=4).graph


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_directed_kernel_equals_the_model(directed_graph, head, dtype):
    for hidden in (21, 32):
        scorer = build(directed_graph, "best", hidden, dtype, head=head, directed=True)
        source, target = pairs(1_000)
        expected = by_torch(scorer, source, target)
        found = scorer.logits(source, target)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
        part = scorer.logits(source[5:12], target[5:12])
        if head in BRANCHES:  # with directed links they are left to torch
            np.testing.assert_allclose(part, found[5:12], rtol=1e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(part, found[5:12])
        apart = np.abs(scorer.logits(target, source) - found).mean()
        assert (apart > 1e-2) == (head != "cosine")


@pytest.mark.parametrize("directed", [True, False])
def test_a_model_of_other_links_is_refused(graph, directed_graph, directed):
    with pytest.raises(ArtifactMismatch, match=r"the predicted relation of the graph"):
        build(graph if directed else directed_graph, "best", directed=directed)


@pytest.mark.parametrize("head", BRANCHES)
@pytest.mark.parametrize("width", [2, 37, 256])
def test_the_kernel_takes_branches_of_any_width(graph, head, width):
    scorer = build(graph, "best", head=head, head_width=width)
    case = pairs(500)
    expected = by_torch(scorer, *case)
    np.testing.assert_allclose(scorer.logits(*case), expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("head", ["mlp", "structural"])
@pytest.mark.parametrize("width", [1, 37, 256])
def test_the_kernel_takes_heads_of_any_width(graph, head, width):
    scorer = build(graph, "best", head=head, head_width=width)
    folded = fold_head(scorer.model.head, hidden=21, num_encodings=2)
    assert folded is not None
    assert len(folded.outer) == width + (2 if head == "mlp" else 0)
    case = pairs(500)
    expected = by_torch(scorer, *case)
    np.testing.assert_allclose(scorer.logits(*case), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("head", ["structural", "inner_product", *BRANCHES])
def test_a_logit_depends_on_its_pair_alone(graph, head):
    scorer = build(graph, "best", head=head)
    source, target = pairs(9_000)
    whole = scorer.logits(source, target)
    for start, stop in ((0, 1), (1, 2), (5, 12), (12, 110), (8_990, 9_000)):
        part = scorer.logits(source[start:stop], target[start:stop])
        np.testing.assert_array_equal(part, whole[start:stop])
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(scorer.logits(source, target), whole)
    finally:
        numba.set_num_threads(threads)


class Distance(nn.Module):
    """A head that the kernel does not know."""

    def forward(self, first, second, geometry, structure):
        return (first - second).square().sum(-1) + geometry[:, 1] + structure.sum(-1)


def test_any_other_head_is_left_to_torch(graph):
    scorer = build(graph, "best")
    scorer.model.head = Distance()
    assert fold_head(scorer.model.head, hidden=21, num_encodings=2) is None
    case = pairs(500)
    np.testing.assert_allclose(
        scorer.logits(*case, chunk=64), by_torch(scorer, *case), rtol=1e-5, atol=1e-4
    )


def test_a_head_in_training_is_not_folded(graph):
    scorer = build(graph, "best")
    scorer.model.train()
    assert fold_head(scorer.model.head, hidden=21, num_encodings=2) is None


def test_no_pairs_give_no_logits(graph):
    nothing = np.zeros(0, dtype=np.int64)
    assert build(graph, "best").logits(nothing, nothing).shape == (0,)


@pytest.mark.parametrize("node", [-1, NODES])
def test_a_node_that_does_not_exist_is_refused(graph, node):
    scorer = build(graph, "best")
    with pytest.raises(PegError, match=r"must lie in 0 \.\. 299"):
        scorer.logits(np.array([0, 1]), np.array([2, node]))


def test_embeddings_of_another_graph_are_refused(graph):
    scorer = build(graph, "best")
    parts = (scorer.positions, scorer.components)
    with pytest.raises(ArtifactMismatch, match="found 299 nodes, needed 300"):
        PairScorer(scorer.model, graph, scorer.embeddings[:-1], *parts)
