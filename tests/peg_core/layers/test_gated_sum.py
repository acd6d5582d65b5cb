import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.neighbour_sum import NeighbourSum


def example(seed, nodes=40, edges=150):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, nodes, size=(2, edges))
    graph = GraphStore.from_edges(*ends, num_nodes=nodes)
    messages = MessageGraph.of_graph(graph, [rng.normal(size=(nodes, 2))])
    x = torch.from_numpy(rng.normal(size=(nodes, 5)).astype(np.float32)).requires_grad_()
    coefficients = torch.rand(len(messages.sources), requires_grad=True)
    return messages, x, coefficients


def by_gathering(messages, x, coefficients):
    """PyG's own way, with a copy of every neighbour."""
    out = torch.zeros(messages.num_targets, x.shape[1])
    return out.index_add(0, messages.targets, coefficients[:, None] * x[messages.sources.long()])


@given(seed=st.integers(0, 10**6))
def test_sum_and_gradients_equal_gathering(seed):
    messages, x, coefficients = example(seed)
    weight = torch.randn(messages.num_targets, x.shape[1])
    results = []
    for method in (NeighbourSum().sum_neighbours, by_gathering):
        out = (
            method(x, coefficients, messages)
            if method is not by_gathering
            else by_gathering(messages, x, coefficients)
        )
        gradients = torch.autograd.grad((out * weight).sum(), [x, coefficients])
        results.append([out, *gradients])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_other_number_types_take_the_ordinary_way():
    messages, x, coefficients = example(0)
    found = NeighbourSum().sum_neighbours(x.double(), coefficients.double(), messages)
    assert found.dtype == torch.float64
    expected = NeighbourSum().sum_neighbours(x, coefficients, messages)
    torch.testing.assert_close(found.float(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("edges", [0, 1])
def test_a_graph_of_hardly_any_edges(edges):
    messages, x, coefficients = example(3, nodes=4, edges=edges)
    out = NeighbourSum().sum_neighbours(x, coefficients, messages)
    out.sum().backward()
    assert out.shape == (4, 5)
    assert torch.isfinite(x.grad).all()
