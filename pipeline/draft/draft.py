"""A configuration guessed from tables: every key with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from peg_core.errors import InputError
from pipeline.config.field_types import shorten
from pipeline.draft.edge_ends import Ends, find_ends, find_kind
from pipeline.draft.edge_facts import find_bad_rows, find_time, find_weight
from pipeline.draft.guess import Guess
from pipeline.draft.node_columns import NodeGuess, describe_nodes, unused_columns
from pipeline.draft.sampled_table import SampledTable

# Nodes per dimension of an encoding, in graphs too small for the default.
NODES_PER_DIMENSION = 16
FEWEST_DIMENSIONS, DEFAULT_DIMENSIONS = 8, 128


@dataclass(frozen=True)
class Draft:
    """What is known of the tables that a pipeline will read.

    Args:
        name: Of the pipeline.
        edges: The edge list.
        ends: Its two columns.
        kind: Whether the graph is ``plain``, ``directed`` or ``bipartite``.
        time, weight, bad_rows: The other keys of the edge list.
        nodes: The node tables.
        candidates: The candidate pairs, with their two columns.
    """

    name: str
    edges: SampledTable
    ends: Ends
    kind: Guess
    time: Guess
    weight: Guess
    bad_rows: Guess
    nodes: Sequence[NodeGuess] = ()
    candidates: tuple[SampledTable, Ends] | None = None

    @property
    def is_bipartite(self) -> bool:
        return self.kind.key == "bipartite"

    @property
    def has_features(self) -> bool:
        return any(table.features.value is not None for table in self.nodes)

    @cached_property
    def sampled_nodes(self) -> int:
        """Different nodes in the sample of the edges."""
        source, target = (self.edges.rows[name].drop_nulls().unique() for name in self.ends.columns)
        if self.is_bipartite:
            return len(source) + len(target)
        return len(set(source.to_list()) | set(target.to_list()))

    @property
    def dimensions(self) -> int | None:
        """Of the encoding, where the graph seems too small for the default."""
        nodes = self.sampled_nodes
        if not self.edges.is_whole or nodes >= NODES_PER_DIMENSION * DEFAULT_DIMENSIONS:
            return None
        return max(FEWEST_DIMENSIONS, nodes // NODES_PER_DIMENSION)

    def guesses(self) -> Iterator[Guess]:
        """All of them, in the order of the file, for people to read."""
        yield Guess("graph.source", self.ends.source, self.ends.reason)
        yield Guess("graph.target", self.ends.target, "")
        key = "directed" if self.kind.key == "directed" else "bipartite"
        yield Guess(f"graph.{key}", self.kind.value, self.kind.reason)
        yield Guess("graph.weight", self.weight.value, self.weight.reason)
        yield Guess("graph.time", self.time.value, self.time.reason)
        if self.bad_rows.value is not None:
            yield Guess("graph.on_bad_rows", self.bad_rows.value, self.bad_rows.reason)
        for table in self.nodes:
            key = f"graph.nodes.{table.end}" if self.is_bipartite else "graph"
            name = "id" if self.is_bipartite else "node_id"
            yield Guess(f"{key}.{name}", table.id.value, table.id.reason)
            yield Guess(f"{key}.features", table.features.value, table.features.reason)
        if self.candidates is not None:
            _, ends = self.candidates
            yield Guess("score.source", ends.source, ends.reason)
            yield Guess("score.target", ends.target, "")


def draft_pipeline(
    edges: str,
    nodes: Sequence[str] = (),
    candidates: str | None = None,
    *,
    ends: tuple[str | None, str | None] = (None, None),
) -> Draft:
    """Look at tables and guess what they hold.

    Args:
        edges, nodes, candidates: Locations of Parquet files.
        ends: The columns of the two ends, where they are known.

    Raises:
        InputError: A table cannot be read, or nothing in it looks like what it should hold.
    """
    table = SampledTable.read(edges, "edges")
    found = find_ends(table, ends)
    kind = find_kind(table, found)
    time = find_time(table, found)
    weight = find_weight(table, found, time.value)
    described = [
        describe_nodes(SampledTable.read(location, "nodes"), table, found) for location in nodes
    ]
    _require_own_kinds(described, is_bipartite=kind.key == "bipartite")
    pairs = None if candidates is None else _candidates(candidates, found)
    bad_rows = find_bad_rows(table, found, time.value, weight.value)
    return Draft(name_of(edges), table, found, kind, time, weight, bad_rows, described, pairs)


def name_of(location: str) -> str:
    """A pipeline called like the file of its edges."""
    path = PurePosixPath(location)
    stem = path.stem if path.suffix else path.name
    if not re.search("[A-Za-z0-9]", stem) or stem in ("edges", "links"):
        stem = path.parent.name or stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("._-") or "pipeline"


def not_used(table: SampledTable, draft: Draft) -> str:
    """Columns of a table of the draft that no key names."""
    used = [*draft.ends.columns, draft.time.value, draft.weight.value]
    for nodes in draft.nodes:
        if nodes.table is table:
            features = nodes.features.value
            used = [nodes.id.value, *(features if isinstance(features, list) else [features])]
    return unused_columns(table, used)


def _require_own_kinds(tables: Sequence[NodeGuess], *, is_bipartite: bool) -> None:
    if len(tables) > 1 and not is_bipartite:
        raise InputError(
            f"{len(tables)} node tables are given, the graph looks as if it had one kind of node; "
            "give one table with --nodes"
        )
    ends = [table.end for table in tables]
    for end in ends:
        if ends.count(end) > 1:
            both = " and ".join(t.table.location for t in tables if t.end == end)
            raise InputError(
                f"{both} both look like tables of the nodes in {shorten(end)}; give one table "
                "for each kind of node, with the ids that the edges have"
            )


def _candidates(location: str, ends: Ends) -> tuple[SampledTable, Ends]:
    """The pairs to score: columns called as in the edge list, else found as there."""
    table = SampledTable.read(location, "candidate pairs")
    if set(ends.columns) <= set(table.id_columns):
        return table, Ends(*ends.columns, None, "called as in the edge list")
    return table, find_ends(table)
