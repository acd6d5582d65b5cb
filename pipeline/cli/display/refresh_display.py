"""What a refresh found, as a small table."""

from __future__ import annotations

from typing import Any

from rich.table import Column, Table

from peg_core.artifacts.positions import Positions
from pipeline.config.result_sections import RefreshConfig
from pipeline.run.progress import show


def drift_table(drift: dict[str, Any], limits: RefreshConfig) -> Table:
    """A row for every measure, with its limit."""
    table = Table(Column("drift", no_wrap=True), "value", "limit", "", box=None)
    moved, newest = drift["movement"], drift["newest_edges"]
    nodes = f"{moved['nodes']:,} nodes, {moved['new_nodes']:,} new"
    for number, item in enumerate(moved["encodings"]):
        facts = drift["encodings"][Positions.name(number)]
        eta = f"eta {item['eta']:.4g}, {nodes}"
        limit = _value(limits.max_movement)
        table.add_row(f"movement of encoding {number}", _value(item["relative_eta"]), limit, eta)
        if facts["gap"] is not None:
            before = f"{_value(facts['gap_before'])} at the training"
            table.add_row(f"eigengap of encoding {number}", _value(facts["gap"]), "", before)
        if facts["operator_applications"] is not None:
            applied = _value(facts["operator_applications"])
            start = f"warm start {facts['start']}"
            table.add_row(f"products of encoding {number}", applied, "", start)
    shift = _value(drift["score_shift"])
    table.add_row("score shift", shift, _value(limits.max_score_shift), "stability index")
    scored = f"{newest['scored']:,} of {_value(newest['edges'])} new edges"
    auc = _value(newest["auc"])
    table.add_row("AUC of the newest edges", auc, _value(limits.min_new_edge_auc), scored)
    return table


def _value(value: float | None) -> str:
    return "-" if value is None else show(value)
