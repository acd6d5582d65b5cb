"""Steps that CPU threads make ready while the one before is computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numba
import torch

from peg_core.training.training_step import TrainingStep

Asked = TypeVar("Asked")


def preparation_threads(cpus: int, device: torch.device) -> int:
    """How many threads prepare steps in a process with so many CPUs.

    A GPU leaves the CPUs to them, all but the one that tells it what to do. On a CPU the
    computation takes all, and one thread keeps ahead of it.
    """
    return 1 if device.type == "cpu" else max(1, cpus - 1)


def prepare_ahead(
    prepare: Callable[[Asked], TrainingStep],
    asked: Iterable[Asked],
    *,
    threads: int,
    device: torch.device,
) -> Iterator[TrainingStep]:
    """Steps on the device, in the order they were asked for; threads + 2 are held at a time.

    Args:
        prepare: Makes a step; runs in the threads.
        asked: What it is called with; read in the calling thread.
        threads: Steps prepared side by side; 0: when they are asked for, in the calling thread.
        device: Where the steps are computed.
    """
    if not threads:
        yield from (prepare(one).to(device) for one in asked)
        return

    def ready(one: Asked) -> TrainingStep:
        step = prepare(one)
        return step.pinned() if device.type == "cuda" else step

    waiting: deque[Future[TrainingStep]] = deque()
    with ThreadPoolExecutor(threads, initializer=_begin, initargs=(threads, device)) as pool:
        try:
            for one in asked:
                waiting.append(pool.submit(ready, one))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result().to(device)
            while waiting:
                yield waiting.popleft().result().to(device)
        finally:
            for step in waiting:
                step.cancel()


def _begin(threads: int, device: torch.device) -> None:
    """What a new thread must know of the others and of the device."""
    if (
        threads > 1
    ):  # side by side already: loops that open threads of their own would get in the way
        numba.set_num_threads(1)
    if device.type == "cuda":  # a thread begins with the first GPU, which may be another's
        torch.cuda.set_device(device)
