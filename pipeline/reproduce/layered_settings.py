"""A pipeline file made of sections of others; every key remembers the line it came from."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pipeline.config.document import ConfigDocument, KeyPath


def lay_over(
    target: ConfigDocument, source: ConfigDocument, origin: KeyPath, at: KeyPath = ()
) -> None:
    """Put a section of ``source`` over one of ``target``; sections are merged, lists replaced.

    Args:
        origin: The path of the section in ``source``; nothing happens where there is none.
        at: Its path in ``target``.
    """
    addition = source.data
    for part in origin:
        addition = addition.get(part, {})
    section = target.data
    for part in at:
        if not isinstance(section.get(part), dict):
            section[part] = {}
        section = section[part]
    _merge(target, section, at, source, addition, origin)


def _merge(
    target: ConfigDocument,
    section: dict[Any, Any],
    at: KeyPath,
    source: ConfigDocument,
    addition: dict[Any, Any],
    origin: KeyPath,
) -> None:
    for key, value in addition.items():
        path, where = (*at, key), (*origin, key)
        target.locations[path] = source.locations[where]
        if isinstance(value, dict) and isinstance(section.get(key), dict):
            _merge(target, section[key], path, source, value, where)
            continue
        for stale in [known for known in target.locations if known[: len(path)] == path]:
            del target.locations[stale]
        section[key] = deepcopy(value)
        for known, location in source.locations.items():
            if known[: len(where)] == where:
                target.locations[(*path, *known[len(where) :])] = location
