"""The connection to Ray: a local one, or a cluster that is joined."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Self

import numba
import pyarrow
import ray

from peg_core.errors import PegError
from workers.cluster_settings import ClusterSettings
from workers.jobs.ray_server import answer_problem
from workers.local_ray.private_session import PrivateSession
from workers.local_ray.ray_internals import loopback_kept
from workers.local_ray.vital_parts import VitalWatch

# Set before a worker imports anything: BLAS threads that fight for a core spin.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
CONNECT_SECONDS = 10.0
LOOPBACK = "127.0.0.1"
LOCAL_SYSTEM = {
    # a driver that waits for its first workers waits for ever when one is killed as it starts
    "prestart_worker_first_driver": False,
    # the only control store of a local Ray: once it is gone, nobody will bring it back
    "gcs_rpc_server_reconnect_timeout_s": 15,
}


class ClusterUnreachable(PegError):
    """No Ray answers."""

    @classmethod
    def at(cls, address: str | None, reason: object) -> Self:
        return cls(
            f"cannot reach {address or 'a local Ray'} ({reason}); check `cluster.address`, the "
            "network and the token, or remove `address` to run on this machine"
        )


class ClusterLost(PegError):
    """A part of the local Ray that nothing works without has ended."""

    @classmethod
    def without(cls, part: str, code: int | None) -> Self:
        return cls(
            f"Ray's {part} ended during the run (exit code {'unknown' if code is None else code}); "
            "often memory ran out, or it was killed: lower `cluster.workers`, and run again to go "
            "on from the finished shards"
        )


class Cluster:
    """Starts or joins Ray when the first task needs it, and leaves at the end."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self._connected = False
        self._session: PrivateSession | None = None
        self._watch: VitalWatch | None = None

    def connect(self) -> None:
        """Start a local Ray or join the configured one; does nothing the second time."""
        if self._connected or ray.is_initialized():
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self.settings.address is not None:
            self.require_ray(self.settings.address)
        try:
            with _own_termination():
                self._start()
        except Exception as error:  # Ray raises just that when a part of it dies meanwhile
            self._leave()
            raise ClusterUnreachable.at(self.settings.address, error) from error
        except BaseException:  # also Ctrl-C in the middle of it
            self._leave()
            raise
        self._connected = True

    def _start(self) -> None:
        options: dict[str, Any] = {
            "log_to_driver": False,
            "logging_level": logging.ERROR,
            "runtime_env": {"env_vars": thread_limits(self.settings.cpus_per_worker)},
        }
        address = self.settings.address
        if address is not None:
            with loopback_kept() if _is_loopback(address) else nullcontext():
                ray.init(address=address, **options)
            return
        self._session = PrivateSession()
        atexit.register(self.close)
        self._watch = VitalWatch(ClusterLost.without)
        self._watch.start()
        # one spare CPU: a restarted actor must not take the slot a retry waits for
        workers = max(self.settings.workers, self.settings.most_train_workers)
        with self._session.starting():
            ray.init(
                address="local",  # a Ray of its own, although another may run on this machine
                num_cpus=1 + workers * self.settings.cpus_per_worker,
                include_dashboard=self.settings.most_train_workers > 1,
                dashboard_host=LOOPBACK,
                _node_ip_address=LOOPBACK,
                _temp_dir=str(self._session.ray_folder),
                _system_config=LOCAL_SYSTEM,
                **options,
            )
        self._watch.parts.look()

    def require_alive(self) -> None:
        """Look after the local Ray: it would end this process without a word of ours.

        Raises:
            ClusterLost: A part of it has ended.
        """
        ended = self._watch.parts.first_ended() if self._watch is not None else None
        if ended is not None:
            raise ClusterLost.without(*ended)

    @staticmethod
    def require_ray(address: str) -> None:
        """Ask the server before Ray does: Ray waits for minutes, or ends the process.

        Raises:
            ClusterUnreachable: Nobody listens, or what listens there is not Ray.
        """
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if not port.isdigit():
            return  # "auto" and the like: Ray knows what they mean
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            raise ClusterUnreachable.at(address, error) from error
        problem = answer_problem(
            f"{host}:{port}",
            is_client=address.startswith("ray://"),
            timeout_seconds=CONNECT_SECONDS,
        )
        if problem is not None:
            raise ClusterUnreachable.at(address, problem)

    def close(self) -> None:
        """Leave the cluster; a local Ray ends with its processes and leaves nothing behind."""
        if self._connected or self._session is not None:
            self._leave()

    def _leave(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None and watch.parts.first_ended() is None:
            watch.stop()  # they end now
        ray.shutdown()
        self._connected = False
        if watch is not None:
            watch.stop()
        if self._session is not None:
            self._session.close()
            self._session = None
            atexit.unregister(self.close)


def _is_loopback(address: str) -> bool:
    return address.rpartition(":")[0] in ("localhost", LOOPBACK)


@contextmanager
def _own_termination() -> Iterator[None]:
    """Keep the answer to a polite kill: Ray puts its own in place, which just exits."""
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit as ended:
        if ended.code == signal.SIGTERM and callable(ours):  # a kill while Ray was starting
            ours(signal.SIGTERM, None)
        raise
    finally:
        # only the main thread may set handlers, and Ray sets its own only there
        if threading.current_thread() is threading.main_thread() and ours is not None:
            signal.signal(signal.SIGTERM, ours)


def thread_limits(count: int) -> dict[str, str]:
    """What keeps the libraries of a process that starts to so many threads."""
    return dict.fromkeys(THREAD_VARIABLES, str(count))


def pin_threads(count: int) -> None:
    """Keep every library of this process to ``count`` threads."""
    # a task that does not need torch must not pay for its import
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    pyarrow.set_cpu_count(count)
    pyarrow.set_io_thread_count(max(count, 1))
