"""The whole pipeline on a real local Ray, called in this process."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from peg_core.artifacts.manifest import Manifest
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.errors import LeakFound
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.heuristics import HEURISTICS
from peg_core.inference.pair_scoring import PairScorer
from peg_core.metrics.calibration import Calibration
from pipeline.run.plan import Action
from pipeline.run.runner import plan_run, run_pipeline

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
    itself = candidates["src"] == candidates["dst"]
    assert scores["score"].null_count() == 1 + itself.sum() == 6
    assert scores[17, "score"] is None
    assert set(scores.filter(itself)["reason"]) == {"self_pair"}
    assert scores["score"].drop_nulls().is_between(0, 1).all()
    assert scores[17, "reason"] == "unknown_node"
    assert manifests["score"].counts == {
        "pairs": 600, "unknown": 1, "null_ids": 0, "self_pairs": 5, "files": 3
    }  # fmt: skip
    assert "9,999" not in str(manifests["score"].warnings)
    assert "1 of 600 candidate pairs" in manifests["score"].warnings[0]

    table = pl.read_parquet(current / "evaluate" / "metrics.parquet")
    aucs = {row["method"]: row for row in table.to_dicts() if row["metric"] == "auc"}
    assert list(aucs) == ["peg", *HEURISTICS]
    assert aucs["peg"]["value"] > aucs["common_neighbours"]["value"]
    assert all(row["low"] <= row["value"] <= row["high"] for row in aucs.values())
    assert "<svg" in (current / "report" / "report.html").read_text()
    epochs = pl.read_parquet(current / "train" / "epochs.parquet")
    assert epochs.columns == ["seed", "epoch", "loss", "valid_auc"]

    # the scores are those of the trained model on the graph of all known edges
    ids = NodeIds.open(current / "ingest")
    graph = GraphStore.open(current / "ingest")
    known = scores.drop_nulls()
    pairs = [ids.lookup(known[name].to_arrow()) for name in ("src", "dst")]
    scorer = PairScorer(
        TrainedModel(current / "train" / "seed-0").network,
        graph,
        np.load(current / "embed_all" / "layer-1.npy"),
        [np.load(current / "encode_all" / "encoding-0" / "all.npy")],
        connected_components(graph)[1],
    )
    calibration = Calibration.open(current / "calibrate" / "seed-0")
    expected = calibration.probabilities(scorer.logits(*pairs))
    np.testing.assert_allclose(known["score"], expected, atol=1e-6)

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
    assert again == ["train", "embed", "calibrate", "evaluate", "embed_all", "score", "report"]


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
    Manifest.require(split).sealed(split).write(split)  # as if the stage itself had made it so
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
    pairs = pl.read_parquet(Path(config.store) / "current/evaluate/seed-0/test_pairs/*.parquet")
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
    itself = (candidates["src"] == candidates["dst"]).sum()
    assert scores["score"].null_count() == 1 + itself


def test_several_seeds_report_mean_and_deviation(cluster, small_pipeline, display):
    train = small_pipeline.train.model_copy(update={"seeds": 2, "epochs": 2})
    config = small_pipeline.model_copy(update={"train": train, "score": None})
    manifests = run_pipeline(config, display)
    first, second = (manifests["evaluate"].details["seeds"][seed]["random"]["auc"] for seed in "01")
    row = manifests["evaluate"].details["table"]["random"][0]
    assert row["auc"] == pytest.approx((first + second) / 2)
    assert row["auc_std"] == pytest.approx(abs(first - second) / 2**0.5)


def test_every_encoding_has_its_distance_in_gate_and_head(cluster, small_pipeline, display):
    names = ["le", {"kind": "deepwalk", "dimensions": 8}]
    settings = small_pipeline.model_dump() | {"encodings": names, "score": None}
    config = type(small_pipeline)(**settings)
    manifests = run_pipeline(config, display)
    current = Path(config.store) / "current"
    reports = {name: result["report"] for name, result in manifests["encode"].details.items()}
    assert len(reports) == 6
    assert {reports[name]["solver"] for name in reports if "encoding-1" in name} == {"netmf"}
    model = TrainedModel(current / "train" / "seed-0").network
    assert model.spec.num_encodings == 2
    gates = [value for name, value in model.state_dict().items() if "gate.0.weight" in name]
    assert [gate.shape[1] for gate in gates] == [2, 2]
    assert all((gate != 0).all() for gate in gates)

    files = [current / "encode" / f"encoding-{number}" / "all.npy" for number in range(2)]
    positions = [np.load(file) for file in files]
    graph = GraphStore.open(current / "split" / "train_graph")
    embedding = np.load(current / "embed" / "seed-0" / "layer-1.npy")
    components = connected_components(graph)[1]
    pairs = np.arange(50), np.arange(50, 100)
    logits = PairScorer(model, graph, embedding, positions, components).logits(*pairs)
    for number in range(2):
        moved = [p * (1 + (i == number)) for i, p in enumerate(positions)]
        other = PairScorer(model, graph, embedding, moved, components).logits(*pairs)
        assert np.abs(logits - other).max() > 1e-4
