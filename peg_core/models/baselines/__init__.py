"""Models of the literature to compare with, one per file; read without torch.

They train without folds where the configuration does not say otherwise, as in their papers.
"""

from __future__ import annotations

BASELINES: frozenset[str] = frozenset(
    {"gcn", "sage", "gat", "gae", "vgae", "positions_only", "graph_transformer", "p_gnn"}
)

__all__ = ["BASELINES"]
