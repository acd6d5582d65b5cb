"""The calibration task on the artifacts of a real run."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from peg_core.artifacts import Embeddings, Positions, TrainedModel
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.metrics.calibration import Calibration, fit_logistic
from peg_core.splits.split_store import TRAIN_GRAPH, SplitStore
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import EmbeddedGraphRef, ScorerRef
from workers.tasks.calibrate import calibrate_task

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def current(trained_run):
    return Path(yaml.safe_load(trained_run.read_text())["store"]) / "current"


def scorer_of(current, calibration=None):
    def at(folder, kind):
        return ArtifactRef.of_folder(current / folder, kind)

    embedded = EmbeddedGraphRef(
        at(f"split/{TRAIN_GRAPH}", GraphStore),
        at("encode", Positions),
        at("embed/seed-0", Embeddings),
    )
    return ScorerRef(embedded, at("train/seed-0", TrainedModel), calibration)


def calibrate(current, out, most, **choice):
    return calibrate_task(
        scorer_of(current),
        ArtifactRef.of_folder(current / "split", SplitStore),
        ArtifactRef.of_folder(current / "ingest", GraphIds),
        ("src", "dst"),
        ArtifactRef.of_folder(out, Calibration),
        most,
        **choice,
    )


def test_all_pairs_are_used_where_there_are_no_more_than_may_be(current, tmp_path):
    pairs = pl.read_parquet(current / "split" / "valid.parquet")
    result = calibrate(current, tmp_path / "out", len(pairs))
    assert result["pairs"] == result["validation_pairs"] == len(pairs)
    stage = current / "calibrate" / "seed-0"
    assert Calibration.open(tmp_path / "out") == Calibration.open(stage)
    written = pl.read_parquet(tmp_path / "out" / "valid_pairs.parquet")
    assert written.equals(pl.read_parquet(stage / "valid_pairs.parquet"))


def test_of_more_pairs_an_even_sample_is_scored_and_written(current, tmp_path):
    everything = pl.read_parquet(current / "calibrate" / "seed-0" / "valid_pairs.parquet")
    most = len(everything) // 2 - 1  # every third is left
    result = calibrate(current, tmp_path / "out", most)
    written = pl.read_parquet(tmp_path / "out" / "valid_pairs.parquet")
    chosen = everything.gather_every(3)
    assert written.select("src", "dst", "label", "logit").equals(
        chosen.select("src", "dst", "label", "logit")
    )
    assert (result["pairs"], result["validation_pairs"]) == (len(chosen), len(everything))
    expected = fit_logistic(chosen["logit"].to_numpy(), chosen["label"].to_numpy())
    assert Calibration.open(tmp_path / "out") == expected
    assert result["slope"] == expected.slope


def test_scores_are_stacked_on_counts_of_training_edges_alone(current, tmp_path):
    calibrate(current, tmp_path / "out", 10**6, stack=True)
    calibration = Calibration.open(tmp_path / "out")
    stack, split = calibration.stack, SplitStore(current / "split")
    valid = split.held_out("valid")
    known = np.zeros((split.train_graph().num_nodes,) * 2)  # no held-out link is in it
    known[split.train_graph().edges()] = 1
    known += known.T
    degrees = np.maximum(known.sum(axis=0), 2)
    counts = [
        (known[valid.source] * known[valid.target] * weights).sum(axis=1)
        for weights in (np.ones(len(known)), 1 / np.log(degrees), 1 / degrees)
    ]
    alone = scorer_of(current).open().logits(valid.source, valid.target)
    expected = stack.logit * alone + np.log1p(counts).T @ stack.counts
    written = pl.read_parquet(tmp_path / "out" / "valid_pairs.parquet")
    np.testing.assert_allclose(written["logit"], expected, rtol=1e-4, atol=1e-4)
    assert calibration.slope == pytest.approx(1, abs=0.1)  # the weights are those of chances

    # whoever scores with this calibration stacks in the same way
    scorer = scorer_of(current, ArtifactRef.of_folder(tmp_path / "out", Calibration)).open()
    np.testing.assert_array_equal(scorer.logits(valid.source, valid.target), written["logit"])
