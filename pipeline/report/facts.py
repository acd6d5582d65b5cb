"""Warnings that say the same of several encoded graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable

# "encoding-0-fold-3: " in front, and how many graphs it holds for behind.
_GRAPH = re.compile(r"^encoding-[\w-]+: ")
_COUNT = re.compile(r" \([\d,]+ of [\d,]+ graphs\)$")
_NUMBER = re.compile(r"\d[\d.,e+-]*")


def fact_of(text: str) -> str:
    """What a warning says of an encoded graph, apart from numbers and advice."""
    return _NUMBER.sub("#", _COUNT.sub("", text).split(";")[0])


def key_of(warning: str) -> str:
    """The fact where the warning is of an encoded graph, else every word of it."""
    graph = _GRAPH.match(warning)
    return fact_of(warning[graph.end() :]) if graph else warning


def each_fact_once(warnings: Iterable[str]) -> list[str]:
    """The first warning of every fact."""
    first: dict[str, str] = {}
    for warning in warnings:
        first.setdefault(key_of(warning), warning)
    return list(first.values())
