"""Message passing layers, one per file."""

from peg_core.layers.peg_conv import PEGConv

__all__ = ["PEGConv"]
