"""Candidate pairs in, the same pairs with scores out: same order, same ids, same columns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peg_core.errors import InputError
from peg_core.graph.edge_table import (
    RowGroup,
    find_id_type,
    find_parquet_files,
    list_row_groups,
    open_parquet,
)
from pipeline.config import PipelineConfig, ScoreConfig
from pipeline.stage import Stage, StageContext, StageResult
from pipeline.stages.embed import embedding_file
from pipeline.stages.train import best_model
from workers.score_tasks import ScoreRequest, score_task
from workers.task_map import Shard, TaskProgress, task_map


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"score": config.score.model_dump() if config.score else None}


def files(config: PipelineConfig) -> dict[str, str]:
    return {"score.candidates": config.score.candidates} if config.score else {}


def enabled(config: PipelineConfig) -> bool:
    return config.score is not None


def run(context: StageContext) -> StageResult:
    score = context.config.score
    assert score is not None  # the stage is enabled only then
    groups = _check_candidates(score)
    request = _request(context, score)
    folder = context.folder.absolute()
    shards = [
        Shard(name, {"request": request, "groups": batch, "out": str(folder / f"{name}.parquet")})
        for name, batch in _shards(groups, score.shard_rows)
    ]
    results = task_map(
        context.cluster,
        score_task,
        shards,
        markers=folder / "done",
        on_progress=_RowProgress(context, sum(group.rows for group in groups)),
    )
    unknown = sum(result["unknown"] for result in results)
    rows = sum(result["rows"] for result in results)
    warnings = []
    if unknown:
        warnings.append(
            f"{unknown:,} of {rows:,} candidate pairs name a node that the graph does not have "
            "(or none at all): their score is null"
        )
    return StageResult(
        counts={"pairs": rows, "unknown": unknown, "files": len(results)},
        details={"histogram": np.sum([r["histogram"] for r in results], axis=0).tolist()},
        warnings=warnings,
        peak_memory_bytes=max(result["peak_memory_bytes"] for result in results),
    )


def _request(context: StageContext, score: ScoreConfig) -> ScoreRequest:
    inputs = {name: path.absolute() for name, path in context.inputs.items()}
    everything = score.graph == "all"
    model = best_model(inputs["train"])
    embedded = inputs["embed_all"] if everything else inputs["embed"] / model.name
    return ScoreRequest(
        nodes=inputs["ingest"],
        graph=inputs["ingest"] if everything else inputs["split"] / "train_graph",
        positions=inputs["encode_all"] if everything else inputs["encode"],
        model=model,
        embeddings=embedding_file(embedded, context.config),
        num_encodings=len(context.config.encodings),
        source=score.source,
        target=score.target,
    )


def _check_candidates(score: ScoreConfig) -> list[RowGroup]:
    """All that can be known of the files before any work."""
    found = find_parquet_files(score.candidates)
    groups = list_row_groups(found, [score.source, score.target])
    if not groups:
        raise InputError.no_rows(score.candidates, "candidate pairs")
    find_id_type((file, [score.source, score.target]) for file in found)
    for file in found:
        if "score" in open_parquet(file).schema_arrow.names:
            raise InputError(
                f"{file} has a column 'score' already, the output needs that name; "
                "rename or drop it"
            )
    return groups


def _shards(groups: list[RowGroup], rows: int) -> list[tuple[str, list[RowGroup]]]:
    """Consecutive row groups of one file, about ``rows`` rows each, named in input order."""
    shards: list[list[RowGroup]] = []
    for group in groups:
        last = shards[-1] if shards else None
        if last and last[0].file == group.file and sum(g.rows for g in last) < rows:
            last.append(group)
        else:
            shards.append([group])
    return [(f"part-{place:06}", shard) for place, shard in enumerate(shards)]


class _RowProgress:
    """Rows, rate and time left."""

    def __init__(self, context: StageContext, total: int) -> None:
        self._context, self._total = context, total
        self._rows = self._reused = 0
        self._start = time.monotonic()

    def __call__(self, progress: TaskProgress) -> None:
        if progress.result is not None:
            self._rows += progress.result["rows"]
            self._reused += progress.result["rows"] if progress.reused else 0
        seconds = max(time.monotonic() - self._start, 1e-9)
        rate = (self._rows - self._reused) / seconds
        left = f", {(self._total - self._rows) / rate:,.0f} s left" if rate else ""
        note = f"{self._rows:,} rows, {rate:,.0f} rows/s{left}"
        self._context.progress.update(progress.done, progress.total, note)


STAGE = Stage(
    "score",
    1,
    ("ingest", "split", "encode", "train", "embed", "encode_all", "embed_all"),
    settings,
    run,
    files,
    enabled,
)
