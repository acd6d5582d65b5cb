"""How well the models rank the test links, beside heuristics that need no training."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from peg_core.atomic_file import atomic_path
from peg_core.metrics.bootstrap import Bootstrap
from peg_core.metrics.reliability import expected_calibration_error, reliability_curve
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.calibrate import train_graph_scorer
from pipeline.stages.negatives import protocols
from pipeline.stages.train import model_folder, seeds_of
from workers.task_map import Result, Shard, Task, task_map
from workers.tasks.evaluate import (
    ROWS_PER_PART,
    TEST_PAIRS,
    MethodRequest,
    RankRequest,
    rank_hard_task,
    rank_pooled_task,
    score_hard_task,
    score_pairs_task,
)
from workers.tasks.negatives import count_parts

HARD = "heart"


class Ranking(NamedTuple):
    """One row of the table to be: what is ranked, how, and from which scores."""

    protocol: str
    method: str
    folder: str
    column: str
    place: int


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"evaluate": config.evaluate.model_dump(exclude={"on"}), "protocols": protocols(config)}


def run(context: StageContext) -> StageResult:
    methods = _methods(context)
    scored = _score(context, methods)
    rankings, results = _rank(context, methods)
    peak = max(result["peak_memory_bytes"] for result in [*scored, *results])
    rows = _rows(context.config, rankings, results)
    with atomic_path(context.folder / "metrics.parquet") as temporary:
        pl.DataFrame(rows, schema=SCHEMA).write_parquet(temporary)
    table = tabulate(rows)
    curves = _calibration(context.config, scored)
    return StageResult(
        counts=_counts(context.config, table, curves),
        details={"table": table, "calibration": curves, "seeds": _by_seed(rankings, results)},
        peak_memory_bytes=peak,
    )


SCHEMA = {
    "protocol": pl.String,
    "method": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "deviation": pl.Float64,
}


def tabulate(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Long to wide: by protocol a row per method, ``<metric>_low`` and so on beside the metric."""
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        methods = table.setdefault(row["protocol"], {})
        wide = methods.setdefault(row["method"], {"method": row["method"]})
        wide[row["metric"]] = row["value"]
        for suffix, key in (("low", "low"), ("high", "high"), ("std", "deviation")):
            if row[key] is not None:
                wide[f"{row['metric']}_{suffix}"] = row[key]
    return {protocol: list(methods.values()) for protocol, methods in table.items()}


def _methods(context: StageContext) -> dict[str, MethodRequest]:
    """What scores pairs, by the folder that its scores go to."""
    graph, inputs = context.config.graph, context.inputs
    shared: dict[str, Any] = {
        "graph": inputs["split"].absolute() / "train_graph",
        "nodes": inputs["ingest"].absolute(),
        "columns": (graph.source, graph.target),
    }
    folder = context.folder.absolute()
    methods = {}
    for seed in seeds_of(context.config):
        out = model_folder(folder, seed)
        methods[out.name] = MethodRequest(
            **shared,
            out=out,
            scorer=train_graph_scorer(context, seed),
            calibration=model_folder(inputs["calibrate"].absolute(), seed),
        )
    if context.config.evaluate.heuristics:
        methods["heuristics"] = MethodRequest(
            **shared,
            out=folder / "heuristics",
            heuristics=tuple(context.config.evaluate.heuristics),
        )
    return methods


def _tables(context: StageContext) -> dict[str, Path]:
    """Labelled pairs by the name of their scores; the split's own are always scored."""
    tables = {TEST_PAIRS: context.inputs["split"].absolute() / "test.parquet"}
    for protocol in protocols(context.config):
        if (name := _scores_name(context.config, protocol)) not in (TEST_PAIRS, HARD):
            tables[name] = context.inputs["negatives"].absolute() / "random.parquet"
    return tables


def _scores_name(config: PipelineConfig, protocol: str) -> str:
    if protocol == "random" and config.split.test_negatives is not None:
        return "random_pairs"
    return HARD if protocol == "heart" else TEST_PAIRS


