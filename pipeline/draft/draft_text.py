"""A draft as a commented pipeline file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from pipeline.config.yaml_loader import ConfigDumper
from pipeline.draft.draft import Draft, not_used
from pipeline.draft.node_columns import NodeGuess

COMMENT_COLUMN = 46
# What else a key would mean.
MEANINGS = {
    "directed": "true: (u, v) and (v, u) are two links",
    "bipartite": "true: two kinds of node",
}
MOST_WORKERS = 8


def draft_text(draft: Draft, out: str, sizes: Sequence[str] = ()) -> str:
    """The file; every line with a guess says what it was guessed from.

    Args:
        out: Where the file will be.
        sizes: Lines on how large the graph is and what a run will take.
    """
    lines = [
        f"# peg run {_one_line(out)}",
        "#",
        "# Written by `peg init`. Each comment says what a value was guessed from: change what is",
        "# wrong, then look with `peg plan` and start with `peg run`.",
        *(["#", *(f"# {_one_line(line)}" for line in sizes)] if sizes else []),
        f"name: {_scalar(draft.name)}",
        _line("store: " + _scalar(f"runs/{draft.name}"), "results go here; finished stages stay"),
        "",
        "graph:",
        *_graph(draft),
        "",
        *_settings(draft),
        "",
        *_results(draft),
        "",
        "# Where it runs; nothing here changes a result.",
        f"cluster: {{workers: {min(os.cpu_count() or 1, MOST_WORKERS)}}}",
    ]
    return "\n".join(lines) + "\n"


def _graph(draft: Draft) -> Iterator[str]:
    ends = draft.ends
    rows = f"{draft.edges.num_rows:,} rows; {not_used(draft.edges, draft)}".rstrip("; ")
    yield _line(f"  edges: {_scalar(draft.edges.location)}", rows)
    yield _line(f"  source: {_scalar(ends.source)}", ends.reason)
    yield f"  target: {_scalar(ends.target)}"
    for key, meaning in MEANINGS.items():
        chosen = key == draft.kind.key
        why = draft.kind.reason if chosen else meaning
        if key == "bipartite" and draft.kind.key not in MEANINGS:
            why = f"{draft.kind.reason}; {meaning}"
        yield _line(f"  {key}: {str(chosen).lower()}", why)
    for guess in (draft.weight, draft.time):
        yield _line(f"  {guess.key}: {_scalar(guess.value)}", guess.reason)
    if draft.bad_rows.value is not None:
        yield _line(f"  on_bad_rows: {draft.bad_rows.value}", draft.bad_rows.reason)
    if draft.is_bipartite and draft.nodes:
        yield "  nodes:"
        for table in draft.nodes:
            yield f"    {_scalar(table.end)}:"
            yield from _nodes(draft, table, keys=("files", "id"), indent=6)
    else:
        for table in draft.nodes:
            yield from _nodes(draft, table, keys=("nodes", "node_id"), indent=2)


def _nodes(draft: Draft, table: NodeGuess, keys: tuple[str, str], indent: int) -> Iterator[str]:
    before = " " * indent
    rows = f"{table.table.num_rows:,} rows; {not_used(table.table, draft)}".rstrip("; ")
    yield _line(f"{before}{keys[0]}: {_scalar(table.table.location)}", rows)
    yield _line(f"{before}{keys[1]}: {_scalar(table.id.value)}", table.id.reason)
    yield _line(f"{before}features: {_scalar(table.features.value)}", table.features.reason)


def _settings(draft: Draft) -> Iterator[str]:
    if draft.has_features:
        scaled = any(table.standardise for table in draft.nodes)
        more = ", standardise: true" if scaled else ""
        why = "columns of plain numbers differ in scale" if scaled else "what the nodes' table says"
        yield _line(f"features: {{kind: node{more}}}", why)
    if draft.time.value is not None:
        yield _line("split: {by: time, valid: 0.05, test: 0.10}", "the newest links are tested")
    else:
        yield _line("split: {by: random, valid: 0.05, test: 0.10}", "random shares of the links")
    if draft.dimensions is not None:
        yield _line(f"encodings: [{{kind: le, dimensions: {draft.dimensions}}}]", "a small graph")
    else:
        yield _line("encodings: [le]", "Laplacian eigenmaps; others: deepwalk, node2vec, line")
    yield _line("model: {kind: peg}", "see docs/which_graph.md for what suits lists of items")
    yield _line("evaluate: {hits: [20, 50]}", "`protocol: [random, heart]` adds hard non-links")


def _results(draft: Draft) -> Iterator[str]:
    if draft.candidates is not None:
        table, ends = draft.candidates
        yield "score:"
        yield _line(f"  candidates: {_scalar(table.location)}", f"{table.num_rows:,} rows")
        yield _line(f"  source: {_scalar(ends.source)}", ends.reason)
        yield f"  target: {_scalar(ends.target)}"
        return
    source, target = map(_scalar, draft.ends.columns)
    yield "# Pairs to score, if you have some:"
    yield f"# score: {{candidates: pairs.parquet, source: {source}, target: {target}}}"
    yield "# The ten best new partners of every node:"
    yield "# recommend: {top_k: 10}"


def _line(text: str, comment: str) -> str:
    """A line with its comment, those of short lines below each other."""
    if not comment:
        return text
    return f"{text:<{COMMENT_COLUMN}}  # {_one_line(comment)}"


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


def _scalar(value: Any) -> str:
    """A value as YAML on one line, which is read as the same value."""
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    quoted = isinstance(value, str) and any(
        not each.isprintable() or each in ",[]{}" for each in value
    )
    text = yaml.dump(
        value.replace("${", "$${") if isinstance(value, str) else value,
        Dumper=ConfigDumper,
        default_style='"' if quoted else None,
        width=10**6,
    )
    return text.removesuffix("\n").removesuffix("\n...")
