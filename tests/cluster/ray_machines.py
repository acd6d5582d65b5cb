"""A Ray cluster whose nodes are machines of their own."""

from __future__ import annotations

import secrets
import sys
import time

from tests.cluster.machine import Machine, Started
from tests.cluster.object_machine import KEYS
from tests.fixtures.machines import Network
from tests.fixtures.ray_node import server_port

STARTED = "Ray runtime started"
# two tasks run on two machines: Ray would fill one machine first
CPUS = 1
COMMON = {
    **KEYS,
    "RAY_AUTH_MODE": "token",
    "RAY_metrics_report_interval_ms": "2000",
    # a busy machine must not kill a job that is about to end
    "RAY_JOB_STOP_WAIT_TIME_S": "60",
    # a lost machine is noticed within seconds
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "4",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.5",
    # and so are its tasks: a machine without power closes no connection
    "RAY_grpc_client_keepalive_time_ms": "2000",
    "RAY_grpc_client_keepalive_timeout_ms": "2000",
}


class RayMachines:
    """A head without CPUs for tasks, and workers.

    Args:
        pinned: The CPUs that the tasks of each worker are kept to; None: all of them.
    """

    def __init__(
        self,
        network: Network,
        *,
        workers: int,
        cpus: int = CPUS,
        pinned: list[str] | None = None,
    ) -> None:
        self._network, self._cpus, self._pinned = network, cpus, pinned
        self.environment = {**COMMON, "RAY_AUTH_TOKEN": secrets.token_hex(16)}
        self.head = network.add()
        port, dashboard = server_port(), server_port()
        self.address = f"{self.head.address}:{port}"
        self.dashboard = f"http://{self.head.address}:{dashboard}"
        role = ["--head", f"--port={port}", f"--dashboard-host={self.head.address}",
                f"--dashboard-port={dashboard}", f"--ray-client-server-port={server_port()}",
                "--num-cpus=0"]  # fmt: skip
        _wait_until_ready([self._start(self.head, *role)])
        self.workers: list[Machine] = []
        self.add_workers(workers)

    @property
    def machines(self) -> list[Machine]:
        """The nodes that are alive, the head first."""
        return [machine for machine in (self.head, *self.workers) if machine.alive]

    def add_workers(self, count: int) -> None:
        """Machines that join."""
        role = [f"--address={self.address}", f"--num-cpus={self._cpus}"]
        added = [self._network.add() for _ in range(count)]
        started = []
        for machine in added:
            started.append(self._start(machine, *role))
            if not machine.isolated:  # nodes that look for free ports side by side find the same
                _wait_until_ready(started)
        _wait_until_ready(started)
        self.workers += added

    def lose(self, machine: Machine) -> None:
        """Cut the power of a worker, which does not come back."""
        self.workers.remove(machine)
        machine.kill()

    def close(self) -> None:
        """Switch all machines off."""
        for machine in [*self.workers, self.head]:
            machine.kill()

    def _start(self, machine: Machine, *role: str) -> Started:
        pinned = self._pinned and machine is not self.head
        taskset = ["taskset", "--cpu-list", self._pinned.pop(0)] if pinned else []
        # Ray listens on all addresses: folders on loopback would take each other's ports
        return machine.popen(
            *taskset, sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *role,
            f"--node-ip-address={machine.address}", "--object-store-memory=100000000",
            f"--dashboard-agent-listen-port={server_port()}", "--include-log-monitor=false",
            f"--metrics-export-port={server_port()}", env=self.environment,
        )  # fmt: skip


def _wait_until_ready(nodes: list[Started]) -> None:
    for node in nodes:
        for _ in range(600):
            if STARTED in node.output:
                break
            assert node.poll() is None, node.output
            time.sleep(0.1)
        else:
            raise AssertionError(node.output)
