"""Held-out links that files give: no link may stand in two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import LeakFound
from peg_core.graph.edge_table import (
    find_id_type,
    find_parquet_files,
    list_row_groups,
    read_row_group,
)
from peg_core.graph.ids.node_ids import NodeIds

Keys = npt.NDArray[np.int64]


def require_disjoint(valid: str, test: str, columns: Sequence[str], node_ids: NodeIds) -> None:
    """Refuse two locations with a link in common, whichever way round it is written.

    Args:
        columns: The two that hold the ends of a link.
        node_ids: Of the graph; links of other nodes are not looked at.
    """
    first, second = (_link_keys(place, columns, node_ids) for place in (valid, test))
    both = np.intersect1d(first, second)
    if len(both):
        raise LeakFound.in_both(count=len(both), valid=valid, test=test)


def _link_keys(location: str, columns: Sequence[str], node_ids: NodeIds) -> Keys:
    """A number for every link, the same in both directions, [num_links]."""
    found = [np.zeros(0, dtype=np.int64)]
    files = find_parquet_files(location)
    groups = list_row_groups(files, columns)
    find_id_type((file, columns) for file in files)
    for group in groups:
        table = read_row_group(group, columns)
        ends: Any = np.stack([node_ids.lookup(table[column]) for column in columns])
        ends = ends[:, (ends >= 0).all(axis=0)]
        found.append(ends.min(axis=0) * len(node_ids) + ends.max(axis=0))
    return np.concatenate(found)
