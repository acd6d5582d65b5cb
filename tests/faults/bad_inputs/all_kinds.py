"""All kinds, in the order of the table."""

from __future__ import annotations

# Each file adds its kinds when it is imported.
from tests.faults.bad_inputs import (  # noqa: F401
    configurations,
    graphs,
    parquet_files,
    state,
    state_files,
    tables,
)
from tests.faults.bad_inputs.kind import KINDS, Kind

GROUPS = ("Parquet files", "tables", "graphs", "configurations", "state")


def all_kinds() -> list[Kind]:
    """Every kind, group by group."""
    return sorted(KINDS, key=lambda kind: GROUPS.index(kind.group))
