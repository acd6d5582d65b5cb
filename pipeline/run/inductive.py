"""A trained model on a graph that it has not seen: read it, encode it, embed it.

Every step leaves an artifact with a manifest in a folder of its own, so that a try that was
killed goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures, load_features
from peg_core.models.model_file import load_model
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.plan import file_facts_of
from pipeline.run.progress import RunDisplay
from pipeline.run.recipe import TRANSFORM_NAME, Recipe
from pipeline.run.stage import StageContext, StageResult
from pipeline.stages import encode_all, ingest
from pipeline.stages.embed import embed_graph
from pipeline.stages.features import feature_request
from pipeline.store.manifest import Identity, Manifest
from pipeline.store.object_storage import file_facts
from workers.cluster import Cluster
from workers.tasks.embed import EmbedRequest, layer_file
from workers.tasks.encode import load_positions
from workers.tasks.features import build_features


@dataclass(frozen=True)
class OtherGraph:
    """Where another graph is.

    Args:
        place: A folder with a graph store, or Parquet edges as in `graph.edges`.
        nodes: A Parquet node table, where the model reads node features.
    """

    place: str
    nodes: str | None = None

    @property
    def is_store(self) -> bool:
        return (Path(self.place) / "indptr.npy").exists()

    def files(self) -> dict[str, list[dict[str, object]]]:
        """What tells it from a changed one."""
        if self.is_store:
            arrays = sorted(Path(self.place).glob("*.npy"))
            return {"graph": [file_facts(str(file)) for file in arrays]}
        places = {ingest.EDGES: self.place, **({"graph.nodes": self.nodes} if self.nodes else {})}
        return {name: file_facts_of(place) for name, place in places.items()}


@dataclass(frozen=True)
class EmbeddedGraph:
    """A graph as a head reads it."""

    graph: Path
    features: Path
    positions: Path
    embeddings: Path
    num_encodings: int


@dataclass(frozen=True)
class _Rooms:
    """What all steps share."""

    config: PipelineConfig
    other: OtherGraph
    work: Path
    cluster: Cluster
    display: RunDisplay


def embed_other_graph(
    cluster: Cluster, model: Path, other: OtherGraph, work: Path, display: RunDisplay
) -> EmbeddedGraph:
    """Make another graph ready for the head of a trained model, below ``work``."""
    recipe = Recipe.read(model)
    config = PipelineConfig.model_construct(  # features that are missing are told below
        name="other",
        store=str(work),
        graph=recipe.graph_config(other.place, other.nodes),
        features=recipe.features_config(),
        encodings=recipe.encoding_configs(),
    )
    rooms = _Rooms(config, other, work.absolute(), cluster, display)
    graph = Path(other.place).absolute()
    if not other.is_store:
        graph = _step(rooms, "ingest", {}, ingest.run)
    require_features(recipe, model, graph)
    features = _step(rooms, "features", {"ingest": graph}, features_like(model))
    positions = _step(rooms, "encode_all", {"ingest": graph}, encode_all.run)
    _require_width(model, graph, features, positions, len(config.encodings))
    inputs = {"ingest": graph, "features": features, "encode_all": positions}
    embedded = _step(rooms, "embed_all", inputs, _embed_with(model))
    last = load_model(model).spec.layers - 1
    return EmbeddedGraph(
        graph, features, positions, layer_file(embedded, last), len(config.encodings)
    )


def _step(
    rooms: _Rooms, name: str, inputs: dict[str, Path], run: Callable[[StageContext], StageResult]
) -> Path:
    """The folder of a step, run now unless it was finished before."""
    folder = rooms.work / name
    if Manifest.read(folder) is not None:
        rooms.display.reused(name, "done before")
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    identity = Identity(name, 1, {}, {}, rooms.other.files())
    started, clock = datetime.now(UTC), time.monotonic()
    line = rooms.display.start(name, "of the other graph")
    try:
        result = run(StageContext(rooms.config, folder, inputs, rooms.cluster, line, identity))
    except BaseException:
        line.close()
        raise
    seconds = round(time.monotonic() - clock, 3)
    Manifest(
        identity=identity,
        fingerprint=identity.fingerprint,
        started=started.isoformat(timespec="seconds"),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
        peak_memory_bytes=result.peak_memory_bytes,
        counts=result.counts,
        details=result.details,
        warnings=result.warnings,
    ).write(folder)
    rooms.display.finish(name, line, seconds, result.counts)
    for warning in result.warnings:
        rooms.display.warn(warning)
    return folder


def features_like(model: Path) -> Callable[[StageContext], StageResult]:
    """Features made the way that was fitted in training."""
    fitted = model / TRANSFORM_NAME

    def run(context: StageContext) -> StageResult:
        request = feature_request(context)
        request = dataclasses.replace(request, fitted=fitted if fitted.exists() else None)
        facts = build_features(context.cluster, request, context.progress.update)
        return StageResult(peak_memory_bytes=facts.pop("peak_memory_bytes"), counts=facts)

    return run


def _embed_with(model: Path) -> Callable[[StageContext], StageResult]:
    def run(context: StageContext) -> StageResult:
        request = EmbedRequest(
            graph=context.inputs["ingest"],
            features=context.inputs["features"],
            positions=context.inputs["encode_all"],
            model=model.absolute(),
            out=context.folder,
            num_encodings=len(context.config.encodings),
        )
        return StageResult(peak_memory_bytes=embed_graph(context, request, 0, 1))

    return run


def require_features(recipe: Recipe, model: Path, graph: Path) -> None:
    """Refuse node features that are not those the model was trained on."""
    if recipe.feature_width is None:
        return
    features = load_features(graph)
    found = "none" if features is None else f"{features.shape[1]:,} columns"
    if features is None or features.shape[1] != recipe.feature_width:
        raise ArtifactMismatch.of(
            what=f"the node features of {graph} and the model {model}",
            found=found,
            needed=f"{recipe.feature_width:,} columns",
        )


def _require_width(
    model: Path, graph: Path, features: Path, positions: Path, num_encodings: int
) -> None:
    """Refuse inputs of another width than the first layer has."""
    needed = load_model(model).spec.in_channels
    num_nodes = GraphStore.open(graph).num_nodes
    placed = load_positions(positions, num_encodings, num_nodes=num_nodes)
    found = NodeFeatures.open(features).width(placed)
    if found != needed:
        raise ArtifactMismatch.of(
            what=f"the features of {graph} and the model {model}",
            found=f"{found:,} columns",
            needed=f"{needed:,}",
        )
