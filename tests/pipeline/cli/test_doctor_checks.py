import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.app import cli
from pipeline.cli.doctor_checks import (
    check_file_limit,
    check_job_server,
    check_ports,
    check_shared_memory,
    check_space,
    is_loopback,
)


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(item) for item in arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def without_token(monkeypatch, tmp_path):
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def states(*arguments):
    done = invoke("doctor", *arguments, "--json")
    return done.exit_code, {row["name"]: row for row in json.loads(done.output)}


def test_a_healthy_machine_passes(small_config):
    code, found = states(small_config)
    assert {name for name, row in found.items() if row["state"] == "fail"} == set()
    assert code == 0
    assert {"Python", "packages", "Ray", "store", "store lease", "cluster"} <= set(found)
    assert not (small_config.parent / "store").exists()


def test_what_fails_is_named_with_what_to_do(small_config, tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text("hidden-token")
    token.chmod(0o644)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    small_config.write_text(small_config.read_text() + "cluster: {address: '127.0.0.1:1'}\n")
    code, found = states(small_config, "--address", "http://127.0.0.1:1")
    assert code == 1
    failed = {name: row["advice"] for name, row in found.items() if row["state"] == "fail"}
    assert set(failed) == {"token", "cluster", "job server"}
    assert "chmod 600" in failed["token"]
    assert "cluster.address" in failed["cluster"]
    shown = invoke("doctor", small_config).output
    assert "hidden-token" not in shown
    assert "fail" in shown


@pytest.mark.parametrize(("limit", "state"), [(512, "fail"), (4096, "warn"), (65536, "ok")])
def test_few_open_files_are_told(limit, state):
    assert check_file_limit(limit).state == state


def test_little_shared_memory_is_told(tmp_path):
    size = check_shared_memory(Path("/"), 10**18)
    assert size.state == "warn"
    assert "--shm-size" in size.advice
    assert check_shared_memory(Path("/"), 1).state == "ok"
    assert check_shared_memory(tmp_path / "none", 1).state == "warn"


def test_space_is_looked_up_where_the_folder_will_be(tmp_path):
    assert str(tmp_path) in check_space("store", tmp_path / "not" / "yet").found


def test_ports_that_others_reach_are_named():
    assert "127.0.0.1 alone; Ray is not running now" in check_ports([]).found
    private = [("raylet", "::ffff:127.0.0.1", 4001), ("gcs_server", "127.0.0.1", 4002)]
    assert check_ports(private).state == "ok"
    assert "2 ports of Ray" in check_ports(private).found
    shown = check_ports([*private, ("raylet", "::", 4003), ("ray::IDLE", "192.0.2.7", 4004)])
    assert shown.state == "warn"
    assert "raylet 4003, ray::IDLE 4004" in shown.found
    assert "4001" not in shown.found


@pytest.mark.parametrize(
    ("address", "private"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("::", False),
     ("0.0.0.0", False), ("::ffff:192.0.2.2", False), ("192.0.2.2", False)],
)  # fmt: skip
def test_loopback_is_known_in_every_form(address, private):
    assert is_loopback(address) is private


@pytest.mark.ray
@pytest.mark.slow
def test_a_cluster_is_checked_with_its_token(ray_head, monkeypatch):
    [refused] = check_job_server(ray_head.dashboard)
    assert refused.state == "fail"
    monkeypatch.setenv("RAY_AUTH_TOKEN", ray_head.environment["RAY_AUTH_TOKEN"])
    assert [check.state for check in check_job_server(ray_head.dashboard)] == ["ok"] * 3
