"""What checksums cost: the time spent on them, and that of the runs around them.

    python benchmarks/verification.py

A generated graph runs from edges to scores with everything to be made, again with everything to
be reused, and again with another learning rate; contents are verified in full each time. Seconds;
the last line is the time of the runs over what they would take without checksums.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from rich.console import Console

from peg_core.artifacts import manifest
from peg_core.generators.random_graphs import StochasticBlockModel
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline


class Stopwatch:
    """The time within some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def write_inputs(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Edges and candidates; returns the settings of the pipeline."""
    model = StochasticBlockModel(options.nodes, options.edges, blocks=100)
    pieces = list(model.chunks(seed=0))
    ends = [np.concatenate([getattr(p, side) for p in pieces]) for side in ("source", "target")]
    pl.DataFrame({"src": ends[0], "dst": ends[1]}).write_parquet(folder / "edges.parquet")
    pairs = np.random.default_rng(0).integers(0, options.nodes, (2, options.candidates))
    pl.DataFrame({"src": pairs[0], "dst": pairs[1]}).write_parquet(folder / "candidates.parquet")
    return {
        "name": "verification",
        "store": str(folder / "store"),
        "graph": {"edges": str(folder / "edges.parquet")},
        "encodings": [{"kind": "deepwalk", "dimensions": 64}],
        "train": {"epochs": options.epochs},
        "score": {"candidates": str(folder / "candidates.parquet")},
    }


def run(settings: dict[str, Any], **training: Any) -> tuple[float, float, float]:
    """Seconds of a run, of those for writing records, and for comparing with them."""
    recorded, compared = Stopwatch(), Stopwatch()
    config = PipelineConfig(**{**settings, "train": {**settings["train"], **training}})
    start = time.perf_counter()
    with (
        patch.object(manifest, "record_files", recorded.around(manifest.record_files)),
        patch.object(manifest, "folder_damage", compared.around(manifest.folder_damage)),
    ):
        run_pipeline(config, RunDisplay(Console(quiet=True)))
    return time.perf_counter() - start, recorded.seconds, compared.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=5_000_000)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = write_inputs(Path(folder), options)
        runs = {
            "everything made": run(settings),
            "everything reused": run(settings),
            "trained again": run(settings, lr=0.005),
        }
        size = sum(path.stat().st_size for path in Path(folder, "store").rglob("*"))
    print(f"store: {size / 1e6:,.0f} MB")
    print(f"{'run':<20} {'seconds':>10} {'recording':>10} {'comparing':>10} {'share':>8}")
    for name, (total, recording, comparing) in runs.items():
        share = (recording + comparing) / total
        print(f"{name:<20} {total:>10.2f} {recording:>10.3f} {comparing:>10.3f} {share:>8.2%}")
    total, recording, comparing = (sum(column) for column in zip(*runs.values(), strict=True))
    print(f"ratio: {total / (total - recording - comparing):.4f}")


if __name__ == "__main__":
    main()
