"""Models. Adding one: one file, one line here, one test file."""

from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.peg import PEG

MODELS: dict[str, type[LinkPredictor]] = {
    "peg": PEG,
}

__all__ = ["MODELS", "PEG", "LinkPredictor"]
