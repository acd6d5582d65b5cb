"""What a trained model needs of any graph: written beside its weights, so that it can travel."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from peg_core.atomic_file import write_json
from peg_core.errors import InputError

RECIPE_NAME = "recipe.json"


@dataclass(frozen=True)
class Recipe:
    """How the graph of the training was read, encoded and described.

    Args:
        graph: The `graph` section; another graph is read with the same column names.
        features: The `features` section, its kind decided.
        encodings: The `encodings` section.
        dimensions: Columns of every encoding.
        feature_width: Columns of the node features before they were transformed; None where
            the model reads none.
    """

    graph: dict[str, Any]
    features: dict[str, Any]
    encodings: list[dict[str, Any]]
    dimensions: list[int]
    feature_width: int | None

    def write(self, folder: Path) -> None:
        write_json(folder / RECIPE_NAME, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Self:
        file = folder / RECIPE_NAME
        if not file.exists():
            raise InputError(
                f"{folder} has no {RECIPE_NAME}, which says how a graph is made ready for the "
                "model; name the folder of a trained model (STORE/current/train), or, if it was "
                "trained by an earlier version, train it again"
            )
        return cls(**json.loads(file.read_text()))
