"""One task of a map: its name, how it runs in a worker, and the mark that it leaves."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from peg_core.atomic_file import write_json, written_files
from peg_core.storage.stored_path import publish, release_mirrors
from workers.cluster import pin_threads
from workers.local_ray.ray_internals import attempts_before
from workers.process_memory.private_memory import watched_memory

PEAK_KEY = "peak_memory_bytes"
FILES_KEY = "files"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shard:
    """One task: a name that is unique in its stage, and keyword arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


def run_shard(
    task: Callable[..., Any], arguments: dict[str, Any], marker: Path, threads: int
) -> tuple[dict[str, Any], int]:
    """What runs in the worker: threads pinned, then the task, its files to the store, its marker.

    Returns:
        The result, and how often Ray had run the task before without coming to its end.
    """
    pin_threads(threads)
    try:
        with written_files() as written, watched_memory() as memory:
            result = task(**arguments)
        files = publish(sorted(written))
    finally:
        release_mirrors()
    if files:
        result[FILES_KEY] = {name: asdict(record) for name, record in files.items()}
    result[PEAK_KEY] = memory.peak_bytes
    write_json(marker, result)
    publish([marker])
    return result, attempts_before()


def read_markers(markers: Path, shards: Sequence[Shard]) -> dict[str, dict[str, Any] | None]:
    """What finished shards left, by name; None: it runs, for the first time or again."""
    there = {path.name for path in markers.glob("*.json")}
    return {
        shard.name: _read_marker(markers / f"{shard.name}.json")
        if f"{shard.name}.json" in there
        else None
        for shard in shards
    }


def _read_marker(path: Path) -> dict[str, Any] | None:
    try:
        marker = json.loads(path.read_bytes())
    except (ValueError, FileNotFoundError):
        marker = None
    if not isinstance(marker, dict):
        logger.warning("%s cannot be read: the shard runs again", path)
        return None
    return marker
