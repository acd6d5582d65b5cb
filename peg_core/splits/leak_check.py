"""Proof by counting: held-out links are nowhere the model can learn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from peg_core.errors import LeakFound
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import Pairs


def count_leaks(graph: GraphStore, held_out: Mapping[str, Iterable[Pairs]]) -> dict[str, int]:
    """How many of the held-out links, given some at a time, are edges of ``graph``, by name."""
    return {name: count_links_and_leaks(graph, links)[1] for name, links in held_out.items()}


def count_links_and_leaks(graph: GraphStore, chunks: Iterable[Pairs]) -> tuple[int, int]:
    """How many links there are, and how many of them are edges of ``graph``."""
    links = leaks = 0
    for source, target in chunks:
        links += len(source)
        leaks += int(graph.contains(source, target).sum())
    return links, leaks


def require_no_leaks(
    graph: GraphStore, held_out: Mapping[str, Iterable[Pairs]], *, found_in: str
) -> dict[str, int]:
    """The counts, all zero, or :class:`LeakFound` naming the first that is not."""
    counts = count_leaks(graph, held_out)
    require_none(counts, found_in=found_in)
    return counts


def require_none(counts: Mapping[str, int], *, found_in: str) -> None:
    """Raise :class:`LeakFound` naming the first part whose count is not zero."""
    for part, count in counts.items():
        if count:
            raise LeakFound.of(part=part, found_in=found_in, count=count)
