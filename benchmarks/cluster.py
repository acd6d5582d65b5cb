"""One machine beside two and three: seconds per stage, and the bytes that each machine moves.

    python benchmarks/cluster.py                                  # needs root, Linux, iproute2
    python benchmarks/cluster.py --nodes 200000 --edges 2000000 --candidates 10000000

The machines are namespaces of this one: a network, a /tmp and a cache of their own, and one CPU
each, in turn where there are fewer CPUs than machines. A generated graph runs from edges to scores
with everything in an object store, and once on one machine with everything in a folder. Then a
machine that has nothing scores alone. Ray starts its processes within the first stage: what is
compared are the others. The last line is the time of one machine over that of two.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from peg_core.generators.random_graphs import StochasticBlockModel
from tests.cluster.machine import Machine, Started
from tests.cluster.object_machine import ObjectMachine
from tests.cluster.ray_machines import RayMachines
from tests.cluster.small_run import events, start_run
from tests.fixtures.machines import Network, why_not_isolated

INPUTS = ("edges", "candidates")
FOLDER = "folder"
WAIT_SECONDS = 6 * 3600.0
Traffic = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Run:
    """What a run took.

    Args:
        seconds: By stage.
        traffic: Bytes received and sent, by machine.
    """

    seconds: dict[str, float]
    traffic: Traffic

    @property
    def later(self) -> float:
        """All stages but the first, in which Ray starts its processes."""
        return sum(list(self.seconds.values())[1:])


class Bench:
    """The inputs in a bucket, and runs on them."""

    def __init__(self, network: Network, folder: Path, options: argparse.Namespace) -> None:
        self.network, self.folder, self.options = network, folder, options
        self.objects = ObjectMachine(network.add())
        self.bucket = self.objects.new_bucket()
        _write_inputs(folder, options)
        for name in INPUTS:
            self.objects.upload(folder / f"{name}.parquet", f"{self.bucket}/in/{name}.parquet")

    def in_folder(self) -> Run:
        """One machine, a local Ray, and no object store."""
        machine = self.network.add()
        inputs = {
            name: str(
                machine.place(f"{name}.parquet", (self.folder / f"{name}.parquet").read_bytes())
            )
            for name in ("edges", "candidates")
        }
        file = self._file(machine, str(machine.inside / "home" / "store"), inputs, workers=1)
        started = start_run(machine, file, {}, pinned=_cpus()[0])
        return _finished(started, {FOLDER: machine})

    def on_machines(self, count: int, store: str, *, forced: str = "") -> tuple[Run, RayMachines]:
        """Machines of one CPU, everything in the object store; they are left on."""
        cpus = _cpus()
        pinned = [cpus[i % len(cpus)] for i in range(count)]
        cluster = RayMachines(self.network, workers=count, cpus=1, pinned=pinned)
        inputs = {n: self.objects.url(f"{self.bucket}/in/{n}.parquet") for n in INPUTS}
        url = self.objects.url(f"{self.bucket}/{store}")
        file = self._file(cluster.head, url, inputs, address="auto", workers=count)
        options = ["--force", forced] if forced else []
        started = start_run(cluster.head, file, cluster.environment, *options)
        machines = {"head": cluster.head, "store": self.objects.machine}
        machines |= {f"worker {n}": machine for n, machine in enumerate(cluster.workers, start=1)}
        return _finished(started, machines), cluster

    def bytes_of(self, path: str) -> int:
        """What is stored below a name of the bucket."""
        return sum(o.bytes for o in self.objects.objects(f"{self.bucket}/{path}").values())

    def _file(
        self, machine: Machine, store: str, inputs: dict[str, str], **cluster: object
    ) -> Path:
        settings = {
            "name": "cluster",
            "store": store,
            "graph": {"edges": inputs["edges"]},
            "split": {"folds": 4},
            "encodings": [{"kind": "le", "dimensions": 32}, {"kind": "deepwalk", "dimensions": 32}],
            "train": {"epochs": self.options.epochs},
            "score": {
                "candidates": inputs["candidates"],
                "shard_rows": max(self.options.candidates // 20, 1),
            },
            "cluster": cluster,
        }
        return machine.place("pipeline.yaml", yaml.safe_dump(settings).encode())


def _write_inputs(folder: Path, options: argparse.Namespace) -> None:
    model = StochasticBlockModel(options.nodes, options.edges, blocks=options.blocks)
    pieces = list(model.chunks(seed=0))
    ends = [np.concatenate([getattr(p, side) for p in pieces]) for side in ("source", "target")]
    pl.DataFrame({"src": ends[0], "dst": ends[1]}).write_parquet(folder / "edges.parquet")
    pairs = np.random.default_rng(0).integers(0, options.nodes, (2, options.candidates))
    table = pl.DataFrame({"src": pairs[0], "dst": pairs[1]})
    groups = max(options.candidates // 20, 1)
    table.write_parquet(folder / "candidates.parquet", row_group_size=groups)


def _label(count: int) -> str:
    return "1 machine" if count == 1 else f"{count} machines"


def _cpus() -> list[str]:
    return [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]


def _finished(started: Started, machines: dict[str, Machine]) -> Run:
    before = {name: machine.bytes_moved() for name, machine in machines.items()}
    if started.wait(WAIT_SECONDS) != 0:
        raise SystemExit(started.output)
    after = {name: machine.bytes_moved() for name, machine in machines.items()}
    traffic = {
        name: (after[name][0] - before[name][0], after[name][1] - before[name][1])
        for name in machines
    }
    told = [event for event in events(started) if event["event"] == "stage_finished"]
    return Run({event["stage"]: float(event["seconds"]) for event in told}, traffic)


def _show(runs: dict[str, Run]) -> None:
    print(f"{'seconds':<12}" + "".join(f"{name:>12}" for name in runs))
    for stage in next(iter(runs.values())).seconds:
        print(f"{stage:<12}" + "".join(f"{run.seconds[stage]:>12.2f}" for run in runs.values()))
    print(f"{'but ingest':<12}" + "".join(f"{run.later:>12.2f}" for run in runs.values()))
    print(f"\n{'MB in / out':<12}" + "".join(f"{name:>20}" for name in runs))
    for machine in dict.fromkeys(name for run in runs.values() for name in run.traffic):
        cells = [run.traffic.get(machine) for run in runs.values()]
        texts = [f"{c[0] / 1e6:.2f} / {c[1] / 1e6:.2f}" if c else "" for c in cells]
        print(f"{machine:<12}" + "".join(f"{text:>20}" for text in texts))


def _score_alone(bench: Bench, store: str) -> None:
    """The bytes that scoring brings to a machine that has nothing."""
    run, cluster = bench.on_machines(1, store, forced="score")
    [worker] = cluster.workers
    cached = [file for file in (worker.disk / "cache").rglob("*") if file.is_file()]
    read = sum(file.stat().st_size for file in cached) + bench.bytes_of("in/candidates.parquet")
    cluster.close()
    received, _ = run.traffic["worker 1"]
    stages = ("ingest", "encode_all", "embed_all", "train")
    named = sum(bench.bytes_of(f"{store}/{stage}") for stage in stages)
    print(f"\nscore on a machine that has nothing: {received / 1e6:.2f} MB received, "
          f"{received / read:.2f} of the {read / 1e6:.2f} MB in files that it reads; "
          f"the artifacts that it names hold {named / 1e6:.2f} MB")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--blocks", type=int, default=33)
    parser.add_argument("--candidates", type=int, default=2_000_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    reason = why_not_isolated()
    if reason is not None:
        raise SystemExit(f"no machines to measure: {reason}")
    print(f"{options.nodes:,} nodes, {options.edges:,} edges, {options.candidates:,} candidates, "
          f"{len(_cpus())} CPUs", flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, Network(isolated=True) as network:
        bench = Bench(network, Path(folder), options)
        bench.in_folder()  # compiles
        runs = {FOLDER: bench.in_folder()}
        for count in options.machines:
            runs[_label(count)], cluster = bench.on_machines(count, f"store-{count}")
            cluster.close()
        _show(runs)
        first, *more = [runs[_label(count)] for count in options.machines]
        _score_alone(bench, f"store-{options.machines[0]}")
    print(f"object store over folder, one machine: {first.later / runs[FOLDER].later:.2f}")
    print(f"ratio: {first.later / (more[0] if more else first).later:.2f}")


if __name__ == "__main__":
    main()
