"""What positions add to a model, with node features and without: AUC on splits of a real graph.

    python benchmarks/encoding_gain.py
    python benchmarks/encoding_gain.py --graph citeseer --splits 3

Runs the cell GRAPH/best-le+/N of configs/reproduce/task1.yaml as it is and, as the peer, with every
node moved to one and the same position after `encode`, so that neither gate nor head can tell nodes
apart by it. Without features nodes have their degrees. The data are those in PEG_DATA_DIR. The
last line is the mean AUC with positions over that without, both without features.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.reproduce.experiment_file import find_experiment, load_experiment
from pipeline.reproduce.graph_data import GraphData
from pipeline.reproduce.grid import Choice, build_cells
from pipeline.run.progress import RunDisplay
from pipeline.run.repeats import repeated
from pipeline.run.runner import open_cluster, run_pipeline
from workers.cluster import Cluster

COLUMNS = {"node": "with node features", "degree": "without"}


def move_to_one_place(encode: Path) -> None:
    """Overwrite every position of an artifact with zeros."""
    for file in encode.rglob("*.npy"):
        np.load(file, mmap_mode="r+")[:] = 0


def test_auc(config: PipelineConfig, cluster: Cluster, *, positions: bool) -> float:
    display = RunDisplay(Console(quiet=True))
    run_pipeline(config, display, cluster=cluster, target="encode")
    if not positions:
        move_to_one_place((Path(config.store) / "current" / "encode").resolve())
    manifests = run_pipeline(config, display, cluster=cluster)
    return float(manifests["evaluate"].counts["test_auc"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    choice = Choice(
        Path("runs/reproduce"),  # every run has a store of its own
        splits=1,
        only=(f"{options.graph}/best-le+/N",),
        overrides=("evaluate.heuristics=[]", "evaluate.intervals.repeats=0"),
    )
    graphs = GraphData.choose(None, out=choice.out, quick=False)
    task1 = load_experiment(find_experiment("task1"), graphs.variables)
    base = build_cells(task1, choice)[0].config
    cluster = open_cluster(base)
    found: dict[tuple[str, bool], list[float]] = {}
    try:
        for kind in COLUMNS:
            features = base.features.model_copy(update={"kind": kind})
            for split in range(options.splits):
                for positions in (True, False):
                    with tempfile.TemporaryDirectory() as store:
                        config = base.model_copy(update={"features": features, "store": store})
                        auc = test_auc(repeated(config, split), cluster, positions=positions)
                    found.setdefault((kind, positions), []).append(100 * auc)
                    print(f"{kind}, split {split}, positions {positions}: {100 * auc:.2f}")
    finally:
        cluster.close()
    print(f"{'ROC AUC %, ' + options.graph:28}", *(f"{name:>22}" for name in COLUMNS.values()))
    for positions, name in ((True, "Laplacian eigenmaps"), (False, "all nodes at one position")):
        cells = (found[kind, positions] for kind in COLUMNS)
        spread = (f"{np.mean(c):.2f} ± {np.std(c, ddof=min(1, len(c) - 1)):.2f}" for c in cells)
        print(f"{name:28}", *(f"{cell:>22}" for cell in spread))
    print(f"ratio: {np.mean(found['degree', True]) / np.mean(found['degree', False]):.3f}")


if __name__ == "__main__":
    main()
