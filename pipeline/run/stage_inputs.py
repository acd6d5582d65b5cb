"""What a stage reads, by name and type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from peg_core.artifacts.embedded_graph import Embeddings
from peg_core.artifacts.evaluation import Evaluation
from peg_core.artifacts.manifest import Manifest
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.ranking_negatives import RankingNegatives
from peg_core.artifacts.trained_model import TrainedModel, Training, seed_part
from peg_core.artifacts.vector_indexes import VectorIndexes
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.node_features import NodeFeatures
from peg_core.metrics.calibration import Calibration
from peg_core.splits.split_store import TRAIN_GRAPH, SplitStore
from workers.artifact_ref import AnyRef, ArtifactRef
from workers.embedded_graph_ref import EmbeddedGraphRef, ScorerRef


class StageInputs:
    """The artifacts of the stages that a stage declared as its inputs.

    Args:
        refs: By the name of the stage that made them.
        model: One model in place of a training, where a model is taken to another graph.
    """

    def __init__(
        self, refs: Mapping[str, AnyRef], model: ArtifactRef[TrainedModel] | None = None
    ) -> None:
        self._refs = dict(refs)
        self._model = model

    def __contains__(self, stage: object) -> bool:
        return stage in self._refs

    def __iter__(self) -> Iterator[str]:
        return iter(self._refs)

    def ref(self, stage: str) -> AnyRef:
        """The artifact of a stage that was declared; an undeclared one is a mistake in ours."""
        if stage not in self._refs:
            raise KeyError(f"{stage} is not an input of this stage; its inputs: {[*self._refs]}")
        return self._refs[stage]

    def manifest(self, stage: str) -> Manifest:
        return Manifest.require(self.ref(stage).folder)

    def manifests(self) -> dict[str, Manifest]:
        """Of all inputs, in order."""
        return {stage: self.manifest(stage) for stage in self}

    def renamed(self, names: Mapping[str, str]) -> StageInputs:
        """The same artifacts under other names: for each name the one that it had."""
        found = {name: self._refs[own] for name, own in names.items() if own in self._refs}
        return StageInputs(found, self._model)

    @property
    def graph(self) -> ArtifactRef[GraphStore]:
        """All known edges."""
        return self.ref("ingest").at(GraphStore)

    @property
    def node_ids(self) -> ArtifactRef[GraphIds]:
        return self.ref("ingest").at(GraphIds)

    @property
    def features(self) -> ArtifactRef[NodeFeatures]:
        return self.ref("features").at(NodeFeatures)

    @property
    def split(self) -> ArtifactRef[SplitStore]:
        return self.ref("split").at(SplitStore)

    @property
    def train_graph(self) -> ArtifactRef[GraphStore]:
        """The edges without those held out."""
        return self.split.at(GraphStore, TRAIN_GRAPH)

    @property
    def positions(self) -> ArtifactRef[Positions]:
        """In the training graph and without each of its folds."""
        return self.ref("encode").at(Positions)

    @property
    def all_positions(self) -> ArtifactRef[Positions]:
        """In the graph of all known edges."""
        return self.ref("encode_all").at(Positions)

    @property
    def all_embeddings(self) -> ArtifactRef[Embeddings]:
        """Of the graph of all known edges, by the best model."""
        return self.ref("embed_all").at(Embeddings)

    @property
    def training(self) -> ArtifactRef[Training]:
        return self.ref("train").at(Training)

    @property
    def negatives(self) -> ArtifactRef[RankingNegatives]:
        return self.ref("negatives").at(RankingNegatives)

    @property
    def evaluation(self) -> ArtifactRef[Evaluation]:
        return self.ref("evaluate").at(Evaluation)

    @property
    def indexes(self) -> ArtifactRef[VectorIndexes]:
        return self.ref("index").at(VectorIndexes)

    def model(self, seed: int) -> ArtifactRef[TrainedModel]:
        return self.training.at(TrainedModel, seed_part(seed))

    @property
    def best_seed(self) -> int:
        return self.training.open().best_seed

    @property
    def best_model(self) -> ArtifactRef[TrainedModel]:
        """The model that was best on the validation pairs, or the one that is taken along.

        Fitted again where that is asked for.
        """
        if self._model is not None:
            return self._model
        refitted = "refit" in self
        name = seed_part(self.best_seed)
        return self.ref("refit").at(TrainedModel, name) if refitted else self.model(self.best_seed)

    def calibration(self, seed: int) -> ArtifactRef[Calibration]:
        return self.ref("calibrate").at(Calibration, seed_part(seed))

    def train_graph_scorer(self, seed: int) -> ScorerRef:
        """A model over the training graph, as validation and test see it.

        Before it is calibrated its logits are its own, afterwards what calibration made of them.
        """
        embeddings = self.ref("embed").at(Embeddings, seed_part(seed))
        embedded = EmbeddedGraphRef(self.train_graph, self.positions, embeddings)
        calibration = self.calibration(seed) if "calibrate" in self else None
        return ScorerRef(embedded, self.model(seed), calibration)

    def best_scorer(self, *, graph: str) -> ScorerRef:
        """The best model over ``all`` known edges, or over those it was trained on."""
        if graph != "all":
            return self.train_graph_scorer(self.best_seed)
        embedded = EmbeddedGraphRef(self.graph, self.all_positions, self.all_embeddings)
        calibration = self.calibration(self.best_seed) if "calibrate" in self else None
        return ScorerRef(embedded, self.best_model, calibration)
