import subprocess
import sys
from datetime import UTC, datetime

import polars as pl
import pytest
from click.testing import CliRunner

from pipeline.cli.app import COMMANDS, cli
from pipeline.run.history import SCHEMA


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


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["rnu"], "run"), (["expalin", "a"], "explain"), (["config", "shw"], "show"), (["zz"], None)],
)
def test_an_unknown_command_is_told_with_the_closest_one(words, meant):
    result = invoke(*words)
    assert result.exit_code == 2
    assert f"No such command '{words[len(words) == 2 and words[0] == 'config']}'" in result.output
    assert ("did you mean" in result.output) == (meant is not None)
    assert meant is None or f"did you mean '{meant}'?" in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_completion_prints_asks_peg_for_the_words(shell):
    assert f"_PEG_COMPLETE={shell}_complete" in invoke("completion", shell).output


def test_a_shell_gets_commands_and_options():
    environment = {"COMP_WORDS": "peg sc", "COMP_CWORD": "1", "_PEG_COMPLETE": "bash_complete"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        done = CliRunner().invoke(cli, [], prog_name="peg")
    assert done.output.splitlines() == ["plain,schedule", "plain,score"]


def test_ids_of_runs_are_whole_on_narrow_terminals(tmp_path):
    run = "20260102T030405Z-1a2b3c"
    row = dict.fromkeys(SCHEMA)
    row |= {"run": run, "outcome": "failed", "seconds": 123_456.7, "action": "run"}
    row |= {"started": datetime(2026, 1, 2, tzinfo=UTC), "error": "no room left on " + "disk " * 30}
    (tmp_path / "history").mkdir()
    pl.DataFrame([row], SCHEMA).write_parquet(tmp_path / "history" / f"runs-{run}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "60")
        assert run in invoke("history", str(tmp_path)).output


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
