"""From logits to probabilities: a line fitted to the validation pairs, for every model.

A stage of its own, so that scoring does not wait for evaluation, nor depend on test pairs.
"""

from __future__ import annotations

from typing import Any

from peg_core.artifacts.trained_model import seed_part
from peg_core.metrics.calibration import Calibration
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.guard_rails import calibration_rails
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.train import seeds_of
from workers.shard import Shard
from workers.tasks.calibrate import calibrate_task

# A line has two unknowns: more pairs than this do not make it better.
MOST_PAIRS = 2_000_000


def settings(config: PipelineConfig) -> dict[str, Any]:
    return config.calibrate.dependencies()


def run(context: StageContext) -> StageResult:
    graph = context.config.graph
    seeds = seeds_of(context.config)
    shards = [
        Shard(
            seed_part(seed),
            {
                "scorer": context.inputs.train_graph_scorer(seed),
                "split": context.inputs.split,
                "nodes": context.inputs.node_ids,
                "columns": graph.predicted.ends,
                "most": MOST_PAIRS,
                "stack": context.config.calibrate.stack,
                "out": context.out.at(Calibration, seed_part(seed)),
            },
        )
        for seed in seeds
    ]
    results = context.map(calibrate_task, shards, note="models")
    first = results[0]
    sampled = first["pairs"] < first["validation_pairs"]
    return StageResult(
        counts={
            "pairs": first["pairs"],
            **({"of_pairs": first["validation_pairs"]} if sampled else {}),
            "slope": first["slope"],
            "intercept": first["intercept"],
            "error": first["error"],
        },
        details={"seeds": dict(zip(map(str, seeds), results, strict=True))},
        warnings=calibration_rails(
            [result["slope"] for result in results],
            [result["spread"] for result in results],
            first["pairs"],
        ),
    )


STAGE = Stage("calibrate", 1, ("ingest", "split", "encode", "train", "embed"), settings, run)
