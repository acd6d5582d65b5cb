"""What every encoder offers."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import numpy as np
import numpy.typing as npt

from peg_core.errors import nearest_hint
from peg_core.graph.graph_store import GraphStore

KIND_NAMES: dict[type, str] = {int: "whole number", float: "number", str: "text", bool: "yes or no"}


@dataclass(frozen=True)
class Encoding:
    """Positions and what is worth knowing about them.

    Args:
        positions: [num_nodes, dimensions], float32.
        report: JSON-ready facts: eigenvalues, residuals, warnings.
    """

    positions: npt.NDArray[np.float32]
    report: dict[str, Any] = field(default_factory=dict)


class Encoder(ABC):
    """Base of the encoders: frozen dataclasses of parameters, checked by name, type and rule.

    ``version`` goes up whenever the positions of an unchanged graph change.
    """

    version: ClassVar[int]

    def encode(self, graph: GraphStore, *, seed: int) -> npt.NDArray[np.float32]:
        """Positions, [num_nodes, dimensions]."""
        return self.solve(graph, seed=seed).positions

    @abstractmethod
    def solve(self, graph: GraphStore, *, seed: int) -> Encoding:
        """Positions with a report on their quality."""

    @classmethod
    def check_parameters(cls, parameters: dict[str, Any]) -> None:
        """Raise ValueError when ``cls(**parameters)`` would not be valid."""
        hints = get_type_hints(cls)
        known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(
                    f"unknown key {name!r}; known: {', '.join(known)}{nearest_hint(name, known)}"
                )
            wanted = hints[name]
            if wanted is float and isinstance(value, int) and not isinstance(value, bool):
                continue
            if wanted in KIND_NAMES and type(value) is not wanted:
                raise ValueError(f"{name} is {value!r}, needed is a {KIND_NAMES[wanted]}")
        cls(**parameters)


class ResumableEncoder(Encoder):
    """An encoder that can go on where an earlier run was killed."""

    @abstractmethod
    def solve(self, graph: GraphStore, *, seed: int, checkpoint: Path | None = None) -> Encoding:
        """Positions with a report; the state on the way is kept in the folder ``checkpoint``."""
