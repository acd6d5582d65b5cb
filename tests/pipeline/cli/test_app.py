import subprocess
import sys

import pytest
from click.testing import CliRunner

from pipeline.cli.app import COMMANDS, cli


def invoke(*arguments):
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


@pytest.mark.parametrize(
    "arguments", [[], *([name] for name in COMMANDS), ["generate", "rmat"], ["schedule", "add"]]
)
def test_help_teaches(arguments):
    result = invoke(*arguments, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_their_help_says(name):
    command = cli.get_command(None, name)
    assert command.name == name
    assert command.help.splitlines()[0] == COMMANDS[name][1]
    assert COMMANDS[name][1] in " ".join(invoke("--help").output.split())


def test_help_waits_for_no_heavy_import():
    code = (
        "import sys; from pipeline.cli.app import main; sys.argv = ['peg', '--help']\n"
        "try: main()\n"
        "finally: print(sorted({'torch', 'ray', 'polars', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command_is_told_by_click():
    result = invoke("rnu")
    assert result.exit_code == 2
    assert "No such command 'rnu'" in result.output


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


@pytest.mark.parametrize(("width", "shown"), [(80, False), (120, True)])
def test_a_plan_leaves_out_fingerprints_before_it_breaks_numbers(small_config, width, shown):
    result = CliRunner().invoke(cli, ["plan", str(small_config)], env={"COLUMNS": str(width)})
    lines = [line.split() for line in result.output.splitlines()]
    assert ("fingerprint" in lines[0]) is shown
    ingest = next(line for line in lines if line[:2] == ["ingest", "run"])
    assert ingest[-1] in ("B", "KB", "MB")
    assert ingest[-3] in ("KB", "MB", "GB")


def test_status_of_a_pipeline_that_never_ran(small_config):
    result = invoke("status", str(small_config))
    assert result.output.count("missing") == 12


@pytest.mark.slow
def test_errors_go_to_stderr_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "run", str(tmp_path / "none.yaml")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "none.yaml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_wrong_option_is_told_by_click():
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "run", "--epochs", "3"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "No such option" in done.stderr
