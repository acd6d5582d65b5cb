"""What ``auto`` means for a graph of a given size: every choice in one place, with its reason.

A choice depends on the configuration and on the size of the graph alone, never on the cluster: the
same file makes the same artifacts everywhere. What it became enters the fingerprints. Up to a
million training links choices are what they were before there was a choice.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peg_core.encoding import ENCODERS
from peg_core.heuristics import HEURISTICS
from peg_core.models.baselines import BASELINES
from peg_core.training.settings import MOST_FULL_EDGES, Optimisation, Sampling
from pipeline.config.data_sections import FOLDS, EncodingConfig, SplitConfig
from pipeline.config.model_sections import TrainConfig
from pipeline.config.pipeline_config import PipelineConfig

# Above, a graph is not only sampled, but each of its encodings takes minutes.
HUGE_LINKS = 10_000_000
# The budget of a graph at the limit of full batches, as many steps as such a graph takes there.
LINKS_AT_LIMIT = 2_000_000
# Without folds and dropout, models still gain after fifty.
BASELINE_EPOCHS = 100
# Weights that were only drawn already tell hubs apart: on some graphs the first validation is
# the best for a while.
BASELINE_PATIENCE = 50
VALIDATIONS = 20
PATIENT_VALIDATIONS = 5
MIN_GAIN = 1e-3
VALID_PAIRS = 100_000
STEP_BYTES = 10**9
LEAST_BATCH = 1024
DIMENSIONS = 128
# Exact to a share of the degree: among millions of edges most pairs lie below it.
TOO_COARSE = "personalised_pagerank"


@dataclass(frozen=True)
class GraphExtent:
    """How large a graph is, or will be.

    Args:
        exact: Whether it was counted; else rows of its tables stand for it.
    """

    nodes: int
    edges: int
    exact: bool = True


@dataclass(frozen=True)
class Choice:
    """What one key became.

    Args:
        key: As in the pipeline file.
    """

    key: str
    value: Any
    reason: str


def resolve(config: PipelineConfig, extent: GraphExtent) -> tuple[PipelineConfig, list[Choice]]:
    """The configuration without ``auto``, and what was chosen; explicit values stay.

    Applied to its own result it changes nothing.
    """
    links = training_links(config, extent.edges)
    split = _folds(config.split, links, kind=config.model.kind)
    encodings = [_dimensions(n, item, links) for n, item in enumerate(config.encodings)]
    width = _row_width(config, encodings)
    train = [
        *_course(config.train, links, is_baseline=config.model.kind in BASELINES),
        *_sampling(config.train, extent, links, layers=config.model.layers, width=width),
    ]
    evaluate = _heuristics(config, links)
    choices = [*split, *[c for c in encodings if c], *train, *evaluate]
    update = {
        "split": _with(config.split, split),
        "encodings": [
            EncodingConfig(**{**item.model_dump(), "dimensions": choice.value}) if choice else item
            for item, choice in zip(config.encodings, encodings, strict=True)
        ],
        "train": _with(config.train, train),
        "evaluate": _with(config.evaluate, evaluate),
    }
    return config.model_copy(update=update), choices


def training_links(config: PipelineConfig, edges: int) -> int:
    """About how many of the edges will be trained on."""
    if config.split.by == "files":
        return edges
    return round(edges * (1 - config.split.valid - config.split.test))


def _with(section: Any, choices: Sequence[Choice]) -> Any:
    return section.model_copy(update={c.key.rpartition(".")[2]: c.value for c in choices})


def _step(links: int, values: Sequence[Any]) -> Any:
    """One of three values: of a graph that fits a full batch, of a large one, of a huge one."""
    return values[(links > MOST_FULL_EDGES) + (links > HUGE_LINKS)]


def _size(links: int) -> str:
    return f"{links:,} training links"


def _folds(split: SplitConfig, links: int, *, kind: str) -> list[Choice]:
    if split.folds != "auto":
        return []
    if kind in BASELINES:
        return [Choice("split.folds", 1, f"as the paper of {kind} trains")]
    value = _step(links, (FOLDS, 4, 2))
    reason = f"{value + 1} encodings of a graph with {_size(links)}"
    return [Choice("split.folds", value, reason)]


def _dimensions(number: int, item: EncodingConfig, links: int) -> Choice | None:
    """None where the encoder's own default stays: up to a million links."""
    parameter = inspect.signature(ENCODERS[item.kind]).parameters.get("dimensions")
    if links <= MOST_FULL_EDGES or parameter is None or "dimensions" in item.parameters:
        return None
    value = _step(links, (DIMENSIONS, 64, 32))
    return Choice(
        f"encodings.{number}.dimensions",
        value,
        f"time and disk of every encoding grow with it, at {_size(links)} more than quality does",
    )


