"""Positional encodings. Adding one: one file, one line here, one test file."""

from peg_core.encoding.deepwalk import DeepWalk
from peg_core.encoding.encoder import Encoder, Encoding, ResumableEncoder
from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.encoding.line import Line
from peg_core.encoding.node2vec import Node2Vec

ENCODERS: dict[str, type[Encoder]] = {
    "le": LaplacianEigenmaps,
    "deepwalk": DeepWalk,
    "node2vec": Node2Vec,
    "line": Line,
}

__all__ = [
    "ENCODERS",
    "DeepWalk",
    "Encoder",
    "Encoding",
    "LaplacianEigenmaps",
    "Line",
    "Node2Vec",
    "ResumableEncoder",
]
