"""Why a pair of candidates has no score, or what little its score rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# By their codes; the first stands for nothing to tell.
REASONS = (None, "unknown_node", "null_id", "self_pair", "cold_node")
FINE, UNKNOWN_NODE, NULL_ID, SELF_PAIR, COLD_NODE = range(len(REASONS))
# What the manifest calls their counts.
COUNTS = {UNKNOWN_NODE: "unknown", NULL_ID: "null_ids", SELF_PAIR: "self_pairs", COLD_NODE: "cold"}

Codes = npt.NDArray[np.uint8]


def reason_codes(
    source: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    null: npt.NDArray[np.bool_],
    cold_nodes: npt.NDArray[np.bool_] | None,
) -> Codes:
    """The reason of every pair, [num_pairs].

    Args:
        source, target: Node indices, below 0 for ids that the graph does not have.
        null: Whether an id is missing.
        cold_nodes: [num_nodes], which nodes have no edge; None where all have one.
    """
    codes = np.zeros(len(source), dtype=np.uint8)
    if cold_nodes is not None:  # an index below 0 reads another node: overwritten below
        codes[cold_nodes[source] | cold_nodes[target]] = COLD_NODE
    codes[source == target] = SELF_PAIR
    codes[(source < 0) | (target < 0)] = UNKNOWN_NODE
    codes[null] = NULL_ID
    return codes


def reason_names(codes: Codes) -> pa.Array:
    """In words; null where there is nothing to tell."""
    if not codes.any():
        return pa.nulls(len(codes), pa.string())
    return pc.take(pa.array(REASONS, pa.string()), pa.array(codes))


def count_reasons(codes: Codes) -> dict[str, int]:
    """How many pairs have each reason."""
    counts = np.bincount(codes, minlength=len(REASONS))
    return {name: int(counts[code]) for code, name in COUNTS.items()}


def describe_row(code: int, found: Any, *, other: Any) -> str:
    """What is wrong with the ids of a pair, for an error.

    Args:
        code: Its reason.
        found, other: Its ids, the one that is to blame first.
    """
    if code == SELF_PAIR:
        return f"{found!r} at both ends of a pair, a node is no partner of itself"
    if code == COLD_NODE:
        return (
            f"a pair of {found!r} and {other!r}, one of which has no edge, and there are no "
            "features to score it by"
        )
    return "a null" if found is None else f"{found!r}, which is no node of the graph"
