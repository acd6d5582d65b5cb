"""The stages that a refresh runs in place of the usual ones, and the one that it adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from peg_core.atomic_file import write_json
from peg_core.graph.graph_store import GraphStore
from peg_core.metrics.drift import population_stability_index
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.inductive import features_like, require_features
from pipeline.run.recipe import Recipe
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages import (
    calibrate,
    embed,
    embed_all,
    encode,
    encode_all,
    features,
    index,
    ingest,
    recommend,
    score,
    split,
    train,
)
from pipeline.stages.embed import embedding_file
from pipeline.stages.train import best_model
from pipeline.store.manifest import Manifest
from workers.task_map import Shard, task_map
from workers.tasks.drift import EncodedNodes, movement_task, new_edges_task
from workers.tasks.model_scorer import ScorerRequest

DRIFT_NAME = "drift.json"

Fetch = Callable[[str, str], Path]


@dataclass(frozen=True)
class Earlier:
    """Fingerprints of a graph and what was made of it; none: not made, or made by another model."""

    ingest: str
    encode_all: str
    embed_all: str | None = None
    score: str | None = None


@dataclass(frozen=True)
class Baseline:
    """What a refresh compares with.

    Args:
        train: The model that is kept.
        trained: The graph as it was scored when the model was new.
        last: The graph as it was scored last.
    """

    train: str
    trained: Earlier
    last: Earlier

    @classmethod
    def of(cls, values: dict[str, Any]) -> Baseline:
        """From the settings of an artifact."""
        trained, last = Earlier(**values["trained"]), Earlier(**values["last"])
        return cls(values["train"], trained, last)


@dataclass(frozen=True)
class RefreshStages:
    """Builds the stages.

    Args:
        recipe: How the model was trained.
        baseline: What is compared with.
        fetch: Gives the folder of an artifact.
    """

    recipe: Recipe
    baseline: Baseline
    fetch: Fetch

    def all(self) -> list[Stage]:
        """In order; those of the training are there for what follows, none of them runs."""
        kept = [stage.STAGE for stage in (split, encode, train, embed, calibrate)]
        after = [stage.STAGE for stage in (embed_all, score, index, recommend)]
        return [ingest.STAGE, *kept, self.features(), self.encode_all(), *after, self.drift()]

    def features(self) -> Stage:
        """Features of the grown graph, transformed as the model knows them."""

        def run(context: StageContext) -> StageResult:
            model = best_model(context.inputs["train"])
            require_features(self.recipe, model, context.inputs["ingest"])
            return features_like(model)(context)

        return replace(features.STAGE, inputs=("ingest", "train"), run=run)

    def encode_all(self) -> Stage:
        """The encodings, each from where it was."""

        def trained_as(config: PipelineConfig) -> PipelineConfig:
            """A number of dimensions that was found automatically stays."""
            return config.model_copy(update={"encodings": self.recipe.encoding_configs()})

        def settings(config: PipelineConfig) -> dict[str, Any]:
            return {**encode.settings(trained_as(config)), "refresh": asdict(self.baseline)}

        def run(context: StageContext) -> StageResult:
            context = replace(context, config=trained_as(context.config))
            earlier, graph = self._folders(self.baseline.last)
            trained = GraphStore.open(self.fetch("ingest", self.baseline.trained.ingest))
            start = (earlier, graph, trained.num_nodes)
            result = encode.encode_graphs(context, encode_all.requests(context, start))
            reports = [details["report"] for details in result.details.values()]
            used = sum(report.get("start") == "used" for report in reports)
            return replace(result, counts={**result.counts, "warm_starts": used})

        return replace(encode_all.STAGE, settings=settings, run=run)

    def drift(self) -> Stage:
        """What changed since the training."""

        def settings(config: PipelineConfig) -> dict[str, Any]:
            del config
            return {"refresh": asdict(self.baseline)}

        inputs = ("ingest", "train", "encode_all", "score")
        return Stage("drift", 1, inputs, settings, self._measure_drift)

    def _measure_drift(self, context: StageContext) -> StageResult:
        trained, last = self.baseline.trained, self.baseline.last
        moved = self._movement(context)
        newest = self._newest_edges(context)
        peak = max(moved.pop("peak_memory_bytes"), newest.pop("peak_memory_bytes", 0))
        before = _manifest(self.fetch("encode_all", trained.encode_all))
        now = _manifest(context.inputs["encode_all"])
        drift = {
            "compared_with": {"trained": asdict(trained), "last": asdict(last)},
            "movement": moved,
            "encodings": _encodings(before, now),
            "score_shift": self._score_shift(context),
            "newest_edges": newest,
        }
        write_json(context.folder / DRIFT_NAME, drift)
        counts = {
            "movement": max(item["relative_eta"] for item in moved["encodings"]),
            "score_shift": drift["score_shift"],
            "new_edge_auc": newest["auc"],
        }
        shown = {name: value for name, value in counts.items() if value is not None}
        return StageResult(counts=shown, details=drift, peak_memory_bytes=peak)

    def _movement(self, context: StageContext) -> dict[str, Any]:
        positions, graph = self._folders(self.baseline.trained)
        folder, inputs = context.folder.absolute(), context.inputs
        arguments = {
            "before": EncodedNodes(graph, positions),
            "now": EncodedNodes(inputs["ingest"].absolute(), inputs["encode_all"].absolute()),
            "num_encodings": len(context.config.encodings),
            "out": folder / "movement.parquet",
        }
        shards = [Shard("movement", arguments)]
        (found,) = task_map(context.cluster, movement_task, shards, markers=folder / "done")
        return found

    def _newest_edges(self, context: StageContext) -> dict[str, Any]:
        last = self.baseline.last
        if last.embed_all is None:
            return {"edges": None, "scored": 0, "auc": None}
        positions, graph = self._folders(last)
        scorer = ScorerRequest(
            graph=graph,
            positions=positions,
            model=best_model(context.inputs["train"].absolute()),
            embeddings=embedding_file(
                self.fetch("embed_all", last.embed_all).absolute(), context.config
            ),
            num_encodings=len(context.config.encodings),
        )
        arguments = {
            "before": scorer,
            "now": context.inputs["ingest"].absolute(),
            "seed": context.config.split.seed,
        }
        shards = [Shard("newest-edges", arguments)]
        markers = context.folder.absolute() / "done"
        (found,) = task_map(context.cluster, new_edges_task, shards, markers=markers)
        return found

    def _score_shift(self, context: StageContext) -> float | None:
        """None where candidates were not scored, then or now."""
        before = self.baseline.trained.score
        if before is None or "score" not in context.inputs:
            return None
        old, new = (
            _manifest(folder).details["histogram"]
            for folder in (self.fetch("score", before), context.inputs["score"])
        )
        return population_stability_index(old, new) if sum(old) and sum(new) else None

    def _folders(self, earlier: Earlier) -> tuple[Path, Path]:
        """Positions and graph."""
        positions = self.fetch("encode_all", earlier.encode_all).absolute()
        return positions, self.fetch("ingest", earlier.ingest).absolute()


def _manifest(folder: Path) -> Manifest:
    manifest = Manifest.read(folder)
    assert manifest is not None  # an input of a stage is always whole
    return manifest


def _encodings(before: Manifest, now: Manifest) -> dict[str, Any]:
    """Gap at the cut, and what the solution took."""
    return {
        name: {
            "gap_before": before.details[name]["report"].get("gap"),
            "gap": details["report"].get("gap"),
            "operator_applications": details["report"].get("operator_applications"),
            "start": details["report"].get("start", "not used: encoded afresh"),
        }
        for name, details in now.details.items()
    }
