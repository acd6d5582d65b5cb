"""Which validation pairs a process scores, and how all of them come together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch.distributed

from peg_core.models.link_predictor import LinkPredictor
from peg_core.training.link_schedule import Share

# Pairs of a chunk: dealt to the processes one by one, and scored from one sample.
CHUNK = 4096


def chunks_of(count: int, share: Share) -> list[tuple[int, slice]]:
    """The chunks of so many pairs that a process scores, each with its number among all."""
    numbers = range(share.rank, -(-count // CHUNK), share.world_size)
    return [(number, slice(number * CHUNK, min((number + 1) * CHUNK, count))) for number in numbers]


def rows_of(count: int, share: Share) -> npt.NDArray[np.int64]:
    """The pairs of these chunks."""
    nothing = np.zeros(0, dtype=np.int64)
    parts = [np.arange(chunk.start, chunk.stop) for _, chunk in chunks_of(count, share)]
    return np.concatenate([nothing, *parts])


def all_scores(mine: npt.NDArray[np.float32], count: int, share: Share) -> npt.NDArray[np.float32]:
    """The scores of all pairs in every process, from those of its share."""
    if share.world_size == 1:
        return mine
    parts: list[Any] = [None] * share.world_size
    torch.distributed.all_gather_object(parts, mine)
    scores = np.empty(count, dtype=np.float32)
    for rank, part in enumerate(parts):
        scores[rows_of(count, Share(rank, share.world_size))] = part
    return scores


def mean_over_processes(mine: npt.NDArray[np.float64], share: Share) -> float:
    """The mean of the values of all processes; not a number where there are none."""
    sums = [(float(mine.sum()), len(mine))]
    if share.world_size > 1:
        parts: list[Any] = [None] * share.world_size
        torch.distributed.all_gather_object(parts, sums[0])
        sums = parts
    count = sum(number for _, number in sums)
    return sum(total for total, _ in sums) / count if count else float("nan")


def with_common_statistics(model: LinkPredictor, share: Share) -> LinkPredictor:
    """The model with the running statistics of the first process.

    Weights move alike in all processes, but each gathers statistics of its own share.
    """
    if share.world_size > 1:
        for buffer in model.buffers():
            torch.distributed.broadcast(buffer, 0)
    return model
