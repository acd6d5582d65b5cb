"""A model over the artifacts of a run, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peg_core.artifacts.embedded_graph import EmbeddedGraph, Embeddings
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.graph.graph_store import GraphStore
from peg_core.metrics.calibration import Calibration
from workers.artifact_ref import ArtifactRef

if TYPE_CHECKING:
    from peg_core.inference.pair_scoring import PairScorer


@dataclass(frozen=True)
class EmbeddedGraphRef:
    """A graph, its positions and its embeddings; a task opens them together."""

    graph: ArtifactRef[GraphStore]
    positions: ArtifactRef[Positions]
    embeddings: ArtifactRef[Embeddings]

    def open(self) -> EmbeddedGraph:
        return EmbeddedGraph.of(self.graph.open(), self.positions.open(), self.embeddings.open())


@dataclass(frozen=True)
class ScorerRef:
    """A model, and the graph that it embedded.

    Args:
        calibration: Says what is stacked on the model's logit; None: nothing is.
    """

    embedded: EmbeddedGraphRef
    model: ArtifactRef[TrainedModel]
    calibration: ArtifactRef[Calibration] | None = None

    def open(self) -> PairScorer:
        """The model's head over memory-mapped arrays."""
        return self.over(self.embedded.open())

    def over(self, embedded: EmbeddedGraph) -> PairScorer:
        """The same, over what is open already."""
        model = self.model.open()
        if self.calibration is not None:
            model = replace(model, calibration=self.calibration.open())
        return embedded.scorer(model)
