"""Calibration as a Ray task: the validation pairs are scored, a line is fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.metrics.calibration import Calibration, fit_logistic
from peg_core.metrics.reliability import expected_calibration_error, reliability_sums
from peg_core.metrics.stack import fit_stack
from peg_core.models.structural_features import structural_features
from peg_core.splits.held_out_pairs import count_pairs
from peg_core.splits.split_store import SplitStore
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import ScorerRef


class CalibrateResult(TypedDict):
    """The line, from how many of the pairs, and how far chances were off before and after.

    ``spread`` is the standard deviation of the logits after the line.
    """

    slope: float
    intercept: float
    prior: float
    spread: float
    pairs: int
    validation_pairs: int
    error_before: float
    error: float


def calibrate_task(
    scorer: ScorerRef,
    split: ArtifactRef[SplitStore],
    nodes: ArtifactRef[GraphIds],
    columns: tuple[str, str],
    out: ArtifactRef[Calibration],
    most: int,
    stack: bool = False,
) -> CalibrateResult:
    """Write the calibration and the validation pairs that it is fitted to with their scores.

    Args:
        columns: How the ends of a pair are called.
        most: Pairs that are used; of more every second, third, ... is.
        stack: Whether common neighbours have a say beside the model's logit.
    """
    held_out = split.open()
    pairs = held_out.held_out("valid", most=most)
    opened = scorer.open()
    logits = opened.logits(pairs.source, pairs.target)
    calibration = fit_logistic(logits, pairs.label)
    if stack:
        ends = pairs.source, pairs.target
        structure = structural_features(opened.graph, *ends, opened.components)
        stacked = fit_stack(logits, structure, pairs.label)
        logits = replace(opened, stack=stacked).logits(*ends)
        calibration = replace(fit_logistic(logits, pairs.label), stack=stacked)
    chance = calibration.probabilities(logits)
    source, target = nodes.open().ends
    table = pa.table(
        {
            columns[0]: source.take(pairs.source),
            columns[1]: target.take(pairs.target),
            "score": chance,
            "logit": logits,
            "label": pairs.label,
        }
    )
    with atomic_path(out.folder / "valid_pairs.parquet") as temporary:
        pq.write_table(table, temporary, compression="zstd")
    calibration.save(out.folder)
    untouched = Calibration(1.0, 0.0, calibration.prior).probabilities(logits)
    return {
        "slope": calibration.slope,
        "intercept": calibration.intercept,
        "prior": calibration.prior,
        "spread": float(abs(calibration.slope) * logits.std()),
        "pairs": len(logits),
        "validation_pairs": count_pairs(held_out.held_out_file("valid")),
        "error_before": _error(untouched, pairs.label),
        "error": _error(chance, pairs.label),
    }


def _error(chance: np.ndarray, labels: np.ndarray) -> float:
    return expected_calibration_error(reliability_sums(chance, labels))
