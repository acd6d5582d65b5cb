"""``peg generate``: random graphs as Parquet files, to try things out and to measure."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from peg_core.errors import ConfigError, PegError
from peg_core.graph.generators import (
    CHUNK_ROWS,
    DegreeCorrectedBlockModel,
    EdgeGenerator,
    Grid,
    RecursiveMatrix,
    StochasticBlockModel,
    check_seed,
    community_features,
    edge_times,
    edge_weights,
    sample_candidates,
)

Command = Callable[..., None]
Advance = Callable[[int], None]

# Feature values in a row group of the node table.
NODE_CHUNK_VALUES = 2**22
# Without a terminal, a line per tenth is written for outputs from this size on.
LARGE_OUTPUT_ROWS = 20_000_000


@dataclass(frozen=True)
class OutputRequest:
    """What is written besides the edges, and how; the options of every subcommand."""

    out: Path
    overwrite: bool
    seed: int
    string_ids: bool
    weights: bool
    time: bool
    candidates: int | None
    candidates_out: Path | None


@dataclass(frozen=True)
class NodeTableRequest:
    """The node table; the options of subcommands that have communities."""

    features: int | None
    feature_noise: float
    nodes_out: Path | None


@dataclass(frozen=True)
class OutputTable:
    """A Parquet file to write, and the batches that fill it."""

    path: Path
    rows: int
    what: str
    batches: Callable[[], Iterator[pa.RecordBatch]]


OUTPUT_OPTIONS = (
    click.option("--out", type=click.Path(path_type=Path), required=True,
                 help="Parquet file for the edges: columns src and dst."),
    click.option("--overwrite", is_flag=True, help="Replace files that exist."),
    click.option("--seed", type=int, default=0, show_default=True,
                 help="Same seed, same files, whatever the number of threads."),
    click.option("--string-ids", is_flag=True, help="Call the nodes node-0, node-1, ..."),
    click.option("--weights", is_flag=True,
                 help="Add a column `weight`: float32, above 0 up to 1."),
    click.option("--time", is_flag=True,
                 help="Add a column `time`: int64, seconds since 1970, within 2020."),
    click.option("--candidates", type=int, metavar="ROWS",
                 help="Also write this many distinct random pairs to score; some may be edges."),
    click.option("--candidates-out", type=click.Path(path_type=Path),
                 help="Parquet file for the candidates: columns src and dst."),
)  # fmt: skip

NODE_TABLE_OPTIONS = (
    click.option("--features", type=int, metavar="N",
                 help="Also write a node table with N features a node."),
    click.option("--feature-noise", type=float, default=1.0, show_default=True,
                 help="Noise beside the signal of the community, which has size 1."),
    click.option("--nodes-out", type=click.Path(path_type=Path),
                 help="Parquet file for the node table: id, x (features), label (community)."),
)  # fmt: skip

NODES = click.option("--nodes", type=int, required=True, help="Number of nodes.")
EDGES = click.option(
    "--edges", type=int, required=True, help="Rows to draw; an edge may be drawn repeatedly."
)
SCRAMBLE = click.option(
    "--scramble/--no-scramble", default=True, show_default=True, help="Shuffle the node ids."
)
INSIDE_SHARE = click.option(
    "--inside-share", type=float, default=0.8, show_default=True,
    help="Share of the rows with both ends in one block.",
)  # fmt: skip


def takes(request: type[Any], name: str, options: Iterable[Any]) -> Callable[[Command], Command]:
    """Give a command ``options``, handed over together as the argument ``name``."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def collected(**values: Any) -> None:
            chosen = {field.name: values.pop(field.name) for field in fields(request)}
            command(**values, **{name: request(**chosen)})

        for option in reversed(tuple(options)):
            collected = option(collected)
        return collected

    return decorate


writes_outputs = takes(OutputRequest, "request", OUTPUT_OPTIONS)
writes_node_table = takes(NodeTableRequest, "node_table", NODE_TABLE_OPTIONS)


