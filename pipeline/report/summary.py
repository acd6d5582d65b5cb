"""What the metrics say, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.report.formats import as_number, format_metric_name, format_words

Row = Mapping[str, Any]

NAMES = {
    "peg": "PEG",
    "pe_sage": "PE-SAGE",
    "egnn": "E-GNN",
    "light_gcn": "LightGCN",
    "linear_peg": "linear PEG",
    "adamic_adar": "Adamic-Adar",
    "katz": "Katz",
    "personalised_pagerank": "personalised PageRank",
}


class Rival(NamedTuple):
    """The best heuristic by one metric."""

    method: str
    value: float


def name_method(method: str) -> str:
    """As it is written in a sentence."""
    return NAMES.get(method, format_words(method))


def best_rival(rows: Sequence[Row], metric: str) -> Rival | None:
    """The best of the rows after the model's."""
    found = [
        Rival(str(row["method"]), value)
        for row in rows[1:]
        if (value := as_number(row.get(metric))) is not None
    ]
    return max(found, key=lambda rival: rival.value, default=None)


def summarise_in_words(tables: Mapping[str, Sequence[Row]]) -> str:
    """One to three sentences on the first table and on the one with hard non-links."""
    first = next(iter(tables.values()), [])
    if not first:
        return ""
    model = name_method(str(first[0].get("method", "")))
    said = [_against_random(first, model), _at_the_top(first, model)]
    if "heart" in tables and tables["heart"] is not first:
        said.append(_among_hard(tables["heart"]))
    return " ".join(sentence for sentence in said if sentence)


def _against_random(rows: Sequence[Row], model: str) -> str:
    auc = as_number(rows[0].get("auc"))
    if auc is None:
        return ""
    text = f"{model} scores a held-out link above a non-link {auc:.1%} of the time"
    rival = best_rival(rows, "auc")
    if rival is not None:
        text += f"; the best heuristic, {name_method(rival.method)}, {rival.value:.1%}"
    return f"{text}."


def _at_the_top(rows: Sequence[Row], model: str) -> str:
    """On the metric of the first places: where a list is read from the top."""
    metric = next(
        (name for name in rows[0] if name == "mrr" or name.startswith(("recall@", "hits@"))), None
    )
    value, rival = as_number(rows[0].get(metric or "")), best_rival(rows, metric or "")
    if metric is None or value is None or "_" in metric:
        return ""
    name, it = format_metric_name(metric), "it" if "auc" in rows[0] else model
    if rival is None:
        return f"At the top of the list its {name} is {value:.3f}."
    who = name_method(rival.method)
    return (
        f"At the top of the list ({name}) {it} is {_standing(rows[0], metric, rival.value)} {who}: "
        f"{value:.3f} against {rival.value:.3f}."
    )


def _among_hard(rows: Sequence[Row]) -> str:
    value, rival = as_number(rows[0].get("mrr")), best_rival(rows, "mrr")
    if value is None:
        return ""
    if rival is None:
        return f"Among hard non-links its MRR is {value:.3f}."
    return (
        f"Among hard non-links it is {_standing(rows[0], 'mrr', rival.value)} "
        f"{name_method(rival.method)}: {value:.3f} against {rival.value:.3f}."
    )


def _standing(model: Row, metric: str, rival: float) -> str:
    """Ahead, behind, or level where the heuristic lies in the interval of the model."""
    value = float(model[metric])
    low, high = (as_number(model.get(f"{metric}_{end}")) for end in ("low", "high"))
    if low is not None and high is not None and low <= rival <= high:
        return "about level with"
    return "ahead of" if value > rival else "behind"
