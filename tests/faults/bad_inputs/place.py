"""A folder with a tiny graph and its pipeline file, to be damaged."""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import yaml

NUM_NODES = 60


@dataclass
class Place:
    """Where a command meets the damage.

    Args:
        folder: All of it lies here.
        settings: Of the pipeline file, which is written when the damage is done.
        config: The pipeline file; damage may name another one.
        config_bytes: Its content instead of ``settings``.
        finished: The store of a run that nobody disturbed.
        damaged: Files of the store that were damaged and must come back.
    """

    folder: Path
    settings: dict[str, Any]
    config: Path
    finished: Path | None = None
    config_bytes: bytes | None = None
    damaged: list[Path] = field(default_factory=list)

    @property
    def edges(self) -> Path:
        return Path(self.settings["graph"]["edges"])

    @property
    def nodes(self) -> Path:
        return Path(self.settings["graph"]["nodes"])

    @property
    def candidates(self) -> Path:
        return Path(self.settings["score"]["candidates"])

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def artifact(self, stage: str) -> Path:
        """The folder of a finished stage."""
        return (self.store / "current" / stage).resolve()

    def copy_finished_store(self) -> None:
        """State is damaged in a copy."""
        assert self.finished is not None
        shutil.copytree(self.finished, self.store, symlinks=True)

    def use_own_inputs(self) -> None:
        """Inputs are damaged in copies."""
        for section, key in (("graph", "edges"), ("graph", "nodes"), ("score", "candidates")):
            original = Path(self.settings[section][key])
            copied = self.folder / original.name
            shutil.copyfile(original, copied)
            self.settings[section][key] = str(copied)

    def write_config(self) -> None:
        """The pipeline file as the damage left it."""
        if self.config_bytes is not None:
            self.config.write_bytes(self.config_bytes)
        elif not self.config.exists() and self.config.parent.exists():
            self.config.write_text(yaml.safe_dump(self.settings, sort_keys=False))


def write_inputs(folder: Path) -> dict[str, Any]:
    """A tiny graph in two blocks, features and candidates; returns the settings."""
    rng = np.random.default_rng(5)
    blocks = nx.stochastic_block_model([30, 30], [[0.3, 0.03], [0.03, 0.3]], seed=3)
    ends = np.array(blocks.edges())  # [num_edges, 2]
    weights = rng.uniform(1, 2, len(ends))
    columns = {"src": ends[:, 0], "dst": ends[:, 1], "weight": weights, "time": range(len(ends))}
    pl.DataFrame(columns).write_parquet(folder / "edges.parquet")
    features = rng.normal(size=(NUM_NODES, 4)).astype(np.float32).tolist()
    pl.DataFrame({"id": range(NUM_NODES), "x": features}).write_parquet(folder / "nodes.parquet")
    pairs = rng.integers(0, NUM_NODES, size=(40, 2))
    pl.DataFrame(pairs, schema=["src", "dst"]).write_parquet(folder / "candidates.parquet")
    return {
        "name": "tiny",
        "store": str(folder / "store"),
        "graph": {
            "edges": str(folder / "edges.parquet"),
            "nodes": str(folder / "nodes.parquet"),
            "features": "x",
        },
        "split": {"folds": 1, "valid": 0.1, "test": 0.1},
        "encodings": [{"kind": "le", "dimensions": 4}],
        "model": {"hidden": 8},
        "train": {"epochs": 1},
        "evaluate": {
            "hits": [5],
            "heuristics": ["common_neighbours"],
            "intervals": {"repeats": 0},
        },
        "score": {"candidates": str(folder / "candidates.parquet")},
    }


def make_place(folder: Path, settings: dict[str, Any]) -> Place:
    """A place whose store is its own; its inputs are those of ``settings``."""
    folder.mkdir(parents=True)
    own = {**copy.deepcopy(settings), "store": str(folder / "store")}
    return Place(folder, own, folder / "tiny.yaml", Path(settings["store"]))
