"""Proof by counting: held-out links are nowhere the model can learn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from peg_core.errors import LeakFound
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import Pairs


def count_leaks(graph: GraphStore, held_out: Mapping[str, Iterable[Pairs]]) -> dict[str, int]:
    """How many of the held-out links, given some at a time, are edges of ``graph``, by name."""
    return {
        name: sum(int(graph.contains(*links).sum()) for links in chunks)
        for name, chunks in held_out.items()
    }


def require_no_leaks(
    graph: GraphStore, held_out: Mapping[str, Iterable[Pairs]], *, found_in: str
) -> dict[str, int]:
    """The counts, all zero, or :class:`LeakFound` naming the first that is not."""
    counts = count_leaks(graph, held_out)
    for part, count in counts.items():
        if count:
            raise LeakFound.of(part=part, found_in=found_in, count=count)
    return counts
