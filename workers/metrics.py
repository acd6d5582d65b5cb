"""Numbers for Prometheus: Ray exports them from every node, its Grafana boards show them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import ray
from ray.util.metrics import Gauge

TAGS = ("pipeline", "stage")
# Prometheus sees them as ray_peg_stage_...
DESCRIPTIONS = {
    "seconds": "Duration of the stage when it last ran.",
    "rows": "Rows, pairs, links or nodes that the stage processed.",
    "rows_per_second": "Rows per second over the whole stage.",
    "bytes_written": "Bytes of the artifact.",
    "peak_memory_bytes": "Private memory of the largest process that took part.",
    "driver_memory_bytes": "Private memory of the process that drives the run.",
    "retries": "Tasks that ran again because a worker or node was lost.",
}


def report_stage(pipeline: str, stage: str, values: Mapping[str, float | None]) -> None:
    """Export the measurements of a stage; does nothing where the run needed no Ray."""
    if not ray.is_initialized():
        return
    for name, value in values.items():
        if name in DESCRIPTIONS and value is not None:
            _gauge(name).set(value, tags={"pipeline": pipeline, "stage": stage})


@cache
def _gauge(name: str) -> Gauge:
    return Gauge(f"peg_stage_{name}", description=DESCRIPTIONS[name], tag_keys=TAGS)
