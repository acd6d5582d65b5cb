"""Held-out links that files give: no link may stand in two of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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
from peg_core.graph.ids.graph_ids import GraphIds

Keys = npt.NDArray[np.int64]


def require_disjoint(valid: str, test: str, columns: Sequence[str], ids: GraphIds) -> None:
    """Refuse two locations with a link in common, whichever way round it is written.

    Args:
        columns: The two that hold the ends of a link.
        ids: Of the graph; links of other nodes are not looked at.
    """
    first, second = (_link_keys(place, columns, ids) for place in (valid, test))
    both = np.intersect1d(first, second)
    if len(both):
        raise LeakFound.in_both(count=len(both), valid=valid, test=test)


def require_id_types(files: Sequence[Path | str], columns: Sequence[str], ids: GraphIds) -> None:
    """Refuse columns of mixed types; two ends of different kinds may differ."""
    ends = [columns] if ids.source is ids.target else [[column] for column in columns]
    for names in ends:
        find_id_type((file, names) for file in files)


def _link_keys(location: str, columns: Sequence[str], ids: GraphIds) -> Keys:
    """A number for every link, the same in both directions, [num_links]."""
    found = [np.zeros(0, dtype=np.int64)]
    files = find_parquet_files(location)
    groups = list_row_groups(files, columns)
    require_id_types(files, columns, ids)
    for group in groups:
        table = read_row_group(group, columns)
        ends: Any = np.stack(
            [kind.lookup(table[column]) for kind, column in zip(ids.ends, columns, strict=True)]
        )
        ends = ends[:, (ends >= 0).all(axis=0)]
        found.append(ends.min(axis=0) * len(ids) + ends.max(axis=0))
    return np.concatenate(found)
