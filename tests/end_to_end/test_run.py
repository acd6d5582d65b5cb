"""The whole pipeline on a real local Ray, called in this process."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from peg_core.errors import LeakFound
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_ids import NodeIds
from peg_core.inference.pair_scoring import PairScorer, probabilities
from peg_core.models.model_file import load_model
from pipeline.plan import Action
from pipeline.runner import plan_run, run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def finished(cluster, small_pipeline, display):
    """A run that went through; returns (configuration, manifests, folder of current artifacts)."""
    manifests = run_pipeline(small_pipeline, display)
    return small_pipeline, manifests, Path(small_pipeline.store) / "current"


def test_edges_become_scores_metrics_and_a_report(finished):
    config, manifests, current = finished
    candidates = pl.read_parquet(config.score.candidates)
    scores = pl.read_parquet(current / "score" / "*.parquet")
    assert scores.columns == ["src", "dst", "score", "reason", "note"]
    assert scores.select("src", "dst", "note").equals(candidates.select("src", "dst", "note"))
    assert scores["score"].null_count() == 1
    assert scores[17, "score"] is None
    assert scores["score"].drop_nulls().is_between(0, 1).all()
    assert scores[17, "reason"] == "unknown_node"
    assert manifests["score"].counts == {"pairs": 600, "unknown": 1, "null_ids": 0, "files": 3}
    assert "9,999" not in str(manifests["score"].warnings)
    assert "1 of 600 candidate pairs" in manifests["score"].warnings[0]

    table = pl.read_parquet(current / "evaluate" / "metrics.parquet")
    rows = {row["method"]: row for row in table.to_dicts()}
    assert rows["peg"]["auc"] > rows["common neighbours"]["auc"]
    assert "<svg" in (current / "report" / "report.html").read_text()
    epochs = pl.read_parquet(current / "train" / "epochs.parquet")
    assert epochs.columns == ["seed", "epoch", "loss", "valid_auc"]

    # the scores are those of the trained model on the graph of all known edges
    ids = NodeIds.open(current / "ingest")
    graph = GraphStore.open(current / "ingest")
    known = scores.drop_nulls()
    pairs = [ids.lookup(known[name].to_arrow()) for name in ("src", "dst")]
    scorer = PairScorer(
        load_model(current / "train" / "seed-0"),
        graph,
        np.load(current / "embed_all" / "layer-1.npy"),
        [np.load(current / "encode_all" / "encoding-0" / "all.npy")],
        connected_components(graph)[1],
    )
    np.testing.assert_allclose(known["score"], probabilities(scorer.logits(*pairs)), atol=1e-6)

    # counted: no held-out link in the training graph, in an encoding, or in the messages
    assert manifests["split"].counts["valid_leaks"] == 0
    assert manifests["split"].counts["test_leaks"] == 0
    assert manifests["encode"].counts["graphs"] == 3
    assert manifests["encode"].counts["leaked_links"] == 0
    assert manifests["encode"].counts["largest_residual"] <= 1e-3
    for result in manifests["encode"].details.values():
        assert {"valid", "test"} <= result["leaks"].keys()

    # a second run reuses everything; another learning rate reruns training and what follows
    assert {step.action for step in plan_run(config)} == {Action.REUSE}
    other = config.model_copy(update={"train": config.train.model_copy(update={"lr": 0.02})})
    again = [step.stage.name for step in plan_run(other) if step.action is Action.RUN]
    assert again == ["train", "embed", "evaluate", "embed_all", "score", "report"]


def test_the_report_of_a_run_renders_without_a_word_on_the_console(finished, open_page):
    _, _, current = finished
    dom, console = open_page((current / "report" / "report.html").read_text())
    assert console == []
    assert dom.count("<svg") >= 5


def test_a_test_edge_in_the_training_graph_stops_the_run(cluster, small_pipeline, display):
    run_pipeline(small_pipeline.model_copy(update={"score": None}), display)
    split = Path(small_pipeline.store) / "current" / "split"
    leaked = pl.read_parquet(split / "test.parquet").row(0, named=True)
    train = GraphStore.open(split / "train_graph")
    source, target = train.edges()
    spoiled = GraphStore.from_edges(
        np.append(source, leaked["source"]),
        np.append(target, leaked["target"]),
        num_nodes=train.num_nodes,
    )
    spoiled.save(split / "train_graph")
    np.save(split / "entry_folds.npy", np.zeros(len(spoiled.indices), np.uint8))
    with pytest.raises(LeakFound, match="1 test link"):
        run_pipeline(small_pipeline, display, forced={"encode"})


@pytest.mark.parametrize("by", ["time", "files"])
def test_other_ways_to_split_run_to_the_metrics(cluster, small_pipeline, display, tmp_path, by):
    edges = pl.read_parquet(small_pipeline.graph.edges)
    edges = edges.with_columns(when=pl.int_range(len(edges)))
    edges.write_parquet(small_pipeline.graph.edges)
    edges[-40:-15].write_parquet(tmp_path / "valid.parquet")
    edges[-15:].write_parquet(tmp_path / "test.parquet")
    split = {
        "by": by,
        "valid_edges": str(tmp_path / "valid.parquet"),
        "test_edges": str(tmp_path / "test.parquet"),
        "valid": 25 / len(edges),
        "test": 15 / len(edges),
    }
    config = small_pipeline.model_copy(
        update={
            "graph": small_pipeline.graph.model_copy(update={"time": "when"}),
            "split": small_pipeline.split.model_copy(update=split),
            "score": None,
        }
    )
    manifests = run_pipeline(config, display)
    assert manifests["split"].counts["test_links"] == 15
    assert manifests["split"].counts["valid_links"] == 25
    pairs = pl.read_parquet(Path(config.store) / "current/evaluate/seed-0/test_pairs.parquet")
    links = pairs.filter(pl.col("label") == 1).select("src", "dst")
    expected = {frozenset(row) for row in edges[-15:].select("src", "dst").rows()}
    assert {frozenset(row) for row in links.rows()} == expected


def test_string_ids_come_back_as_they_went_in(cluster, small_pipeline, display):
    as_text = pl.format("user-{}", pl.col("src")), pl.format("user-{}", pl.col("dst"))
    for path in (small_pipeline.graph.edges, small_pipeline.score.candidates):
        table = pl.read_parquet(path)
        table.with_columns(as_text[0].alias("src"), as_text[1].alias("dst")).write_parquet(path)
    nodes = pl.read_parquet(small_pipeline.graph.nodes)
    nodes.with_columns(id=pl.format("user-{}", pl.col("id"))).write_parquet(
        small_pipeline.graph.nodes
    )
    run_pipeline(small_pipeline, display)
    scores = pl.read_parquet(Path(small_pipeline.store) / "current/score/*.parquet")
    candidates = pl.read_parquet(small_pipeline.score.candidates)
    assert scores["src"].equals(candidates["src"])
    assert scores["score"].null_count() == 1


def test_several_seeds_report_mean_and_deviation(cluster, small_pipeline, display):
    train = small_pipeline.train.model_copy(update={"seeds": 2, "epochs": 2})
    config = small_pipeline.model_copy(update={"train": train, "score": None})
    manifests = run_pipeline(config, display)
    first, second = (manifests["evaluate"].details["seeds"][seed]["test"]["auc"] for seed in "01")
    row = manifests["evaluate"].details["table"][0]
    assert row["auc"] == pytest.approx((first + second) / 2)
    assert row["auc_std"] == pytest.approx(abs(first - second) / 2**0.5)