def _score(context: StageContext, methods: dict[str, MethodRequest]) -> list[Result]:
    """Scores of all pairs by all methods."""
    pairs = [
        Shard(
            f"{name}-{method}-{part:06}",
            {"request": request, "table": table, "name": name, "part": part},
        )
        for method, request in methods.items()
        for name, table in _tables(context).items()
        for part in range(-(-_num_rows(table) // ROWS_PER_PART))
    ]
    results = _map(context, score_pairs_task, pairs, "scoring test pairs")
    if HARD not in protocols(context.config):
        return results
    negatives = context.inputs["negatives"].absolute()
    hard = [
        Shard(
            f"{HARD}-{method}-{part:06}",
            {"request": request, "negatives": negatives, "name": HARD, "part": part},
        )
        for method, request in methods.items()
        for part in range(count_parts(negatives))
    ]
    return results + _map(context, score_hard_task, hard, "scoring hard non-links")


def _rank(
    context: StageContext, methods: dict[str, MethodRequest]
) -> tuple[list[Ranking], list[Result]]:
    """Metrics of every score under every protocol."""
    evaluate = context.config.evaluate
    bootstrap = Bootstrap(evaluate.intervals.repeats, evaluate.intervals.level)
    pooled: dict[Ranking, Shard] = {}
    hard: dict[Ranking, Shard] = {}
    for protocol in protocols(context.config):
        name = _scores_name(context.config, protocol)
        for folder, request in methods.items():
            for place, column in enumerate(request.score_columns):
                method = context.config.model.kind if request.scorer else column
                ranking = Ranking(protocol, method, folder, column, place)
                seed = context.config.split.seed
                rank = RankRequest(request.out, column, place, evaluate.hits, bootstrap, seed)
                shard = f"rank-{protocol}-{folder}-{column}"
                if name == HARD:
                    arguments = {
                        "request": rank,
                        "links": context.inputs["split"].absolute() / "test.parquet",
                        "hard": HARD,
                        "negatives": context.inputs["negatives"].absolute(),
                    }
                    hard[ranking] = Shard(shard, arguments)
                else:
                    pooled[ranking] = Shard(shard, {"request": rank, "name": name})
    results = _map(context, rank_pooled_task, list(pooled.values()), "ranking")
    results += _map(context, rank_hard_task, list(hard.values()), "ranking")
    return [*pooled, *hard], results


def _map(context: StageContext, task: Task, shards: list[Shard], note: str) -> list[Result]:
    return task_map(
        context.cluster,
        task,
        shards,
        markers=context.folder.absolute() / "done",
        on_progress=lambda p: context.progress.update(p.done, p.total, note),
    )


def _num_rows(table: Path) -> int:
    return int(pl.scan_parquet(table).select(pl.len()).collect().item())


def _rows(
    config: PipelineConfig, rankings: list[Ranking], results: list[Result]
) -> list[dict[str, Any]]:
    """The table in long form, in the order of protocols, models first; means over the seeds."""
    by_row: dict[tuple[str, str, str], list[list[float | None]]] = {}
    for ranking, result in zip(rankings, results, strict=True):
        for metric, found in _metrics(result).items():
            by_row.setdefault((ranking.protocol, ranking.method, metric), []).append(found)
    rows = []
    for (protocol, method, metric), seeds in by_row.items():
        values = np.array(seeds, dtype=np.float64)  # [num_seeds, 3]
        value, low, high = (None if np.isnan(v) else float(v) for v in values.mean(axis=0))
        deviation = float(np.std(values[:, 0], ddof=1)) if len(seeds) > 1 else None
        rows.append(
            dict(zip(SCHEMA, (protocol, method, metric, value, low, high, deviation), strict=True))
        )
    order = protocols(config)
    return sorted(rows, key=lambda row: order.index(row["protocol"]))


def _metrics(result: Result) -> dict[str, list[float | None]]:
    return {key: value for key, value in result.items() if key != "peak_memory_bytes"}


def _by_seed(rankings: list[Ranking], results: list[Result]) -> dict[str, Any]:
    """Metrics of every model, by seed and protocol."""
    found: dict[str, Any] = {}
    for ranking, result in zip(rankings, results, strict=True):
        if ranking.folder != "heuristics":
            seed = ranking.folder.removeprefix("seed-")
            values = {name: value for name, (value, *_) in _metrics(result).items()}
            found.setdefault(seed, {})[ranking.protocol] = values
    return found


def _calibration(config: PipelineConfig, scored: list[Result]) -> dict[str, Any]:
    """Reliability curve and expected calibration error on the test pairs, by seed."""
    found = {}
    for seed in seeds_of(config):
        parts = (
            result["reliability"]
            for result in scored
            if result.get("table") == TEST_PAIRS and result["method"] == f"seed-{seed}"
        )
        sums = np.sum([*parts], axis=0)
        found[str(seed)] = {
            "error": expected_calibration_error(sums),
            "curve": reliability_curve(sums),
        }
    return found


def _counts(
    config: PipelineConfig, table: dict[str, list[dict[str, Any]]], curves: dict[str, Any]
) -> dict[str, Any]:
    """The model's headline, and the same of the best heuristic."""
    protocol = protocols(config)[0]
    metric = "mrr" if protocol == "heart" else "auc"
    model, *others = table[protocol]
    counts = {f"test_{metric}": model[metric]}
    if "average_precision" in model:
        counts["average_precision"] = model["average_precision"]
    if others:
        best = max(others, key=lambda row: row[metric])
        counts[f"{best['method']}_{metric}"] = best[metric]
    counts["calibration_error"] = float(np.mean([curve["error"] for curve in curves.values()]))
    return counts


STAGE = Stage(
    "evaluate",
    2,
    ("ingest", "split", "encode", "train", "embed", "calibrate", "negatives"),
    settings,
    run,
)
