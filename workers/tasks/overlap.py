"""Reading, computing and writing at the same time, with few items under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
DEPTH = 2
_END: Any = object()


def read_ahead(items: Iterable[Item], *, depth: int = DEPTH) -> Iterator[Item]:
    """The same items, produced in a thread of their own, at most ``depth`` ahead."""
    iterator = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="peg-read") as thread:
        coming = deque(thread.submit(next, iterator, _END) for _ in range(depth))
        while (item := coming.popleft().result()) is not _END:
            coming.append(thread.submit(next, iterator, _END))
            yield item


def write_behind(
    items: Iterable[Item], write: Callable[[Item], None], *, depth: int = DEPTH
) -> None:
    """Call ``write`` for every item, in order, in a thread of its own."""
    under_way: deque[Future[None]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="peg-write") as thread:
        for item in items:
            if len(under_way) == depth:
                under_way.popleft().result()
            under_way.append(thread.submit(write, item))
        for written in under_way:
            written.result()
