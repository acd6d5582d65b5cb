"""The connection to Ray: a local one, or a cluster that is joined."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numba
import pyarrow
import ray

from peg_core.errors import PegError
from workers.cluster_settings import ClusterSettings

# Set before a worker imports anything: BLAS threads that fight for a core spin.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
CONNECT_SECONDS = 10.0


class ClusterUnreachable(PegError):
    """No Ray answers."""

    @classmethod
    def at(cls, address: str | None, reason: object) -> Self:
        return cls(
            f"cannot reach {address or 'a local Ray'} ({reason}); check `cluster.address`, the "
            "network and the token, or remove `address` to run on this machine"
        )


class Cluster:
    """Starts or joins Ray when the first task needs it, and leaves at the end."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self._connected = False

    def connect(self) -> None:
        """Start a local Ray or join the configured one; does nothing the second time."""
        if self._connected or ray.is_initialized():
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options: dict[str, Any] = {
            "log_to_driver": False,
            "logging_level": logging.ERROR,
            "runtime_env": {"env_vars": self._thread_limits()},
        }
        if self.settings.address is None:
            # a Ray of its own, although another may run on this machine
            options["address"] = "local"
            # one spare CPU: a restarted actor must not take the slot a retry waits for
            options["num_cpus"] = 1 + max(
                self.settings.workers * self.settings.cpus_per_worker,
                self.settings.most_train_workers * self.settings.cpus_per_worker,
            )
            options["include_dashboard"] = self.settings.most_train_workers > 1
        else:
            options["address"] = self.settings.address
            self.require_listener(self.settings.address)
        try:
            with _own_termination():
                ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ClusterUnreachable.at(self.settings.address, error) from error
        self._connected = True

    @staticmethod
    def require_listener(address: str) -> None:
        """Ask the port before Ray does: Ray waits for minutes where nobody answers."""
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if not port.isdigit():
            return  # "auto" and the like: Ray knows what they mean
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            raise ClusterUnreachable.at(address, error) from error

    def close(self) -> None:
        """Leave the cluster; a local Ray ends with its processes."""
        if self._connected:
            ray.shutdown()
            self._connected = False

    def _thread_limits(self) -> dict[str, str]:
        return dict.fromkeys(THREAD_VARIABLES, str(self.settings.cpus_per_worker))


@contextmanager
def _own_termination() -> Iterator[None]:
    """Keep the answer to a polite kill: Ray would put its own in place, which just exits."""
    mine = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, mine)


def pin_threads(count: int) -> None:
    """Keep every library of this process to ``count`` threads."""
    # a task that does not need torch must not pay for its import
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    pyarrow.set_cpu_count(count)
    pyarrow.set_io_thread_count(max(count, 1))
