"""How far a change of the graph can move a trained model's output."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peg_core.encoding.spectral.eigengap import stability_constant
from peg_core.layers.peg_conv import PEGConv

# The logistic function is nowhere steeper.
SIGMOID_LIPSCHITZ = 0.25


def layer_stability(
    layer: PEGConv, *, gap: float, features: npt.NDArray[Any], largest_degree: float
) -> float:
    """The constant C of the stability theorem for a trained PEG layer.

    Where the gate reads relations, a changed edge moves it by what the theorem allows for an
    edge that comes or goes; an edge that stays and changes its relation is not covered.

    Args:
        gap: ``lambda_{p+1} - lambda_p`` of the encoding.
        features: [num_nodes, in_channels], what the layer reads.
        largest_degree: Of the graph.
    """
    return stability_constant(
        gap=gap,
        feature_norm=largest_singular_value(features),
        largest_degree=largest_degree,
        weight_norm=float(torch.linalg.matrix_norm(layer.linear.weight.detach(), 2)),
        gate_lipschitz=gate_lipschitz(layer),
    )


def gate_lipschitz(layer: PEGConv) -> float:
    """An upper bound on the slope of phi: the product of its layers' norms.

    Distances alone move when positions do: what the first layer makes of relations is a
    constant of the edge.
    """
    bound = SIGMOID_LIPSCHITZ
    first, second = (module for module in layer.gate if isinstance(module, torch.nn.Linear))
    for weight in (first.weight[:, : layer.num_measures], second.weight):
        bound *= float(torch.linalg.matrix_norm(weight.detach(), 2))
    return bound


def largest_singular_value(matrix: npt.NDArray[Any], *, chunk: int = 65_536) -> float:
    """Of a tall matrix, through its small Gram matrix, a chunk of rows at a time."""
    gram = np.zeros((matrix.shape[1], matrix.shape[1]))
    for start in range(0, len(matrix), chunk):
        rows = np.asarray(matrix[start : start + chunk], dtype=np.float64)
        gram += rows.T @ rows
    return float(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)))
