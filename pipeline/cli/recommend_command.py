"""`peg recommend`: the best new partners of nodes, from the edges on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
from rich.console import Console

from peg_core.atomic_file import atomic_path
from peg_core.errors import ConfigError
from peg_core.object_url import within
from pipeline.config.loading import load_config
from pipeline.config.result_sections import RecommendConfig
from pipeline.run.progress import RunDisplay
from pipeline.store.local_store import open_store


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--top-k", type=int, metavar="K", help="Candidates per node; 50 if nothing is said.")
@click.option("--for", "made_for", metavar="KIND", help="Kind of node to recommend for, or both.")
@click.option("--nodes", metavar="FILE", help="Parquet file with the nodes; none: all of them.")
@click.option("--allowed", metavar="FILE", help="Parquet file with what may be recommended, `id`.")
@click.option("--exclude", metavar="FILE", help="Parquet file with pairs that may not be.")
@click.option("--least-score", type=float, metavar="X", help="Leave candidates below it out.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Copy the files here.")
@click.option(
    "--measure-recall", type=int, metavar="N", help="Compare N nodes with exhaustive scoring."
)
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE",
    help="Override a setting, for example --set recommend.nearest=200. May be repeated.",
)  # fmt: skip
def recommend(
    config: Path,
    top_k: int | None,
    made_for: str | None,
    nodes: str | None,
    allowed: str | None,
    exclude: str | None,
    least_score: float | None,
    out: Path | None,
    measure_recall: int | None,
    overrides: tuple[str, ...],
) -> None:
    """Recommend new links, with the pipeline of the file CONFIG.

    Only the stages that recommending needs are run; those that are done are reused. The options
    win over the section `recommend` of the file, which need not be there.

    \b
    peg recommend configs/quickstart.yaml --top-k 50
    peg recommend configs/quickstart.yaml --nodes nodes.parquet --out recommendations
    peg recommend shop.yaml --for user --allowed in_stock.parquet --least-score 0.5
    """
    from pipeline.run.runner import run_pipeline

    given = {
        "top_k": top_k,
        "for": made_for,
        "nodes": nodes,
        "allowed.files": allowed,
        "exclude.files": exclude,
        "least_score": least_score,
        "measure_recall": measure_recall,
    }
    options = [
        f"recommend.{key}={json.dumps(value)}" for key, value in given.items() if value is not None
    ]
    loaded = load_config(config, [*overrides, *options])
    if loaded.recommend is None:
        loaded = loaded.model_copy(update={"recommend": RecommendConfig()})
    _require_empty(out)
    console = Console(highlight=False)
    with RunDisplay(console) as display:
        manifests = run_pipeline(loaded, display, target="recommend")
    store, found = open_store(loaded.store), manifests["recommend"]
    measured = found.details["recall"]
    if measured:
        console.print(
            f"\nrecall against scoring every pair: {measured['mean']:.4f} on average, "
            f"{measured['lowest']:.4f} at least ({measured['nodes']:,} nodes)",
            soft_wrap=True,
        )
    location = store.location("recommend", found.fingerprint)
    if out is not None:
        _copy(store.fetch("recommend", found.fingerprint).folder, out)
        location = str(out)
    console.print(f"recommendations: {within(location, 'part-*.parquet')}", soft_wrap=True)


def _require_empty(out: Path | None) -> None:
    """Files of another run among ours would be taken for ours."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is there already and not an empty folder; name another --out")


def _copy(artifact: Path, out: Path) -> None:
    """Every file under its name, there whole or not at all."""
    for file in sorted(artifact.glob("part-*.parquet")):
        with atomic_path(out / file.name) as temporary:
            shutil.copyfile(file, temporary)
