"""What `peg reproduce` tells without running anything."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner

from peg_core.errors import ConfigError
from pipeline.cli.app import cli


def run(*arguments):
    done = CliRunner().invoke(cli, ["reproduce", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_experiments_and_the_cells_of_one_are_listed():
    assert "task1             210 cells x 5 splits" in run("--list")
    output = run("task2", "--list", "--only", "*/best-le+/N", "--splits", "2")
    assert output.splitlines()[0].startswith("task2 ")
    assert "   4 cells x 2 splits" in output.splitlines()[0]
    assert output.splitlines()[1] == "  cora-citeseer/best-le+/N"


def test_the_file_of_a_cell_is_printed(tmp_path):
    shown = yaml.safe_load(
        run("task1", "--show", "chameleon/best-le+/N", "--data", str(tmp_path), "--out", "kept")
    )
    assert shown["graph"]["edges"] == f"{tmp_path}/chameleon/edges.parquet"
    assert (shown["store"], shown["repeats"], shown["train"]["epochs"]) == (
        "kept/chameleon",
        5,
        100,
    )


def test_an_experiment_must_be_named():
    with pytest.raises(ConfigError, match="an experiment is needed"):
        run()
    with pytest.raises(ConfigError, match="--show needs the experiment"):
        run("all", "--show", "cora/best-le+/N")
