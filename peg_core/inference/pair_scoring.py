"""Logits of many pairs from finished embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peg_core.graph.graph_store import GraphStore
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.message_graph import Positions
from peg_core.models.pair_geometry import pair_geometry
from peg_core.models.structural_features import structural_features

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class PairScorer:
    """A model's head over memory-mapped embeddings and positions.

    Args:
        model: In evaluation mode.
        graph: The graph that was embedded.
        embeddings: [num_nodes, hidden].
        positions: [num_nodes, dimensions] for every encoding.
        components: The component of every node, [num_nodes].
    """

    model: LinkPredictor
    graph: GraphStore
    embeddings: npt.NDArray[np.floating[Any]]
    positions: Positions
    components: IntArray

    @torch.no_grad()
    def logits(
        self, source: IntArray, target: IntArray, *, chunk: int = 65_536
    ) -> npt.NDArray[np.float32]:
        """One logit a pair, [num_pairs], in chunks so that memory stays flat."""
        out = np.empty(len(source), dtype=np.float32)
        for start in range(0, len(source), chunk):
            part = slice(start, start + chunk)
            first, second = source[part], target[part]
            geometry = pair_geometry([(_rows(z, first), _rows(z, second)) for z in self.positions])
            structure = structural_features(self.graph, first, second, self.components)
            logits = self.model.decode(
                _rows(self.embeddings, first),
                _rows(self.embeddings, second),
                geometry,
                torch.from_numpy(structure),
            )
            out[part] = logits.numpy()
        return out


def probabilities(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The logistic function."""
    return torch.from_numpy(logits).sigmoid().numpy()


def _rows(values: npt.NDArray[np.floating[Any]], nodes: IntArray) -> torch.Tensor:
    return torch.from_numpy(values[nodes].astype(np.float32, copy=False))
