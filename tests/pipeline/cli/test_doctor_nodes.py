"""What `peg doctor` finds out on the nodes of a cluster."""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.fs as pafs
import pytest
import yaml

from pipeline.cli.doctor.check import by_problem
from pipeline.cli.doctor.node_checks import (
    check_answers,
    check_caches,
    check_clocks,
    check_inputs_seen,
    check_room,
    check_store_seen,
    check_versions,
)
from workers.cluster_settings import ClusterSettings
from workers.ray_nodes.node_report import NodeAnswer, clock_skew, probe_in, store_problem

HERE = {"Python": "3.11.9", "ray": "2.60.0", "torch": "2.13.0", "peg-pipeline": "0.4.0"}
PLAIN = {
    "versions": HERE,
    "memory_bytes": 16 * 10**9,
    "cache": "/cache",
    "cache_free_bytes": 10**11,
    "cache_problem": "",
    "store_problem": "",
    "missing_inputs": [],
}


def node(name="a", *, skew=0.0, gpus=0.0, **changes):
    return NodeAnswer(name, 4.0, gpus, 16e9, report={**PLAIN, **changes}, skew_seconds=skew)


def with_version(name, package, version):
    return node(name, versions={**HERE, package: version})


def test_nodes_with_the_same_problem_are_named_together():
    assert by_problem({"a": "late", "b": "full", "c": "late"}) == "a, c: late; b: full"
    many = by_problem({str(number): "late" for number in range(9)})
    assert many == "0, 1, 2, 3 and 5 more: late"


def test_a_node_that_does_not_answer_fails():
    silent = NodeAnswer("b", 4, 0, 16e9, problem="ModuleNotFoundError: No module named 'workers'")
    found = check_answers([node(), silent])
    assert found.state == "fail"
    assert "b: ModuleNotFoundError" in found.found
    assert "8 CPUs" in check_answers([node(), node("b")]).found


@pytest.mark.parametrize(
    ("package", "version", "state"),
    [("ray", "2.59.0", "fail"), ("Python", "3.11.8", "fail"), ("torch", "2.13.1", "warn"),
     ("torch", "none", "fail"), ("peg-pipeline", "none", "warn"),
     ("peg-pipeline", "0.3.0", "fail")],
)  # fmt: skip
def test_a_version_that_differs_is_told(package, version, state):
    found = check_versions([node(), with_version("b", package, version)], HERE)
    assert found.state == state
    assert f"b: {package} {version}, here {HERE[package]}" in found.found
    assert check_versions([node(), node("b")], HERE).state == "ok"


def test_the_worst_version_decides():
    answers = [with_version("a", "ray", "2.59.0"), with_version("b", "torch", "2.13.1")]
    assert check_versions(answers, HERE).state == "fail"
    assert check_versions(answers[::-1], HERE).state == "fail"


@pytest.mark.parametrize(
    ("changes", "store", "state"),
    [
        ({}, "s3://bucket/a", "ok"),
        ({"cache_problem": "cannot write to /cache"}, "s3://bucket/a", "fail"),
        ({"cache_problem": "cannot write to /cache"}, "/data/a", "warn"),
        ({"cache_free_bytes": 10**8}, "s3://bucket/a", "fail"),
        ({"cache_free_bytes": 5 * 10**9}, "s3://bucket/a", "warn"),
        ({"cache_free_bytes": 10**8}, None, "warn"),
    ],
)
def test_a_store_of_objects_needs_a_cache_on_every_node(changes, store, state):
    full = node("b", cache_free_bytes=5 * 10**9)
    assert check_caches([node(), node("c", **changes)], store).state == state
    if state == "fail":
        assert check_caches([node("c", **changes), full], store).state == "fail"


def test_a_store_that_a_node_does_not_reach_fails_with_the_right_advice():
    answers = [node(), node("b", store_problem="does not see it")]
    local = check_store_seen(answers, "/data/store")
    assert (local.state, local.found) == ("fail", "b: does not see it")
    assert "s3://" in local.advice
    assert "credentials" in check_store_seen(answers, "s3://bucket/store").advice
    assert check_store_seen([node()], "/data/store").state == "ok"


def test_inputs_that_a_node_lacks_fail():
    answers = [node(), node("b", missing_inputs=["/data/edges.parquet"])]
    found = check_inputs_seen(answers, ["/data/edges.parquet"])
    assert (found.state, found.found) == ("fail", "b: no /data/edges.parquet")


@pytest.mark.parametrize(
    ("skew", "state"), [(1.9, "ok"), (-1.9, "ok"), (2.1, "warn"), (-29, "warn"), (-31, "fail")]
)
def test_clocks_that_differ_are_told(skew, state):
    found = check_clocks([node(), node("b", skew=skew)])
    assert found.state == state
    if state != "ok":
        assert f"b: {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}" in found.found


def test_a_slow_answer_is_no_wrong_clock():
    assert clock_skew(100.0, 103.0, 110.0) == 0
    assert clock_skew(100.0, 113.0, 110.0) == 3
    assert clock_skew(100.0, 95.0, 110.0) == -5


