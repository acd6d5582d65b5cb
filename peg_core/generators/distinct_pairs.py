"""Pairs drawn until enough of them are different."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peg_core.errors import ConfigError
from peg_core.generators.edge_generator import EdgeChunk
from peg_core.kernels.generator_kernels import Int64Array

# Draws as many pairs as it is asked for, some perhaps twice; the first argument is the round.
Draw = Callable[[int, int], EdgeChunk]

# Of all pairs that there are; beyond that most draws would hit a pair that is there already.
MOST_DENSE = 0.1
# Ids of an end; the number of pairs has to stay below 2**63.
MOST_NODES = 2**31
# Draws beyond what is missing, and how often to draw.
SPARE = 1.25
ROUNDS = 64


def draw_distinct(draw: Draw, *, rows: int, targets: int, what: str) -> EdgeChunk:
    """The first ``rows`` different pairs, in the order in which they are drawn.

    Args:
        draw: Draws pairs; ids of targets are below ``targets``.
        rows: Pairs wanted.
        targets: Number of possible targets.
        what: What the pairs are called where there are too few.

    Returns:
        Both ends of each pair, [rows] each.
    """
    found = np.empty(0, np.int64)
    for turn in range(ROUNDS):
        missing = rows - len(found)
        if missing <= 0:
            break
        source, target = draw(turn, int(SPARE * missing) + 16)
        found = _first_occurrences(np.concatenate([found, source * targets + target]))
    if len(found) < rows:
        raise ConfigError(
            f"{rows:,} {what} were asked for, {len(found):,} different ones were found in "
            f"{ROUNDS} draws; ask for fewer, or for more nodes"
        )
    return EdgeChunk(*np.divmod(found[:rows], targets))


def check_rows(*, rows: int, pairs: int, what: str) -> None:
    """Raise a ConfigError when there are not ``rows`` pairs, or too many to draw at random."""
    most = int(MOST_DENSE * pairs)
    if not 1 <= rows <= most:
        raise ConfigError(
            f"{rows:,} {what} were asked for, between 1 and {most:,} are possible, a tenth of all "
            f"{pairs:,} pairs; change their number or that of the nodes"
        )


def check_count(name: str, count: int, *, least: int, most: int = MOST_NODES) -> None:
    """Raise a ConfigError when there are too few or too many of ``name``."""
    if not least <= count <= most:
        raise ConfigError(
            f"{count:,} {name} were asked for, between {least:,} and {most:,} are possible; "
            f"change `{name}`"
        )


def _first_occurrences(keys: Int64Array) -> Int64Array:
    _, first = np.unique(keys, return_index=True)
    kept: Int64Array = keys[np.sort(first)]
    return kept
