"""What the head of a model reads of pairs, and what each column of it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peg_core.inference.pair_scoring import PairScorer
from peg_core.kernels.pair_geometry import NUM_GEOMETRIC
from peg_core.models.heads import Head, num_products
from peg_core.models.pair_geometry import pair_geometry
from peg_core.models.structural_features import structural_features

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]

PRODUCT = "embedding product"
GEOMETRY = "position geometry"
COMMON = "common neighbours"
DEGREES = "degrees"
COMPONENT = "same component"
WAYS = "ways of two steps"
REVERSE = "reverse link"
# The part of each structural number; the last nine are those of directed links.
STRUCTURAL = (*[COMMON] * 3, *[DEGREES] * 2, COMPONENT, *[DEGREES] * 4, *[WAYS] * 4, REVERSE)


def head_inputs(scorer: PairScorer, source: IntArray, target: IntArray) -> Array:
    """Products of the embeddings, geometry and structure, side by side, [num_pairs, num_inputs]."""
    head = scorer.model.head
    rows = (torch.from_numpy(scorer.embeddings[end].astype(np.float64)) for end in (source, target))
    products = head.products(*rows).numpy()
    geometry = pair_geometry(scorer.positions, source, target)
    structure = structural_features(scorer.graph, source, target, scorer.components)
    return np.concatenate([products, geometry, structure], axis=1, dtype=np.float64)


def input_parts(head: Head, encodings: Sequence[str]) -> list[str]:
    """The part that each column of the inputs belongs to.

    Args:
        encodings: What every encoding is called; of several each is a part of its own.
    """
    columns = num_products(head.hidden, directed=head.directed)
    structural = STRUCTURAL if head.directed else STRUCTURAL[:6]
    names = [GEOMETRY] if len(encodings) == 1 else [f"{GEOMETRY}, {name}" for name in encodings]
    geometry = [name for name in names for _ in range(NUM_GEOMETRIC)]
    return [PRODUCT] * columns + geometry + list(structural)


def split_inputs(
    head: Head, inputs: torch.Tensor, num_encodings: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Products, geometry and structure again, as :meth:`Head.combine` takes them."""
    products = num_products(head.hidden, directed=head.directed)
    stop = products + NUM_GEOMETRIC * num_encodings
    return inputs[:, :products], inputs[:, products:stop], inputs[:, stop:]
