"""A trained model over the artifacts of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from peg_core.graph.graph_store import GraphStore
from peg_core.inference.pair_scoring import PairScorer
from peg_core.models.model_file import load_model
from workers.tasks.embed import components_file
from workers.tasks.encode import load_positions


@dataclass(frozen=True)
class ScorerRequest:
    """A model and what it was applied to; a task gets the paths and opens them.

    Args:
        graph: The graph that was embedded.
    """

    graph: Path
    positions: Path
    model: Path
    embeddings: Path
    num_encodings: int

    def open(self) -> PairScorer:
        """The model's head over memory-mapped arrays."""
        graph = GraphStore.open(self.graph)
        return PairScorer(
            load_model(self.model),
            graph,
            np.load(self.embeddings, mmap_mode="r"),
            load_positions(self.positions, self.num_encodings, num_nodes=graph.num_nodes),
            np.load(components_file(self.embeddings), mmap_mode="r"),
        )
