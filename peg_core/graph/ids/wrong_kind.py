"""Ids of the wrong kind of node: columns that were mixed up are told of before they cost hours."""

from __future__ import annotations

import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.id_types import BINARY, TEXT, id_type

# Share of the ids that are known as another kind from which on they are taken for that.
MOST = 0.5


def require_kind(
    ids: GraphIds, kind: KindIds, wanted: pa.Array | pa.ChunkedArray, *, column: str, location: str
) -> None:
    """Refuse ids of which none is of the kind that is needed, but most are of another.

    Args:
        ids: Of the graph.
        kind: What the ids must be.
        wanted: Some ids, or all.
        column, location: Where they stand, for the error.
    """
    count = len(wanted) - wanted.null_count
    if len(ids.kinds) == 1 or not count or (kind.lookup(wanted) >= 0).any():
        return
    for other in ids.kinds:
        if other is kind or not _alike(wanted.type, other.type):
            continue
        known = int((other.lookup(wanted) >= 0).sum())
        if known > MOST * count:
            raise InputError(
                f"column {column!r} of {location} holds no id of a {kind.name!r}, but {known:,} of "
                f"{count:,} ids looked at are those of a {other.name!r}; exchange the columns, or "
                f"name the one with the ids of a {kind.name!r}"
            )


def _alike(found: pa.DataType, needed: pa.DataType) -> bool:
    """Whether ids of one type can be looked up among those of the other."""
    return (id_type(found) in (TEXT, BINARY)) == (needed in (TEXT, BINARY))
