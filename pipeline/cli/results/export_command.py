"""``peg export``: what a run computed of the nodes, for other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from peg_core.errors import ConfigError
from peg_core.object_url import is_url
from pipeline.cli.lazy_group import SuggestingGroup
from pipeline.cli.run_options import config_argument, set_option
from pipeline.config.loading import load_config

if TYPE_CHECKING:
    from peg_core.artifacts.node_vectors import Array
    from pipeline.results.finished_run import FinishedRun

out_option = click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="The Parquet file to write.",
)  # fmt: skip
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")


@click.group(cls=SuggestingGroup)
def export() -> None:
    """Write embeddings or positions with your own ids as Parquet.

    A row for each node: `kind`, where there are several kinds of node, `id`, and lists of float32
    of a fixed length. Nothing is started: the run of CONFIG must be finished.
    """


@export.command()
@config_argument
@out_option
@overwrite_option
@set_option
def embeddings(config: Path, out: Path, overwrite: bool, overrides: tuple[str, ...]) -> None:
    """Write what the model computed for every node, the column `embedding`.

    \b
    peg export embeddings configs/quickstart.yaml --out embeddings.parquet
    """
    run = _open(config, out, overwrite, overrides)
    embedded = run.inputs.best_scorer(graph=run.graph).embedded.embeddings.open()
    _write(run, out, {"embedding": embedded.array()})


@export.command()
@config_argument
@out_option
@overwrite_option
@set_option
def positions(config: Path, out: Path, overwrite: bool, overrides: tuple[str, ...]) -> None:
    """Write where every encoding puts the nodes, a column for each encoding.

    Only distances and inner products mean something: positions are defined up to a rotation.

    \b
    peg export positions configs/quickstart.yaml --out positions.parquet
    """
    from peg_core.explain.pair_explainer import distinct_names

    run = _open(config, out, overwrite, overrides)
    embedded = run.inputs.best_scorer(graph=run.graph).embedded.open()
    _write(run, out, dict(zip(distinct_names(run.encodings), embedded.positions, strict=True)))


def _open(config: Path, out: Path, overwrite: bool, overrides: tuple[str, ...]) -> FinishedRun:
    """The run, after the output was found to be one that can be written."""
    from pipeline.results.finished_run import FinishedRun

    if is_url(out):
        raise ConfigError(f"{out} is a URL, needed is a file; write a file and copy it")
    if out.is_dir():
        raise ConfigError(f"{out} is a folder, needed is the name of a file; add one to --out")
    if out.exists() and not overwrite:
        raise ConfigError(f"{out} exists already; name another file, or add --overwrite")
    return FinishedRun.of(load_config(config, overrides))


def _write(run: FinishedRun, out: Path, vectors: Mapping[str, Array]) -> None:
    from peg_core.artifacts.node_vectors import write_node_vectors

    rows = write_node_vectors(out, run.inputs.node_ids.open(), vectors)
    edges = "all known edges" if run.graph == "all" else "the edges that were trained on"
    Console(highlight=False).print(
        f"wrote {rows:,} nodes to {out}, by {edges}", markup=False, soft_wrap=True
    )