@click.group()
def generate() -> None:
    """Write a random graph as Parquet files.

    Rows are drawn independently, so an edge may repeat, in either direction; ingestion
    merges the repeats. There are no self-loops.

    \b
    A graph with communities, node features and pairs to score:
      peg generate sbm --nodes 10_000 --edges 100_000 --out data/edges.parquet \\
          --features 16 --nodes-out data/nodes.parquet \\
          --candidates 5_000 --candidates-out data/candidates.parquet
    A hundred million edges to measure with:
      peg generate rmat --nodes 10_000_000 --edges 100_000_000 --out data/large.parquet
    """


@generate.command()
@NODES
@EDGES
@click.option("--blocks", type=int, default=10, show_default=True, help="Number of blocks.")
@INSIDE_SHARE
@SCRAMBLE
@writes_node_table
@writes_outputs
def sbm(
    nodes: int,
    edges: int,
    blocks: int,
    inside_share: float,
    scramble: bool,
    request: OutputRequest,
    node_table: NodeTableRequest,
) -> None:
    """Stochastic block model: most edges stay in a block.

    \b
    Five blocks, nine of ten edges inside a block:
      peg generate sbm --nodes 1_000 --edges 10_000 --blocks 5 --inside-share 0.9 \\
          --out data/edges.parquet
    """
    model = StochasticBlockModel(nodes, edges, blocks, inside_share, scramble)
    write_graph(model, request, node_tables(model, request, node_table))


@generate.command()
@NODES
@EDGES
@click.option("--blocks", type=int, default=100, show_default=True, help="Number of communities.")
@INSIDE_SHARE
@SCRAMBLE
@click.option("--exponent", type=float, default=2.5, show_default=True,
              help="Exponent of the power law of the degrees; smaller: larger hubs.")  # fmt: skip
@writes_node_table
@writes_outputs
def dcsbm(
    nodes: int,
    edges: int,
    blocks: int,
    inside_share: float,
    scramble: bool,
    exponent: float,
    request: OutputRequest,
    node_table: NodeTableRequest,
) -> None:
    """Degree-corrected block model: many communities, each with its hubs.

    \b
    A thousand communities with features that hint at them:
      peg generate dcsbm --nodes 1_000_000 --edges 10_000_000 --blocks 1_000 \\
          --out data/edges.parquet --features 32 --nodes-out data/nodes.parquet
    """
    model = DegreeCorrectedBlockModel(nodes, edges, blocks, inside_share, scramble, exponent)
    write_graph(model, request, node_tables(model, request, node_table))


@generate.command()
@NODES
@EDGES
@click.option("--a", type=float, default=0.57, show_default=True, help="Low source, low target.")
@click.option("--b", type=float, default=0.19, show_default=True, help="Low source, high target.")
@click.option("--c", type=float, default=0.19, show_default=True, help="High source, low target.")
@click.option("--d", type=float, default=0.05, show_default=True, help="High source, high target.")
@SCRAMBLE
@writes_outputs
def rmat(
    nodes: int,
    edges: int,
    a: float,
    b: float,
    c: float,
    d: float,
    scramble: bool,
    request: OutputRequest,
) -> None:
    """R-MAT, as in Graph500: very skewed degrees, no communities.

    The shares a, b, c and d of the quarters of the adjacency matrix sum up to 1. The number
    of nodes need not be a power of two; many nodes stay without an edge.

    \b
    Example:
      peg generate rmat --nodes 1_000_000 --edges 16_000_000 --out data/edges.parquet
    """
    write_graph(RecursiveMatrix(nodes, edges, a, b, c, d, scramble), request)


@generate.command()
@NODES
@click.option("--columns", type=int, help="Nodes in a row of the lattice [default: near square].")
@click.option("--rewired-share", type=float, default=0.0, show_default=True,
              help="Share of the edges whose end becomes a random node.")  # fmt: skip
