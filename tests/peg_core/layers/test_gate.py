import numba
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from peg_core.layers.gate import Gate


def by_layers(gate, measures):
    """The four layers one after the other, as torch applies them."""
    return nn.Sequential.forward(gate, measures).squeeze(-1)


@given(
    seed=st.integers(0, 10**6),
    edges=st.sampled_from([0, 1, 17, 255, 4096, 5001]),
    measures=st.integers(1, 3),
    hidden=st.integers(1, 40),
)
def test_weights_and_gradients_equal_those_of_the_layers(seed, edges, measures, hidden):
    torch.manual_seed(seed)
    gate = Gate(measures, hidden)
    values, weight = 3 * torch.randn(edges, measures), torch.randn(edges)
    results = []
    for method in (gate, lambda values: by_layers(gate, values)):
        out = method(values)
        gradients = torch.autograd.grad((out * weight).sum(), list(gate.parameters()))
        results.append([out, *gradients])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-4)


def test_one_thread_or_two_give_the_same_gradients():
    torch.manual_seed(0)
    gate, values = Gate(2), torch.randn(10_000, 2)
    found, threads = [], numba.get_num_threads()
    for count in {1, min(2, threads)}:
        numba.set_num_threads(count)
        found.append(torch.autograd.grad(gate(values).sum(), list(gate.parameters())))
    numba.set_num_threads(threads)
    for first, second in zip(found[0], found[-1], strict=True):
        assert torch.equal(first, second)


def test_measures_that_want_a_gradient_get_one():
    gate, values = Gate(2), torch.randn(5, 2, requires_grad=True)
    gate(values).sum().backward()
    assert values.grad is not None


def test_other_number_types_take_the_ordinary_way():
    gate, values = Gate(1), torch.randn(5, 1)
    torch.testing.assert_close(gate.double()(values.double()).float(), gate.float()(values))
