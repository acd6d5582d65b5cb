"""Kinds of node that may be another kind under a second name."""

from __future__ import annotations

from typing import NamedTuple

from peg_core.errors import nearest_hint
from pipeline.config.graph_section import GraphConfig


class DoubtfulKind(NamedTuple):
    """A kind that one end of one relation has, and the kind of the other end."""

    relation: str
    key: str
    kind: str
    other: str


def doubtful_kinds(graph: GraphConfig) -> list[DoubtfulKind]:
    """Kinds that nothing but one end of a context relation names.

    A kind that is called like its column was perhaps forgotten; one that is nearly called like
    another was perhaps mistyped.
    """
    if not isinstance(graph.edges, list):
        return []
    ends = [kind for relation in graph.edges for kind in relation.kinds]
    found = []
    for relation in graph.edges:
        if relation is graph.predicted:
            continue
        given = (relation.source_kind, relation.target_kind)
        for place, key in enumerate(("source_kind", "target_kind")):
            kind, other = relation.kinds[place], relation.kinds[1 - place]
            near = nearest_hint(kind, [end for end in ends if end != kind])
            alone = ends.count(kind) == 1 and kind not in graph.node_tables
            if alone and (given[place] is None or near):
                found.append(DoubtfulKind(relation.name, key, kind, other))
    return found
