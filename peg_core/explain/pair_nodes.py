"""The nodes of a pair that a user names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.id_types import BINARY, TEXT, normalise_ids
from peg_core.graph.ids.wrong_kind import require_kind

IntArray = npt.NDArray[np.int64]


def pair_nodes(ids: GraphIds, source: Any, target: Any) -> tuple[IntArray, IntArray]:
    """Both ends as arrays of one node, [1] each.

    Args:
        source, target: Ids as in the edge list.

    Raises:
        InputError: An id is not in the graph, or both are one node.
    """
    first, second = (
        _node(ids, ids.source, source, "source"),
        _node(ids, ids.target, target, "target"),
    )
    if first[0] == second[0]:
        raise InputError(f"{source!r} is at both ends of the pair; name two different nodes")
    return first, second


def parse_id(kind: KindIds, text: str) -> Any:
    """An id that was typed: a number where ids are numbers, bytes as hexadecimal digits."""
    if kind.type == TEXT:
        return text
    try:
        return bytes.fromhex(text) if kind.type == BINARY else int(text)
    except ValueError as error:
        needed = "bytes in hexadecimal digits" if kind.type == BINARY else "whole numbers"
        raise InputError(
            f"{text!r} is no id of the graph, whose ids are {needed}; give one of the edge list"
        ) from error


def _node(ids: GraphIds, kind: KindIds, given: Any, end: str) -> IntArray:
    try:
        column = normalise_ids(pa.array([given]))
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"the {end} {given!r} is no id ({error}); give a number or text"
        ) from error
    if (column.type in (TEXT, BINARY)) != (kind.type in (TEXT, BINARY)):
        raise InputError(
            f"the {end} {given!r} is of type {column.type}, the ids of the graph are {kind.type}; "
            "give an id as it stands in the edge list"
        )
    require_kind(ids, kind, column, column=end, location="the pair")
    node = kind.lookup(column)
    if node[0] < 0:
        what = "node of the graph" if kind.name is None else f"{kind.name} of the graph"
        raise InputError(f"the {end} {given!r} is no {what}; give an id of the edge list")
    return node
