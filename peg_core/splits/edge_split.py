"""Which edges train, validate and test."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.splits.pair_hash import pair_hash

IntArray = npt.NDArray[np.integer[Any]]
TRAIN, VALID, TEST = 0, 1, 2
PART_NAMES = {TRAIN: "train", VALID: "valid", TEST: "test"}


def split_randomly(
    source: IntArray, target: IntArray, *, valid: float, test: float, seed: int
) -> npt.NDArray[np.uint8]:
    """The part of every edge, [num_edges]; exact shares, any order of the edges."""
    order = pair_hash(source, target, seed=seed, purpose="edge split")
    return _split_by_rank(order, valid=valid, test=test)


def split_by_time(
    source: IntArray, target: IntArray, time: IntArray, *, valid: float, test: float, seed: int
) -> npt.NDArray[np.uint8]:
    """The newest edges test, those before them validate, [num_edges]; ties by pair hash."""
    tie = pair_hash(source, target, seed=seed, purpose="edge split")
    rank = np.empty(len(time), dtype=np.int64)
    rank[np.lexsort((tie, time))] = np.arange(len(time))
    # the smallest ranks are set aside: the newest come first
    return _split_by_rank(len(time) - 1 - rank, valid=valid, test=test)


def assign_folds(
    source: IntArray, target: IntArray, *, folds: int, seed: int
) -> npt.NDArray[np.uint8]:
    """The fold of every training edge, [num_edges]; sizes differ by one at most."""
    order = np.argsort(pair_hash(source, target, seed=seed, purpose="folds"), kind="stable")
    fold = np.empty(len(order), dtype=np.uint8)
    fold[order] = np.arange(len(order)) % folds
    return fold


def _split_by_rank(rank: IntArray, *, valid: float, test: float) -> npt.NDArray[np.uint8]:
    total = len(rank)
    num_test, num_valid = round(test * total), round(valid * total)
    for part, ratio, count in (("test", test, num_test), ("valid", valid, num_valid)):
        if not count:
            raise GraphTooSmall.for_split(part=part, ratio=ratio, edges=total)
    if num_test + num_valid >= total:
        raise GraphTooSmall.for_split(part="train", ratio=1 - valid - test, edges=total)
    order = np.argpartition(rank, [num_test - 1, num_test + num_valid - 1])
    parts = np.full(total, TRAIN, dtype=np.uint8)
    parts[order[:num_test]] = TEST
    parts[order[num_test : num_test + num_valid]] = VALID
    return parts
