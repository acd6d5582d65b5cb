"""Where the work is done, without Ray itself: the defaults stand here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterSettings:
    """Where the work is done; never part of a fingerprint."""

    address: str | None = None
    workers: int = 2
    train_workers: int | tuple[int, int] = 1
    cpus_per_worker: int = 1
    gpus_per_worker: float = 0
    task_memory_bytes: int = 2 * 10**9
    retries: int = 3
    distribute_encoding_above: int = 2_000_000

    @property
    def most_train_workers(self) -> int:
        """Workers of a training that finds room for all."""
        wanted = self.train_workers
        return wanted if isinstance(wanted, int) else max(wanted)
