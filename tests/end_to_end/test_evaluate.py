"""Evaluation on a real local Ray: its numbers against other people's."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from sklearn.metrics import average_precision_score, roc_auc_score

from peg_core.artifacts import MethodScores, RankingNegatives, TrainedModel, ranking_negatives
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.heuristics import HEURISTICS
from peg_core.inference.pair_scoring import PairScorer
from peg_core.metrics.calibration import Calibration
from peg_core.splits.split_store import TRAIN_GRAPH, SplitStore
from pipeline.run.plan import Action
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import plan_run, run_pipeline
from workers.artifact_ref import ArtifactRef
from workers.tasks import evaluate as evaluate_tasks
from workers.tasks import negatives as negative_tasks

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def evaluated(cluster, shared_pipeline, tmp_path_factory):
    """Given negatives, three protocols; (configuration, manifests, folder of the artifacts)."""
    negatives = tmp_path_factory.mktemp("negatives") / "no.parquet"
    edges = pl.read_parquet(shared_pipeline.graph.edges)
    known = {frozenset(row) for row in edges.rows()}
    pairs = np.random.default_rng(2).integers(0, 120, size=(300, 2)).tolist()
    free = [p for p in pairs if p[0] != p[1] and frozenset(p) not in known]
    pl.DataFrame(free, schema=["src", "dst"], orient="row").write_parquet(negatives)
    evaluate = {
        "protocol": ["given", "random", "heart"], "negatives_per_positive": 40, "hits": [1, 10]
    }  # fmt: skip
    config = shared_pipeline.model_copy(
        update={
            "split": shared_pipeline.split.model_copy(update={"test_negatives": str(negatives)}),
            "evaluate": shared_pipeline.evaluate.model_copy(update=evaluate),
            "score": None,
        }
    )
    display = RunDisplay(Console(quiet=True))
    return config, run_pipeline(config, display), Path(config.store) / "current"


def metric(current, **wanted):
    table = pl.read_parquet(current / "evaluate" / "metrics.parquet")
    return table.filter(**wanted).row(0, named=True)


def test_every_protocol_is_ranked_and_agrees_with_its_peers(evaluated):
    config, manifests, current = evaluated
    scores = current / "evaluate" / "seed-0"
    for protocol, name in (("given", "test_pairs"), ("random", "random_pairs")):
        pairs = pl.read_parquet(scores / name / "*.parquet")
        labels, logits = pairs["label"].to_numpy(), pairs["logit"].to_numpy()
        for key, peer in (("auc", roc_auc_score), ("average_precision", average_precision_score)):
            found = metric(current, protocol=protocol, method="peg", metric=key)
            assert found["value"] == pytest.approx(peer(labels, logits))
            assert found["low"] <= found["value"] <= found["high"]
    given = pl.read_parquet(scores / "test_pairs" / "*.parquet")
    assert (given["label"] == 0).sum() == len(pl.read_parquet(config.split.test_negatives))
    calibration = Calibration.open(current / "calibrate" / "seed-0")
    np.testing.assert_allclose(
        given["score"], calibration.probabilities(given["logit"].to_numpy()), rtol=1e-6
    )
    assert list(manifests["evaluate"].details["table"]) == ["given", "random", "heart"]

    # HeaRT, from the model itself: every link against the strangers of both its ends
    split, negatives = current / "split", current / "negatives"
    links = pl.read_parquet(split / "test.parquet").filter(label=1)
    anchors = np.load(negatives / "anchors.npy").tolist()
    strangers = np.load(negatives / "part-000000.npy")
    scorer = PairScorer(
        TrainedModel(current / "train" / "seed-0").network,
        GraphStore.open(split / "train_graph"),
        np.load(current / "embed" / "seed-0" / "layer-1.npy"),
        [np.load(current / "encode" / "encoding-0" / "all.npy")],
        connected_components(GraphStore.open(split / "train_graph"))[1],
    )
    graph = GraphStore.open(current / "ingest")
    reciprocals = []
    for u, v in links.select("source", "target").rows():
        pairs = [(end, int(w)) for end in (u, v) for w in strangers[anchors.index(end)]]
        source, target = np.array([(u, v), *pairs]).T
        assert not graph.contains(source[1:], target[1:]).any()
        own, *others = scorer.logits(source, target)
        better = sum(o > own for o in others)
        reciprocals.append(1 / (1 + better + sum(o == own for o in others) / 2))
    found = metric(current, protocol="heart", method="peg", metric="mrr")
    assert found["value"] == pytest.approx(np.mean(reciprocals), abs=1e-3)
    assert len(pairs) == 40


def test_retraining_keeps_the_negatives_and_a_lost_shard_comes_back(evaluated, display):
    config, _, current = evaluated
    retrained = config.model_copy(update={"train": config.train.model_copy(update={"lr": 0.5})})
    actions = {step.stage.name: step.action for step in plan_run(retrained)}
    assert actions["negatives"] is Action.REUSE
    assert actions["evaluate"] is Action.RUN
    expected = pl.read_parquet(current / "evaluate" / "metrics.parquet")
    folder = (current / "evaluate").resolve()
    (folder / "manifest.json").unlink()
    for lost in ("heart-seed-0-000000", "test_pairs-heuristics-000000", "rank-given-seed-0-logit"):
        (folder / "done" / f"{lost}.json").unlink()
    run_pipeline(config, display)
    assert pl.read_parquet(current / "evaluate" / "metrics.parquet").equals(expected)


def test_small_parts_give_the_same_metrics(evaluated, monkeypatch):
    """The tasks called here, in parts of a few rows."""
    config, _, current = evaluated
    monkeypatch.setattr(evaluate_tasks, "ROWS_PER_PART", 7)
    monkeypatch.setattr(evaluate_tasks, "ANCHORS_PER_PART", 5)
    monkeypatch.setattr(ranking_negatives, "ANCHORS_PER_PART", 5)
    folder = current / "parts"
    graph, split, out = (
        ArtifactRef.of_folder(*found)
        for found in (
            (current / "ingest", GraphStore),
            (current / "split", SplitStore),
            (folder, RankingNegatives),
        )
    )
    negatives = negative_tasks.NegativesRequest(graph, split, 40, config.split.seed, out)
    for part in range(negative_tasks.anchors_task(negatives)["parts"]):
        negative_tasks.hard_negatives_task(negatives, part)
    method = evaluate_tasks.MethodRequest(
        graph=split.at(GraphStore, TRAIN_GRAPH),
        nodes=graph.at(GraphIds),
        columns=("src", "dst"),
        out=out.at(MethodScores, "heuristics"),
        heuristics=tuple(HEURISTICS),
    )
    table = current / "split" / "test.parquet"
    for part in range(-(-len(pl.read_parquet(table)) // 7)):
        evaluate_tasks.score_pairs_task(method, table, "test_pairs", part)
    for part in range(out.open().num_parts):
        evaluate_tasks.score_hard_task(method, out, "heart", part)
    number = list(HEURISTICS).index("katz")
    rank = evaluate_tasks.RankRequest(
        method.out, "katz", number, [1, 10], evaluate_tasks.Bootstrap(1000, 0.95), config.split.seed
    )
    pooled = evaluate_tasks.rank_pooled_task(rank, "test_pairs")
    hard = evaluate_tasks.rank_hard_task(rank, table, "heart", out)
    for protocol, found in (("given", pooled), ("heart", hard)):
        for key, (value, low, high) in found.items():
            row = metric(current, protocol=protocol, method="katz", metric=key)
            assert (value, low, high) == pytest.approx((row["value"], row["low"], row["high"]))
    assert not list(method.out.folder.glob("runs-*"))
    ids = NodeIds.open(current / "ingest")
    first = pl.read_parquet(method.out.folder / "test_pairs" / "part-000000.parquet")
    expected = ids.take(pl.read_parquet(table)["source"].head(7).to_numpy())
    assert first["src"].to_list() == expected.to_pylist()