@writes_outputs
def grid(nodes: int, columns: int | None, rewired_share: float, request: OutputRequest) -> None:
    """Two-dimensional lattice: all its edges, each once.

    Nothing is random unless --rewired-share is given, hence no --edges.

    \b
    Twenty rows of fifty nodes:
      peg generate grid --nodes 1_000 --columns 50 --out data/edges.parquet
    """
    write_graph(Grid(nodes, columns, rewired_share), request)


def write_graph(
    generator: EdgeGenerator, request: OutputRequest, node_table: list[OutputTable] | None = None
) -> None:
    """Write all files of a graph; when one fails, none is left behind."""
    generator.check()
    check_seed(request.seed)
    tables = [
        OutputTable(
            request.out,
            generator.num_rows,
            "edges",
            functools.partial(edge_batches, generator, request),
        ),
        *(node_table or []),
        *candidate_tables(generator.nodes, request),
    ]
    check_outputs([table.path for table in tables], overwrite=request.overwrite)
    with renamed_at_end([table.path for table in tables]) as temporary:
        for table, path in zip(tables, temporary, strict=True):
            write_table(table, path)
    for table in tables:
        click.echo(f"wrote {table.rows:,} {table.what} to {table.path}")


def node_tables(
    model: StochasticBlockModel, request: OutputRequest, node_table: NodeTableRequest
) -> list[OutputTable]:
    """The node table, when one was asked for."""
    if node_table.features is None and node_table.nodes_out is None:
        return []
    if node_table.features is None or node_table.nodes_out is None:
        raise only_one_given("--features", node_table.features, "--nodes-out", node_table.nodes_out)
    features, noise = node_table.features, node_table.feature_noise
    # For no node at all: refuses wrong parameters before the edges are written.
    community_features(np.empty(0, np.int64), dimensions=features, seed=request.seed, noise=noise)
    batches = functools.partial(node_batches, model, request, features, noise)
    return [OutputTable(node_table.nodes_out, model.nodes, "nodes", batches)]


def candidate_tables(nodes: int, request: OutputRequest) -> list[OutputTable]:
    """The candidates, when they were asked for."""
    rows, path = request.candidates, request.candidates_out
    if rows is None and path is None:
        return []
    if rows is None or path is None:
        raise only_one_given("--candidates", rows, "--candidates-out", path)
    if rows < 1:
        raise ConfigError(f"{rows:,} candidates were asked for, at least 1 is needed; raise it")
    # Draws no pair: refuses more than there are before the edges are written.
    sample_candidates(nodes=nodes, rows=0, seed=request.seed, first_row=rows)
    batches = functools.partial(candidate_batches, nodes, rows, request)
    return [OutputTable(path, rows, "candidates", batches)]


def edge_batches(generator: EdgeGenerator, request: OutputRequest) -> Iterator[pa.RecordBatch]:
    """Columns src, dst and, where asked for, weight and time."""
    for index, chunk in enumerate(generator.chunks(seed=request.seed)):
        columns = {
            "src": id_column(chunk.source, as_strings=request.string_ids),
            "dst": id_column(chunk.target, as_strings=request.string_ids),
        }
        rows = len(chunk.source)
        if request.weights:
            columns["weight"] = pa.array(edge_weights(rows, seed=request.seed, chunk=index))
        if request.time:
            columns["time"] = pa.array(edge_times(rows, seed=request.seed, chunk=index))
        yield pa.RecordBatch.from_pydict(columns)


