"""Positions from skip-gram training on walks: what DeepWalk and node2vec share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np

from peg_core.encoding.encoder import Encoding
from peg_core.encoding.row_length import place_rows
from peg_core.encoding.walks.random_walks import WalkRule
from peg_core.encoding.walks.walk_training import (
    SkipGram,
    TrainingState,
    WalkTraining,
    start_tables,
    train_passes,
)
from peg_core.graph.graph_store import GraphStore

NO_EDGES = "the graph has no edges: all nodes are at the origin"


def encode_by_walks(
    graph: GraphStore,
    settings: SkipGram,
    rule: WalkRule,
    *,
    rows: str,
    seed: int,
    folder: Path | None = None,
) -> Encoding:
    """Train on walks.

    Args:
        graph: The graph.
        settings: How tables are trained.
        rule: How walks go.
        rows: "unit" or "plain".
        seed: Of the run.
        folder: Where the state after every pass is kept, and where an earlier one is looked for.
    """
    if graph.num_edges == 0:
        return encode_without_edges(graph, settings.dimensions)
    training = WalkTraining(graph, settings, rule, seed=seed)
    state = TrainingState.load(folder) if folder is not None else None
    if state is None:
        tables = start_tables(graph.num_nodes, settings.dimensions, seed=seed, one_table=False)
        state = TrainingState(tables)
    train_passes(training.run_pass, state, settings.passes, folder)
    dimensions = settings.dimensions
    positions = place_rows(state.tables.inputs, graph, dimensions=dimensions, rows=rows)
    return Encoding(positions, describe_training(settings, state, rows))


def encode_without_edges(graph: GraphStore, dimensions: int) -> Encoding:
    """All nodes at the origin, and a warning."""
    positions = np.zeros((graph.num_nodes, dimensions), dtype=np.float32)
    return Encoding(positions, {"warnings": [NO_EDGES]})


def describe_training(settings: SkipGram, state: TrainingState, rows: str) -> dict[str, Any]:
    """JSON-ready facts about a training."""
    return {
        "solver": "sgns",
        "rows": rows,
        "negatives": "shared" if settings.shared else "standard",
        "loss": [float(loss) for loss in state.losses],
        "threads": numba.get_num_threads(),
        "warnings": [],
    }
