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
    offered = [node["Resources"].get("memory", 0) for node in known_nodes() if node["Alive"]]
    return int(max(offered, default=0))
