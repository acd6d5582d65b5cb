"""Ingestion on a real Ray: partitions, workers, dirt, growth."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.node_ids import NodeIds
from pipeline.run.plan import Action
from pipeline.run.runner import plan_run, run_pipeline
from pipeline.run.stage import StageContext
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages import ingest
from workers.artifact_ref import ArtifactRef
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from workers.task_map import TaskMap

pytestmark = [pytest.mark.ray, pytest.mark.slow]


class Silent:
    def update(self, done: float, total: float, note: str = "") -> None:
        """Nobody watches."""


def run_ingest(config, folder, cluster, previous=None):
    """The ingest stage alone; returns its result."""
    folder.mkdir(parents=True, exist_ok=True)
    (step,) = [step for step in plan_run(config) if step.stage.name == "ingest"]
    out = ArtifactRef.of_folder(folder, GraphStore)
    if previous is not None:
        previous = previous[0], ArtifactRef.of_folder(previous[1], GraphStore)
    tasks = TaskMap(cluster, folder / "done")
    inputs = StageInputs({})
    context = StageContext(config, out, inputs, tasks, Silent(), step.identity, previous)
    return ingest.run(context), step.identity


@pytest.fixture
def many_files(small_pipeline, tmp_path):
    """Three thousand dirty rows in nested files; string ids; a weight column."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "edges"
    for part in range(4):
        ends = rng.integers(0, 300, size=(750, 2))
        file = folder / f"day={part}" / "rows.parquet"
        file.parent.mkdir(parents=True)
        pl.DataFrame(
            {
                "src": [f"n{u}" for u in ends[:, 0]],
                "dst": [f"n{v}" for v in ends[:, 1]],
                "w": rng.random(750) + 0.1,
            }
        ).write_parquet(file, row_group_size=100)
    graph = {"edges": str(folder), "weight": "w", "nodes": None, "features": None}
    return small_pipeline.model_copy(
        update={"graph": small_pipeline.graph.model_copy(update=graph), "score": None}
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_one_or_two_workers_and_any_task_size_write_the_same_bytes(cluster, many_files, tmp_path):
    settings = [
        ClusterSettings(workers=1),
        ClusterSettings(workers=2, task_memory_bytes=320 * 150),
    ]
    found = []
    for number, setting in enumerate(settings):
        folder = tmp_path / f"store-{number}"
        run_ingest(many_files, folder, Cluster(setting))
        found.append(contents(folder))
    assert found[0].keys() == {
        "indptr.npy", "indices.npy", "weights.npy", "node_ids.parquet", "id_slots.npy",
        "id_offsets.npy", "id_bytes.npy",
    }  # fmt: skip
    assert found[0] == found[1]


def test_every_row_is_accounted_for(cluster, many_files, tmp_path):
    result, _ = run_ingest(many_files, tmp_path / "store", cluster)
    table = pl.read_parquet(f"{many_files.graph.edges}/**/*.parquet", hive_partitioning=False)
    pairs = table.select("src", "dst").rows()
    loops = sum(u == v for u, v in pairs)
    directed = {(u, v) for u, v in pairs if u != v}
    edges = {frozenset(pair) for pair in directed}
    counts = result.details["dirt"]
    assert counts["rows"] == 3000
    assert counts["self_loops"] == loops
    assert counts["edges"] == len(edges)
    assert counts["duplicates"] == 3000 - loops - len(directed)
    assert counts["reversed_duplicates"] == len(directed) - len(edges)
    assert not (tmp_path / "store" / "work").exists()
    json.dumps(result.details)


def test_dropped_rows_are_counted(cluster, many_files, tmp_path):
    file = next(Path(many_files.graph.edges).glob("day=2/*.parquet"))
    table = pl.read_parquet(file).with_row_index()
    spoiled = table.with_columns(
        src=pl.when(pl.col("index") < 3).then(None).otherwise("src"),
        w=pl.when(pl.col("index").is_between(10, 14)).then(float("nan")).otherwise("w"),
    ).drop("index")
    spoiled.write_parquet(file, row_group_size=100)
    with pytest.raises(InputError, match=r"day=2/rows.parquet holds 3 null.*row 0 of row group 0"):
        run_ingest(many_files, tmp_path / "store", cluster)
    graph = many_files.graph.model_copy(update={"on_bad_rows": "drop"})
    config = many_files.model_copy(update={"graph": graph})
    result, _ = run_ingest(config, tmp_path / "dropped", cluster)
    assert result.counts["null_ids"] == 3
    assert result.counts["bad_weights"] == 5


def test_an_added_file_is_read_alone_and_equals_a_full_ingest(
    cluster, many_files, tmp_path, display
):

    config = many_files.model_copy(
        update={"train": many_files.train.model_copy(update={"epochs": 1})}
    )
    first = run_pipeline(config, display)["ingest"]
    store = Path(config.store)
    before = NodeIds.open(store / "current" / "ingest").values.to_pylist()
    added = Path(config.graph.edges) / "day=9" / "rows.parquet"
    added.parent.mkdir()
    pl.DataFrame(
        {"src": ["n1", "a new one", "n2"], "dst": ["n2", "n1", "zebra"], "w": [1.0, 2.0, 3.0]}
    ).write_parquet(added)
    step = plan_run(config)[0]
    assert (step.action, step.reason) == (Action.RUN, "1 edge file(s) added: only they are read")

    second = run_pipeline(config, display)["ingest"]
    assert first.counts["rows"] == 3000
    assert second.counts["rows"] == 3
    assert second.details["files_read"] == 1
    assert (
        second.counts["edges"]
        - second.counts["edges_before"]
        + second.counts.get("already_known", 0)
        == 3
    )
    assert second.details["merged_into"] == first.fingerprint
    ids = NodeIds.open(store / "current" / "ingest")
    assert ids.values.to_pylist() == [*before, "a new one", "zebra"]

    run_ingest(config, tmp_path / "whole", cluster)
    whole, whole_ids = GraphStore.open(tmp_path / "whole"), NodeIds.open(tmp_path / "whole")
    rows = whole_ids.lookup(ids.values)
    grown = GraphStore.open(store / "current" / "ingest").adjacency(np.float64).toarray()
    expected = whole.adjacency(np.float64).toarray()[np.ix_(rows, rows)]
    np.testing.assert_allclose(grown, expected, rtol=1e-6)


def test_a_changed_or_removed_file_is_named_and_everything_is_read(cluster, many_files, tmp_path):
    _, identity = run_ingest(many_files, tmp_path / "store", cluster)
    file = next(Path(many_files.graph.edges).glob("day=1/*.parquet"))
    before = Manifest(identity, identity.fingerprint, "then", "now", 0, 0)
    pl.read_parquet(file)[:10].write_parquet(file)
    changed = plan_run(many_files)[0].identity
    assert ingest.added_files(changed, before) is None
    assert ingest.explain(changed, before) == f"{file} changed: everything is read again"
    file.unlink()
    removed = plan_run(many_files)[0].identity
    assert ingest.explain(removed, before) == f"{file} was removed: everything is read again"
    other = replace(removed, settings={"graph": {}})
    assert ingest.explain(other, before) is None
