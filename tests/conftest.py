"""Fixtures that every room of tests uses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
import ray
import torch
import yaml
from hypothesis import settings
from rich.console import Console

from peg_core.graph.graph_store import GraphStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Before Ray starts, so that its workers inherit them: keys for the S3 server on loopback.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")
os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
# Compiling kernels and noisy machines make deadlines meaningless.
settings.register_profile("peg", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("peg")
# Small matrices: threads that wait for each other cost more than they bring.
torch.set_num_threads(1)

pytest_plugins = [
    "tests.fixtures.browser",
    "tests.fixtures.object_store",
    "tests.fixtures.peg_process",
    "tests.fixtures.ray_node",
]


def from_networkx(graph: nx.Graph) -> GraphStore:
    ends = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    return GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=graph.number_of_nodes())


@pytest.fixture(scope="session")
def to_store() -> Callable[[nx.Graph], GraphStore]:
    """Turns a networkx graph with nodes 0 .. N-1 into a store."""
    return from_networkx


@pytest.fixture(scope="session")
def two_communities() -> GraphStore:
    """Sixty nodes, two blocks."""
    return from_networkx(nx.stochastic_block_model([30, 30], [[0.4, 0.05], [0.05, 0.4]], seed=3))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One local Ray for the whole test session: starting it takes seconds."""
    shared = Cluster(ClusterSettings(workers=2))
    shared.connect()
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def ray_address(cluster: Cluster) -> str:
    """Where other processes join the session's Ray."""
    return str(ray.get_runtime_context().gcs_address)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real graphs, or a skip that says how to get them."""
    folder = Path(os.environ.get("PEG_DATA_DIR", "../shared/data"))
    if not folder.exists():
        pytest.skip(f"no real graphs at {folder}: set PEG_DATA_DIR to a folder that has them")
    return folder


def write_small_inputs(folder: Path) -> None:
    """120 nodes in four communities with features; 600 candidates, one with an unknown node."""
    rng = np.random.default_rng(5)
    sizes = [30] * 4
    inside, outside = 0.35, 0.01
    chances = np.full((4, 4), outside) + np.eye(4) * (inside - outside)
    edges = np.array(nx.stochastic_block_model(sizes, chances, seed=5).edges())
    pl.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]}).write_parquet(folder / "edges.parquet")
    block = np.repeat(np.arange(4), 30)
    x = (np.eye(4)[block] + rng.normal(size=(120, 4))).astype(np.float32)
    pl.DataFrame({"id": np.arange(120), "x": x.tolist()}).write_parquet(folder / "nodes.parquet")
    pairs = rng.integers(0, 120, size=(600, 2))
    pairs[17, 0] = 9_999
    pl.DataFrame(
        {"note": [f"row {i}" for i in range(600)], "src": pairs[:, 0], "dst": pairs[:, 1]}
    ).write_parquet(folder / "candidates.parquet", row_group_size=100)


def small_settings(folder: Path) -> dict[str, object]:
    return {
        "name": "small",
        "store": str(folder / "store"),
        "graph": {
            "edges": str(folder / "edges.parquet"),
            "nodes": str(folder / "nodes.parquet"),
            "features": "x",
        },
        "split": {"folds": 2, "seed": 1},
        "encodings": [{"kind": "le", "dimensions": 4}],
        "model": {"hidden": 8},
        "train": {"epochs": 6, "patience": 6},
        "evaluate": {"hits": [5]},
        "score": {"candidates": str(folder / "candidates.parquet"), "shard_rows": 200},
    }


@pytest.fixture
def small_config(tmp_path: Path) -> Path:
    """A configuration file with its data, small enough to run in a test."""
    write_small_inputs(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(small_settings(tmp_path), sort_keys=False))
    return path


@pytest.fixture
def small_pipeline(small_config: Path) -> PipelineConfig:
    return PipelineConfig(**yaml.safe_load(small_config.read_text()))


@pytest.fixture(scope="module")
def shared_pipeline(tmp_path_factory: pytest.TempPathFactory) -> PipelineConfig:
    """As ``small_pipeline``, with one store for all tests of a file: later runs reuse stages."""
    folder = tmp_path_factory.mktemp("shared")
    write_small_inputs(folder)
    return PipelineConfig(**small_settings(folder))


@pytest.fixture(scope="session")
def trained_run(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration file of a run that is trained and evaluated, to be read only."""
    folder = tmp_path_factory.mktemp("trained")
    write_small_inputs(folder)
    values = {key: value for key, value in small_settings(folder).items() if key != "score"}
    path = folder / "trained.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    run_pipeline(PipelineConfig(**values), RunDisplay(Console(quiet=True)))
    return path


@pytest.fixture
def display() -> RunDisplay:
    return RunDisplay(Console(quiet=True))


@pytest.fixture(scope="session")
def small_inputs() -> Callable[[Path], dict[str, object]]:
    """Writes the inputs of the small pipeline to a folder and gives its settings."""

    def write(folder: Path) -> dict[str, object]:
        write_small_inputs(folder)
        return small_settings(folder)

    return write
