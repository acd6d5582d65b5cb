"""The best model once more, on all known links, to score with; nothing of it is evaluated.

What was found with held-out links, how long to train, is repeated with them among the training
links: their folds, and the encodings without each fold, are those of the graph of all edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from peg_core.artifacts.trained_model import seed_part
from peg_core.splits.split_store import SplitStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages import encode, encode_all, train
from pipeline.stages.split import split_request
from workers.shard import Shard
from workers.tasks.split import all_links_task
from workers.tasks.train import train_task
from workers.tasks.training.train_resources import task_resources

OWN = {"split": "refit_split", "encode": "refit_encode"}


def enabled(config: PipelineConfig) -> bool:
    return config.train.refit and encode_all.enabled(config)


def split_all(context: StageContext) -> StageResult:
    """Every known link in the training graph, in folds."""
    request = replace(split_request(context), out=context.out.at(SplitStore))
    shards = [Shard("split", {"request": request})]
    return StageResult(counts=dict(context.map(all_links_task, shards, note="folds")[0]))


def fit(context: StageContext) -> StageResult:
    """The best seed, as many passes as brought its best validation."""
    context = with_own_inputs(context)
    seed = context.inputs.best_seed
    best = context.inputs.model(seed).open().summary()
    passes = passes_of(best["best_epoch"], fractional=best_is_passes(context.config))
    request = train.training_request(context, seed)
    # neither validations nor patience: there is nothing to validate with
    wanted = replace(request.optimisation, passes=passes, patience=10**9)
    request = replace(request, optimisation=wanted)
    (result,) = context.map(
        train_task,
        [Shard(seed_part(seed), {"request": request})],
        **task_resources(request.resources),
    )
    request.out.open().save_recipe(train.recipe_of(context), context.inputs.features.folder)
    return StageResult(
        counts={
            "passes": passes,
            "links_seen": result["links_seen"],
            "held_out_links_learned": _held_out(context),
            "evaluated": "never",
        },
        details={"seed": seed, "history": result["history"]},
    )


def with_own_inputs(context: StageContext) -> StageContext:
    """The split and the encodings of all links under the names that training reads."""
    names = {name: name for name in context.inputs} | OWN | {"held_out": "split"}
    return replace(context, inputs=context.inputs.renamed(names))


def best_is_passes(config: PipelineConfig) -> bool:
    """Whether validations do not wait for the end of an epoch."""
    return config.train.optimisation().validate_links is not None


def passes_of(best_epoch: float, *, fractional: bool) -> float:
    """Passes over the links that led to the best validation: epochs are counted from 0."""
    whole = not fractional and float(best_epoch).is_integer()
    return float(best_epoch + 1 if whole else best_epoch)


def _held_out(context: StageContext) -> int:
    """Links that validation and test had for themselves, and that this model has learned."""
    split = context.inputs.manifest("held_out").counts
    return int(split["valid_links"] + split["test_links"])


def _only_enabled(settings: Callable[[PipelineConfig], dict[str, Any]]) -> Any:
    return lambda config: settings(config) if enabled(config) else {}


def _fold_settings(config: PipelineConfig) -> dict[str, Any]:
    return {"folds": config.split.num_folds, "seed": config.split.seed}


def _encode(context: StageContext) -> StageResult:
    return encode.run(with_own_inputs(context))


STAGES = [
    Stage("refit_split", 1, ("ingest",), _only_enabled(_fold_settings), split_all, enabled=enabled),
    replace(
        encode.STAGE,
        name="refit_encode",
        inputs=("refit_split",),
        settings=_only_enabled(encode.settings),
        run=_encode,
        enabled=enabled,
    ),
    Stage(
        "refit",
        1,
        ("features", "split", "train", "refit_split", "refit_encode"),
        _only_enabled(train.settings),
        fit,
        enabled=enabled,
    ),
]
