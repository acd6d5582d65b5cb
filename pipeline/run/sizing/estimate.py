"""What every stage of a plan will take: seconds, memory of a task, bytes on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from pipeline.run.plan import Action, Step
from pipeline.run.sizing.workload import Workload

MB = 10**6
# Private memory of a process that has imported what its tasks need.
PROCESS_BYTES = 300 * MB
TORCH_BYTES = 500 * MB
# A solve holds about five times the vectors that it returns.
SOLVER_COPIES = 5
# Entries that one task of a split looks at.
SPLIT_ENTRIES = 2**24
# A stage that was over sooner says little about a larger one.
LEAST_MEASURED_SECONDS = 10.0


@dataclass(frozen=True)
class Cost:
    """What a stage has to do.

    Args:
        work: In units of the stage's own, for one task after the other.
        memory_bytes: Private memory of its largest task.
        disk_bytes: Of its artifact.
        side_by_side: Tasks that it can keep busy.
    """

    work: float
    memory_bytes: float = PROCESS_BYTES
    disk_bytes: float = 0
    side_by_side: int = 10**9


@dataclass(frozen=True)
class Estimate:
    """What a stage will take; ``work`` is what a measured time is divided by."""

    seconds: float
    task_memory_bytes: int
    disk_bytes: int
    work: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """As ``peg plan --json`` prints it."""
        return {key: value for key, value in asdict(self).items() if key != "work"}


def _ingest(w: Workload) -> Cost:
    held = min(w.task_memory, 100 * w.edges)
    return Cost(w.edges, PROCESS_BYTES + held, 8 * w.edges + 16 * w.nodes)


def _features(w: Workload) -> Cost:
    disk = 0 if w.input_width == 2 else 4 * w.nodes * w.input_width
    return Cost(w.nodes * w.input_width, disk_bytes=disk)


def _split(w: Workload, links: int) -> Cost:
    entries = min(2 * w.edges, SPLIT_ENTRIES)
    graph = 8 * links + 8 * w.nodes
    disk = graph + 2 * w.edges + 2 * links + 8 * links + 2 * 17 * (w.edges - links)
    return Cost(w.edges, PROCESS_BYTES + 40 * entries, disk)


def _encode(w: Workload, graphs: int, edges: int) -> Cost:
    table = 4 * w.nodes * w.dimensions
    memory = PROCESS_BYTES + SOLVER_COPIES * table + (16 * edges if graphs > 1 else 0)
    return Cost((w.nodes + edges / 5) * w.dimensions * graphs, memory, graphs * table, graphs)


def _train(w: Workload, models: int) -> Cost:
    rows = 4 * w.step_nodes * (w.input_width + w.dimensions + w.hidden)
    edges = 24 * w.step_edges // w.layers
    validation = 4 * w.nodes * w.hidden if w.nodes <= MB else 0
    reach = w.steps * (w.step_edges + w.step_nodes) * w.hidden * models / w.seeds
    memory = TORCH_BYTES + max(rows + edges, validation)
    return Cost(reach, memory, 20 * MB * models, models)


def _embed(w: Workload, models: int) -> Cost:
    work = (w.nodes * w.hidden + 2 * w.edges) * w.layers * w.hidden * models / 128
    memory = TORCH_BYTES + min(w.task_memory, 8 * w.nodes * w.hidden)
    return Cost(work, memory, 4 * w.nodes * w.hidden * models + 4 * w.nodes)


def _calibrate(w: Workload) -> Cost:
    return Cost(w.held_out * w.seeds, TORCH_BYTES, 30 * min(w.held_out, 10**6) * w.seeds)


def _negatives(w: Workload) -> Cost:
    pairs = 2 * w.held_out * w.hard_pairs
    return Cost(pairs, disk_bytes=4 * pairs)


def _evaluate(w: Workload) -> Cost:
    pairs = 2 * w.held_out * (1 + w.hard_pairs / 2)
    return Cost(pairs * (w.seeds + w.heuristics), TORCH_BYTES, 8 * pairs * (w.seeds + 1))


def _score(w: Workload) -> Cost:
    return Cost(w.candidates, TORCH_BYTES, w.candidate_bytes + 4 * w.candidates)


def _explain(w: Workload) -> Cost:
    return Cost(w.candidates, TORCH_BYTES, MB)


def _index(w: Workload) -> Cost:
    width = w.dimensions + w.hidden
    disk = w.nodes * (4 * width + 300)
    return Cost(w.nodes * width, PROCESS_BYTES + disk, disk)


def _recommend(w: Workload) -> Cost:
    return Cost(w.nodes, TORCH_BYTES, 1000 * w.nodes)


COSTS: dict[str, Callable[[Workload], Cost]] = {
    "ingest": _ingest,
    "features": _features,
    "split": lambda w: _split(w, w.train_links),
    "encode": lambda w: _encode(w, w.graphs, w.train_links),
    "train": lambda w: _train(w, w.seeds),
    "embed": lambda w: _embed(w, w.seeds),
    "calibrate": _calibrate,
    "negatives": _negatives,
    "evaluate": _evaluate,
    "refit_split": lambda w: _split(w, w.edges),
    "refit_encode": lambda w: _encode(w, w.graphs, w.edges),
    "refit": lambda w: _train(w, 1),
    "encode_all": lambda w: _encode(w, 1, w.edges),
    "embed_all": lambda w: _embed(w, 1),
    "score": _score,
    "explain": _explain,
    "index": _index,
    "recommend": _recommend,
}


@dataclass(frozen=True)
class Rate:
    """Of a stage where nothing was measured yet.

    Args:
        start: Seconds before and after its work.
        per_unit: Seconds per unit of work.
    """

    start: float
    per_unit: float


# Of two slow cores; on most machines a stage takes less.
RATES: dict[str, Rate] = {
    "ingest": Rate(5, 6e-6),
    "features": Rate(2, 1e-7),
    "split": Rate(2, 4e-6),
    "encode": Rate(4, 1.5e-6),
    "train": Rate(6, 3e-9),
    "embed": Rate(4, 3e-8),
    "calibrate": Rate(4, 1e-5),
    "negatives": Rate(2, 1e-6),
    "evaluate": Rate(5, 1e-5),
    "refit_split": Rate(2, 4e-6),
    "refit_encode": Rate(4, 1.5e-6),
    "refit": Rate(6, 3e-9),
    "encode_all": Rate(4, 1.5e-6),
    "embed_all": Rate(4, 3e-8),
    "score": Rate(4, 4e-6),
    "explain": Rate(6, 2e-7),
    "index": Rate(4, 1e-6),
    "recommend": Rate(4, 2e-3),
}
OTHER = Rate(3, 0.0)


def estimates(
    steps: Iterable[Step], work: Workload, measured: Mapping[str, float] | None = None
) -> dict[str, Estimate]:
    """For every stage of a plan; nothing for what is reused.

    Args:
        measured: Seconds per unit of work of earlier runs, by stage.
    """
    found = {}
    for step in steps:
        name = step.stage.name
        if step.action is Action.REUSE:
            found[name] = Estimate(0.0, 0, 0)
            continue
        cost = COSTS[name](work) if name in COSTS else Cost(0.0)
        rate = RATES.get(name, OTHER)
        per_unit = (measured or {}).get(name, rate.per_unit)
        units = cost.work / max(1, min(work.lanes, cost.side_by_side))
        seconds = round(rate.start + per_unit * units, 1)
        found[name] = Estimate(seconds, int(cost.memory_bytes), int(cost.disk_bytes), units)
    return found


def total(found: Mapping[str, Estimate]) -> Estimate:
    """Stages come one after the other: seconds and bytes add up, the largest task decides."""
    each = list(found.values())
    return Estimate(
        round(sum(one.seconds for one in each), 1),
        max((one.task_memory_bytes for one in each), default=0),
        sum(one.disk_bytes for one in each),
    )


def measured_rates(history: pl.DataFrame) -> dict[str, float]:
    """Seconds per unit of work, by stage, of the newest runs that took long enough to tell."""
    rates: dict[str, float] = {}
    rows = history.filter(
        (pl.col("action") == "run")
        & (pl.col("stage_seconds") >= LEAST_MEASURED_SECONDS)
        & (pl.col("work") > 0)
    )
    for row in rows.iter_rows(named=True):  # the newest first
        started = RATES.get(row["stage"], OTHER).start
        seconds = max(row["stage_seconds"] - started, row["stage_seconds"] / 2)
        rates.setdefault(row["stage"], seconds / row["work"])
    return rates
