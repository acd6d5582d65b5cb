"""``peg top``: the best new links of a finished run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from peg_core.errors import ConfigError
from pipeline.cli.run_options import config_argument, set_option
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig

if TYPE_CHECKING:
    from peg_core.graph.ids.graph_ids import KindIds
    from peg_core.inference.top_links import TopLinks


@click.command()
@config_argument
@set_option
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True,
              help="Pairs shown.")  # fmt: skip
@click.option(
    "--show", "columns", multiple=True, metavar="COLUMN",
    help="Column of the node table to show; of lists what both ends have. May be repeated.",
)  # fmt: skip
def top(config: Path, overrides: tuple[str, ...], count: int, columns: tuple[str, ...]) -> None:
    """Show the best scored candidates of the last run of CONFIG that are no links yet.

    \b
    peg top configs/quickstart.yaml
    peg top configs/quickstart.yaml --count 5 --show field --show words
    """
    from peg_core.artifacts.run import Run
    from peg_core.inference.top_links import top_links

    loaded = load_config(config, overrides)
    if loaded.score is None:
        raise ConfigError(
            f"{config} scores no candidates, so there is nothing to choose from; set "
            "`score.candidates`, or use `peg recommend`"
        )
    run = Run.open(loaded.store)
    by = loaded.score.columns[0]
    best = top_links(run.scores(), run.graph, run.ids, count=count, score=by)
    known = [
        node_values(loaded, kind, nodes, columns) if columns else {}
        for kind, nodes in zip(run.ids.ends, (best.source, best.target), strict=True)
    ]
    console = Console(highlight=False)
    for line in describe(best, columns, *known):
        console.print(line, markup=False, soft_wrap=True)


def describe(
    best: TopLinks, columns: Iterable[str], *known: dict[int, dict[str, Any]]
) -> Iterator[str]:
    """Three lines a pair: both ends, and what they have in common."""
    for place, (source, target) in enumerate(best.names):
        rows = [
            values.get(int(nodes[place]), {})
            for values, nodes in zip(known, (best.source, best.target), strict=True)
        ]
        facts = [
            f"{column} {text}"
            for column in columns
            if (text := in_common(*(row.get(column) for row in rows)))
        ]
        common = int(best.common_neighbours[place])
        neighbours = f"{common or 'no'} common {'neighbour' if common == 1 else 'neighbours'}"
        yield f"{place + 1:>3}  {best.scores[place]:.4f}  {source}"
        yield f"{'':<13}{target}"
        yield f"{'':<13}{'; '.join([*facts, neighbours])}"


def in_common(first: Any, second: Any) -> str:
    """What both lists have, the value of both ends, or one beside the other; empty: unknown."""
    if first is None or second is None:
        return ""
    if isinstance(first, list) and isinstance(second, list):
        return ", ".join(str(value) for value in first if value in second)
    return str(first) if first == second else f"{first} | {second}"


def node_values(
    config: PipelineConfig, kind: KindIds, nodes: np.ndarray, columns: tuple[str, ...]
) -> dict[int, dict[str, Any]]:
    """What the node table says in some columns, by the number of the node."""
    from peg_core.graph.edge_table import find_parquet_files, open_parquet

    table = config.graph.node_tables.get(kind.name or config.graph.kinds[0])
    if table is None:
        raise ConfigError("the graph has no node table to show columns of; leave --show out")
    wanted = kind.take(np.unique(nodes))
    found: dict[int, dict[str, Any]] = {}
    for file in find_parquet_files(table.files):
        opened = open_parquet(file)
        missing = [name for name in columns if name not in opened.schema_arrow.names]
        if missing:
            raise ConfigError(
                f"{file} has no column {missing[0]!r}; its columns: "
                f"{', '.join(opened.schema_arrow.names)}"
            )
        for batch in opened.iter_batches(columns=[table.id, *columns]):
            ids = batch.column(table.id)
            rows = pc.is_in(ids.cast(wanted.type), value_set=wanted)
            chosen = pa.Table.from_batches([batch]).filter(rows)
            numbers = kind.lookup(chosen.column(table.id)).tolist()
            found |= dict(zip(numbers, chosen.to_pylist(), strict=True))
    return found
