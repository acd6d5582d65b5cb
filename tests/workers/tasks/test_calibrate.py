"""The calibration task on the artifacts of a real run."""

from pathlib import Path

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


def calibrate(current, out, most):
    def at(folder, kind):
        return ArtifactRef.of_folder(current / folder, kind)

    embedded = EmbeddedGraphRef(
        at(f"split/{TRAIN_GRAPH}", GraphStore),
        at("encode", Positions),
        at("embed/seed-0", Embeddings),
    )
    return calibrate_task(
        ScorerRef(embedded, at("train/seed-0", TrainedModel)),
        at("split", SplitStore),
        at("ingest", GraphIds),
        ("src", "dst"),
        ArtifactRef.of_folder(out, Calibration),
        most,
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
