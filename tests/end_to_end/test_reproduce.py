"""`peg reproduce` on small random graphs: all experiments run, and a cell that fails is told."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file

from peg_core.artifacts import Run
from pipeline.cli.app import cli
from pipeline.reproduce.experiment_file import find_experiments

pytestmark = [pytest.mark.ray, pytest.mark.slow]

BROKEN = """
experiment: One of two
graphs:
  good:
    settings: &small
      graph:
        edges: ${PEG_DATA_DIR}/good/edges.parquet
      encodings: [{kind: le, dimensions: 4}]
      model: {hidden: 8}
      train: {epochs: 1}
      evaluate: {heuristics: [], intervals: {repeats: 0}}
  bad:
    settings:
      <<: *small
      graph:
        edges: ${PEG_DATA_DIR}/bad/edges.parquet
        source: nobody
methods: {peg: {}}
splits: 1
"""


@pytest.fixture(autouse=True)
def _no_real_graphs(monkeypatch):
    monkeypatch.delenv("PEG_DATA_DIR", raising=False)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduced")


def run(*arguments):
    return CliRunner().invoke(cli, ["reproduce", *map(str, arguments)], catch_exceptions=False)


def test_all_experiments_run_on_generated_graphs(cluster, out):
    done = run("all", "--quick", "--out", out)
    assert done.exit_code == 0, done.output
    table = pl.read_parquet(out / "results.parquet")
    assert set(table["experiment"]) == set(find_experiments())
    assert table["error"].null_count() == len(table)
    assert table["generated"].all()
    assert table["paper"].null_count() == len(table)
    auc = table.filter(pl.col("metric") == "auc", ~pl.col("heuristic"))["value"]
    assert auc.is_between(0, 1).all()
    html = (out / "results.html").read_text()
    assert html.count("Small random graphs stand in") == len(find_experiments())
    # methods of one graph share what they can: one graph, and one split for each number of folds
    assert len(list((out / "cora/ingest").iterdir())) == 1
    assert len(list((out / "cora/split").iterdir())) == 2


def test_the_learnt_edge_weights_are_the_gate_of_the_trained_model(cluster, out):
    curves = pl.read_parquet(out / "curves.parquet").filter(pl.col("measure") == "edge_weights")
    assert len(curves) == 500
    run("edge-weights", "--quick", "--out", out)  # the last run of the store is this one now
    weights = load_file(Run.open(out / "cora").model.weights_file)
    names = [name for name in weights if name.startswith("layers.0.gate")]
    first, bias, second, last = (weights[name] for name in sorted_gate(names))
    hidden = np.maximum(curves["x"].to_numpy()[:, None] @ first.T + bias, 0)
    expected = 1 / (1 + np.exp(-(hidden @ second.T + last)))
    np.testing.assert_allclose(curves["y"].to_numpy(), expected[:, 0], atol=1e-5)


def sorted_gate(names):
    """First weight and bias, then those of the second map."""
    return sorted(names, key=lambda name: (name.split(".")[-2], name.endswith("bias")))


def test_a_cell_that_fails_is_told_and_the_others_go_on(cluster, tmp_path):
    (tmp_path / "broken.yaml").write_text(BROKEN)
    done = run(tmp_path / "broken.yaml", "--quick", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "failed:      broken bad/peg/N/0: " in done.output
    assert "no column 'nobody'" in done.output
    table = pl.read_parquet(tmp_path / "out/results.parquet")
    assert "nobody" in table.filter(pl.col("graph") == "bad")["error"].item()
    assert table.filter(pl.col("graph") == "good", pl.col("metric") == "auc")["value"].item() > 0
    assert "bad/peg/N/0: " in (tmp_path / "out/results.html").read_text()
