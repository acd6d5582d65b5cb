"""What is needed to build a model; read without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Goes up whenever the same data gives another model, of every kind.
MODEL_VERSION = 6


@dataclass(frozen=True)
class ModelSpec:
    """All that is needed to build a model before its weights are loaded.

    Args:
        kind: A name of ``MODELS``.
        preset: "best", "faithful" or "ranking".
        in_channels: Columns of the features.
        num_encodings: Positions per node, each measured on its own.
        hidden: Width of a layer.
        layers: Message passing layers.
        head: A name of ``HEADS``, or "preset".
        gate: What the gate measures, a name of ``MEASURES``, or "preset".
        dropout: Share of the values dropped between layers and in the head while training;
            None: the preset's shares, which also drop some of the input.
        head_width: Width of the hidden layer of the heads that have one.
        encoding_widths: Dimensions of each encoding.
        learned_nodes: Nodes with free parameters as features; 0: features are given.
        relation_columns: What the gate reads of an edge beside distances: which relations it
            belongs to and which way the message goes; 0 where all edges are alike.
        gated: Whether a model that can do without a gate has one.
        initial_deviation: Of the free parameters before training; None: as the model does.
        directed: Whether (u, v) and (v, u) are different links.
    """

    kind: str
    preset: str
    in_channels: int
    num_encodings: int
    hidden: int = 128
    layers: int = 2
    head: str = "preset"
    gate: str = "preset"
    dropout: float | None = None
    head_width: int = 64
    encoding_widths: Sequence[int] = ()
    learned_nodes: int = 0
    relation_columns: int = 0
    gated: bool = False
    initial_deviation: float | None = None
    directed: bool = False
