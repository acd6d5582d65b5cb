"""What an ingestion is asked for: edge lists, kinds of node, and where the graph goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from peg_core.graph.edge_entries import Duplicates
from peg_core.graph.edge_rows import EdgeSource, OnBadRows
from peg_core.graph.edge_runs import RunColumns
from peg_core.graph.fading import Fading
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import kind_folder
from peg_core.graph.node_table import NodeColumns
from peg_core.graph.relations import Relation, Relations
from workers.artifact_ref import ArtifactRef


class NoResult(TypedDict):
    """Nothing to tell."""


@dataclass(frozen=True)
class KindSource:
    """Nodes of one kind.

    Args:
        name: Of the kind.
        nodes: Where its node table is, or None.
        columns: What the columns of the table are called.
    """

    name: str
    nodes: str | None
    columns: NodeColumns


@dataclass(frozen=True)
class IngestRequest:
    """What is to be read, and where the store goes.

    Args:
        sources: The edge lists to read; with ``previous`` only files it has not seen.
        kinds: The kinds of node in the order of their numbers.
        relations: What the edge lists mean, in their order; none: one undirected list.
        predicted: Which of them is predicted.
        previous: An earlier store that the new edges are merged into.
        fading: How weights fade with time; None: they do not.
    """

    sources: tuple[EdgeSource, ...]
    duplicates: Duplicates
    on_bad_rows: OnBadRows
    kinds: tuple[KindSource, ...]
    out: ArtifactRef[GraphStore]
    relations: tuple[Relation, ...] = ()
    predicted: int = 0
    previous: ArtifactRef[GraphStore] | None = None
    fading: Fading | None = None

    @property
    def work(self) -> Path:
        return self.out.folder / "work"

    @property
    def graph_relations(self) -> Relations | None:
        """As stored with the graph; known when all nodes have their numbers."""
        return Relations.open(self.out.folder) if self.relations else None

    def ids_folder(self, kind: int) -> Path:
        """Where the ids of a kind go."""
        return kind_folder(self.out.folder, kind) if self.relations else self.out.folder

    def run_columns(self, source: EdgeSource) -> RunColumns:
        """What the sorted rows of an edge list hold beside their ends."""
        return RunColumns(
            weighted=any(each.columns.weight or each.scale != 1 for each in self.sources),
            timed=any(each.columns.time for each in self.sources),
            relation=source.number if len(self.relations) > 1 else None,
            scale=source.scale,
        )
