"""What stages leave behind, opened as what it is; each file knows the names inside of one."""

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
