"""What `peg schedule add` refuses, it refuses before anything is stored."""

import itertools
import json
import shlex

import pytest
from click.testing import CliRunner

from peg_core.errors import PegError
from pipeline.cli.app import cli
from pipeline.schedule.launcher import submission_of
from pipeline.schedule.schedule import command_words
from pipeline.schedule.schedule_store import ScheduleStore


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(f"name: tiny\nstore: {tmp_path}/store\ngraph: {{edges: /data/edges.parquet}}\n")
    return file


def add(config, *arguments):
    return CliRunner().invoke(cli, ["schedule", "add", str(config), *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--every", "99999999999999999999d"], "at most 10 years"),
        (["--every", "9" * 5000 + "d"], "at most 10 years"),
        (["--every", "0s"], "not an interval"),
        (["--every", "1h", "--retries", "99999999999999999999"], "0 to 100"),
        (["--every", "1h", "--retries", "-1"], "0 to 100"),
        (["--every", "1h", "--retry-delay", "99999999999999999999d"], "at most 10 years"),
        (["--every", "1h", "--retry-delay", "30d"], "at most a day"),
        (["--every", "1h", "--name", "a\nb"], "control characters"),
        (["--every", "1h", "--name", "../a"], "cannot name a schedule"),
        (["--every", "1h", "--set", "graph.edges=a\nb"], "control characters"),
        (["--every", "1h", "--address", "http://127.0.0.1:8265/\x07"], "control characters"),
        (["--cron", "* * * * *\n"], "control characters"),
        (["--cron", "* * * * *", "--timezone", "Europe"], "no time zone"),
        (["--cron", "* * * * *", "--timezone", "UTC\n"], "control characters"),
        ([], "either a cron expression or an interval"),
    ],
)
def test_what_is_refused_is_not_stored(config, tmp_path, arguments, message):
    done = add(config, *arguments)
    # the command `peg` shows these without a traceback
    assert isinstance(done.exception, PegError)
    assert done.exception.exit_code == 2
    assert message in str(done.exception)
    assert len(str(done.exception)) < 500
    assert ScheduleStore(str(tmp_path / "store")).names() == []


def test_a_path_with_a_line_break_is_refused(config, tmp_path):
    folder = tmp_path / "a\nb"
    folder.mkdir()
    done = add(config.rename(folder / "tiny.yaml"), "--every", "1h")
    assert isinstance(done.exception, PegError)
    assert "config is " in str(done.exception)
    assert ScheduleStore(str(tmp_path / "store")).names() == []


def test_the_longest_interval_can_be_added_and_listed(config, tmp_path):
    assert add(config, "--every", "3650d", "--retries", "100").exit_code == 0
    shown = CliRunner().invoke(cli, ["schedule", "list", str(tmp_path / "store")])
    assert shown.exit_code == 0
    assert "every 315360000 s" in shown.output


JOB = ("--every", "1h", "--address", "http://127.0.0.1:8265")


def test_options_of_the_job_are_kept_and_given_to_what_submits(config, tmp_path):
    cluster, more = tmp_path / "cluster.yaml", tmp_path / "more.json"
    cluster.write_text("cluster: {workers: 7}")
    more.write_text('{"env_vars": {"B": "2"}}')
    done = add(
        config, *JOB, "--shared-paths", "--cluster", str(cluster), "--runtime-env", str(more),
        "--env", "A=1", "--pip", "tiny==1", "--driver-cpus", "0.5", "--driver-memory", "2GB",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    kept = ScheduleStore(str(tmp_path / "store")).get("tiny")
    submission = submission_of(kept, label="now")
    job = submission.job(submission.load())
    assert "cluster.workers=7" in job.entrypoint
    assert (job.driver_cpus, job.driver_memory_bytes) == (0.5, 2 * 10**9)
    found = job.runtime_environment()
    assert found["pip"] == ["tiny==1"]
    assert {"A": "1", "B": "2"}.items() <= found["env_vars"].items()
    # what other schedulers run means the same
    options = CliRunner().invoke(cli, ["submit", *command_words(kept)[4:], "--help"])
    assert options.exit_code == 0
    words = command_words(kept)[5:]
    for pair in (("--cluster", str(cluster)), ("--runtime-env", str(more)), ("--env", "A=1"),
                 ("--pip", "tiny==1"), ("--driver-cpus", "0.5"),
                 ("--driver-memory", "2000000000B")):  # fmt: skip
        assert pair in itertools.pairwise(words)
    assert "--shared-paths" in words


def test_a_schedule_of_an_older_version_is_read_and_submits_what_it_did(config, tmp_path):
    assert add(config, *JOB, "--shared-paths").exit_code == 0
    store = ScheduleStore(str(tmp_path / "store"))
    file = tmp_path / "store" / "schedules" / "tiny.json"
    record = json.loads(file.read_text())
    for key in ("cluster_file", "shared_paths", "environment", "pip", "image", "runtime_env_file",
                "driver_cpus", "driver_memory_bytes"):  # fmt: skip
        del record[key]
    file.write_text(json.dumps(record))
    submission = submission_of(store.get("tiny"))
    assert submission.job(submission.load()).runtime_environment()["env_vars"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--every", "1h", "--pip", "tiny"], "found `pip` of a job without --address"),
        (["--every", "1h", "--env", "A=1"], "found `environment` of a job without --address"),
        ([*JOB], "found local path /data/edges.parquet for `graph.edges`"),
        ([*JOB, "--shared-paths", "--env", "SOME_TOKEN=1"], "SOME_TOKEN looks like a secret"),
        ([*JOB, "--shared-paths", "--image", "a", "--pip", "b"], "found `pip` beside an image"),
        ([*JOB, "--shared-paths", "--driver-memory", "much"], "is not a size"),
        ([*JOB, "--shared-paths", "--driver-cpus", "-1"], "driver_cpus is '-1.0'"),
    ],
)
def test_a_job_that_no_tick_could_submit_is_not_stored(config, tmp_path, arguments, message):
    done = add(config, *arguments)
    assert isinstance(done.exception, PegError)
    assert message in str(done.exception)
    assert ScheduleStore(str(tmp_path / "store")).names() == []


def test_a_store_of_objects_is_printed_as_a_shell_takes_it(config, object_store):
    store = f"s3://{object_store.new_bucket()}/a b{object_store.options()}"
    done = add(config, "--every", "1h", "--set", f"store={store}")
    [hint] = [line for line in done.output.splitlines() if "peg schedule serve" in line]
    words = shlex.split(hint.partition(": ")[2])
    assert words == ["peg", "schedule", "serve", store]
    listed = CliRunner().invoke(cli, ["schedule", "list", words[-1], "--json"])
    assert [item["name"] for item in json.loads(listed.output)] == ["tiny"]
    for command in ("history", "verify"):
        assert CliRunner().invoke(cli, [command, words[-1]]).exit_code == 0
