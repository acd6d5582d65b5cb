"""The kernel against scipy, in every form it is compiled."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import scipy.sparse

from peg_core.kernels.sparse_product import (
    BLOCK_WIDTHS,
    SMALLEST_PRODUCT,
    balanced_rows,
    recurrence_step,
)


def random_matrix(kind, *, weighted, indices=np.int32, rows=300, seed=0):
    matrix = scipy.sparse.random_array(
        (rows, rows), density=0.03, rng=np.random.default_rng(seed), format="csr"
    )
    matrix.data = matrix.data.astype(kind) if weighted else np.ones(matrix.nnz, kind)
    weights = matrix.data if weighted else None
    return matrix, matrix.indptr.astype(np.int64), matrix.indices.astype(indices), weights


@pytest.mark.parametrize("width", BLOCK_WIDTHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_step_equals_the_formula(kind, weighted, width):
    matrix, indptr, indices, weights = random_matrix(kind, weighted=weighted)
    generator = np.random.default_rng(1)
    current = generator.standard_normal((300, width)).astype(kind)
    previous = generator.standard_normal((300, width)).astype(kind)
    inverse = generator.uniform(0.1, 1, 300).astype(kind)
    wanted = 2 * inverse[:, None] * (matrix @ current) + 0.5 * current - previous
    recurrence_step(
        indptr, indices, weights, inverse, current, previous,
        alpha=2.0, beta=0.5, gamma=-1.0,
    )  # fmt: skip
    np.testing.assert_allclose(previous, wanted, atol=1e-5 if kind is np.float32 else 1e-13)


def test_64_bit_indices_are_possible():
    matrix, indptr, indices, _ = random_matrix(np.float32, weighted=False, indices=np.int64)
    current, previous = np.ones((300, 8), np.float32), np.zeros((300, 8), np.float32)
    recurrence_step(
        indptr, indices, None, np.ones(300, np.float32), current, previous,
        alpha=1.0, beta=0.0, gamma=0.0,
    )  # fmt: skip
    np.testing.assert_array_equal(previous, matrix @ current)


def test_result_does_not_depend_on_the_number_of_threads():
    _, indptr, indices, _ = random_matrix(np.float32, weighted=False, rows=3000)
    current = np.random.default_rng(1).standard_normal((3000, 16)).astype(np.float32)
    assert len(indices) * 16 > SMALLEST_PRODUCT
    results = []
    before = numba.get_num_threads()
    for threads in (1, before):
        numba.set_num_threads(threads)
        previous = np.zeros_like(current)
        recurrence_step(
            indptr, indices, None, np.ones(3000, np.float32),
            current, previous, alpha=1.0, beta=0.0, gamma=0.0,
        )  # fmt: skip
        results.append(previous)
    numba.set_num_threads(before)
    np.testing.assert_array_equal(*results)


def test_rows_are_cut_by_work_and_cover_the_matrix():
    indptr = np.array([0, 1000, 1001, 1002, 1003, 2000])
    cuts = balanced_rows(indptr, 2)
    assert cuts[0] == 0
    assert cuts[-1] == 5
    assert (np.diff(balanced_rows(indptr, 64)) >= 0).all()


def test_a_width_that_was_not_compiled_is_refused():
    block = np.zeros((4, 12), np.float32)
    with pytest.raises(ValueError, match="width in"):
        recurrence_step(
            np.zeros(5, np.int64), np.zeros(0, np.int32), None,
            np.ones(4, np.float32), block, block.copy(), alpha=1.0, beta=0.0, gamma=0.0,
        )  # fmt: skip
