"""Parquet edge lists to a graph store; files that were added are merged into the last one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.graph.edge_rows import EdgeColumns
from peg_core.graph.edge_sides import Sides, look_bipartite
from peg_core.graph.edge_table import open_parquet
from peg_core.graph.fading import Fading
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_table import NodeColumns
from pipeline.config.data_sections import GraphConfig
from pipeline.config.half_life import in_stored_units
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.ingestion.ingestion import Ingestion
from workers.artifact_ref import ArtifactRef
from workers.tasks.ingest import IngestRequest

EDGES = "graph.edges"
# Shares from which on a node table is odd: of nodes with a row, of rows without an edge.
FEWEST_ROWS = 0.5
MOST_ISOLATED = 0.5
# A date without a zone may be ahead by as much.
CLOCKS_APART = timedelta(days=1)


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"graph": config.graph.dependencies()}


def files(config: PipelineConfig) -> dict[str, str]:
    graph = config.graph
    return {EDGES: graph.edges, **({"graph.nodes": graph.nodes} if graph.nodes else {})}


def added_files(identity: Identity, before: Manifest) -> list[str] | None:
    """The edge files that came since ``before``; None where all must be read again."""
    old = before.identity
    if identity.settings["graph"].get("half_life") is not None:
        return None  # every edge is older than it was
    others_same = {**old.files, EDGES: []} == {**identity.files, EDGES: []}
    if (old.version, old.settings) != (identity.version, identity.settings) or not others_same:
        return None
    known = {file["path"]: file for file in old.files[EDGES]}
    now = {file["path"]: file for file in identity.files[EDGES]}
    if any(now.get(path) != facts for path, facts in known.items()):
        return None
    return [path for path in now if path not in known]


def explain(identity: Identity, before: Manifest) -> str | None:
    """Tell whether only the new files are read."""
    old = before.identity
    if (old.version, old.settings) != (identity.version, identity.settings):
        return None
    added = added_files(identity, before)
    if added:
        return f"{len(added)} edge file(s) added: only they are read"
    for name, now in identity.files.items():
        known = {file["path"]: file for file in old.files.get(name, [])}
        current = {file["path"]: file for file in now}
        for path, facts in known.items():
            if current.get(path) != facts:
                what = "changed" if path in current else "was removed"
                return f"{path} {what}: everything is read again"
    return None


def run(context: StageContext) -> StageResult:
    graph = context.config.graph
    edge_files = [file["path"] for file in context.identity.files[EDGES]]
    previous: ArtifactRef[GraphStore] | None = None
    if context.previous is not None:
        manifest, earlier = context.previous
        added = added_files(context.identity, manifest)
        if added:
            edge_files, previous = added, earlier.at(GraphStore)
    request = IngestRequest(
        edge_files=edge_files,
        columns=EdgeColumns(
            graph.source, graph.target, graph.weight, graph.time, datetime.now(UTC) + CLOCKS_APART
        ),
        duplicates=graph.duplicates,
        on_bad_rows=graph.on_bad_rows,
        nodes=graph.nodes,
        node_columns=NodeColumns(
            graph.node_id,
            graph.features or (),
            graph.feature_width,
            label=graph.label,
            split=graph.node_split,
        ),
        out=context.out.at(GraphStore),
        previous=previous,
        fading=find_fading(graph, edge_files[0]),
    )
    ingestion = Ingestion.prepare(context, request)
    counts = ingestion.run()
    return StageResult(
        counts={key: value for key, value in counts.items() if value or key in SHOWN},
        details={
            "files_read": len(edge_files),
            "merged_into": previous.fingerprint if previous is not None else None,
            "dirt": counts,
        },
        warnings=[
            *side_warnings(ingestion.sides, graph.source, graph.target),
            *(node_table_warnings(counts) if graph.nodes else []),
        ],
    )


def find_fading(graph: GraphConfig, file: str) -> Fading | None:
    """How weights fade, in the unit of the times; None where they do not."""
    if graph.half_life is None or graph.time is None:
        return None
    kind = open_parquet(file).schema_arrow.field(graph.time).type
    return Fading(in_stored_units(graph.half_life, file, graph.time, kind))


def side_warnings(sides: Sides | None, source: str, target: str) -> list[str]:
    """What is odd about an edge list whose columns have no node in common."""
    if sides is None or not look_bipartite(sides):
        return []
    return [
        f"no node stands in both {source!r} ({sides['sources']:,} nodes) and {target!r} "
        f"({sides['targets']:,}) in {sides['rows']:,} rows, as if there were two kinds of node: "
        "non-links within one kind are drawn and nodes of one kind recommended to each other; "
        "results look better than they are"
    ]


def node_table_warnings(counts: dict[str, Any]) -> list[str]:
    """What is odd about a node table that says little about the nodes of the edges."""
    nodes, isolated = counts["nodes"], counts["isolated_nodes"]
    rows = nodes - counts["nodes_without_row"]
    found = []
    if rows < FEWEST_ROWS * nodes:
        found.append(
            f"the node table has rows for {rows:,} of {nodes:,} nodes ({rows / nodes:.1%}), the "
            "features of all others are zeros; check that `graph.nodes` is the whole table"
        )
    if isolated > MOST_ISOLATED * rows:
        found.append(
            f"{isolated:,} nodes have no edge, the node table has {rows:,} rows; check that "
            "`graph.node_id` holds the ids that the edges use"
        )
    return found


# Counts that are told even when they are 0; others only when there is something to tell.
SHOWN = ("rows", "nodes", "edges")

STAGE = Stage("ingest", 2, (), settings, run, files, explain=explain)
