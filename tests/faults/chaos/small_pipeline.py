"""A pipeline with every stage and several shards, small enough to be run a hundred times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import yaml

ROWS_PER_GROUP = 500
GENERATE = (
    "generate sbm --nodes 300 --edges 2400 --blocks 6 --inside-share 0.9 --features 8 "
    "--nodes-out nodes.parquet --candidates 4000 --candidates-out candidates.parquet "
    "--out edges.parquet"
)


def peg_command(*arguments: object) -> list[str]:
    """The command line of `peg`; the folders of tests must not hide the packages."""
    return [sys.executable, "-P", "-m", "pipeline", *map(str, arguments)]


def write_pipeline(folder: Path) -> Path:
    """Generate the graph and write the pipeline file, whose store is set by each run."""
    subprocess.run(peg_command(*GENERATE.split()), cwd=folder, check=True, capture_output=True)
    for name in ("edges", "candidates"):  # a shard is made of row groups
        file = folder / f"{name}.parquet"
        pl.read_parquet(file).write_parquet(file, row_group_size=ROWS_PER_GROUP)
    config = folder / "chaos.yaml"
    config.write_text(yaml.safe_dump(_settings(folder), sort_keys=False))
    return config


def _settings(folder: Path) -> dict[str, object]:
    return {
        "name": "chaos",
        "store": str(folder / "store"),
        "graph": {
            "edges": str(folder / "edges.parquet"),
            "nodes": str(folder / "nodes.parquet"),
            "features": "x",
        },
        "split": {"folds": 3, "seed": 1},
        "encodings": [{"kind": "le", "dimensions": 5}, {"kind": "deepwalk", "dimensions": 8}],
        "model": {"hidden": 8},
        "train": {"epochs": 8, "patience": 8, "seeds": 2},
        "evaluate": {
            "hits": [10],
            "protocol": ["random", "heart"],
            "negatives_per_positive": 20,
            "intervals": {"repeats": 50},
        },
        "score": {
            "candidates": str(folder / "candidates.parquet"),
            "columns": ["score", "logit"],
            "shard_rows": ROWS_PER_GROUP,
        },
        "recommend": {"top_k": 5, "nearby": 20, "nearest": 10, "shard_nodes": 60},
        "cluster": {"workers": 2},
    }
