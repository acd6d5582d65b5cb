"""The stages that a refresh runs in place of the usual ones, and the one that it adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from peg_core.artifacts.embedded_graph import Embeddings
from peg_core.artifacts.manifest import Manifest
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.recipe import Recipe
from peg_core.atomic_file import write_json
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.graph_store import GraphStore
from peg_core.metrics.drift import population_stability_index
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.kept_model import encoding_sections, features_stage
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages import (
    calibrate,
    embed,
    embed_all,
    encode,
    encode_all,
    index,
    ingest,
    recommend,
    score,
    split,
    train,
)
from workers.artifact_ref import AnyRef
from workers.embedded_graph_ref import EmbeddedGraphRef, ScorerRef
from workers.shard import Shard
from workers.tasks.drift import (
    EncodedNodes,
    MovementResult,
    NewEdgesResult,
    movement_task,
    new_edges_task,
)
from workers.tasks.encode import WarmStart

DRIFT_NAME = "drift.json"

Fetch = Callable[[str, str], AnyRef]


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
        fetch: Gives an artifact.
    """

    recipe: Recipe
    baseline: Baseline
    fetch: Fetch

    def all(self) -> list[Stage]:
        """In order; those of the training are there for what follows, none of them runs."""
        kept = [stage.STAGE for stage in (split, encode, train, embed, calibrate)]
        after = [stage.STAGE for stage in (embed_all, score, index, recommend)]
        return [ingest.STAGE, *kept, features_stage(), self.encode_all(), *after, self.drift()]

    def encode_all(self) -> Stage:
        """The encodings, each from where it was."""

        def trained_as(config: PipelineConfig) -> PipelineConfig:
            """A number of dimensions that was found automatically stays."""
            return config.model_copy(update={"encodings": encoding_sections(self.recipe)})

        def settings(config: PipelineConfig) -> dict[str, Any]:
            return {**encode.settings(trained_as(config)), "refresh": asdict(self.baseline)}

        def run(context: StageContext) -> StageResult:
            context = replace(context, config=trained_as(context.config))
            last = self._encoded(self.baseline.last)
            trained = self._encoded(self.baseline.trained).graph.at(GraphOutline).open()
            start = WarmStart(last.positions, last.graph, trained.num_nodes)
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
        before = Manifest.require(self.fetch("encode_all", trained.encode_all).folder)
        now = context.inputs.manifest("encode_all")
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
        return StageResult(counts=shown, details=drift)

    def _movement(self, context: StageContext) -> MovementResult:
        arguments = {
            "before": self._encoded(self.baseline.trained),
            "now": EncodedNodes(context.inputs.graph, context.inputs.all_positions),
            "out": context.out,
        }
        (found,) = context.map(movement_task, [Shard("movement", arguments)], note="movement")
        return found

    def _newest_edges(self, context: StageContext) -> NewEdgesResult:
        last = self.baseline.last
        if last.embed_all is None:
            return {"edges": None, "scored": 0, "auc": None}
        encoded = self._encoded(last)
        embeddings = self.fetch("embed_all", last.embed_all).at(Embeddings)
        embedded = EmbeddedGraphRef(encoded.graph, encoded.positions, embeddings)
        arguments = {
            "before": ScorerRef(embedded, context.inputs.best_model),
            "now": context.inputs.graph,
            "seed": context.config.split.seed,
        }
        shards = [Shard("newest-edges", arguments)]
        (found,) = context.map(new_edges_task, shards, note="newest edges")
        return found

    def _score_shift(self, context: StageContext) -> float | None:
        """None where candidates were not scored, then or now."""
        before = self.baseline.trained.score
        if before is None or "score" not in context.inputs:
            return None
        scored = Manifest.require(self.fetch("score", before).folder)
        old, new = (
            manifest.details["histogram"] for manifest in (scored, context.inputs.manifest("score"))
        )
        return population_stability_index(old, new) if sum(old) and sum(new) else None

    def _encoded(self, earlier: Earlier) -> EncodedNodes:
        """A graph as it was, and its positions."""
        return EncodedNodes(
            self.fetch("ingest", earlier.ingest).at(GraphStore),
            self.fetch("encode_all", earlier.encode_all).at(Positions),
        )


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
