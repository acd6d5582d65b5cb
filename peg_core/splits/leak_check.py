"""Proof by counting: held-out links are nowhere the model can learn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from peg_core.errors import LeakFound
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import Pairs


def count_leaks(graph: GraphStore, held_out: Mapping[str, Iterable[Pairs]]) -> dict[str, int]:
    """How many of the held-out links, given some at a time, are links in ``graph``, by name."""
    return {name: count_links_and_leaks(graph, links)[1] for name, links in held_out.items()}


def count_links_and_leaks(graph: GraphStore, chunks: Iterable[Pairs]) -> tuple[int, int]:
    """How many links there are, and how many of them are links in ``graph``.

    A pair that only a context relation joins is none; where links are directed, the reverse of a
    held-out link is none either: both directions of a pair are in one part.
    """
    links = leaks = 0
    for source, target in chunks:
        links += len(source)
        leaks += int(graph.contains_link(source, target).sum())
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
