"""What became of the rows of all edge lists."""

from __future__ import annotations

import dataclasses
from typing import Any

from peg_core.graph.edge_rows import Dirt


def row_counts(
    sorted_rows: list[dict[str, Any]], merged: list[dict[str, Any]], last: dict[str, int]
) -> dict[str, Any]:
    """Rows read = kept edges + self-loops + repeats + edges given in both directions + dirt."""
    dirt: dict[str, int] = {
        field.name: sum(done[field.name] for done in sorted_rows)
        for field in dataclasses.fields(Dirt)
    }
    left = dirt["rows"] - sum(count for name, count in dirt.items() if name != "rows")
    directed = sum(done["directed"] for done in merged) // 2
    distinct = sum(done["new"] for done in merged) // 2
    return {
        "rows": dirt.pop("rows"),
        **last,
        "duplicates": left - directed,
        "reversed_duplicates": directed - distinct,
        **dirt,
    }
