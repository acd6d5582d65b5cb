"""``peg explain``: why a pair has its score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.cli.run_options import config_argument, set_option
from pipeline.config.loading import load_config

if TYPE_CHECKING:
    from peg_core.explain.explanation import PairExplanation

LONGEST_BAR = 16


@click.command()
@config_argument
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, for programs.")
def explain(
    config: Path, source: str, target: str, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Show why a pair has its score, by the finished run of CONFIG.

    SRC and DST are ids of your edge list. What each part of the model's input adds is counted from
    the average of 10,000 random pairs, in units of the logit; the parts and the logit of that
    average add up to the logit of the pair. Nothing is started or changed.

    \b
    peg explain follows.yaml 11 1385
    peg explain shop.yaml alice "blue teapot" --json | jq .parts
    """
    from peg_core.explain.explanation import as_text
    from peg_core.explain.pair_nodes import pair_nodes, parse_id
    from pipeline.results.explained_pairs import open_explainer
    from pipeline.results.finished_run import FinishedRun

    run = FinishedRun.of(load_config(config, overrides))
    prior = None if run.config.score is None else run.config.score.prior
    explainer = open_explainer(run.inputs, graph=run.graph, prior=prior)
    ids = explainer.ids
    pair = parse_id(ids.source, source), parse_id(ids.target, target)
    found = explainer.explain(*pair_nodes(ids, *pair))[0]
    if as_json:
        facts = {**found.as_dict(), "graph": run.graph}
        click.echo(json.dumps(facts, indent=2, default=as_text))
    else:
        print_explanation(Console(highlight=False), found, graph=run.graph)


def print_explanation(console: Console, found: PairExplanation, *, graph: str) -> None:
    """An explanation for people; fits a terminal of 80 characters."""
    from peg_core.explain.explanation import as_text

    score = "" if found.score is None else f"score {found.score:.4f}, "
    known = "; a known link already" if found.linked else ""
    title = f"{as_text(found.source)} and {as_text(found.target)}: "
    console.print(Text(f"{title}{score}logit {found.logit:+.3f}{known}"))
    if graph == "train":
        console.print("by the edges that were trained on")
    console.print()
    console.print(_parts(found))
    console.print()
    console.print(_facts(found))
    if found.common:
        console.print()
        console.print(_common(found))


def _parts(found: PairExplanation) -> Table:
    table = Table("part of the score", "adds", "", box=None)
    table.columns[1].justify = "right"
    table.columns[1].no_wrap = True
    table.add_row("the average random pair", f"{found.baseline:+.3f}", "")
    largest = max((abs(part.added) for part in found.parts), default=0.0) or 1.0
    for part in found.parts:
        bar = ("+" if part.added > 0 else "-") * round(LONGEST_BAR * abs(part.added) / largest)
        table.add_row(part.name, f"{part.added:+.3f}", bar)
    table.add_row("logit", f"{found.logit:+.3f}", "")
    return table


def _facts(found: PairExplanation) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, text in _fact_rows(found):
        table.add_row(Text(name), Text(text))
    return table


def _fact_rows(found: PairExplanation) -> Iterator[tuple[str, str]]:
    source, target = found.degrees
    yield "degrees", f"{source:,} and {target:,}"
    yield "same component", "yes" if found.same_component else "no"
    for each in found.encodings:
        share = f"closer than {each.closer_than:.1%} of random pairs"
        yield f"distance in {each.name}", f"{each.distance:.4g}, {share}"
    if found.feature_similarity is not None and found.features_closer_than is not None:
        share = f"more alike than {found.features_closer_than:.1%} of random pairs"
        yield "cosine of the features", f"{found.feature_similarity:.3f}, {share}"
    yield "common neighbours", f"{found.num_common:,}"


def _common(found: PairExplanation) -> Table:
    from peg_core.explain.explanation import as_text

    names = ["common neighbour", "degree"]
    with_kind = any(one.kind is not None for one in found.common)
    weighted = any(one.source_weight is not None for one in found.common)
    names += ["kind"] * with_kind + ["weight to source", "to target"] * weighted
    table = Table(*names, box=None)
    for one in found.common:
        row = [as_text(one.id), f"{one.degree:,}"]
        row += [str(one.kind)] if with_kind else []
        row += [f"{one.source_weight:.4g}", f"{one.target_weight:.4g}"] if weighted else []
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    if found.num_common > len(found.common):
        table.caption = f"the {len(found.common)} of smallest degree of {found.num_common:,}"
    return table
