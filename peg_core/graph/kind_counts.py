"""How many nodes of each kind and edges of each relation a graph has."""

from __future__ import annotations

import numpy as np

from peg_core.graph.graph_store import GraphStore

# Entries that are looked at together.
CHUNK = 2**22


def count_kinds(graph: GraphStore) -> dict[str, int]:
    """Nodes of every kind and links of every relation, where there are several of either."""
    relations = graph.relations
    if relations is None:
        return {}
    kinds = relations.kinds if len(relations.kinds) > 1 else ()
    counts = {f"nodes_{kind.name}": kind.size for kind in kinds}
    if graph.codes is None:
        return counts
    listed = np.array([relations.bits(number)[0] for number in range(len(relations.relations))])
    found = np.zeros(len(listed), dtype=np.int64)
    for first in range(0, len(graph.codes), CHUNK):
        codes = np.asarray(graph.codes[first : first + CHUNK])
        found += [np.count_nonzero(codes & bit) for bit in listed]
    for relation, count in zip(relations.relations, found.tolist(), strict=True):
        # both entries of an edge carry the bit, but where (u, v) and (v, u) differ
        name = f"edges_{relation.name}" if len(relations.relations) > 1 else "links"
        counts[name] = count if relation.directed else count // 2
    return counts
