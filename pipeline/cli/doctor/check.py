"""One finding of ``peg doctor``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from peg_core.errors import PegError

State = Literal["ok", "warn", "fail"]
FEW_BYTES, SOME_BYTES = 10**9, 10**10
MOST_NAMES = 4


@dataclass(frozen=True)
class Check:
    """One finding.

    Args:
        advice: What to do, where the state is not ok.
    """

    name: str
    state: State
    found: str
    advice: str = ""


def told(name: str, look: Callable[[], str]) -> Check:
    """What was found, or the error with its advice."""
    try:
        return Check(name, "ok", look())
    except PegError as error:
        return failed(name, error)


def failed(name: str, error: PegError) -> Check:
    """An error, which says what was found and, after a semicolon, what to do."""
    found, _, advice = str(error).partition("; ")
    return Check(name, "fail", found, advice)


def space_state(free_bytes: int) -> State:
    if free_bytes >= SOME_BYTES:
        return "ok"
    return "fail" if free_bytes < FEW_BYTES else "warn"


def by_problem(problems: Mapping[str, str]) -> str:
    """``a, b: problem``: who has a problem, those with the same one together.

    Args:
        problems: Of everybody who has one, by name.
    """
    who: dict[str, list[str]] = {}
    for name, problem in problems.items():
        who.setdefault(problem, []).append(name)
    return "; ".join(f"{few(names)}: {problem}" for problem, names in who.items())


def few(names: list[str]) -> str:
    """The first of many names."""
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
