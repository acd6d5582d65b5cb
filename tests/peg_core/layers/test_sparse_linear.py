import numpy as np
import pytest
import scipy.sparse
import torch

from peg_core.graph.node_features import NodeFeatures
from peg_core.layers.sparse_linear import SparseLinear, sparse_tensor


def rows(seed=0, filled=0.05):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((40, 60)) < filled, rng.normal(size=(40, 60)), 0)
    table[7] = 0  # a row of zeros
    return table.astype(np.float32)


def test_rows_without_their_zeros_give_the_same_numbers_and_gradients():
    table, layer = rows(), SparseLinear(60, 8)
    found = []
    for x in (torch.from_numpy(table), sparse_tensor(scipy.sparse.csr_array(table))):
        layer.zero_grad()
        out = layer(x)
        out.square().sum().backward()
        found.append((out.detach(), layer.weight.grad.clone(), layer.bias.grad.clone()))
    weight, bias = (p.detach().numpy().astype(np.float64) for p in (layer.weight, layer.bias))
    expected = table.astype(np.float64) @ weight + bias
    gradient = table.astype(np.float64).T @ (2 * expected)
    for out, for_weight, for_bias in found:
        np.testing.assert_allclose(out, expected, atol=1e-5)
        np.testing.assert_allclose(for_weight, gradient, atol=1e-4)
        np.testing.assert_allclose(for_bias, 2 * expected.sum(axis=0), atol=1e-4)


def test_dropout_takes_entries_and_keeps_the_mean():
    table = rows(filled=0.3)
    layer = SparseLinear(60, 60).train()
    with torch.no_grad():
        layer.weight.copy_(torch.eye(60))
        layer.bias.zero_()
    x = sparse_tensor(scipy.sparse.csr_array(table))
    torch.manual_seed(0)
    drawn = torch.stack([layer(x, dropout=0.6) for _ in range(2000)]).detach().numpy()
    kept = drawn[:, table != 0]
    ratio = kept / table[table != 0]
    assert set(np.unique(ratio.round(3))) == {0.0, 2.5}
    assert (ratio == 0).mean() == pytest.approx(0.6, abs=0.01)
    assert not layer.eval()(x, dropout=0.6).sub(torch.from_numpy(table)).abs().max() > 1e-6


def test_a_table_with_few_zeros_is_read_as_it_is():
    sparse = NodeFeatures("node", rows()).sparse
    np.testing.assert_array_equal(sparse.toarray(), rows())
    assert NodeFeatures("node", rows(filled=0.2)).sparse is None
    assert NodeFeatures("degree").sparse is None
