"""Parquet edge lists to a graph store; files that were added are merged into the last one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.graph.edge_rows import EdgeColumns, EdgeSource
from peg_core.graph.edge_table import open_parquet
from peg_core.graph.fading import Fading
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_table import NodeColumns
from peg_core.graph.relations import Relation
from pipeline.config.graph_section import GraphConfig
from pipeline.config.half_life import in_stored_units
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.relation_sections import NodeTableConfig
from pipeline.report.guard_rails import direction_rails, kind_rails, side_rails
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.ingestion.doubtful_kinds import doubtful_kinds
from pipeline.stages.ingestion.ingestion import Ingestion
from workers.artifact_ref import ArtifactRef
from workers.shard import Shard
from workers.tasks.ingestion.request import IngestRequest, KindSource
from workers.tasks.ingestion.shared_ids import shared_ids_task

EDGES = "graph.edges"
# Shares from which on a node table is odd: of nodes with a row, of rows without an edge.
FEWEST_ROWS = 0.5
MOST_ISOLATED = 0.5
# A date without a zone may be ahead by as much.
CLOCKS_APART = timedelta(days=1)


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"graph": config.graph.dependencies()}


def files(config: PipelineConfig) -> dict[str, str]:
    return {f"graph.{key}": location for key, location in config.graph.locations.items()}


def added_files(identity: Identity, before: Manifest) -> list[str] | None:
    """The edge files that came since ``before``; None where all must be read again."""
    old = before.identity
    graph = identity.settings["graph"]
    if graph.get("half_life") is not None:
        return None  # every edge is older than it was
    if EDGES not in identity.files or graph.get("bipartite") or graph.get("directed"):
        return None  # the numbers of the nodes go by their kind
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
    request = ingest_request(context)
    ingestion = Ingestion.prepare(context, request)
    counts = ingestion.run()
    graph, previous = context.config.graph, request.previous
    return StageResult(
        counts={key: value for key, value in counts.items() if value or key in SHOWN},
        details={
            "files_read": sum(len(source.files) for source in request.sources),
            "merged_into": previous.fingerprint if previous is not None else None,
            "dirt": counts,
        },
        warnings=[
            *side_rails(ingestion.sides, *graph.predicted.ends),
            *(list_rails(counts) if len(graph.relations) == 1 and graph.predicted.directed else []),
            *same_kind_warnings(context, request),
            *(node_table_warnings(counts) if graph.nodes else []),
        ],
    )


def ingest_request(context: StageContext) -> IngestRequest:
    """What is read: all edge lists, or the files that an earlier graph does without."""
    graph, files = context.config.graph, context.identity.files
    sources = [
        edge_source(graph, number, [file["path"] for file in files[f"graph.{key}"]])
        for number, key in enumerate(map(graph.key_of, graph.relations))
    ]
    previous: ArtifactRef[GraphStore] | None = None
    if context.previous is not None:
        manifest, earlier = context.previous
        added = added_files(context.identity, manifest)
        if added:
            sources, previous = [replace(sources[0], files=added)], earlier.at(GraphStore)
    tables = graph.node_tables
    return IngestRequest(
        sources=tuple(sources),
        duplicates=graph.duplicates,
        on_bad_rows=graph.on_bad_rows,
        kinds=tuple(kind_source(kind, tables.get(kind)) for kind in graph.kinds),
        out=context.out.at(GraphStore),
        relations=graph_relations(graph),
        predicted=graph.relations.index(graph.predicted),
        previous=previous,
        fading=find_fading(graph, sources[0].files[0]),
    )


def edge_source(graph: GraphConfig, number: int, files: list[str]) -> EdgeSource:
    """One edge list, as ingestion reads it."""
    relation = graph.relations[number]
    latest = datetime.now(UTC) + CLOCKS_APART
    columns = EdgeColumns(*relation.ends, relation.weight, relation.time, latest)
    source, target = map(graph.kinds.index, relation.kinds)
    return EdgeSource(files, columns, (source, target), number, relation.scale)


def graph_relations(graph: GraphConfig) -> tuple[Relation, ...]:
    """What the edge lists mean; nothing where the graph is one undirected list."""
    if not graph.is_relational:
        return ()
    return tuple(Relation(each.name, *each.kinds, each.directed) for each in graph.relations)


def kind_source(name: str, table: NodeTableConfig | None) -> KindSource:
    """Nodes of one kind, with or without a table."""
    if table is None:
        return KindSource(name, None, NodeColumns())
    features, width = table.features or (), table.feature_width
    columns = NodeColumns(table.id, features, width, label=table.label, split=table.split)
    return KindSource(name, table.files, columns)


def find_fading(graph: GraphConfig, file: str) -> Fading | None:
    """How weights fade, in the unit of the times; None where they do not."""
    time = graph.predicted.time
    if graph.half_life is None or time is None:
        return None
    kind = open_parquet(file).schema_arrow.field(time).type
    return Fading(in_stored_units(graph.half_life, file, time, kind))


def same_kind_warnings(context: StageContext, request: IngestRequest) -> list[str]:
    """Kinds of node that seem to be one."""
    graph = context.config.graph
    doubtful = doubtful_kinds(graph)
    shards = [
        Shard(
            f"kinds-{number}",
            {
                "graph": request.out,
                "kind": graph.kinds.index(each.kind),
                "other": graph.kinds.index(each.other),
            },
        )
        for number, each in enumerate(doubtful)
    ]
    results = context.map(shared_ids_task, shards, note="kinds") if shards else []
    return [
        text
        for each, found in zip(doubtful, results, strict=True)
        for text in kind_rails(**each._asdict(), **found)
    ]


def list_rails(counts: dict[str, Any]) -> list[str]:
    """What is odd about a directed edge list."""
    names = ("rows", "duplicates", "reversed_duplicates")
    return direction_rails(**{name: counts[name] for name in names})


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
