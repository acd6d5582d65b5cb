"""What a run is expected to take."""

import json
from collections import namedtuple
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import DiskFull, PegError
from pipeline.cli.config_command import show
from pipeline.cli.plan_command import plan
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.history import SCHEMA, read_history
from pipeline.run.runner import plan_run, run_pipeline
from pipeline.run.sizing import space_check
from pipeline.run.sizing.automatic import GraphExtent, resolve
from pipeline.run.sizing.estimate import COSTS, RATES, Cost, measured_rates
from pipeline.run.sizing.expectation import estimate_run
from pipeline.run.sizing.workload import Workload
from pipeline.stages import STAGES
from pipeline.store.local_store import open_store

BASE = {"name": "a", "store": "s", "graph": {"edges": "e.parquet"}}
Usage = namedtuple("Usage", "free")
MEASURED = ("ingest", "split", "encode", "train", "embed")


def costs(nodes, edges, **sections):
    extent = GraphExtent(nodes, edges)
    config, _ = resolve(PipelineConfig(**BASE, **sections), extent)
    work = Workload.of(config, extent)
    return {name: cost(work) for name, cost in COSTS.items()}


def history(*rows):
    found = [{"action": "run", **row} for row in rows]
    return pl.DataFrame([{key: row.get(key) for key in SCHEMA} for row in found], SCHEMA)


def test_every_stage_has_a_cost_and_a_rate():
    assert set(COSTS) == set(RATES)
    free = {name for name in STAGES if name.startswith("other_")}  # a graph to evaluate on
    assert set(COSTS) == set(STAGES) - free - {"report"}


