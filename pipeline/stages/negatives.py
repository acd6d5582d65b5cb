"""Non-links to evaluate with that the split does not have: no model has a say in them."""

from __future__ import annotations

from typing import Any, Literal

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.task_map import Shard, task_map
from workers.tasks.negatives import (
    NegativesRequest,
    hard_negatives_task,
    random_negatives_task,
    write_anchors,
)


def protocols(config: PipelineConfig) -> list[str]:
    """How test links are ranked, as asked for or by default."""
    primary: Literal["random", "given"] = (
        "random" if config.split.test_negatives is None else "given"
    )
    return list(dict.fromkeys(config.evaluate.protocol or [primary]))


def settings(config: PipelineConfig) -> dict[str, Any]:
    evaluate = config.evaluate
    hard = evaluate.negatives_per_positive if "heart" in protocols(config) else None
    return {"negatives_per_positive": hard, "random": _needs_random(config)}


def enabled(config: PipelineConfig) -> bool:
    return "heart" in protocols(config) or _needs_random(config)


def run(context: StageContext) -> StageResult:
    config = context.config
    request = NegativesRequest(
        graph=context.inputs["ingest"].absolute(),
        split=context.inputs["split"].absolute(),
        per_link=config.evaluate.negatives_per_positive,
        seed=config.split.seed,
        out=context.folder.absolute(),
    )
    markers = request.out / "done"
    counts: dict[str, Any] = {}
    peak = 0
    if _needs_random(config):
        (result,) = task_map(
            context.cluster,
            random_negatives_task,
            [Shard("random", {"request": request})],
            markers=markers,
        )
        counts["random_pairs"] = result["pairs"]
        peak = result["peak_memory_bytes"]
    if "heart" in protocols(config):
        results = task_map(
            context.cluster,
            hard_negatives_task,
            [
                Shard(f"part-{part:06}", {"request": request, "part": part})
                for part in range(write_anchors(request))
            ],
            markers=markers,
            on_progress=lambda p: context.progress.update(p.done, p.total, "hard non-links"),
        )
        counts |= {key: sum(result[key] for result in results) for key in ("anchors", "missing")}
        peak = max([peak, *(result["peak_memory_bytes"] for result in results)])
    return StageResult(counts=counts, warnings=_warnings(counts), peak_memory_bytes=peak)


def _needs_random(config: PipelineConfig) -> bool:
    return config.split.test_negatives is not None and "random" in protocols(config)


def _warnings(counts: dict[str, Any]) -> list[str]:
    if not counts.get("missing"):
        return []
    return [
        f"{counts['missing']:,} hard non-links are missing: some nodes have fewer strangers than "
        "`evaluate.negatives_per_positive` asks for; the ranks of their links are lower for it"
    ]


STAGE = Stage("negatives", 1, ("ingest", "split"), settings, run, enabled=enabled)