@pytest.mark.parametrize(
    ("settings", "state", "text"),
    [
        ({"workers": 2, "cpus_per_worker": 4}, "ok", "2 tasks at once"),
        ({"workers": 9, "cpus_per_worker": 2}, "warn", "4 tasks at once"),
        ({"cpus_per_worker": 5}, "fail", "wait for ever"),
        ({"gpus_per_worker": 1}, "fail", "1 GPUs: training would wait for ever"),
        ({"workers": 8, "task_memory_bytes": 5 * 10**9}, "warn", "6 tasks at once"),
        ({"task_memory_bytes": 20 * 10**9}, "warn", "the largest node has 16.0 GB"),
    ],
)
def test_room_for_tasks_is_counted(settings, state, text):
    found = check_room([node(), node("b")], ClusterSettings(**settings))
    assert found.state == state
    assert text in found.found


def test_a_probe_is_found_where_it_was_written_and_nowhere_else(tmp_path):
    (tmp_path / "other").mkdir()
    with probe_in(tmp_path / "not" / "yet", "token") as folder:
        assert folder == tmp_path
        assert store_problem(str(folder), "token") == ""
        assert "does not see" in store_problem(str(tmp_path / "other"), "token")
        assert "does not see" in store_problem(str(folder), "another")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


HIDES = """#!/bin/sh
exec unshare --mount --propagation private sh -c \
    'mount -t tmpfs none "$HIDDEN" && exec "$PYTHON" "$@"' "$0" "$@"
"""


@pytest.fixture(scope="module")
def far_node(ray_head, ray_node_class, tmp_path_factory):
    """A second node that sees another folder in the place of the store, and has no cache.

    Yields:
        The folder that is another one there.
    """
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces: run as root, or in a container that allows them")
    hidden = tmp_path_factory.mktemp("hidden")
    wrapper = hidden.parent / "python"
    wrapper.write_text(HIDES)
    wrapper.chmod(0o755)
    variables = {"HIDDEN": str(hidden), "PYTHON": sys.executable, "PEG_CACHE_DIR": "/dev/null/x"}
    with (
        tempfile.TemporaryDirectory(prefix="peg-ray-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "executable", str(wrapper))
        token = ray_head.environment["RAY_AUTH_TOKEN"]
        second = ray_node_class(Path(folder), token, head=ray_head.address)
        patch.undo()
        for _ in range(300):
            if "Ray runtime started" in second.log.read_text():
                break
            assert second.process.poll() is None, second.log.read_text()
            time.sleep(0.2)
        yield hidden
        second.kill()


@pytest.fixture(scope="module")
def doctor(ray_head, far_node, launcher_class, tmp_path_factory):
    """Starts `peg doctor` with a store, the edges beside it; returns exit code and output."""
    environment = {**ray_head.environment, "COLUMNS": "80", "PEG_CACHE_DIR": str(far_node)}
    environment["HOME"] = str(tmp_path_factory.mktemp("home"))
    launcher = launcher_class(tmp_path_factory.mktemp("doctor"), environment)
    (far_node / "edges.parquet").touch()

    def start(store, edges, *arguments):
        config = far_node.parent / "links.yaml"
        settings = {
            "name": "links",
            "store": store,
            "graph": {"edges": edges},
            "cluster": {"address": ray_head.address, "task_memory": "100MB"},
        }
        config.write_text(yaml.safe_dump(settings))
        process = launcher.start("doctor", config, *arguments)
        return process.wait(), process.output

    yield start
    launcher.close()


@pytest.mark.ray
@pytest.mark.slow
def test_a_folder_that_not_all_nodes_share_is_told(doctor, far_node):
    code, output = doctor(str(far_node / "store"), str(far_node / "edges.parquet"))
    assert code == 1, output
    assert max(len(line) for line in output.splitlines()) <= 80
    states = dict(re.findall(r"^ (\S.*?)  +(ok|warn|fail) ", output, re.MULTILINE))
    assert states["nodes"] == states["versions"] == "ok"
    assert states["cache"] == "warn"  # a store in a folder does without
    assert states["store on nodes"] == states["inputs on nodes"] == "fail"
    assert "use a store in s3://" in output
    assert [path.name for path in far_node.iterdir()] == ["edges.parquet"]


@pytest.mark.ray
@pytest.mark.slow
def test_a_store_of_objects_is_reached_by_every_node(doctor, far_node, object_store):
    bucket = object_store.new_bucket()
    store = f"s3://{bucket}/store{object_store.options()}"
    code, output = doctor(store, f"s3://{bucket}/edges.parquet{object_store.options()}", "--json")
    found = {row["name"]: row for row in json.loads(output)}
    assert found["store on nodes"]["state"] == "ok"
    assert found["versions"]["state"] == "ok"
    assert found["clocks"]["state"] == "ok"
    # its cache is a file
    assert (code, found["cache"]["state"]) == (1, "fail")
    assert "cannot write to /dev/null" in found["cache"]["found"]
    nodes = [row for name, row in found.items() if name.startswith("node ")]
    assert len(nodes) == 2
    assert all("2 CPUs" in row["found"] and "peg-pipeline" in row["found"] for row in nodes)
    filesystem = pafs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{object_store.port}", scheme="http", region="us-east-1"
    )
    left = filesystem.get_file_info(pafs.FileSelector(bucket, recursive=True))
    assert [info.path for info in left if info.type == pafs.FileType.File] == []