@given(edges=st.integers(1000, 300_000), factor=st.integers(2, 30))
def test_with_given_settings_a_larger_graph_costs_no_less(edges, factor):
    given_settings = {
        "split": {"folds": 3},
        "encodings": [{"kind": "le", "dimensions": 16}],
        "train": {"links": 1000, "batch_size": 64, "batching": "sampled", "fan_outs": [5, 5]},
    }
    small = costs(edges // 10, edges, **given_settings)
    large = costs(edges // 10 * factor, edges * factor, **given_settings)
    for name, cost in small.items():
        assert large[name].work >= cost.work
        assert large[name].memory_bytes >= cost.memory_bytes
        assert large[name].disk_bytes >= cost.disk_bytes


def test_defaults_keep_training_below_linear_growth():
    """A hundred times the graph, ten times the links of the budget."""
    million, hundred = costs(200_000, 2 * 10**6), costs(20_000_000, 2 * 10**8)
    assert hundred["train"].work < 100 * million["train"].work


def test_rates_are_those_of_the_newest_run_that_took_long_enough():
    start = RATES["split"].start
    rows = history(
        {"stage": "split", "stage_seconds": 5.0, "work": 1e6},
        {"stage": "split", "stage_seconds": 100.0 + start, "work": 2e6},
        {"stage": "split", "stage_seconds": 900.0, "work": 2e6},
        {"stage": "ingest", "stage_seconds": 100.0, "work": 0.0},
        {"stage": "encode", "action": "reuse"},
    )
    assert measured_rates(rows) == {"split": pytest.approx(100 / 2e6)}


def test_what_is_reused_costs_nothing_and_totals_add_up(small_pipeline):
    steps = plan_run(small_pipeline)
    expected = estimate_run(small_pipeline, open_store(small_pipeline.store), steps)
    found = expected.by_stage
    assert set(found) == {step.stage.name for step in steps}
    assert expected.total.disk_bytes == sum(one.disk_bytes for one in found.values())
    assert expected.total.task_memory_bytes == max(e.task_memory_bytes for e in found.values())


def test_the_plan_as_json(small_config):
    shown = CliRunner().invoke(plan, [str(small_config), "--json"])
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    first = found["stages"][0]
    assert (first["stage"], first["action"], first["why"]) == ("ingest", "run", "not done yet")
    assert set(first["estimate"]) == {"seconds", "task_memory_bytes", "disk_bytes"}
    assert len(first["fingerprint"]) == 16
    assert found["total"]["seconds"] == pytest.approx(
        sum(stage["estimate"]["seconds"] for stage in found["stages"])
    )
    assert not Path(small_config).with_name("store").exists()


def test_the_resolved_configuration_is_shown_with_reasons_and_can_be_run(small_config):
    shown = CliRunner().invoke(
        show, [str(small_config), "--resolved", "--set", "train.epochs=auto"]
    )
    assert shown.exit_code == 0, shown.output
    assert "  epochs: 50" in shown.stdout
    assert "# train.batch_size: 8192, large batches share neighbours" in shown.stdout
    again = small_config.with_name("resolved.yaml")
    again.write_text(shown.stdout)
    shown_again = CliRunner().invoke(show, [str(again), "--resolved"])
    assert yaml.safe_load(shown_again.stdout) == yaml.safe_load(shown.stdout)
    assert "#" not in shown_again.stdout


@pytest.mark.ray
@pytest.mark.slow
def test_estimates_are_near_what_a_run_took(start_peg, tmp_path):
    """Disk within a factor of 1.5, memory of the largest task within a factor of 2."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 20_000, size=(2, 100_000))
    pl.DataFrame({"src": ends[0], "dst": ends[1]}).write_parquet(tmp_path / "more.parquet")
    settings = {
        "name": "measured",
        "store": str(tmp_path / "measured"),
        "graph": {"edges": str(tmp_path / "more.parquet")},
        "split": {"folds": 2},
        "encodings": [{"kind": "le", "dimensions": 16}],
        "train": {"links": 100_000, "batching": "sampled", "fan_outs": [3, 3]},
        "cluster": {"workers": 1},
    }
    config = PipelineConfig(**settings)
    store = open_store(config.store)
    expected = estimate_run(config, store, plan_run(config)).by_stage
    (tmp_path / "measured.yaml").write_text(yaml.safe_dump(settings))
    # a Ray of its own: a worker that other runs used before holds their memory
    process = start_peg("run", tmp_path / "measured.yaml")
    assert process.wait() == 0, process.output
    current = Path(config.store, "current")
    found = {name: Manifest.require(current / name) for name in MEASURED}
    for name in set(MEASURED) - {"train"}:
        written = found[name].metrics["bytes_written"]
        assert written / 1.5 < expected[name].disk_bytes < written * 1.5, (name, written)
    for name in MEASURED:
        peak = found[name].peak_memory_bytes
        assert peak / 2 < expected[name].task_memory_bytes < peak * 2, (name, peak)
    rows = read_history(config.store).filter(pl.col("work") > 0)
    assert set(rows["stage"]) >= {*MEASURED, "features"}


def test_a_run_that_does_not_fit_on_the_disk_is_refused(small_pipeline, monkeypatch, display):
    steps = plan_run(small_pipeline)
    expected = estimate_run(small_pipeline, open_store(small_pipeline.store), steps)
    needed = expected.total.disk_bytes
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(needed))
    space_check.require_space(small_pipeline, steps, expected.by_stage)
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(needed - 1))
    with pytest.raises(DiskFull, match=r"free, this run will write about .* `peg gc`.*--anyway"):
        run_pipeline(small_pipeline, display)
    assert not Path(small_pipeline.store).exists()


def test_a_task_that_does_not_fit_into_memory_is_refused_with_a_remedy(
    small_pipeline, monkeypatch, display
):
    monkeypatch.setitem(COSTS, "encode", lambda _: Cost(1.0, 10**18))
    with pytest.raises(PegError, match=r"stage encode .* 1,000,000,000\.0 GB .*lower `dimensions`"):
        run_pipeline(small_pipeline, display)
    elsewhere = small_pipeline.cluster.model_copy(update={"address": "ray://far:10001"})
    steps = plan_run(small_pipeline)
    config = small_pipeline.model_copy(update={"cluster": elsewhere})
    found = estimate_run(config, open_store(config.store), steps).by_stage
    space_check.require_space(config, steps, found)  # its machines are not known


def test_what_an_interrupted_run_has_written_is_not_asked_for_again(small_pipeline, monkeypatch):
    steps = plan_run(small_pipeline)
    found = estimate_run(small_pipeline, open_store(small_pipeline.store), steps).by_stage
    encode = next(step for step in steps if step.stage.name == "encode")
    folder = Path(small_pipeline.store) / "encode" / encode.fingerprint
    folder.mkdir(parents=True)
    (folder / "all.npy").write_bytes(bytes(1000))
    needed = sum(one.disk_bytes for one in found.values()) - 1000
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(needed))
    space_check.require_space(small_pipeline, steps, found)
