"""What a trained model needs of any graph: written beside its weights, so that it can travel."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peg_core.atomic_file import write_json
from peg_core.errors import InputError
from pipeline.config.data_sections import EncodingConfig, FeaturesConfig, GraphConfig
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.store.manifest import Manifest
from workers.tasks.encode import positions_file

RECIPE_NAME = "recipe.json"
TRANSFORM_NAME = "transform.safetensors"


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

    @classmethod
    def of(cls, config: PipelineConfig, inputs: dict[str, Path], *, kind: str) -> Recipe:
        """The recipe of a training, from its configuration, its inputs and the features' kind."""
        features = Manifest.read(inputs["features"])
        assert features is not None  # an input of a stage is always whole
        return cls(
            graph=config.graph.model_dump(),
            features={**config.features.model_dump(), "kind": kind},
            encodings=[item.model_dump() for item in config.encodings],
            dimensions=[
                int(np.load(positions_file(inputs["encode"], number), mmap_mode="r").shape[1])
                for number in range(len(config.encodings))
            ],
            feature_width=features.counts.get("input_width"),
        )

    def write(self, model: Path, features: Path) -> None:
        """Into the folder of a model, with the fitted transform of ``features`` if it has one."""
        if (features / TRANSFORM_NAME).exists():
            shutil.copyfile(features / TRANSFORM_NAME, model / TRANSFORM_NAME)
        write_json(model / RECIPE_NAME, asdict(self))

    @classmethod
    def read(cls, model: Path) -> Recipe:
        file = model / RECIPE_NAME
        if not file.exists():
            raise InputError(
                f"{model} has no {RECIPE_NAME}, which says how a graph is made ready for the "
                "model; name the folder of a trained model (STORE/current/train), or, if it was "
                "trained by an earlier version, train it again"
            )
        return cls(**json.loads(file.read_text()))

    def graph_config(self, edges: str, nodes: str | None) -> GraphConfig:
        """The section for another graph."""
        known = GraphConfig(**self.graph)
        without = {} if nodes else {"features": None, "feature_width": None}
        rest = {"time": None, "label": None, "node_split": None, **without}
        return known.model_copy(update={"edges": edges, "nodes": nodes, **rest})

    def features_config(self) -> FeaturesConfig:
        return FeaturesConfig(**self.features)

    def encoding_configs(self) -> list[EncodingConfig]:
        """As trained; a number of dimensions that was found automatically is kept."""
        return [
            EncodingConfig(**{**item, "dimensions": width})
            for item, width in zip(self.encodings, self.dimensions, strict=True)
        ]
