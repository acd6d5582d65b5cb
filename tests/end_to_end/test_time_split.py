"""A graph that grows, split by time, in two windows: on a real local Ray."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from sklearn.metrics import roc_auc_score

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.repeats import RunSeries, run_series

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def grow(folder):
    """300 nodes, each with three edges to earlier ones when it comes, and one a while later."""
    rng = np.random.default_rng(0)
    pairs = {}
    for node in range(10, 300):
        for other in rng.integers(0, node, 3).tolist():
            pairs[node, other] = node
        pairs[tuple(sorted(rng.choice(node, 2, replace=False).tolist(), reverse=True))] = node
    rows = [(f"n{u}", f"n{v}", day) for (u, v), day in pairs.items()]
    edges = pl.DataFrame(rows, schema=["src", "dst", "day"], orient="row")
    edges.write_parquet(folder / "edges.parquet")
    candidates = [("n5", "n5"), ("n5", "n7"), ("n299", "n5")]
    table = pl.DataFrame(candidates, schema=["src", "dst"], orient="row")
    table.write_parquet(folder / "candidates.parquet")
    return edges


@pytest.fixture(scope="module")
def rolled(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("time")
    edges = grow(folder)
    config = PipelineConfig(
        name="time",
        store=str(folder / "store"),
        graph={"edges": str(folder / "edges.parquet"), "time": "day"},
        split={"by": "time", "valid": 0.1, "test": 0.15, "folds": 2, "windows": 2},
        encodings=[{"kind": "le", "dimensions": 4}],
        model={"hidden": 8},
        train={"epochs": 2},
        evaluate={"hits": [5], "heuristics": ["common_neighbours"]},
        score={"candidates": str(folder / "candidates.parquet"), "graph": "train"},
    )
    manifests, table = run_series(RunSeries.of(config), RunDisplay(Console(quiet=True)))
    return edges, config, manifests, table, Path(config.store)


def test_warm_and_cold_pairs_are_ranked_apart(rolled):
    _, _, manifests, _, store = rolled
    current = store / "current"
    pairs = pl.read_parquet(current / "split" / "test.parquet")
    degrees = np.diff(np.load(current / "split" / "train_graph" / "indptr.npy"))
    cold = (degrees[pairs["source"]] == 0) | (degrees[pairs["target"]] == 0)
    label = pairs["label"].to_numpy()
    assert cold[label == 1].mean() > 0.3
    assert cold[label == 0].mean() == pytest.approx(cold[label == 1].mean(), abs=0.1)
    logits = pl.read_parquet(current / "evaluate/seed-0/test_pairs/*.parquet")["logit"].to_numpy()
    metrics = pl.read_parquet(current / "evaluate" / "metrics.parquet")
    whole = np.ones(len(cold), bool)
    for protocol, own in (
        ("random", whole),
        ("random, warm pairs", ~cold),
        ("random, cold pairs", cold),
    ):
        found = metrics.filter(protocol=protocol, method="peg", metric="auc")["value"][0]
        assert found == pytest.approx(roc_auc_score(label[own], logits[own]))
    population = manifests["evaluate"].details["population"]
    assert population["cold_links"] == (cold & (label == 1)).sum()
    warnings = manifests["evaluate"].warnings
    assert any("have a node without a training edge" in text for text in warnings)
    assert len(warnings) == len(set(warnings))
    report = (current / "report" / "report.html").read_text()
    assert "Cold (an end without a training edge)" in report
    assert "Links against drawn non-links, cold pairs" in report


def test_windows_follow_one_another_and_are_summed_up(rolled):
    edges, _, manifests, table, store = rolled
    first, last = table.filter(method="peg", metric="auc", protocol="random")["value"].to_list()
    assert first != last
    assert table["window"].unique().sort().to_list() == [0, 1]
    assert pl.read_parquet(store / "windows.parquet").equals(table)
    assert manifests["evaluate"].counts["test_auc"] == last
    splits = {manifest.parent.name for manifest in store.glob("split/*/manifest.json")}
    assert len(splits) == 2
    days, share = np.sort(edges["day"].to_numpy()), round(0.15 * len(edges))
    tested = set()
    for split in splits:
        parts = np.load(store / "split" / split / "entry_parts.npy")
        times = np.load(store / "current" / "ingest" / "times.npy")
        tested.add((times[parts == 2].min(), times[parts == 2].max()))
    assert tested == {
        (days[-share], days[-1]),
        (days[-2 * share], days[-share - 1]),
    }


def test_nothing_is_known_of_a_cold_node_without_features(rolled):
    _, _, manifests, _, store = rolled
    scores = pl.read_parquet(store / "current" / "score" / "*.parquet")
    assert scores["reason"].to_list() == ["self_pair", None, "cold_node"]
    assert [score is None for score in scores["score"]] == [True, False, True]
    assert manifests["score"].counts["cold"] == manifests["score"].counts["self_pairs"] == 1
    assert len(manifests["score"].warnings) == 2
