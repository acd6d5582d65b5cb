"""A small pipeline, started on a machine: all on its own disk, or all in the object store."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil
import yaml

from pipeline.stages import STAGES
from tests.cluster.machine import Machine, Started
from tests.cluster.object_machine import ObjectMachine
from tests.cluster.ray_machines import RayMachines
from tests.faults.chaos.results import read_results
from tests.faults.chaos.small_pipeline import write_pipeline

INPUTS = ("edges", "nodes", "candidates")
SHARD_ROWS = 100
CANDIDATES = 4_000
# Marks of finished shards, and of who makes an artifact.
NOTES = {"done", "attempt.json"}
TASK = "ray::run_shard"
# A killed run keeps a store for a minute. It is renewed often here, and given up soon.
SHORT_LEASE = """
from pipeline.store import lease
lease.LEASE_SECONDS, lease.RENEW_SECONDS = 4.0, 0.5
from pipeline.cli.app import main
main()
"""
BUSY = "in use by"


class SmallRun:
    """The inputs of the pipeline, in a bucket, and the runs that were made of it.

    Args:
        folder: Of the tests' own process.
    """

    def __init__(self, objects: ObjectMachine, folder: Path) -> None:
        self.objects, self._folder, self._stores = objects, folder, 0
        self._file = write_pipeline(folder)
        candidates = folder / "candidates.parquet"
        pl.read_parquet(candidates).write_parquet(candidates, row_group_size=SHARD_ROWS)
        self.bucket = objects.new_bucket()
        for name in INPUTS:
            objects.upload(folder / f"{name}.parquet", f"{self.bucket}/in/{name}.parquet")

    def new_store(self) -> str:
        """``bucket/folder`` of an empty store."""
        self._stores += 1
        return f"{self.bucket}/store-{self._stores}"

    def copy_of(self, store: str, *, without: tuple[str, ...]) -> str:
        """A store like this one in which some stages are still to be run."""
        copy = self.new_store()
        self.objects.copy(store, copy, without=without)
        return copy

    def file_on(self, machine: Machine, store: str | None, **cluster: object) -> Path:
        """Write the pipeline file to a machine.

        Args:
            store: ``bucket/folder``; None: inputs and store are on the machine's disk.
            cluster: The keys of the section.
        """
        settings = yaml.safe_load(self._file.read_text())
        settings["train"]["seeds"] = 1
        settings["score"]["shard_rows"] = SHARD_ROWS
        settings["cluster"] = cluster
        where = {name: self._input_on(machine, name, store) for name in INPUTS}
        settings["graph"] |= {"edges": where["edges"], "nodes": where["nodes"]}
        settings["score"]["candidates"] = where["candidates"]
        settings["store"] = self.objects.url(store) if store else str(machine.inside / "home/store")
        name = "alone" if store is None else Path(store).name
        return machine.place(f"{name}/pipeline.yaml", yaml.safe_dump(settings).encode())

    def results(self, store: str, copy: Path) -> dict[str, bytes]:
        """The data of every current artifact, as a store in a folder has them."""
        self.objects.download(store, copy)
        for parts in list(copy.rglob("*.parts")):
            _join(parts)
        return data_of(copy)

    def _input_on(self, machine: Machine, name: str, store: str | None) -> str:
        if store is not None:
            return self.objects.url(f"{self.bucket}/in/{name}.parquet")
        content = (self._folder / f"{name}.parquet").read_bytes()
        return str(machine.place(f"{name}.parquet", content))


def data_of(store: Path) -> dict[str, bytes]:
    """What a run computed, without what it noted on its way."""
    found = read_results(store)
    return {n: d for n, d in found.items() if not NOTES.intersection(Path(n).parts)}


def _join(parts: Path) -> None:
    """One file of an array that machines wrote in parts, named by first row and length."""
    described = json.loads((parts / "array.json").read_text())
    whole = np.empty(described["shape"], dtype=described["dtype"])
    for part in parts.glob("*.npy"):
        first, count = map(int, part.stem.split("-"))
        whole[first : first + count] = np.load(part)
    shutil.rmtree(parts)
    np.save(parts.with_suffix(""), whole)


def start_run(
    machine: Machine,
    file: Path,
    environment: Mapping[str, str],
    *options: str,
    short_lease: bool = False,
    pinned: str | None = None,
) -> Started:
    """`peg run` on a machine.

    Args:
        pinned: The CPUs that it is kept to.
    """
    program = ["-c", SHORT_LEASE] if short_lease else ["-m", "pipeline"]
    taskset = ["taskset", "--cpu-list", pinned] if pinned else []
    command = [*taskset, sys.executable, *program, "run", file, "--events", *options]
    return machine.popen(*command, env=environment)


def run_when_free(machine: Machine, file: Path, environment: Mapping[str, str]) -> Started:
    """`peg run`, again and again while the lease of a killed run still holds the store."""
    for _ in range(60):
        started = start_run(machine, file, environment, short_lease=True)
        if started.wait() == 0 or BUSY not in started.output:
            return started
        time.sleep(1)
    return started


def events(started: Started) -> list[dict[str, Any]]:
    """What a run told so far."""
    found = []
    for line in started.output.splitlines():
        if line.startswith('{"time"'):
            with contextlib.suppress(json.JSONDecodeError):  # not yet written to its end
                found.append(json.loads(line))
    return found


def told(started: Started, event: str, stage: str) -> bool:
    """Whether a run has told of an event of a stage."""
    return any((e["event"], e.get("stage")) == (event, stage) for e in events(started))


def lose_machine_at_work(cluster: RayMachines, started: Started, stage: str) -> None:
    """Cut the power of the first machine that is seen at work on a stage."""
    while not told(started, "stage_started", stage):
        assert started.poll() is None, started.output
        time.sleep(0.01)
    while not (busy := [machine for machine in cluster.workers if _is_at_work(machine)]):
        assert started.poll() is None, started.output
    cluster.lose(busy[0])
    assert not told(started, "stage_finished", stage), "the stage was done before the loss"


def _is_at_work(machine: Machine) -> bool:
    for process in machine.processes():
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            if process.name().startswith(TASK):
                return True
    return False


def from_stage(stage: str) -> tuple[str, ...]:
    """A stage and all later ones."""
    names = list(STAGES)
    return tuple(names[names.index(stage) :])
