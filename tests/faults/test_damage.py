"""Damaged artifacts are noticed, named, set aside and made again."""

import io
import json
import os
import random
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from rich.console import Console

from peg_core.artifacts.integrity import DamagedArtifact
from pipeline.cli.app import cli
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import plan_run, run_pipeline
from pipeline.store.verification import verify_store

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# The long form: PEG_BIT_FLIPS=50
FLIPS = int(os.environ.get("PEG_BIT_FLIPS", "8"))


def run(config):
    """Run, and return what the user reads."""
    shown = io.StringIO()
    run_pipeline(config, RunDisplay(Console(file=shown, width=1000)))
    return shown.getvalue()


def scores(config):
    return pl.read_parquet(f"{config.store}/current/score/*.parquet")


def files_of(config):
    """Every file of every artifact, manifests among them."""
    root = Path(config.store)
    return [
        path
        for manifest in sorted(root.glob("*/*/manifest.json"))
        if manifest.parents[1].name not in ("current", "damaged")
        for path in sorted(manifest.parent.rglob("*"))
        if path.is_file() and path.stat().st_size and not path.name.startswith(".")
    ]


@pytest.fixture(scope="module")
def finished(cluster, small_inputs, tmp_path_factory):
    config = PipelineConfig(**small_inputs(tmp_path_factory.mktemp("damage")))
    run(config)
    return config, scores(config)


@pytest.mark.parametrize("number", range(FLIPS))
def test_one_flipped_bit_changes_no_score_in_silence(finished, number):
    config, before = finished
    choice = random.Random(number)
    file = choice.choice(files_of(config))
    data = bytearray(file.read_bytes())
    data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
    file.write_bytes(data)
    text = run(config)
    stage = file.relative_to(config.store).parts[0]
    assert f"{stage} is damaged" in text
    assert file.name in text
    assert scores(config).equals(before)
    assert "damaged" not in run(config)


@pytest.mark.parametrize("harm", ["deleted", "truncated", "emptied"])
def test_a_part_of_the_scores_that_was_harmed_is_made_again(finished, harm):
    config, before = finished
    part = next(Path(config.store, "current/score").resolve().glob("part-*.parquet"))
    if harm == "deleted":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:100] if harm == "truncated" else b"")
    [step] = [step for step in plan_run(config) if step.stage.name == "score"]
    assert step.reason.startswith(f"damaged: {part.name}")
    assert "score is damaged" in run(config)
    assert scores(config).equals(before)


@pytest.mark.parametrize("text", ["", '{"identity": ', "[]"])
def test_a_manifest_that_was_harmed_is_made_again_with_its_artifact(finished, text):
    config, before = finished
    (Path(config.store) / "current/embed_all/manifest.json").write_text(text)
    assert "embed_all is damaged: manifest.json" in run(config)
    assert scores(config).equals(before)


def test_a_run_stops_at_damage_where_it_is_told_to(finished):
    config, _ = finished
    file = Path(config.store) / "current/embed_all/manifest.json"
    whole = file.read_bytes()
    file.write_text("")
    told = config.model_copy(
        update={"integrity": config.integrity.model_copy(update={"on_damage": "stop"})}
    )
    with pytest.raises(DamagedArtifact, match=r"embed_all is damaged: .*`integrity.on_damage`"):
        run(told)
    file.write_bytes(whole)
    assert "damaged" not in run(told)


def test_the_whole_store_is_verified_on_demand(finished):
    config, _ = finished
    assert {item.state for item in verify_store(config.store, contents=True)} == {"whole"}
    file = next(Path(config.store, "current/embed_all").resolve().rglob("*.npy"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    result = CliRunner().invoke(cli, ["verify", config.store, "--json"])
    assert result.exit_code == 1
    [damaged] = [item for item in json.loads(result.stdout) if item["state"] == "damaged"]
    assert damaged["stage"] == "embed_all"
    assert file.name in damaged["damage"]
    assert CliRunner().invoke(cli, ["verify", config.store, "--sizes"]).exit_code == 0
    run(config)
    assert CliRunner().invoke(cli, ["verify", config.store]).exit_code == 0
