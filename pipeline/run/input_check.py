"""What files and schemas tell of the inputs, looked at before the first stage starts."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.edge_rows import EdgeColumns, require_edge_types
from peg_core.graph.edge_table import (
    column_chunks,
    find_parquet_files,
    open_parquet,
    require_columns,
)
from peg_core.graph.feature_columns import require_numbers
from peg_core.graph.ids.id_types import BINARY, TEXT, common_id_type
from peg_core.object_url import StorageError, is_url
from pipeline.config.graph_section import GraphConfig
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import BOTH, RecommendConfig
from pipeline.run.plan import Action, Step
from pipeline.stages.score import require_free_names, score_columns

# Footers of objects are read at the pace of the network: several at a time.
THREADS = 16


@dataclass(frozen=True)
class InputTable:
    """A table that a setting names, and what a run needs of it.

    Args:
        setting: As in the pipeline file.
        location: A file, a folder, a glob or a URL.
        what: One row of it, in the plural.
        ids: Columns that hold ids of nodes.
        kinds: The kind of node that each of them holds.
        columns: Others that are read.
        edges: How an edge list names its columns; None: it is no edge list.
        features: Columns that must hold numbers.
        added: Columns that the output adds.
        makes_graph: Whether its ids are those of the graph; else they are looked up there.
    """

    setting: str
    location: str
    what: str
    ids: tuple[str, ...]
    kinds: tuple[str, ...]
    columns: tuple[str, ...] = ()
    edges: EdgeColumns | None = None
    features: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    makes_graph: bool = False


@dataclass(frozen=True)
class Footer:
    """What the end of a Parquet file says."""

    file: str
    schema: pa.Schema
    rows: int
    bytes: int


@dataclass(frozen=True)
class CheckedTable:
    """A table whose files can be read, with all columns of the right types."""

    table: InputTable
    footers: Sequence[Footer]

    @property
    def rows(self) -> int:
        return sum(footer.rows for footer in self.footers)

    @property
    def bytes(self) -> int:
        """As they are stored."""
        return sum(footer.bytes for footer in self.footers)

    def id_columns(self, kind: str) -> Iterator[tuple[str, str, pa.DataType]]:
        """File, column and type of every column with ids of a kind of node."""
        for footer in self.footers:
            for name, own in zip(self.table.ids, self.table.kinds, strict=True):
                if own == kind:
                    yield footer.file, name, footer.schema.field(name).type


def check_inputs(config: PipelineConfig, steps: Iterable[Step]) -> list[CheckedTable]:
    """Look at the tables of all stages that would run.

    Returns:
        The tables that were looked at.

    Raises:
        InputError: Names file, column and remedy of the first that cannot be used.
    """
    wanted = {
        location
        for step in steps
        if step.action is Action.RUN
        for location in step.stage.files(config).values()
    }
    checked = []
    for tables in graph_tables(config):
        chosen = [table for table in tables if table.location in wanted]
        if not chosen:
            continue
        found = [check_table(table) for table in chosen]
        checked += found
        if not any(table.makes_graph for table in chosen):  # it was ingested: its ids are alike
            found += [_first_of(table) for table in tables if table.edges is not None]
        _require_same_ids(found)
    return checked


def check_from_here(config: PipelineConfig) -> list[str]:
    """Look at the tables that can be read from here, as far as another machine needs them.

    Returns:
        Settings whose tables cannot be, with the reason.
    """
    unread = []
    for tables in graph_tables(config):
        found = []
        for table in tables:
            if not is_url(table.location) and not glob.glob(table.location):
                unread.append(f"{table.setting} {table.location} is not on this machine")
                continue
            try:
                found.append(check_table(table))
            except StorageError as error:
                unread.append(f"{table.setting}: {error}")
        if any(checked.table.makes_graph for checked in found):
            _require_same_ids(found)
    return unread


def graph_tables(config: PipelineConfig) -> list[list[InputTable]]:
    """All tables of the configuration, those with ids of one graph together, edges first."""
    graph, score, recommend = config.graph, config.score, config.recommend
    tables, link = _tables_of("graph", graph), graph.predicted
    links = {
        "split.valid_edges": config.split.valid_edges,
        "split.test_edges": config.split.test_edges,
        "split.valid_negatives": config.split.valid_negatives,
        "split.test_negatives": config.split.test_negatives,
    }
    for setting, location in links.items():
        if location is not None:
            number = config.split.negatives_link if setting.endswith("negatives") else None
            columns = (number,) if number else ()
            tables.append(InputTable(setting, location, "links", link.ends, link.kinds, columns))
    if score is not None:
        ids = (score.source, score.target)
        added = tuple(score_columns(score).added)
        tables.append(
            InputTable(
                "score.candidates",
                score.candidates,
                "candidate pairs",
                ids,
                link.kinds,
                added=added,
            )
        )
    tables += _recommend_tables(recommend, link.kinds) if recommend is not None else []
    other = config.evaluate.on
    return [tables, *([_tables_of("evaluate.on", other)] if other is not None else [])]


def _recommend_tables(recommend: RecommendConfig, kinds: tuple[str, str]) -> list[InputTable]:
    """Those of a section, where links join nodes of two kinds."""
    turned = recommend.made_for not in (None, BOTH, kinds[0])
    anchor, partner = kinds[::-1] if turned else kinds
    found = []
    if recommend.nodes is not None:
        ids = (recommend.column,)
        found.append(InputTable("recommend.nodes", recommend.nodes, "nodes", ids, (anchor,)))
    if recommend.allowed is not None:
        table, ids = recommend.allowed, (recommend.allowed.column,)
        found.append(InputTable("recommend.allowed", table.files, "nodes", ids, (partner,)))
    if recommend.exclude is not None:
        pairs, ends = recommend.exclude, (recommend.exclude.source, recommend.exclude.target)
        found.append(InputTable("recommend.exclude", pairs.files, "pairs", ends, kinds))
    return found


def _tables_of(section: str, graph: GraphConfig) -> list[InputTable]:
    found = []
    for relation in graph.relations:
        edges = EdgeColumns(*relation.ends, relation.weight, relation.time)
        found.append(
            InputTable(
                f"{section}.{graph.key_of(relation)}",
                relation.files,
                "edges",
                relation.ends,
                relation.kinds,
                tuple(edges.names[2:]),
                edges,
                makes_graph=True,
            )
        )
    for kind, table in graph.node_tables.items():
        features = tuple(table.features or ())
        others = tuple(name for name in (table.label, table.split) if name)
        found.append(
            InputTable(
                f"{section}.nodes" if isinstance(graph.nodes, str) else f"{section}.nodes.{kind}",
                table.files,
                "nodes",
                (table.id,),
                (kind,),
                (*features, *others),
                features=features,
                makes_graph=True,
            )
        )
    return found


def check_table(table: InputTable) -> CheckedTable:
    """Read the ends of all files of a table."""
    files = find_parquet_files(table.location)
    with ThreadPoolExecutor(THREADS) as pool:
        footers = list(pool.map(lambda file: _check_file(file, table), files))
    if not any(footer.rows for footer in footers):
        raise InputError.no_rows(table.location, table.what)
    return CheckedTable(table, footers)


def _first_of(table: InputTable) -> CheckedTable:
    return CheckedTable(table, [_check_file(find_parquet_files(table.location)[0], table)])


def _check_file(file: str, table: InputTable) -> Footer:
    parquet = open_parquet(file)
    schema, metadata = parquet.schema_arrow, parquet.metadata
    require_columns(file, schema.names, [*table.ids, *table.columns])
    if table.edges is not None:
        require_edge_types(file, schema, table.edges)
    for name in table.features:
        require_numbers(file, name, schema.field(name).type)
    require_free_names(file, schema.names, table.added)
    size = sum(chunk.total_compressed_size for chunk in column_chunks(file, metadata))
    return Footer(file, schema, metadata.num_rows, size)


def _require_same_ids(tables: Sequence[CheckedTable]) -> None:
    """Ids of one type in the tables that make the graph, and numbers or text as there in others."""
    for kind in dict.fromkeys(kind for table in tables for kind in table.table.kinds):
        makers = [table for table in tables if table.table.makes_graph]
        graph = common_id_type(column for table in makers for column in table.id_columns(kind))
        for table in tables:
            columns = list(table.id_columns(kind))
            if table.table.makes_graph or not columns:
                continue
            if (common_id_type(columns) in (TEXT, BINARY)) != (graph in (TEXT, BINARY)):
                file, column, found = columns[0]
                raise InputError.wrong_type(
                    file, column, found=found, needed=f"ids as those of the graph ({graph})"
                )
