"""Random kills: what is chosen, what is noticed, and one trial."""

import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.faults.chaos.disturbed_run import Outcome, describe_end, end_processes, wait_until_gone
from tests.faults.chaos.peg_run import processes_of_session
from tests.faults.chaos.results import differences, read_results, store_leftovers
from tests.faults.chaos.summary import last_line, trial_line
from tests.faults.chaos.trial_choice import Trial, choose_trials

STAGES = ["ingest", "encode", "train", "score"]
ROOT = Path(__file__).parents[2]


def make_trial(**changes):
    values = {"store": "local", "victim": "driver", "signal": "KILL", "stage": "train"}
    return Trial(**{"number": 1, "moment": 0.5, "copied": False, **values, **changes})


def test_the_same_seed_chooses_the_same_trials_and_another_seed_others():
    first = choose_trials(STAGES, 50, seed=3)
    assert first == choose_trials(STAGES, 50, seed=3)
    assert first[:20] == choose_trials(STAGES, 20, seed=3)
    assert first != choose_trials(STAGES, 50, seed=4)


def test_every_stage_the_start_and_the_end_are_chosen_equally_often():
    counts = Counter(trial.stage for trial in choose_trials(STAGES, 600, seed=0))
    assert counts == dict.fromkeys(["start", *STAGES, "end"], 100)


def test_all_stores_victims_and_signals_come_up_and_most_signals_kill():
    trials = choose_trials(STAGES, 600, seed=0)
    assert {trial.store for trial in trials} == {"local", "s3"}
    victims = {"driver", "worker", "group", "session", "raylet", "gcs_server"}
    assert {trial.victim for trial in trials} == victims
    signals = Counter(trial.signal for trial in trials)
    assert set(signals) == {"KILL", "TERM", "INT", "HUP"}
    assert signals["KILL"] > 300


def test_no_part_of_ray_is_a_victim_before_ray_started():
    victims = {t.victim for t in choose_trials(STAGES, 600, seed=0) if t.stage == "start"}
    assert victims == {"driver", "group", "session"}


def write_store(folder, score):
    artifact = folder / "score" / "f00d"
    (artifact / "done").mkdir(parents=True)
    pl.DataFrame({"score": score}).write_parquet(artifact / "part-000000.parquet")
    marker = {"rows": len(score), "peak_memory_bytes": time.monotonic_ns()}
    (artifact / "done" / "part-000000.json").write_text(json.dumps(marker))
    (artifact / "manifest.json").write_text(str(time.monotonic_ns()))
    (folder / "current").mkdir()
    (folder / "current" / "score").symlink_to("../score/f00d")
    return folder


def test_a_score_changed_in_its_last_bit_is_a_mismatch(tmp_path):
    score = np.linspace(0, 1, 9, dtype=np.float32)
    whole = read_results(write_store(tmp_path / "whole", score))
    assert differences(whole, read_results(write_store(tmp_path / "same", score))) == []
    score[4] = np.nextafter(score[4], np.float32(1))
    other = read_results(write_store(tmp_path / "other", score))
    assert differences(whole, other) == ["score/part-000000.parquet"]


def test_a_missing_file_is_a_mismatch(tmp_path):
    whole = read_results(write_store(tmp_path, np.zeros(3)))
    assert differences(whole, {}) == ["score/done/part-000000.json", "score/part-000000.parquet"]


def test_what_a_kill_left_in_a_store_is_found(tmp_path):
    store = write_store(tmp_path, np.zeros(3))
    assert store_leftovers(store) == []
    (store / "lease.json").write_text("{}")
    (store / "score" / "f00d" / ".part-000000.parquet.17.tmp").write_text("half")
    (store / "train" / "beef").mkdir(parents=True)
    assert store_leftovers(store) == [
        "lease lease.json",
        "temporary file score/f00d/.part-000000.parquet.17.tmp",
        "unfinished artifact train/beef",
    ]


class DeadRun:
    """A run whose driver is gone."""

    def __init__(self, pid):
        self.pid = pid

    def processes(self):
        return processes_of_session(self.pid)


@pytest.fixture
def orphaned_run():
    """The driver has ended, a process that it started has not."""
    code = "import subprocess; subprocess.Popen(['sleep', '60'])"
    driver = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    driver.wait()
    run = DeadRun(driver.pid)
    yield run
    end_processes(run.processes())


def test_a_process_that_outlives_its_run_is_found_and_ended(orphaned_run, monkeypatch):
    monkeypatch.setattr("tests.faults.chaos.disturbed_run.RERUN_VANISH_SECONDS", 0.3)
    (found,) = wait_until_gone([orphaned_run], deadline=0)
    assert found.endswith("sleep")
    end_processes(orphaned_run.processes())
    assert wait_until_gone([orphaned_run], deadline=0) == []


@pytest.mark.parametrize(
    ("changes", "code", "output", "expected"),
    [
        ({}, -9, "", "killed"),
        ({"victim": "worker"}, 0, "", "survived"),
        ({"signal": "TERM"}, 130, "stopped; finished work is kept: run", "stopped"),
        ({"signal": "TERM"}, -15, "", "unclear: died of SIGTERM"),
        ({"signal": "TERM"}, -15, "report: r\n\nnext:\n  peg plan x.yaml  # why", "killed"),
        ({"victim": "raylet"}, 1, "error: task lost", "error, exit 1"),
        ({"victim": "raylet"}, 1, "", "unclear: no message, exit 1"),
        ({"victim": "raylet"}, 1, "Traceback\nerror:", "unclear: traceback, exit 1"),
        ({}, None, "", "unclear: still there after 240 s"),
    ],
)
def test_the_end_of_a_struck_run_is_told_in_words(changes, code, output, expected):
    assert describe_end(make_trial(**changes), code, output) == expected


def test_the_last_line_counts_trials_that_went_wrong():
    outcomes = [
        Outcome(make_trial(), Path("a"), success=True, block_seconds=3.21),
        Outcome(make_trial(), Path("b"), success=True, mismatches=["x", "y"]),
        Outcome(make_trial(), Path("c"), leftovers=["process 7 raylet"]),
    ]
    assert last_line(outcomes) == (
        "trials 3, successes 2, mismatches 1, leftovers 1, longest block 3.2 s"
    )
    assert [outcome.good for outcome in outcomes] == [True, False, False]
    assert "output: c" in trial_line(outcomes[2])


@pytest.mark.slow
@pytest.mark.ray
def test_a_run_struck_at_random_ends_as_if_nothing_had_happened():
    command = [sys.executable, "-m", "tests.faults.chaos", "--trials", "1", "--seed", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=590)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    expected = r"trials 1, successes 1, mismatches 0, leftovers 0, longest block \d+\.\d s"
    assert re.fullmatch(expected, last), done.stdout
