"""How many ids of one kind of node are ids of another kind, too."""

from __future__ import annotations

import numpy as np

from peg_core.graph.ids.graph_ids import KindIds
from peg_core.graph.ids.id_types import BINARY, TEXT

# Ids that are looked up, spread over all of a kind.
MOST_IDS = 100_000


def shared_share(kind: KindIds, other: KindIds) -> float:
    """The share of the ids of ``kind`` that ``other`` has, from an even sample of many."""
    count = kind.stop - kind.first
    if not count or (kind.type in (TEXT, BINARY)) != (other.type in (TEXT, BINARY)):
        return 0.0
    sample = kind.first + np.unique(np.linspace(0, count - 1, MOST_IDS).astype(np.int64))
    return float((other.lookup(kind.take(sample)) >= 0).mean())
