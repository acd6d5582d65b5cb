"""Training as the pipeline runs it: samples, several workers, several splits."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from safetensors.numpy import load_file

from pipeline.run.repeats import RunSeries, run_series, summarise
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SAMPLED = {
    "batching": "sampled",
    "batch_size": 64,
    "fan_outs": [5, 5],
    "epochs": 4,
    "negatives_per_link": 2,
    "lr_schedule": "linear",
}


def with_training(config, *, workers=1, **values):
    return config.model_copy(
        update={
            "score": None,
            "train": config.train.model_copy(update=values),
            "cluster": config.cluster.model_copy(update={"train_workers": workers}),
        }
    )


def weights_of(config):
    return load_file(Path(config.store) / "current/train/seed-0/weights.safetensors")


@pytest.mark.parametrize("kind", ["pe_sage", "egnn", "vgae"])
def test_every_model_trains_on_samples_to_an_evaluation(cluster, small_pipeline, display, kind):
    config = with_training(small_pipeline, **SAMPLED, objective="auc", metric="hits@20")
    config = config.model_copy(update={"model": config.model.model_copy(update={"kind": kind})})
    manifests = run_pipeline(config, display)
    assert manifests["evaluate"].counts["test_auc"] > 0.6
    assert 0 <= manifests["train"].counts["valid_hits@20"] <= 1
    assert not list(Path(config.store).glob("train/*/seed-0/folds"))
    epochs = pl.read_parquet(Path(config.store) / "current/train/epochs.parquet")
    assert epochs["epoch"].to_list() == [0, 1, 2, 3]


def test_two_workers_train_one_model(cluster, small_pipeline, display):
    config = with_training(small_pipeline, workers=(1, 2), epochs=3)
    manifests = run_pipeline(config, display)
    assert manifests["train"].counts["epochs"] == 3
    assert manifests["evaluate"].counts["test_auc"] > 0.6


# Ray schedules GPUs that it was told of, torch computes on the CPU.
ON_TWO_GPUS = """
import sys
from pathlib import Path

import ray
from rich.console import Console

from pipeline.config.loading import load_config
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline

ray.init(address="local", num_cpus=3, num_gpus=2, log_to_driver=False, _temp_dir=sys.argv[2])
run_pipeline(load_config(Path(sys.argv[1])), RunDisplay(Console(quiet=True)))
"""


def test_workers_with_a_gpu_each_train_on_as_many_gpus(small_config, tmp_path):
    """As configs/clusters/gpu_workers.yaml: whoever waits for the workers must hold no GPU."""
    settings = yaml.safe_load(small_config.read_text())
    settings["train"] |= {**SAMPLED, "epochs": 3, "accumulate": 2}
    settings["cluster"] = {"workers": 2, "train_workers": 2, "gpus_per_worker": 1}
    settings.pop("score")
    small_config.write_text(yaml.safe_dump(settings))
    # in the environment: Ray would write one to the home of whoever runs the tests
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    with tempfile.TemporaryDirectory(prefix="peg-ray-", dir="/tmp") as folder:
        subprocess.run(
            [sys.executable, "-c", ON_TWO_GPUS, str(small_config), folder],
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "0,1", **token},
            check=True,
            timeout=300,
        )
    train = json.loads((tmp_path / "store/current/train/manifest.json").read_text())
    assert train["counts"]["epochs"] == 3
    assert train["counts"]["valid_auc"] > 0.5
    assert "trained on CPUs although `cluster.gpus_per_worker` is 1" in train["warnings"][0]


@pytest.mark.parametrize(
    "more", [{"checkpoint_steps": 2}, {"links": 1500, "validate_links": 130, "patience": 50}]
)
def test_a_training_killed_within_an_epoch_goes_on_at_its_step(
    more, cluster, small_config, small_pipeline, start_peg, ray_address, display
):
    config = with_training(small_pipeline, **SAMPLED, **more)
    run_pipeline(config, display)
    expected = weights_of(config)
    store = Path(config.store)
    shutil.rmtree(store / "train")
    (store / "current" / "train").unlink()
    settings = yaml.safe_load(small_config.read_text())
    settings["train"] |= {**SAMPLED, **more}
    settings.pop("score")
    small_config.write_text(yaml.safe_dump(settings))
    process = start_peg("run", small_config, "--set", f"cluster.address={ray_address}")
    while not list(store.glob("train/*/seed-0/checkpoint.safetensors")):
        assert process.poll() is None, process.output
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(store.glob("train/*/manifest.json"))
    run_pipeline(config, display)
    found = weights_of(config)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    if "links" in more:
        history = pl.read_parquet(store / "current/train/epochs.parquet")
        assert (history["epoch"] % 1 > 0).any()  # it was validated within epochs


def test_several_splits_are_summed_up(cluster, small_pipeline, display):
    config = with_training(small_pipeline, epochs=2).model_copy(update={"repeats": 2})
    manifests, table = run_series(RunSeries.of(config), display)
    assert manifests["split"].identity.settings["split"]["seed"] == config.split.seed + 1
    summary = summarise(table).filter(method="peg", metric="auc")
    values = table.filter(method="peg", metric="auc")["value"].to_numpy()
    assert summary["mean"][0] == pytest.approx(np.mean(values))
    assert summary["deviation"][0] == pytest.approx(np.std(values, ddof=1))
    assert values[0] != values[1]
    written = pl.read_parquet(Path(config.store) / "repeats.parquet")
    assert written.equals(table)


def test_a_model_is_evaluated_on_a_graph_it_never_saw(cluster, small_pipeline, display, tmp_path):
    nodes = pl.read_parquet(small_pipeline.graph.nodes)
    edges = pl.read_parquet(small_pipeline.graph.edges)
    folder = tmp_path / "other"
    folder.mkdir()
    shifted = edges.with_columns(pl.col("src") + 5000, pl.col("dst") + 5000)
    shifted.sample(fraction=0.8, seed=3).write_parquet(folder / "edges.parquet")
    nodes.with_columns(pl.col("id") + 5000).write_parquet(folder / "nodes.parquet")
    other = small_pipeline.graph.model_copy(
        update={"edges": str(folder / "edges.parquet"), "nodes": str(folder / "nodes.parquet")}
    )
    config = with_training(small_pipeline, epochs=4)
    config = type(config)(
        **{
            **config.model_dump(),
            "features": {"reduce": "random"},
            "evaluate": {"on": other.model_dump(), "heuristics": ["common_neighbours"]},
        }
    )
    manifests = run_pipeline(config, display)
    assert manifests["other_evaluate"].counts["test_auc"] > 0.6
    assert manifests["other_split"].counts["test_leaks"] == 0
    assert manifests["other_encode"].counts["leaked_links"] == 0
    assert manifests["other_encode"].counts["graphs"] == 1
    assert manifests["other_embed"].identity.inputs["train"] == manifests["train"].fingerprint
    pairs = Path(config.store) / "current/other_evaluate/seed-0/test_pairs/*.parquet"
    assert pl.read_parquet(pairs)["src"].min() >= 5000
    page = (Path(config.store) / "current/report/report.html").read_text()
    assert "other graph" in page


def test_principal_components_of_two_graphs_are_refused(small_pipeline):
    values = small_pipeline.model_dump()
    values["evaluate"] = {"on": values["graph"]}
    with pytest.raises(ValueError, match="one projection for both graphs"):
        type(small_pipeline)(**values)
