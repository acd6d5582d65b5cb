import subprocess
import sys

import pytest
from click.testing import CliRunner

from pipeline.cli import cli


def invoke(*arguments):
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["plan"],
        ["status"],
        ["config"],
        ["generate"],
        ["generate", "rmat"],
        ["submit"],
        ["jobs"],
        ["schedule"],
        ["schedule", "add"],
        ["history"],
        ["gc"],
        ["doctor"],
    ],
)
def test_help_teaches(arguments):
    result = invoke(*arguments, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_plan_shows_every_stage_and_starts_nothing(small_config):
    result = invoke("plan", str(small_config))
    assert result.exit_code == 0
    for stage in (
        "ingest",
        "features",
        "split",
        "encode",
        "train",
        "embed",
        "evaluate",
        "score",
        "report",
    ):
        assert stage in result.output
    assert not (small_config.parent / "store").exists()


def test_status_of_a_pipeline_that_never_ran(small_config):
    result = invoke("status", str(small_config))
    assert result.output.count("missing") == 12


def test_errors_go_to_stderr_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "run", str(tmp_path / "none.yaml")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "none.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_option_is_told_by_click():
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "run", "--epochs", "3"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "No such option" in done.stderr
