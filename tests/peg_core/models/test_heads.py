"""Heads against the formulas of their docstrings."""

import numpy as np
import pytest
import torch

from peg_core.models.heads import HEADS, MLPHead


@pytest.fixture
def pairs():
    torch.manual_seed(0)
    return torch.randn(50, 8), torch.randn(50, 8), torch.randn(50, 3), torch.randn(50, 6)


@pytest.mark.parametrize("name", HEADS)
def test_the_ends_of_a_pair_may_be_swapped(name, pairs):
    head = HEADS[name](8, 1, dropout=0.0, width=16).eval()
    first, second, *rest = pairs
    torch.testing.assert_close(head(first, second, *rest), head(second, first, *rest))


def test_mlp_is_a_network_beside_a_linear_map(pairs):
    head = MLPHead(8, 1, dropout=0.5, width=16).eval()
    weights = {name: value.detach().numpy() for name, value in head.named_parameters()}
    x = np.concatenate([(pairs[0] * pairs[1]).numpy(), pairs[2].numpy()], axis=1)
    units = np.maximum(x @ weights["network.0.weight"].T + weights["network.0.bias"], 0)
    expected = units @ weights["network.3.weight"][0] + weights["network.3.bias"]
    expected += x @ weights["straight.weight"][0]
    np.testing.assert_allclose(head(*pairs).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_mlp_parts_pairs_on_which_every_unit_is_silent(pairs):
    head = MLPHead(8, 1, dropout=0.0, width=16)
    with torch.no_grad():
        head.network[0].bias.fill_(-1e3)
    first = pairs[0].clone().requires_grad_()
    logits = head(first, *pairs[1:])
    assert len(logits.unique()) == 50
    logits.sum().backward()
    assert (first.grad != 0).any(dim=1).all()
