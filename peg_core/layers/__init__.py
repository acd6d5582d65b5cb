"""Message passing layers, one per file."""

from peg_core.layers.egnn_conv import EGNNConv
from peg_core.layers.pe_sage_conv import PESAGEConv
from peg_core.layers.peg_conv import PEGConv

__all__ = ["EGNNConv", "PEGConv", "PESAGEConv"]
