"""Stages whose memory must not grow with the edges: the same nodes with few and with many edges.

Tasks run one after the other in a process of the run's own. A marker has the private memory of
its task, the peak while it ran; what the process held before is in it, so that only the
difference between two runs says something.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from peg_core.splits.entry_chunk import CHUNK
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NUM_NODES = 20_000
FEW, MANY = 300_000, 1_500_000
# Three numbers of 8 bytes for every edge more: whoever holds a copy of the edges needs them.
SLACK = 24 * (MANY - FEW)
# Training copies graphs in chunks of so many entries; those with few edges do not fill one.
CHUNK_BYTES = {"train": 16 * CHUNK}
FLAT = ("train", "embed", "calibrate", "negatives", "evaluate", "score", "index", "recommend")
SETTINGS = {
    "name": "memory",
    "split": {"folds": 2, "valid": 0.01, "test": 0.0005},
    "encodings": [{"kind": "le", "dimensions": 2}],
    "model": {"hidden": 8},
    "train": {"epochs": 1, "batching": "sampled", "fan_outs": [1, 1]},
    "evaluate": {
        "hits": [5],
        "heuristics": ["common_neighbours"],
        "intervals": {"repeats": 0},
        "protocol": ["random", "heart"],
        "negatives_per_positive": 4,
    },
    "cluster": {"workers": 1, "task_memory": "20MB"},
}


def write_pipeline(folder, num_edges):
    """A configuration file with its tables; all but the edges is of the same size."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, rows in (("edges", num_edges), ("candidates", 20_000)):
        ends = rng.integers(0, NUM_NODES, size=(2, rows))
        table = pl.DataFrame({"src": ends[0], "dst": ends[1]})
        table.write_parquet(folder / f"{name}.parquet", row_group_size=50_000)
    pl.DataFrame({"id": np.arange(50)}).write_parquet(folder / "asked.parquet")
    inputs = {
        "store": str(folder / "store"),
        "graph": {"edges": str(folder / "edges.parquet")},
        "score": {"candidates": str(folder / "candidates.parquet"), "graph": "train"},
        "recommend": {"nodes": str(folder / "asked.parquet"), "graph": "train", "top_k": 5},
    }
    path = folder / "memory.yaml"
    path.write_text(yaml.safe_dump(SETTINGS | inputs))
    return path


def task_peak(config, stage):
    """Of the largest task of a stage, in bytes."""
    folder = Path(config).parent / "store" / "current" / stage
    markers = [json.loads(marker.read_text()) for marker in folder.rglob("done/*.json")]
    return max(marker["peak_memory_bytes"] for marker in markers)


def test_memory_of_a_task_does_not_grow_with_the_edges(ray_address, start_peg, display, tmp_path):
    files = [write_pipeline(tmp_path / str(count), count) for count in (FEW, MANY)]
    configs = [PipelineConfig(**yaml.safe_load(file.read_text())) for file in files]
    # one after the other, before anything larger has run in these processes
    few, many = (run_pipeline(config, display, target="ingest")["ingest"] for config in configs)
    grown = {"ingest": many.peak_memory_bytes - few.peak_memory_bytes}
    for config, file in zip(configs, files, strict=True):
        run_pipeline(config, display, target="encode")  # takes memory by the edge
        # another run has processes of its own, which start small
        rest = start_peg("run", file, "--set", f"cluster.address={ray_address}")
        assert rest.wait() == 0, rest.output
    for stage in FLAT:
        few, many = (task_peak(file, stage) for file in files)
        grown[stage] = many - few
    too_much = {
        stage: f"{grew:,} bytes"
        for stage, grew in grown.items()
        if grew > SLACK + CHUNK_BYTES.get(stage, 0)
    }
    assert not too_much
