"""Models. Adding one: one file, one line here, one test file."""

from peg_core.models.egnn import EGNN
from peg_core.models.light_gcn import LightGCN
from peg_core.models.linear_peg import LinearPEG
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.pe_sage import PESAGE
from peg_core.models.peg import PEG

MODELS: dict[str, type[LinkPredictor]] = {
    "peg": PEG,
    "pe_sage": PESAGE,
    "egnn": EGNN,
    "light_gcn": LightGCN,
    "linear_peg": LinearPEG,
}

__all__ = ["EGNN", "MODELS", "PEG", "PESAGE", "LightGCN", "LinearPEG", "LinkPredictor"]
