"""A message passing layer as plain arrays, for the kernel that embeds ranges of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.layers.peg_conv import PEGConv
from peg_core.models.heads import CosineHead
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.peg import PEG

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FoldedLayer:
    """``out = act((A_hat * gate) x W + x R + b)``.

    Args:
        linear: W, [in_channels, out_channels].
        residual: R, [in_channels, out_channels], or None.
        bias: [out_channels].
        gate: First weights [gate_hidden, num_distances], their bias [num_codes, gate_hidden],
            second weights [gate_hidden] and their bias [1].
        relu: Whether act is the rectifier, else it is nothing.
        squared: Whether the gate reads squared distances.
    """

    linear: FloatArray
    residual: FloatArray | None
    bias: FloatArray
    gate: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    relu: bool
    squared: bool


def fold_layer(
    model: LinkPredictor, layer: int, columns: FloatArray | None = None
) -> FoldedLayer | None:
    """The arrays of a layer in evaluation mode, or None where it is of another kind.

    Args:
        columns: What the gate reads of every code beside distances, [num_codes, num_columns],
            the first row being zeros; None where edges have no codes.
    """
    convolution: Any = model.layers[layer]
    if type(model) is not PEG or type(convolution) is not PEGConv or model.training:
        return None
    last = layer == len(model.layers) - 1
    if model.rule.measure == "inner" or (last and isinstance(model.head, CosineHead)):
        return None
    gate: Any = convolution.gate
    first, second = gate[0], gate[2]
    distances = convolution.num_measures
    biases = _array(first.bias)[None]
    if columns is not None:
        biases = biases + columns @ _array(first.weight)[:, distances:].T
    residual = convolution.residual
    return FoldedLayer(
        linear=_array(convolution.linear.weight.T),
        residual=None if residual is None else _array(residual.weight.T),
        bias=_array(convolution.bias),
        gate=(
            _array(first.weight[:, :distances]),
            biases,
            _array(second.weight[0]),
            _array(second.bias),
        ),
        relu=not last and model.spec.preset == "best",
        squared=model.rule.measure == "squared",
    )


def _array(values: Any) -> FloatArray:
    return np.ascontiguousarray(values.detach().cpu().numpy(), dtype=np.float32)