def _course(train: TrainConfig, links: int, *, is_baseline: bool = False) -> list[Choice]:
    """Budget, validations, patience."""
    chosen: list[Choice] = []

    def choose(name: str, value: Any, reason: str) -> Any:
        if getattr(train, name) != "auto":
            return getattr(train, name)
        chosen.append(Choice(f"train.{name}", value, reason))
        return value

    budget = None
    why = f"{_size(links)}: epochs count, up to {MOST_FULL_EDGES:,}"
    if train.epochs != "auto":
        why = "`train.epochs` is given"
    elif links > MOST_FULL_EDGES:
        budget = int(round(LINKS_AT_LIMIT * math.sqrt(links / MOST_FULL_EDGES), -5))
        why = f"{LINKS_AT_LIMIT:,} at {MOST_FULL_EDGES:,} training links, and its square root above"
    budget = choose("links", budget, why)
    epochs = BASELINE_EPOCHS if is_baseline else Optimisation.epochs
    choose("epochs", epochs, "at most" if budget is None else "`train.links` counts")
    every = None if budget is None else max(1, budget // VALIDATIONS)
    why = "after epochs" if budget is None else f"{VALIDATIONS} validations in the budget"
    every = choose("validate_links", every, why)
    if every is None:
        choose("validate_pairs", Optimisation.validate_pairs, "more would tell no more")
        choose("patience", BASELINE_PATIENCE if is_baseline else Optimisation.patience, "epochs")
        choose("min_gain", Optimisation.min_gain, "any better value is a gain")
    else:
        choose("validate_pairs", VALID_PAIRS, "an AUC within a few thousandths")
        choose("patience", PATIENT_VALIDATIONS, "validations, a quarter of the budget")
        choose("min_gain", MIN_GAIN, "less is not worth a quarter of the budget")
    return chosen


def _sampling(
    train: TrainConfig, extent: GraphExtent, links: int, *, layers: int, width: int
) -> list[Choice]:
    """Neighbours and links of a step."""
    chosen = []
    fan_outs = train.fan_outs
    if fan_outs == "auto":
        fan_outs = _step(links, (None, None, [10, *[5] * (layers - 1)]))
        why = "15, then 10" if fan_outs is None else f"less than half the work, at {_size(links)}"
        chosen.append(Choice("train.fan_outs", fan_outs, why))
    if train.batch_size == "auto":
        hops = Sampling(fan_outs=tuple(fan_outs) if fan_outs else None).hops(layers)
        value, why = Sampling.batch_size, "large batches share neighbours"
        while (
            links > MOST_FULL_EDGES
            and value > LEAST_BATCH
            and sampled_nodes(value, hops, extent.nodes) * width * 4 > STEP_BYTES
        ):
            value //= 2
            why = f"the nodes of a step hold at most about {STEP_BYTES / 1e9:g} GB"
        chosen.append(Choice("train.batch_size", value, why))
    return chosen


def _heuristics(config: PipelineConfig, links: int) -> list[Choice]:
    if config.evaluate.heuristics != "auto":
        return []
    value, why = list(HEURISTICS), "all"
    if links > MOST_FULL_EDGES:
        value = [name for name in HEURISTICS if name != TOO_COARSE]
        why = f"all but {TOO_COARSE}: at {_size(links)} its pushes miss most pairs"
    return [Choice("evaluate.heuristics", value, why)]


def sampled_nodes(batch_size: int, hops: Sequence[int], nodes: int) -> int:
    """Nodes of a step at most: links and non-links, and their neighbours hop by hop."""
    reached = ring = 4 * batch_size
    for hop in hops:
        ring = nodes if hop < 0 else ring * hop
        reached += ring
    return min(nodes, reached)


def _row_width(config: PipelineConfig, encodings: Sequence[Choice | None]) -> int:
    """Columns of features and positions that a step holds of a node."""
    return config.features.dimensions + sum(
        dimensions_of(item) if choice is None else int(choice.value)
        for item, choice in zip(config.encodings, encodings, strict=True)
    )


def dimensions_of(item: EncodingConfig) -> int:
    """Columns of an encoding, the encoder's own default where nothing is said."""
    default = inspect.signature(ENCODERS[item.kind]).parameters["dimensions"].default
    given = item.parameters.get("dimensions", default)
    return given if isinstance(given, int) else DIMENSIONS