def node_batches(
    model: StochasticBlockModel, request: OutputRequest, features: int, noise: float
) -> Iterator[pa.RecordBatch]:
    """Columns id, x and label."""
    communities = model.communities(seed=request.seed)
    step = max(NODE_CHUNK_VALUES // features, 1)
    for shard, start in enumerate(range(0, model.nodes, step)):
        label = communities[start : start + step]
        x = community_features(
            label, dimensions=features, seed=request.seed, noise=noise, shard=shard
        )
        ids = np.arange(start, start + len(label))
        offsets = np.arange(0, x.size + 1, features, dtype=np.int32)
        yield pa.RecordBatch.from_pydict(
            {
                "id": id_column(ids, as_strings=request.string_ids),
                "x": pa.ListArray.from_arrays(offsets, x.ravel()),
                "label": pa.array(label.astype(np.int64)),
            }
        )


def candidate_batches(nodes: int, rows: int, request: OutputRequest) -> Iterator[pa.RecordBatch]:
    """Columns src and dst."""
    for start in range(0, rows, CHUNK_ROWS):
        pairs = sample_candidates(
            nodes=nodes, rows=min(CHUNK_ROWS, rows - start), seed=request.seed, first_row=start
        )
        yield pa.RecordBatch.from_pydict(
            {
                "src": id_column(pairs.source, as_strings=request.string_ids),
                "dst": id_column(pairs.target, as_strings=request.string_ids),
            }
        )


def id_column(nodes: npt.NDArray[np.int64], *, as_strings: bool) -> pa.Array:
    """What the user calls the nodes: 17, or "node-17"."""
    numbers = pa.array(nodes)
    if not as_strings:
        return numbers
    return pc.binary_join_element_wise("node-", numbers.cast(pa.string()), "")


def write_table(table: OutputTable, path: Path) -> None:
    """Write the batches of ``table`` to ``path``; the next one is drawn meanwhile."""
    batches = table.batches()
    first = next(batches)
    try:
        with (
            open_writer(path, first.schema) as writer,
            ThreadPoolExecutor(max_workers=1) as thread,
            progress(table.what, table.rows) as advance,
        ):
            written: Future[None] = thread.submit(writer.write_batch, first)
            rows = len(first)
            for batch in batches:
                written.result()
                advance(rows)
                written = thread.submit(writer.write_batch, batch)
                rows = len(batch)
            written.result()
            advance(rows)
    except OSError as error:
        raise PegError(
            f"cannot write {table.path}: {error}; free some space, or choose another place"
        ) from error


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer whose row groups are the batches.

    Integers are packed by their differences: beside plain encoding that halves the
    time, as zstd has less to read.
    """
    packed = {field.name for field in schema if pa.types.is_integer(field.type)}
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=False,
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
    )


@contextmanager
def progress(what: str, rows: int) -> Iterator[Advance]:
    """Show on stderr how far the rows are: a bar on a terminal, else lines for large outputs."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=rows)
            yield lambda count: bar.advance(task, count)
        return
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        if rows >= LARGE_OUTPUT_ROWS and 10 * before // rows < 10 * done // rows:
            click.echo(f"{what}: {done:,} of {rows:,} written", err=True)

    yield advance


def check_outputs(paths: list[Path], *, overwrite: bool) -> None:
    """Raise a ConfigError when a file can or may not be written."""
    for path in paths:
        if [other.resolve() for other in paths].count(path.resolve()) > 1:
            raise ConfigError(f"{path} was given for two outputs; give each its own file")
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, needed is a file; add a name, edges.parquet")
        if path.exists() and not overwrite:
            raise ConfigError(f"{path} exists already; choose another name, or add --overwrite")


@contextmanager
def renamed_at_end(paths: list[Path]) -> Iterator[list[Path]]:
    """Temporary names beside ``paths``, renamed when all is well and removed when not."""
    temporary = [path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in paths]
    for path in paths:
        make_folder(path.parent)
    try:
        yield temporary
        for unfinished, path in zip(temporary, paths, strict=True):
            unfinished.replace(path)
    finally:
        for unfinished in temporary:
            unfinished.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create ``folder`` and the ones above it where missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PegError(f"cannot create {folder}: {error}; choose another folder") from error


def only_one_given(option: str, value: object, other: str, other_value: object) -> ConfigError:
    """The error for two options of which one is missing."""
    given, missing = (option, other) if other_value is None else (other, option)
    shown = value if other_value is None else other_value
    return ConfigError(f"{given} {shown} was given without {missing}; add {missing}, or drop both")
