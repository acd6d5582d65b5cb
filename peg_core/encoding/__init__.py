"""Positional encodings. Adding one: one file, one line here, one test file."""

from peg_core.encoding.encoder import Encoder, Encoding
from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps

ENCODERS: dict[str, type[Encoder]] = {
    "le": LaplacianEigenmaps,
}

__all__ = ["ENCODERS", "Encoder", "Encoding", "LaplacianEigenmaps"]
