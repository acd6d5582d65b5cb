"""What stages leave behind, opened as what it is; each file knows the names inside of one.

Names are imported when they are first used: what reads manifests alone does not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peg_core.artifacts.embedded_graph import EmbeddedGraph, Embeddings
    from peg_core.artifacts.evaluation import Evaluation, MethodScores
    from peg_core.artifacts.manifest import Identity, Manifest
    from peg_core.artifacts.positions import Positions
    from peg_core.artifacts.ranking_negatives import RankingNegatives
    from peg_core.artifacts.recipe import Recipe
    from peg_core.artifacts.run import Run
    from peg_core.artifacts.trained_model import TrainedModel, Training
    from peg_core.artifacts.vector_indexes import VectorIndexes
    from peg_core.graph.graph_store import GraphStore
    from peg_core.graph.node_features import NodeFeatures
    from peg_core.splits.held_out_pairs import HeldOutPairs
    from peg_core.splits.split_store import SplitStore

__all__ = [
    "EmbeddedGraph",
    "Embeddings",
    "Evaluation",
    "GraphStore",
    "HeldOutPairs",
    "Identity",
    "Manifest",
    "MethodScores",
    "NodeFeatures",
    "Positions",
    "RankingNegatives",
    "Recipe",
    "Run",
    "SplitStore",
    "TrainedModel",
    "Training",
    "VectorIndexes",
]

_MODULES = {
    "EmbeddedGraph": "peg_core.artifacts.embedded_graph",
    "Embeddings": "peg_core.artifacts.embedded_graph",
    "Evaluation": "peg_core.artifacts.evaluation",
    "GraphStore": "peg_core.graph.graph_store",
    "HeldOutPairs": "peg_core.splits.held_out_pairs",
    "Identity": "peg_core.artifacts.manifest",
    "Manifest": "peg_core.artifacts.manifest",
    "MethodScores": "peg_core.artifacts.evaluation",
    "NodeFeatures": "peg_core.graph.node_features",
    "Positions": "peg_core.artifacts.positions",
    "RankingNegatives": "peg_core.artifacts.ranking_negatives",
    "Recipe": "peg_core.artifacts.recipe",
    "Run": "peg_core.artifacts.run",
    "SplitStore": "peg_core.splits.split_store",
    "TrainedModel": "peg_core.artifacts.trained_model",
    "Training": "peg_core.artifacts.trained_model",
    "VectorIndexes": "peg_core.artifacts.vector_indexes",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
