"""Links and non-links that a split is given in files, as tasks read them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from peg_core.errors import InputError
from peg_core.graph.edge_table import (
    find_id_type,
    find_parquet_files,
    list_row_groups,
    read_row_group,
    require_no_nulls,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.splits.edge_split import TRAIN
from peg_core.splits.entry_chunk import find_entries

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def read_pairs(location: str, columns: tuple[str, str], node_ids: NodeIds) -> Pairs:
    """Pairs of a Parquet location as node indices, source < target, unknown ids refused."""
    files = find_parquet_files(location)
    groups = list_row_groups(files, columns)
    if not groups:
        raise InputError.no_rows(location, "pairs")
    find_id_type((file, columns) for file in files)
    ends: list[list[npt.NDArray[np.int64]]] = [[], []]
    for group in groups:
        table = read_row_group(group, columns)
        require_no_nulls(table, group, columns)
        for end, column in zip(ends, columns, strict=True):
            index = node_ids.lookup(normalise_ids(table[column]))
            if (index < 0).any():
                row = int((index < 0).argmax())
                raise InputError(
                    f"column {column!r} of {group.file} names the node {table[column][row]} in row "
                    f"{row:,} of row group {group.index}, the graph has no such node; "
                    f"remove {int((index < 0).sum()):,} such row(s)"
                )
            end.append(index)
    first, second = (np.concatenate(end) for end in ends)
    return np.minimum(first, second), np.maximum(first, second)


def mark_given_links(
    graph: GraphStore, given: Iterable[tuple[int, str, Pairs]], parts: npt.NDArray[np.uint8]
) -> None:
    """Write the part of every entry: that of the file which names its edge, else training.

    Args:
        given: Part, location and pairs of every file.
        parts: [2 * num_edges].
    """
    parts[:] = TRAIN
    for part, location, (low, high) in given:
        missing = int((~graph.contains(low, high)).sum())
        if missing:
            raise InputError(
                f"{missing:,} of {len(low):,} pairs in {location} are not edges of the graph; "
                "`graph.edges` must hold the links of all parts"
            )
        for rows, columns in ((low, high), (high, low)):
            parts[find_entries(graph, rows, columns)] = part


def require_non_edges(graph: GraphStore, location: str, pairs: Pairs) -> None:
    """Refuse given negatives that are edges."""
    edges = int(graph.contains(*pairs).sum())
    if edges:
        raise InputError(
            f"{edges:,} of {len(pairs[0]):,} negatives in {location} are edges of the "
            "graph; remove them"
        )
