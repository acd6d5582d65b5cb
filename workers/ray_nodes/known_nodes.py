"""The machines that Ray knows, and what they offer."""

from __future__ import annotations

from typing import Any

import ray


def known_nodes() -> list[dict[str, Any]]:
    """Of the cluster that this process has joined, also those that are gone."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return nodes


def largest_memory() -> int:
    """Of the machine that has most to give: a task that asks for more would wait for ever."""
    return int(_largest("memory"))


def most_cpus() -> int:
    """Of the machine that has most of them; as Ray counts."""
    return int(_largest("CPU"))


def _largest(resource: str) -> float:
    offered = [node["Resources"].get(resource, 0) for node in known_nodes() if node["Alive"]]
    return max(offered, default=0)
