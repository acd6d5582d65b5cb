"""Numbers, names and times as a report writes them."""

from __future__ import annotations

import math
from datetime import datetime
from numbers import Real

DASH = "–"
METRIC_NAMES = {"auc": "AUC", "average_precision": "Average precision", "mrr": "MRR"}
NDCG = "ndcg@"


def format_compact(count: float) -> str:
    """A count in a few characters: ``61.9 M``."""
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.3g}"


def as_number(value: object) -> float | None:
    """A finite number, of Python or numpy, or none."""
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    return None


def format_words(name: str) -> str:
    """``adamic_adar`` to ``adamic adar``: readable, and a narrow screen can break it."""
    return name.replace("_", " ")


def format_metric_name(name: str) -> str:
    """``hits@20`` to ``Hits@20``, ``average_precision`` to ``Average precision``."""
    if name.startswith(NDCG):
        return name.upper()
    return METRIC_NAMES.get(name, format_words(name).capitalize())


def format_metric(value: object) -> str:
    """Four decimals; text as it is; a dash for what is missing or not finite."""
    if isinstance(value, str):
        return value
    number = as_number(value)
    return DASH if number is None else f"{number:.4f}"


def format_count(value: float | str) -> str:
    """Whole numbers with thousands apart, others with four significant digits."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return DASH
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def format_seconds(seconds: float) -> str:
    """``0.42 s``, ``12.3 s``, ``4 min 05 s`` or ``2 h 03 min``."""
    if not math.isfinite(seconds):
        return DASH
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_time(created: str) -> str:
    """An ISO time for readers; anything else as it is."""
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()
