"""A trained model taken to another graph: read it, encode it, embed it.

Every step leaves an artifact in a store of its own, so that a try that was killed goes on
where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from peg_core.artifacts.manifest import Identity
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.graph.graph_store import GraphStore, is_graph_store
from peg_core.storage.object_storage import file_facts
from pipeline.config.data_sections import FeaturesConfig
from pipeline.config.pipeline_config import IntegrityConfig, PipelineConfig
from pipeline.config.result_sections import ScoreConfig
from pipeline.run.artifact_guard import ArtifactGuard
from pipeline.run.kept_model import encoding_sections, features_stage, graph_section, require_width
from pipeline.run.plan import file_facts_of
from pipeline.run.stage import Stage
from pipeline.run.stage_inputs import StageInputs
from pipeline.run.stage_runner import StageRunner
from pipeline.stages import embed_all, encode_all, ingest
from pipeline.store.local_store import ArtifactStore
from workers.artifact_ref import AnyRef, ArtifactRef


@dataclass(frozen=True)
class OtherGraph:
    """Where another graph is.

    Args:
        location: A folder with a graph store, or Parquet edges as in `graph.edges`.
        nodes: A Parquet node table, where the model reads node features.
    """

    location: str
    nodes: str | None = None

    @property
    def is_store(self) -> bool:
        return is_graph_store(Path(self.location))

    def files(self) -> dict[str, list[dict[str, object]]]:
        """What tells it from a changed one."""
        if self.is_store:
            arrays = sorted(Path(self.location).glob("*.npy"))
            return {"graph": [file_facts(str(file)) for file in arrays]}
        given = {ingest.EDGES: self.location, **({"graph.nodes": self.nodes} if self.nodes else {})}
        return {name: file_facts_of(location) for name, location in given.items()}


def transfer_config(
    model: TrainedModel, other: OtherGraph, score: ScoreConfig, store: Path
) -> PipelineConfig:
    """The pipeline of the training, as far as scoring needs it, for another graph."""
    recipe = model.recipe
    return PipelineConfig.model_construct(  # features that are missing are told by the stage
        name="other",
        store=str(store),
        graph=graph_section(recipe, other.location, other.nodes),
        features=FeaturesConfig(**recipe.features),
        encodings=encoding_sections(recipe),
        score=score,
    )


def embed_other_graph(
    runner: StageRunner, model: ArtifactRef[TrainedModel], other: OtherGraph, store: ArtifactStore
) -> StageInputs:
    """Make another graph ready for the head of a trained model; returns what scoring reads."""
    refs: dict[str, AnyRef] = {}
    stages: list[Stage] = [features_stage(), encode_all.STAGE, embed_all.STAGE]
    if other.is_store:
        refs["ingest"] = ArtifactRef.of_folder(Path(other.location), GraphStore)
    else:
        stages.insert(0, ingest.STAGE)
    _run_all(runner, stages, refs, model, other, store)
    return StageInputs(refs, model)


def _run_all(
    runner: StageRunner,
    stages: Sequence[Stage],
    refs: dict[str, AnyRef],
    model: ArtifactRef[TrainedModel],
    other: OtherGraph,
    store: ArtifactStore,
) -> None:
    """Run what is not done yet; ``refs`` gets the artifacts."""
    files = other.files()
    for stage in stages:
        made_from = {name: refs[name].fingerprint for name in stage.inputs if name in refs}
        settings = stage.settings(runner.config)
        identity = Identity(stage.name, stage.version, settings, made_from, files)
        inputs = StageInputs(refs, model)
        if stage.name == embed_all.STAGE.name:
            require_width(inputs)
        if _is_done(runner, store, identity):
            runner.reuse(stage, "done before")
        else:
            runner.run(stage, identity, inputs, store, reason="of the other graph")
        refs[stage.name] = store.ref(stage.name, identity.fingerprint)


def _is_done(runner: StageRunner, store: ArtifactStore, identity: Identity) -> bool:
    """Whether an earlier try finished the artifact; a damaged one is set aside."""
    name = (identity.stage, identity.fingerprint)
    if store.damage(*name, contents=False) is None and store.find(*name) is None:
        return False
    return ArtifactGuard(store, IntegrityConfig(), runner.warn).is_whole(*name)
