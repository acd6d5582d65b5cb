"""``peg generate``: random graphs as Parquet files, to try things out and to measure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from peg_core.generators.edge_generator import EdgeGenerator, check_seed
from peg_core.generators.random_graphs import (
    DegreeCorrectedBlockModel,
    Grid,
    RecursiveMatrix,
    StochasticBlockModel,
)
from peg_core.generators.synthetic_tables import check_candidates, check_features
from pipeline.cli.generate.bipartite import bipartite
from pipeline.cli.generate.citations import citations
from pipeline.cli.generate.paired_options import only_one_given
from pipeline.cli.generate.papers import papers
from pipeline.cli.generate.shared_options import write_and_tell
from pipeline.cli.lazy_group import SuggestingGroup
from pipeline.generate.generated_files import GeneratedFile
from pipeline.generate.generated_tables import candidate_batches, edge_batches, node_batches

Command = Callable[..., None]


@dataclass(frozen=True)
class OutputRequest:
    """What is written, and where; only block models have the options of the node table."""

    out: Path
    overwrite: bool
    seed: int
    string_ids: bool
    weights: bool
    time: bool
    candidates: int | None
    candidates_out: Path | None
    features: int | None = None
    feature_noise: float = 1.0
    nodes_out: Path | None = None


OUTPUT_OPTIONS = (
    click.option("--out", type=click.Path(path_type=Path), required=True,
                 help="Parquet file for the edges: columns src and dst."),
    click.option("--overwrite", is_flag=True, help="Replace files that exist."),
    click.option("--seed", type=int, default=0, show_default=True,
                 help="Same seed, same files, whatever the number of threads."),
    click.option("--string-ids", is_flag=True, help="Call the nodes node-0, node-1, ..."),
    click.option("--weights", is_flag=True,
                 help="Add a column `weight`: float32, positive, at most 1."),
    click.option("--time", is_flag=True,
                 help="Add a column `time`: int64, seconds since 1970, within 2020."),
    click.option("--candidates", type=int, metavar="ROWS",
                 help="Also write this many distinct random pairs to score; some may be edges."),
    click.option("--candidates-out", type=click.Path(path_type=Path),
                 help="Parquet file for the candidates: columns src and dst."),
)  # fmt: skip

NODE_TABLE_OPTIONS = (
    click.option("--features", type=int, metavar="N",
                 help="Also write a node table with N features per node."),
    click.option("--feature-noise", type=float, default=1.0, show_default=True,
                 help="Noise added to the signal of the community, which has size 1."),
    click.option("--nodes-out", type=click.Path(path_type=Path),
                 help="Parquet file for the node table: id, x (features), label (community)."),
)  # fmt: skip

nodes_option = click.option("--nodes", type=int, required=True, help="Number of nodes.")
edges_option = click.option(
    "--edges", type=int, required=True, help="Rows to draw; an edge may be drawn repeatedly."
)
scramble_option = click.option(
    "--scramble/--no-scramble", default=True, show_default=True, help="Shuffle the node ids."
)
inside_share_option = click.option(
    "--inside-share", type=float, default=0.8, show_default=True,
    help="Share of the rows with both ends in one block.",
)  # fmt: skip


def writes_files(command: Command) -> Command:
    """Give a command the output options, handed over together as its ``request``."""

    @functools.wraps(command)
    def collected(**values: Any) -> None:
        names = [field.name for field in fields(OutputRequest) if field.name in values]
        request = OutputRequest(**{name: values.pop(name) for name in names})
        command(**values, request=request)

    for option in reversed(OUTPUT_OPTIONS):
        collected = option(collected)
    return collected


def writes_node_table(command: Command) -> Command:
    """Give a command the options of the node table; put it above ``writes_files``."""
    for option in reversed(NODE_TABLE_OPTIONS):
        command = option(command)
    return command


@click.group(cls=SuggestingGroup)
def generate() -> None:
    """Write a random graph as Parquet files.

    Rows of the plain graphs (sbm, dcsbm, rmat) are drawn independently, so an edge may
    repeat, in either direction; ingestion merges the repeats. There are no self-loops.

    \b
    A graph with communities, node features and pairs to score:
      peg generate sbm --nodes 10_000 --edges 100_000 --out data/edges.parquet \\
          --features 16 --nodes-out data/nodes.parquet \\
          --candidates 5_000 --candidates-out data/candidates.parquet
    A hundred million edges to measure with:
      peg generate rmat --nodes 10_000_000 --edges 100_000_000 --out data/large.parquet
    Users and items, and papers that cite older ones:
      peg generate bipartite --users 1_000 --items 600 --edges 15_000 --out data/plays.parquet
      peg generate citations --papers 2_000 --edges 16_000 --out data/citations.parquet
    Papers with titles, to judge predictions by reading them:
      peg generate papers --papers 2_400 --out data/edges.parquet
    """


generate.add_command(bipartite)
generate.add_command(citations)
generate.add_command(papers)


@generate.command()
@nodes_option
@edges_option
@click.option("--blocks", type=int, default=10, show_default=True, help="Number of blocks.")
@inside_share_option
@scramble_option
@writes_node_table
@writes_files
def sbm(
    nodes: int,
    edges: int,
    blocks: int,
    inside_share: float,
    scramble: bool,
    request: OutputRequest,
) -> None:
    """Stochastic block model: most edges stay in a block.

    \b
    Five blocks, nine of ten edges inside a block:
      peg generate sbm --nodes 1_000 --edges 10_000 --blocks 5 --inside-share 0.9 \\
          --out data/edges.parquet
    """
    model = StochasticBlockModel(nodes, edges, blocks, inside_share, scramble=scramble)
    write_graph(model, request)


@generate.command()
@nodes_option
@edges_option
@click.option("--blocks", type=int, default=100, show_default=True, help="Number of communities.")
@inside_share_option
@scramble_option
@click.option("--exponent", type=float, default=2.5, show_default=True,
              help="Exponent of the power law of the degrees; smaller: larger hubs.")  # fmt: skip
@writes_node_table
@writes_files
def dcsbm(
    nodes: int,
    edges: int,
    blocks: int,
    inside_share: float,
    scramble: bool,
    exponent: float,
    request: OutputRequest,
) -> None:
    """Degree-corrected block model: many communities, each with its hubs.

    \b
    A thousand communities with features that hint at them:
      peg generate dcsbm --nodes 1_000_000 --edges 10_000_000 --blocks 1_000 \\
          --out data/edges.parquet --features 32 --nodes-out data/nodes.parquet
    """
    model = DegreeCorrectedBlockModel(
        nodes, edges, blocks, inside_share, exponent, scramble=scramble
    )
    write_graph(model, request)


@generate.command()
@nodes_option
@edges_option
@click.option("--a", type=float, default=0.57, show_default=True, help="Low source, low target.")
@click.option("--b", type=float, default=0.19, show_default=True, help="Low source, high target.")
@click.option("--c", type=float, default=0.19, show_default=True, help="High source, low target.")
@click.option("--d", type=float, default=0.05, show_default=True, help="High source, high target.")
@scramble_option
@writes_files
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
    write_graph(RecursiveMatrix(nodes, edges, a, b, c, d, scramble=scramble), request)


@generate.command()
@nodes_option
@click.option("--columns", type=int, help="Nodes in a row of the lattice [default: near square].")
@click.option("--rewired-share", type=float, default=0.0, show_default=True,
              help="Share of the edges whose end becomes a random node.")  # fmt: skip
@writes_files
def grid(nodes: int, columns: int | None, rewired_share: float, request: OutputRequest) -> None:
    """Two-dimensional lattice: all its edges, each once.

    Nothing is random unless --rewired-share is given, hence no --edges.

    \b
    Twenty rows of fifty nodes:
      peg generate grid --nodes 1_000 --columns 50 --out data/edges.parquet
    """
    write_graph(Grid(nodes, columns, rewired_share), request)


def write_graph(generator: EdgeGenerator, request: OutputRequest) -> None:
    """Write the edges and the tables asked for; wrong options are refused first."""
    generator.check()
    check_seed(request.seed)
    batches = edge_batches(
        generator,
        seed=request.seed,
        string_ids=request.string_ids,
        weights=request.weights,
        time=request.time,
    )
    files = [GeneratedFile(request.out, generator.num_rows, "edges", batches)]
    if isinstance(generator, StochasticBlockModel):
        files += node_file(generator, request)
    files += candidate_file(generator.nodes, request)
    write_and_tell(files, overwrite=request.overwrite)


def node_file(model: StochasticBlockModel, request: OutputRequest) -> list[GeneratedFile]:
    """The node table, or nothing when none was asked for."""
    features, noise, path = request.features, request.feature_noise, request.nodes_out
    if features is None and path is None:
        return []
    if features is None or path is None:
        raise only_one_given({"--features": features, "--nodes-out": path})
    check_features(dimensions=features, noise=noise)
    batches = node_batches(
        model, seed=request.seed, string_ids=request.string_ids, features=features, noise=noise
    )
    return [GeneratedFile(path, model.nodes, "nodes", batches)]


def candidate_file(nodes: int, request: OutputRequest) -> list[GeneratedFile]:
    """The candidates, or nothing when none were asked for."""
    rows, path = request.candidates, request.candidates_out
    if rows is None and path is None:
        return []
    if rows is None or path is None:
        raise only_one_given({"--candidates": rows, "--candidates-out": path})
    check_candidates(nodes=nodes, rows=rows)
    batches = candidate_batches(
        nodes=nodes, rows=rows, seed=request.seed, string_ids=request.string_ids
    )
    return [GeneratedFile(path, rows, "candidates", batches)]
