"""Non-links to evaluate with that the split does not have: no model has a say in them."""

from __future__ import annotations

from typing import Any, Literal

from peg_core.artifacts.ranking_negatives import RankingNegatives
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.shard import Shard
from workers.tasks.negatives import (
    NegativesRequest,
    anchors_task,
    hard_negatives_task,
    random_negatives_task,
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
        graph=context.inputs.graph,
        split=context.inputs.split,
        per_link=config.evaluate.negatives_per_positive,
        seed=config.split.seed,
        out=context.out.at(RankingNegatives),
    )
    counts: dict[str, Any] = {}
    if _needs_random(config):
        shard = Shard("random", {"request": request})
        (result,) = context.map(random_negatives_task, [shard], note="random non-links")
        counts["random_pairs"] = result["pairs"]
    if "heart" in protocols(config):
        (found,) = context.map(anchors_task, [Shard("anchors", {"request": request})])
        shards = [
            Shard(f"part-{part:06}", {"request": request, "part": part})
            for part in range(found["parts"])
        ]
        results = context.map(hard_negatives_task, shards, note="hard non-links")
        counts["anchors"] = sum(result["anchors"] for result in results)
        counts["missing"] = sum(result["missing"] for result in results)
    return StageResult(counts=counts, warnings=_warnings(counts))


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
