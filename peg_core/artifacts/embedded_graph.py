"""A graph as the head of a model reads it: edges, positions, embeddings, components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.artifacts.positions import Positions
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.atomic_file import write_array
from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.storage.shared_array import create_array

if TYPE_CHECKING:
    from peg_core.explain.pair_explainer import PairExplainer
    from peg_core.graph.ids.graph_ids import GraphIds
    from peg_core.graph.node_features import NodeFeatures
    from peg_core.inference.pair_scoring import PairScorer

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Embeddings:
    """The output of a model's layers for every node of one graph."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    def allocate(self, file: Path, shape: tuple[int, int], kind: str) -> None:
        """Make room for an array that tasks fill range by range."""
        create_array(file, shape, kind)

    @property
    def state_file(self) -> Path:
        """What the first layer reads, where that is not the table of features itself."""
        return self.folder / "state.npy"

    def layer_file(self, layer: int) -> Path:
        """The output of a layer; once all are done only the last is kept."""
        return self.folder / f"layer-{layer}.npy"

    @property
    def file(self) -> Path:
        """The last layer's output, [num_nodes, width]."""
        found = sorted(self.folder.glob("layer-*.npy"))
        if not found:
            raise InputError(f"{self.folder} holds no embeddings; run `peg run` first")
        return found[-1]

    def array(self) -> npt.NDArray[np.floating[Any]]:
        embeddings: npt.NDArray[np.floating[Any]] = np.load(self.file, mmap_mode="r")
        return embeddings

    def components(self) -> Array:
        """The component of every node, [num_nodes]."""
        labels: Array = np.load(self._components_file, mmap_mode="r")
        return labels

    def write_components(self, labels: Array) -> None:
        write_array(self._components_file, labels)

    @property
    def _components_file(self) -> Path:
        return self.folder / "components.npy"


@dataclass(frozen=True)
class EmbeddedGraph:
    """Everything but the model itself that it takes to score a pair.

    Args:
        graph: The edges that carried the messages.
        positions: [num_nodes, dimensions] for every encoding of that graph.
        embeddings: [num_nodes, width].
        components: [num_nodes].
    """

    graph: GraphStore
    positions: Sequence[npt.NDArray[np.float32]]
    embeddings: npt.NDArray[np.floating[Any]]
    components: Array

    @classmethod
    def of(cls, graph: GraphStore, positions: Positions, embeddings: Embeddings) -> Self:
        """Bring together three artifacts; those that do not fit are refused."""
        return cls(
            graph,
            positions.arrays(num_nodes=graph.num_nodes),
            embeddings.array(),
            embeddings.components(),
        )

    def scorer(self, model: TrainedModel) -> PairScorer:
        """The model's head over memory-mapped arrays, stacked where its calibration says so."""
        from peg_core.inference.pair_scoring import PairScorer

        return PairScorer(
            model.network,
            self.graph,
            self.embeddings,
            list(self.positions),
            self.components,
            None if model.calibration is None else model.calibration.stack,
        )

    def explainer(
        self, model: TrainedModel, ids: GraphIds, features: NodeFeatures | None = None
    ) -> PairExplainer:
        """Why the model gives pairs of this graph their scores."""
        from peg_core.explain.pair_explainer import PairExplainer, distinct_names

        kinds = [str(item.get("kind", "le")) for item in model.recipe.encodings]
        line = None if model.calibration is None else model.calibration.line()
        return PairExplainer(self.scorer(model), ids, distinct_names(kinds), features, line)
