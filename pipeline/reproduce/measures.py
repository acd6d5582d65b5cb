"""What an experiment looks at beside the metrics: points of a curve, from what a run left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from peg_core.artifacts.positions import Positions
from peg_core.layers.gate import Gate
from peg_core.random_streams import random_stream
from pipeline.reproduce.experiment import Measure
from pipeline.run.stage_inputs import StageInputs

OBSERVED_EDGES = 500
Points = Iterator[tuple[float, float]]


def edge_weights(inputs: StageInputs) -> Points:
    """What the first layer's gate makes of the distances of some training edges, in order.

    Of several encodings the first is looked at, while the others stand at their mean.
    Models without a gate have no points.
    """
    network = inputs.best_model.open().network
    gate = next((module for module in network.modules() if isinstance(module, Gate)), None)
    if gate is None:
        return
    graph = inputs.train_graph.open()
    entries = random_stream(seed=0, purpose="observed edges").choice(
        len(graph.indices), size=min(OBSERVED_EDGES, len(graph.indices)), replace=False
    )
    target = np.searchsorted(graph.indptr, entries, side="right") - 1
    source = np.asarray(graph.indices[entries])
    measures = np.stack(
        [
            network.rule.edge_measures(np.asarray(positions), source, target)
            for positions in inputs.positions.open().arrays(num_nodes=graph.num_nodes)
        ],
        axis=1,
    )  # [num_edges, num_encodings]
    first_layer: int = gate[0].in_features  # type: ignore[assignment]
    read = np.zeros((len(entries), first_layer), dtype=np.float32)
    read[:, : measures.shape[1]] = measures.mean(axis=0)
    read[:, 0] = np.sort(measures[:, 0])
    with torch.no_grad():
        weights = gate(torch.from_numpy(read)).numpy()
    yield from zip(read[:, 0].tolist(), weights.tolist(), strict=True)


def eigenvalues(inputs: StageInputs) -> Points:
    """Those of the first encoding of the training graph, numbered from 1, where it has any."""
    report = inputs.manifest("encode").details[Positions.name(0)]["report"]
    for number, value in enumerate(report.get("eigenvalues") or [], start=1):
        yield float(number), float(value)


MEASURES: Mapping[Measure, Callable[[StageInputs], Points]] = {
    "edge_weights": edge_weights,
    "eigenvalues": eigenvalues,
}
