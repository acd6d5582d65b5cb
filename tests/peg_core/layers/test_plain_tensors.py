"""Every layer on an ``edge_index`` and positions, as in a notebook."""

import numpy as np
import pytest
import torch
import torch_geometric
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import GCNConv

from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.layers import EGNNConv, PEGConv, PESAGEConv
from peg_core.layers.message_graph import MessageGraph

NODES, IN, OUT = 18, 5, 4
LAYERS = [PEGConv, PESAGEConv, EGNNConv]
every_layer = pytest.mark.parametrize("kind", LAYERS)
seeds = st.integers(0, 10**6)


def build(kind, encodings=1):
    torch.manual_seed(3)
    count = "num_encodings" if kind is EGNNConv else "num_measures"
    return kind(IN, OUT, **{count: encodings})


def example(seed, *, weighted=False):
    """A graph, its edges in both directions, their weights, features and positions."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, NODES, size=(2, 40))
    weights = rng.uniform(0.5, 2, size=40) if weighted else None
    graph = GraphStore.from_edges(*ends, num_nodes=NODES, weights=weights)
    rows = np.repeat(np.arange(NODES), graph.degrees)
    edge_index = torch.from_numpy(np.stack([graph.indices, rows]).astype(np.int64))
    edge_weight = torch.from_numpy(graph.weights) if weighted else None
    x = torch.from_numpy(rng.normal(size=(NODES, IN)).astype(np.float32))
    positions = [torch.from_numpy(rng.normal(size=(NODES, p)).astype(np.float32)) for p in (3, 2)]
    return graph, edge_index, edge_weight, x, positions


def outputs(found):
    """Features first, then the positions where a layer moves them."""
    return [found[0], *found[1]] if isinstance(found, tuple) else [found]


@every_layer
@given(seed=seeds, weighted=st.booleans(), shuffled=st.booleans())
def test_tensors_and_a_stored_graph_give_the_same(kind, seed, weighted, shuffled):
    graph, edge_index, edge_weight, x, positions = example(seed, weighted=weighted)
    layer = build(kind, 2)
    messages = MessageGraph.of_graph(graph, [z.numpy() for z in positions], layer.rule)
    moves = [positions, positions] if kind is EGNNConv else []
    expected = layer.pass_messages(x, x, *moves, messages)
    if shuffled:
        order = torch.randperm(edge_index.shape[1])
        edge_index = edge_index[:, order]
        edge_weight = None if edge_weight is None else edge_weight[order]
    found = layer(x, edge_index, positions, edge_weight)
    for ours, theirs in zip(outputs(found), outputs(expected), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


@every_layer
@given(seed=seeds)
def test_rotating_positions_rotates_at_most_positions(kind, seed):
    _, edge_index, _, x, (z, _) = example(seed)
    layer = build(kind)
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]
    before, after = layer(x, edge_index, z), layer(x, edge_index, z @ rotation)
    if kind is EGNNConv:
        torch.testing.assert_close(after[1], before[1] @ rotation, atol=2e-5, rtol=1e-4)
        before, after = before[0], after[0]
    torch.testing.assert_close(after, before, atol=2e-5, rtol=1e-4)


@every_layer
@given(seed=seeds)
def test_permuting_nodes_permutes_the_output(kind, seed):
    _, edge_index, _, x, positions = example(seed)
    layer = build(kind, 2)
    new = torch.from_numpy(np.random.default_rng(seed).permutation(NODES))  # node i becomes new[i]
    back = torch.argsort(new)
    before = layer(x, edge_index, positions)
    after = layer(x[back], new[edge_index], [z[back] for z in positions])
    for permuted, plain in zip(outputs(after), outputs(before), strict=True):
        torch.testing.assert_close(permuted[new], plain, atol=1e-5, rtol=1e-4)


@every_layer
def test_gradients_reach_features_weights_and_positions(kind):
    _, edge_index, _, x, positions = example(0)
    layer = build(kind, 2)
    positions[0][1] = positions[0][0]  # a distance of 0 has a gradient, too
    edge_index = torch.cat([edge_index, torch.tensor([[0, 1], [1, 0]])], dim=1)
    inputs = [x.requires_grad_(), *(z.requires_grad_() for z in positions)]
    sum(out.square().sum() for out in outputs(layer(x, edge_index, positions))).backward()
    for value in (*inputs, *layer.parameters()):
        assert torch.isfinite(value.grad).all()
        assert value.grad.abs().max() > 0


def test_the_gradient_of_positions_is_that_of_finite_differences():
    _, edge_index, _, x, (z, _) = example(2)
    layer = build(PEGConv).double()
    z = z.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: layer(x.double(), edge_index, z), (z,))


def test_an_open_gate_makes_peg_a_graph_convolution():
    _, edge_index, edge_weight, x, (z, _) = example(4, weighted=True)
    layer, peer = build(PEGConv), GCNConv(IN, OUT)
    with torch.no_grad():
        peer.lin.weight.copy_(layer.linear.weight)
        layer.gate[2].bias.fill_(40.0)  # the logistic function of it is 1
    expected = peer(x, edge_index, edge_weight)
    torch.testing.assert_close(layer(x, edge_index, z, edge_weight), expected, atol=1e-5, rtol=1e-4)


@every_layer
def test_self_loops_in_the_edges_change_nothing(kind):
    _, edge_index, _, x, (z, _) = example(5)
    layer = build(kind)
    loops = torch.arange(NODES).repeat(2, 1)
    before, after = (
        layer(x, edges, z) for edges in (edge_index, torch.cat([loops, edge_index], dim=1))
    )
    for first, second in zip(outputs(before), outputs(after), strict=True):
        torch.testing.assert_close(first, second)


def test_layers_stack_in_a_sequential_of_pyg():
    _, edge_index, _, x, (z, _) = example(6)
    torch.manual_seed(0)
    model = torch_geometric.nn.Sequential(
        "x, edge_index, positions",
        [
            (EGNNConv(IN, 8), "x, edge_index, positions -> x, positions"),
            (PEGConv(8, 8), "x, edge_index, positions -> x"),
            torch.nn.ReLU(),
            (PESAGEConv(8, OUT), "x, edge_index, positions -> x"),
        ],
    )
    found = model(x, edge_index, z)
    assert found.shape == (NODES, OUT)
    found.sum().backward()
    assert all(value.grad is not None for value in model.parameters())


@every_layer
def test_a_layer_is_written_with_its_channels(kind):
    assert repr(kind(16, 8)) == f"{kind.__name__}(16, 8)"


@every_layer
def test_resetting_draws_what_a_new_layer_draws(kind):
    layer = build(kind, 2)
    with torch.no_grad():
        for value in layer.parameters():
            value.fill_(7.0)
    torch.manual_seed(3)
    layer.reset_parameters()
    for found, fresh in zip(layer.parameters(), build(kind, 2).parameters(), strict=True):
        assert torch.equal(found, fresh)


@every_layer
def test_too_few_encodings_are_refused(kind):
    _, edge_index, _, x, (z, _) = example(0)
    with pytest.raises(PegError, match="1 encodings, the layer reads 2"):
        build(kind, 2)(x, edge_index, z)
