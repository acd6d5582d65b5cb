"""Candidate pairs in, the same pairs with scores out: same order, same ids, same columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peg_core.atomic_file import remove_leftovers
from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.edge_table import (
    RowGroup,
    find_id_type,
    find_parquet_files,
    list_row_groups,
    open_parquet,
)
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.id_types import BINARY, TEXT
from peg_core.inference.candidate_batch import ScoreColumns
from peg_core.inference.pair_reasons import COUNTS
from peg_core.metrics.calibration import Calibration
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import ScoreConfig
from pipeline.run.progress import StageProgress
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.artifact_ref import ArtifactRef
from workers.shard import Shard
from workers.task_map import TaskProgress
from workers.tasks.score import ScoreRequest, ScoreResult, kinds_task, score_task

# Row groups whose ids are looked at before any is scored.
CHECKED_GROUPS = 16


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"score": config.score.dependencies(exclude={"explain"}) if config.score else None}


def files(config: PipelineConfig) -> dict[str, str]:
    return {"score.candidates": config.score.candidates} if config.score else {}


def enabled(config: PipelineConfig) -> bool:
    return config.score is not None


def run(context: StageContext) -> StageResult:
    score = context.config.score
    assert score is not None  # the stage is enabled only then
    request = _request(context, score)
    groups = check_candidates(score, request.nodes)
    _check_kinds(context, score, request, groups)
    folder = context.folder
    shards = [
        Shard(name, {"request": request, "groups": batch, "out": folder / f"{name}.parquet"})
        for name, batch in _shards(groups, score.shard_rows)
    ]
    progress = _RowProgress(context.progress, folder, sum(group.rows for group in groups))
    results = context.map(score_task, shards, on_progress=progress)
    remove_leftovers(folder)
    for rows in folder.glob(".part-*.rows"):  # of tasks that were killed
        rows.unlink(missing_ok=True)
    return _result(results, score, scores_cold=request.columns.scores_cold)


def score_columns(
    score: ScoreConfig, calibration: Calibration | None = None, *, scores_cold: bool = True
) -> ScoreColumns:
    """What the workers have to know of the configuration."""
    line = (1.0, 0.0) if calibration is None else calibration.line(prior=score.prior)
    return ScoreColumns(
        score.source, score.target, tuple(score.columns), score.on_unknown, line, scores_cold
    )


def _request(context: StageContext, score: ScoreConfig) -> ScoreRequest:
    """What scores; a model on a graph of another run comes without a calibration."""
    inputs = context.inputs
    calibration = None
    if "calibrate" in inputs:
        calibration = inputs.calibration(inputs.best_seed).open()
    # of other kinds a node without an edge has none that anything was learned from
    kind = inputs.best_model.open().recipe.features["kind"]
    return ScoreRequest(
        nodes=inputs.node_ids,
        scorer=inputs.best_scorer(graph=score.graph),
        columns=score_columns(score, calibration, scores_cold=kind in ("node", "node+positional")),
    )


def check_candidates(score: ScoreConfig, nodes: ArtifactRef[GraphIds]) -> list[RowGroup]:
    """All that can be known of the files before any work."""
    found = find_parquet_files(score.candidates)
    groups = list_row_groups(found, [score.source, score.target])
    if not groups:
        raise InputError.no_rows(score.candidates, "candidate pairs")
    source, target = GraphIds.stored_types(nodes.folder)
    columns_of = {source: [score.source, score.target]}
    if source != target:
        columns_of = {source: [score.source], target: [score.target]}
    for needed, columns in columns_of.items():
        kind = find_id_type((file, columns) for file in found)
        if (kind in (TEXT, BINARY)) != (needed in (TEXT, BINARY)):
            raise ArtifactMismatch.of(
                what=f"the ids in {score.candidates} and the graph's", found=kind, needed=needed
            )
    for file in found:
        require_free_names(file, open_parquet(file).schema_arrow.names, score_columns(score).added)
    return groups


def _check_kinds(
    context: StageContext, score: ScoreConfig, request: ScoreRequest, groups: list[RowGroup]
) -> None:
    """Where the ends are of two kinds: refuse columns that were mixed up."""
    relations = context.inputs.graph.at(GraphOutline).open().relations
    if relations is None or relations.source_nodes == relations.target_nodes:
        return
    some = groups[:: max(1, len(groups) // CHECKED_GROUPS)][:CHECKED_GROUPS]
    arguments = {
        "nodes": request.nodes,
        "columns": (score.source, score.target),
        "groups": some,
    }
    context.map(kinds_task, [Shard("kinds", arguments)], note="kinds of ids")


def require_free_names(file: str, names: Sequence[str], added: Sequence[str]) -> None:
    """Refuse candidates that have a column which the output adds."""
    for name in added:
        if name in names:
            raise InputError(
                f"{file} has a column {name!r} already, the output needs that name; rename or "
                "drop it"
            )


def _shards(groups: list[RowGroup], rows: int) -> list[tuple[str, list[RowGroup]]]:
    """Consecutive row groups of one file, about ``rows`` rows each, named in input order."""
    shards: list[list[RowGroup]] = []
    for group in groups:
        last = shards[-1] if shards else None
        if last and last[0].file == group.file and sum(g.rows for g in last) < rows:
            last.append(group)
        else:
            shards.append([group])
    return [(f"part-{number:06}", shard) for number, shard in enumerate(shards)]


def _result(results: list[ScoreResult], score: ScoreConfig, *, scores_cold: bool) -> StageResult:
    rows = sum(result["rows"] for result in results)
    reasons = {name: sum(r["reasons"][name] for r in results) for name in COUNTS.values()}
    always = {name: reasons.pop(name) for name in ("unknown", "null_ids")}
    seen = {name: count for name, count in reasons.items() if count}
    return StageResult(
        counts={"pairs": rows, **always, **seen, "files": len(results)},
        details={"histogram": np.sum([r["histogram"] for r in results], axis=0).tolist()},
        warnings=pair_warnings({**always, **seen}, rows, score, scores_cold=scores_cold),
    )


def pair_warnings(
    counts: dict[str, int], rows: int, score: ScoreConfig, *, scores_cold: bool
) -> list[str]:
    """Candidates without a score, and those whose score rests on little."""
    fate = "were left out" if score.on_unknown == "drop" else "have no score, `reason` tells"
    cold = (
        "the score rests on the features"
        if scores_cold
        else f"without features nothing is known about it: they {fate}"
    )
    texts = {
        "unknown": f"name a node that the graph does not have: they {fate}",
        "null_ids": f"have a null id: they {fate}",
        "self_pairs": f"are a node and itself: they {fate}",
        "cold": f"have a node without an edge: {cold}",
    }
    return [
        f"{counts[name]:,} of {rows:,} candidate pairs {text}"
        for name, text in texts.items()
        if counts.get(name)
    ]


class _RowProgress:
    """Rows, rate and time left; shards under way tell how far they are."""

    def __init__(self, progress: StageProgress, folder: Path, total: int) -> None:
        self._progress, self._folder, self._total = progress, folder, total
        self._finished = self._reused = 0
        self._start = time.monotonic()

    def __call__(self, progress: TaskProgress[ScoreResult]) -> None:
        if progress.result is not None:
            self._finished += progress.result["rows"]
            self._reused += progress.result["rows"] if progress.reused else 0
        rows = min(self._finished + self._under_way(), self._total)
        seconds = max(time.monotonic() - self._start, 1e-9)
        rate = (rows - self._reused) / seconds
        left = f", {(self._total - rows) / rate:,.0f} s left" if rate else ""
        note = f"{rows:,} of {self._total:,} rows, {rate:,.0f} rows/s{left}"
        self._progress.update(rows, self._total, note)

    def _under_way(self) -> int:
        rows = 0
        for file in self._folder.glob(".part-*.rows"):
            try:
                rows += int(file.read_text() or 0)
            except (FileNotFoundError, ValueError):
                continue  # the shard ended, or writes at this moment
        return rows


STAGE = Stage(
    "score",
    4,
    (
        "ingest",
        "split",
        "encode",
        "train",
        "embed",
        "calibrate",
        "encode_all",
        "refit",
        "embed_all",
    ),
    settings,
    run,
    files,
    enabled,
)
