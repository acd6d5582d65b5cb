"""Reasons for the scores of a finished run, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from peg_core.artifacts.trained_model import TrainedModel
from peg_core.explain.pair_explainer import PairExplainer
from peg_core.explain.pair_nodes import pair_nodes
from pipeline.run.stage_inputs import StageInputs


def open_explainer(inputs: StageInputs, *, graph: str, prior: float | None = None) -> PairExplainer:
    """What explains the scores of a model.

    Args:
        inputs: ``ingest``, ``features``, ``train``, ``calibrate``, and what was embedded.
        graph: ``all`` known edges, or those of the ``train`` part.
        prior: Share of links among the candidates; None: as in validation.
    """
    scorer, model = inputs.best_scorer(graph=graph), inputs.best_model
    calibration = inputs.calibration(inputs.best_seed).open()
    calibrated = TrainedModel(model.open().folder, calibration)
    features = inputs.features.open()
    explainer = scorer.embedded.open().explainer(calibrated, inputs.node_ids.open(), features)
    return explainer.with_line(calibration.line(prior=prior))


def explain_pairs(
    explainer: PairExplainer, source: Sequence[Any], target: Sequence[Any]
) -> list[dict[str, Any]]:
    """The reasons for some pairs, in their order, as dictionaries and lists.

    Args:
        explainer: From :func:`open_explainer`; one for many calls.
        source, target: Ids as in the edge list.

    Returns:
        For each pair the fields of :class:`peg_core.explain.explanation.PairExplanation`.

    Raises:
        InputError: An id is not in the graph, or both are one node.
    """
    nodes = [pair_nodes(explainer.ids, *ids) for ids in zip(source, target, strict=True)]
    if not nodes:
        return []
    first, second = (np.concatenate([pair[end] for pair in nodes]) for end in (0, 1))
    return [each.as_dict() for each in explainer.explain(first, second)]
