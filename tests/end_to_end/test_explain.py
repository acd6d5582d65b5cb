"""Reasons for the scores of a finished run: from Python and from the command line."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from peg_core.artifacts import Run
from peg_core.errors import ConfigError, InputError
from pipeline.cli.app import cli
from pipeline.config.loading import load_config
from pipeline.results.explained_pairs import explain_pairs, open_explainer
from pipeline.results.finished_run import FinishedRun
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def finished(cluster, small_inputs, tmp_path_factory):
    """The pipeline file of a run that scored all its candidates and explained the best."""
    folder = tmp_path_factory.mktemp("explained")
    values = small_inputs(folder)
    values["score"] |= {"columns": ["score", "logit"], "explain": "top"}
    file = folder / "small.yaml"
    file.write_text(yaml.safe_dump(values))
    run_pipeline(load_config(file), RunDisplay(Console(quiet=True)))
    return file


@pytest.fixture(scope="module")
def best(finished):
    """The candidate pair with the highest score, with its row."""
    run = Run.open(load_config(finished).store)
    return run.scores().sort("score", descending=True, nulls_last=True).collect().row(0, named=True)


def peg(*arguments):
    done = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_python_and_the_command_give_the_reasons_for_the_score_that_was_written(finished, best):
    ends = best["src"], best["dst"]
    found = Run.open(load_config(finished).store).explain(*ends)
    assert found.score == pytest.approx(best["score"], abs=1e-6)
    assert found.logit == pytest.approx(best["logit"], abs=1e-5)
    added = sum(part.added for part in found.parts)
    assert found.baseline + added == pytest.approx(best["logit"], abs=1e-3)
    printed = json.loads(peg("explain", finished, *ends, "--json"))
    assert printed.pop("graph") == "all"
    assert printed == json.loads(json.dumps(found.as_dict()))
    assert found.feature_similarity is not None


def test_a_page_gets_the_same_reasons_as_plain_data(finished, best):
    run = FinishedRun.of(load_config(finished))
    explainer = open_explainer(run.inputs, graph=run.graph)
    ends = best["src"], best["dst"]
    (alone,) = explain_pairs(explainer, ends[:1], ends[1:])
    assert alone == Run.open(load_config(finished).store).explain(*ends).as_dict()
    both = explain_pairs(explainer, ends, ends[::-1])
    assert [each["source"] for each in both] == list(ends)
    assert both[0]["logit"] == pytest.approx(both[1]["logit"], abs=1e-6)  # no direction
    assert explain_pairs(explainer, [], []) == []


def test_the_best_pairs_are_explained_in_a_table_of_their_own(finished, best):
    run = Run.open(load_config(finished).store)
    scores, found = run.scores().collect(), run.explanations()
    assert "why" not in scores.columns
    pairs = scores.filter(pl.col("score").is_not_null()).unique(["src", "dst"])
    expected = pairs.sort("score", "src", "dst", descending=True).head(100)
    assert found.drop("why").equals(expected.select("src", "dst", "score"))
    why = found["why"][0]
    assert why["logit"] == pytest.approx(best["logit"], abs=1e-5)
    assert why["baseline"] + sum(p["added"] for p in why["parts"]) == pytest.approx(
        why["logit"], abs=1e-3
    )


def test_the_table_fits_eighty_columns(finished, best):
    text = peg("explain", finished, best["src"], best["dst"])
    assert max(map(len, text.splitlines())) <= 80
    for words in ("embedding product", "position geometry", "distance in le", "random pairs"):
        assert words in text


def test_embeddings_and_positions_are_exported_with_their_ids(finished, tmp_path):
    run = Run.open(load_config(finished).store)
    expected = {"embeddings": ("embedding", run.embedded.embeddings)}
    expected["positions"] = "le", run.embedded.positions[0]
    for what, (column, array) in expected.items():
        file = tmp_path / f"{what}.parquet"
        assert "120 nodes" in peg("export", what, finished, "--out", file)
        table = pl.read_parquet(file)
        assert table["id"].to_list() == run.node_ids.values.to_pylist()
        np.testing.assert_array_equal(table[column].to_numpy(), array)
        with pytest.raises(ConfigError, match="exists already"):
            peg("export", what, finished, "--out", file)


def test_ids_that_are_no_nodes_are_refused(finished):
    for pair, fault in [(("x", "1"), "is no id"), (("1", "999"), "no node"), (("1", "1"), "both")]:
        with pytest.raises(InputError, match=fault):
            peg("explain", finished, *pair)


def test_a_pipeline_that_never_ran_is_refused(small_config):
    with pytest.raises(InputError, match=r"no finished ingest .* run `peg run`"):
        peg("explain", small_config, 1, 2)
