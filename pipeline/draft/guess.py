"""What was guessed, and from what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.config.field_types import shorten


@dataclass(frozen=True)
class Guess:
    """The value of one key.

    Args:
        key: As in the pipeline file.
        value: None leaves the key at its default.
        reason: What it was guessed from, or why nothing was.
    """

    key: str
    value: Any
    reason: str


def listed(names: list[str], most: int = 5) -> str:
    """Names of columns in a sentence; of many the first ones."""
    shown = ", ".join(shorten(name) for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
