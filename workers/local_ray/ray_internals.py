"""What Ray has no public means for; the one place that names its insides.

Three things cannot be had otherwise. Ray decides when it is imported whether 127.0.0.1 may stay
127.0.0.1, long before we know whether a local Ray or a cluster is asked for. It keeps the
token that it has read, while every local Ray of ours has a token of its own. And it does not tell a
task how often it was tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ray._private import ray_constants, worker
from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]


@contextmanager
def loopback_kept() -> Iterator[None]:
    """Ray takes 127.0.0.1 as it is; else it would put an address there that others can reach."""
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def reload_authentication() -> None:
    """Let Ray read the variables with mode and token again."""
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def attempts_before() -> int:
    """How often Ray had run the task of this process before without coming to its end."""
    core = worker.global_worker.core_worker  # type: ignore[attr-defined]
    return int(core.get_current_task_attempt_number())
