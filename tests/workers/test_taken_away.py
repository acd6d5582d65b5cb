"""A machine that is taken away after a notice costs no attempt of the tasks that it ran."""

import os
import subprocess
import sys

import pytest
from ray.cluster_utils import Cluster
from ray.exceptions import NodeDiedError, RayError

from workers.local_ray.private_session import CLUSTER_MODE
from workers.ray_nodes import taken_away
from workers.ray_nodes.taken_away import was_taken_away

NODE = "ab" * 28
UNEXPECTED = 2
SOON_MISSED = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}

# One task at a time, on the machine that is taken away; no retries.
RUN = """
import sys, time
from pathlib import Path
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from workers.shard import Shard
from workers.task_map import TaskMap

def stay(folder):
    marker = Path(folder, "began")
    if marker.exists():
        return {"value": 7}
    marker.touch()
    time.sleep(300)

folder = Path(sys.argv[1])
cluster = Cluster(ClusterSettings(address=sys.argv[2], workers=1, retries=0))
tasks = TaskMap(cluster, folder / "done")
print(tasks.map(stay, [Shard("a", {"folder": str(folder)})]), tasks.retries)
"""


def died_on(node):
    return NodeDiedError(f"The task was lost with its node (node ID: {node}).")


@pytest.mark.parametrize(
    ("reason", "taken"), [(1, True), (UNEXPECTED, False), (3, True), (4, True), (0, False)]
)
def test_the_reason_that_ray_gives_decides(reason, taken, monkeypatch):
    node = {"NodeID": NODE, "Alive": False, "DeathReason": reason}
    monkeypatch.setattr(taken_away, "known_nodes", lambda: [node])
    assert was_taken_away(died_on(NODE)) is taken


def test_the_reason_is_waited_for_but_not_for_ever(monkeypatch):
    alive = {"NodeID": NODE, "Alive": True}
    gone = {"NodeID": NODE, "Alive": False, "DeathReason": 3}
    seen = iter([[alive], [alive], [gone]])
    monkeypatch.setattr(taken_away, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(taken_away, "known_nodes", lambda: next(seen))
    assert was_taken_away(died_on(NODE))
    monkeypatch.setattr(taken_away, "DEATH_SECONDS", 0.01)
    monkeypatch.setattr(taken_away, "known_nodes", lambda: [alive])
    assert not was_taken_away(died_on(NODE))


def test_an_error_that_names_no_machine_is_a_failure():
    assert not was_taken_away(RayError("a worker died"))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("own_sigterm")
def test_a_shard_of_a_drained_machine_runs_again_without_retries(tmp_path):
    head = {"num_cpus": 0, "_system_config": SOON_MISSED}
    machines = Cluster(initialize_head=True, head_node_args=head)
    try:
        spot = machines.add_node(num_cpus=1)
        run = subprocess.Popen(
            [sys.executable, "-c", RUN, str(tmp_path), machines.address],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        while not (tmp_path / "began").exists():
            assert run.poll() is None, run.stdout.read()
        subprocess.run(
            [sys.executable, "-m", "ray.scripts.scripts", "drain-node", "--node-id", spot.node_id,
             "--address", machines.address, "--reason", "DRAIN_NODE_REASON_PREEMPTION",
             "--reason-message", "spot", "--deadline-remaining-seconds", "0"],
            # beside a local Ray the machines are on loopback: the address stays as it is
            env={**os.environ, CLUSTER_MODE: "0"}, check=True,
        )  # fmt: skip
        machines.add_node(num_cpus=1)
        machines.remove_node(spot, allow_graceful=False)
        output, _ = run.communicate(timeout=120)
        assert run.returncode == 0, output
        assert "[{'value': 7}] 1" in output
    finally:
        machines.shutdown()
