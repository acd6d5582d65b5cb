"""Models. Adding one: one file, one line here, one test file.

A model is imported when it is looked up: whoever reads a configuration does not wait for torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from peg_core.models.model_spec import MODEL_VERSION

if TYPE_CHECKING:
    from peg_core.models.link_predictor import LinkPredictor


class _Models(Mapping[str, "type[LinkPredictor]"]):
    """Classes by name, from ``module:class``."""

    def __init__(self, **entries: str) -> None:
        self._entries = entries

    def __getitem__(self, name: str) -> type[LinkPredictor]:
        module, _, attribute = self._entries[name].partition(":")
        found: type[LinkPredictor] = getattr(import_module(f"{__name__}.{module}"), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries


MODELS: Mapping[str, type[LinkPredictor]] = _Models(
    peg="peg:PEG",
    pe_sage="pe_sage:PESAGE",
    egnn="egnn:EGNN",
    light_gcn="light_gcn:LightGCN",
    linear_peg="linear_peg:LinearPEG",
    gcn="baselines.gcn:GCN",
    sage="baselines.sage:SAGE",
    gat="baselines.gat:GAT",
    gae="baselines.gae:GAE",
    vgae="baselines.vgae:VGAE",
    positions_only="baselines.positions_only:PositionsOnly",
    graph_transformer="baselines.graph_transformer:GraphTransformer",
    p_gnn="baselines.p_gnn:PGNN",
)
# Of models whose code changed on its own, so that the same data gives another one.
VERSIONS: dict[str, int] = {}


def model_version(kind: str) -> int:
    """Part of what a trained model depends on."""
    return VERSIONS.get(kind, MODEL_VERSION)


__all__ = ["MODELS", "model_version"]
