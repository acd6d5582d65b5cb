import numpy as np
import pytest
import torch

from peg_core.layers.peg_conv import PEGConv
from peg_core.training.stability import gate_lipschitz, largest_singular_value, layer_stability


def test_the_singular_value_equals_numpys_for_any_chunk():
    matrix = np.random.default_rng(0).normal(size=(100, 7))
    expected = np.linalg.svd(matrix)[1][0]
    assert largest_singular_value(matrix, chunk=13) == pytest.approx(expected)


def test_the_gate_is_nowhere_steeper_than_its_bound():
    torch.manual_seed(0)
    layer = PEGConv(3, 4)
    distances = torch.linspace(0, 5, 2000).unsqueeze(-1)
    values = layer.gate(distances).detach().squeeze(-1)
    slopes = (values.diff() / distances.squeeze(-1).diff()).abs()
    assert 0 < float(slopes.max()) <= gate_lipschitz(layer) * (1 + 1e-3)


def test_what_the_gate_makes_of_relations_is_not_steep():
    torch.manual_seed(0)
    layer = PEGConv(3, 4, edge_dim=2)
    before = gate_lipschitz(layer)
    with torch.no_grad():
        layer.gate[0].weight[:, 1:] *= 100
    assert gate_lipschitz(layer) == before
    distances = torch.linspace(0, 5, 2000)
    for relation in ([0.0, 1.0], [1.0, 0.0], [1.0, 1.0]):
        columns = torch.tensor(relation).expand(2000, 2)
        values = layer.gate(torch.cat([distances[:, None], columns], dim=1)).detach()
        slopes = (values.diff() / distances.diff()).abs()
        assert float(slopes.max()) <= before * (1 + 1e-3)


def test_a_smaller_gap_is_less_stable():
    torch.manual_seed(0)
    layer = PEGConv(3, 4)
    x = np.random.default_rng(0).normal(size=(50, 3))
    constants = [
        layer_stability(layer, gap=gap, features=x, largest_degree=9.0) for gap in (0.1, 0.01, 0.0)
    ]
    assert constants[0] < constants[1] < constants[2] == float("inf")
