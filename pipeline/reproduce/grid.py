"""The cells of an experiment: each is a pipeline, in the store of its graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from peg_core.errors import ConfigError, nearest_hint
from pipeline.config.document import ConfigDocument, Problem
from pipeline.config.loading import all_problems, validate
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.reproduce.experiment import Experiment
from pipeline.reproduce.experiment_file import ExperimentFile
from pipeline.reproduce.layered_settings import lay_over
from pipeline.run.repeats import repeated


@dataclass(frozen=True)
class Choice:
    """Which cells are wanted, and what is changed in all of them.

    Args:
        out: Folder of the stores, one for every graph.
        quick: Whether the grid is cut down to the `quick` section of its file.
        splits: How many splits; None: as the file says.
        only: Patterns that the name of a cell, or its first parts, must match one of.
        overrides: ``KEY=VALUE`` items; the last one wins.
    """

    out: Path
    quick: bool = False
    splits: int | None = None
    only: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """A method, with one value of the setting that is varied where there is such a one."""

    method: str
    value: float | None = None

    @property
    def name(self) -> str:
        return self.method if self.value is None else f"{self.method}-{self.value:g}"


@dataclass(frozen=True)
class Cell:
    """One pipeline of an experiment."""

    experiment: str
    graph: str
    variant: Variant
    features: str
    split: int
    config: PipelineConfig

    @property
    def name(self) -> str:
        return f"{self.graph}/{self.variant.name}/{self.features}/{self.split}"


def build_cells(file: ExperimentFile, choice: Choice) -> list[Cell]:
    """The chosen cells, those of a graph together and those of a split in turn.

    Raises:
        ConfigError: With all problems of all pipelines, each once.
    """
    problems: dict[Problem, None] = {}
    cells: list[Cell] = []
    for graph, combinations in _combinations(file, choice).items():
        configs: dict[tuple[Variant, str], PipelineConfig] = {}
        for variant, features in combinations:
            document = cell_document(file, choice, graph, variant, features)
            config = validate(document)
            problems |= dict.fromkeys(document.problems)
            if config is not None:
                configs[variant, features] = config
        cells += [
            Cell(file.name, graph, variant, features, split, _of_split(file, config, split))
            for split in range(num_splits(file.experiment, choice))
            for (variant, features), config in configs.items()
            if _is_chosen(f"{graph}/{variant.name}/{features}", str(split), choice.only)
        ]
    if problems:
        raise all_problems(list(problems), file.path)
    return cells


def cell_names(file: ExperimentFile, choice: Choice) -> list[str]:
    """The chosen cells without their splits, ``graph/method/features``."""
    return [
        f"{graph}/{variant.name}/{features}"
        for graph, combinations in _combinations(file, choice).items()
        for variant, features in combinations
    ]


def num_splits(experiment: Experiment, choice: Choice) -> int:
    """Of every row."""
    return choice.splits or (experiment.quick.splits if choice.quick else experiment.splits)


def cell_document(
    file: ExperimentFile, choice: Choice, graph: str, variant: Variant, features: str
) -> ConfigDocument:
    """The pipeline file of all splits of a cell, as plain data."""
    target = ConfigDocument(variables=file.document.variables)
    target.data, target.locations[()] = {}, (0, str(file.path))
    if file.pipeline is not None:
        lay_over(target, file.pipeline, ())
    for origin, at in _layers(graph, variant, features):
        lay_over(target, file.document, origin, at)
    if variant.value is not None and file.experiment.vary is not None:
        target.override(f"{file.experiment.vary.key}={variant.value:g}")
    if choice.quick:
        lay_over(target, file.document, ("quick", "settings"))
    for item in choice.overrides:
        target.override(item)
    target.data |= {
        "name": f"{file.name}-{graph}-{variant.name}-{features}".replace("+", "plus"),
        "store": str(choice.out / graph),
    }
    target.data.pop("repeats", None)
    return target


def pipeline_of(file: ExperimentFile, choice: Choice, name: str) -> dict[str, Any]:
    """The pipeline file of one cell, ``graph/method/features``, with all its splits.

    With a fourth part, ``graph/method/features/split``, that of one split alone.
    """
    wanted, _, split = name.strip("/").partition("/")[2].partition("/")[2].partition("/")
    cells = {
        f"{graph}/{variant.name}/{features}": (graph, variant, features)
        for graph, combinations in _combinations(file, choice).items()
        for variant, features in combinations
    }
    row = name.strip("/").removesuffix(f"/{split}") if split else name.strip("/")
    if not wanted or row not in cells or (split and not split.isdecimal()):
        raise ConfigError(
            f"{file.path} has no cell {name!r}; a cell is GRAPH/METHOD/FEATURES or "
            f"GRAPH/METHOD/FEATURES/SPLIT, `peg reproduce {file.name} --list` shows them"
            f"{nearest_hint(row, cells)}"
        )
    document = cell_document(file, choice, *cells[row])
    config = validate(document)
    if config is None or document.problems:
        raise all_problems(document.problems, file.path)
    found: dict[str, Any] = document.data
    train, of_split = found.setdefault("train", {}), found.setdefault("split", {})
    if split:
        own = _of_split(file, config, int(split))
        train["seed"], of_split["seed"] = own.train.seed, own.split.seed
    elif file.experiment.same_split:
        train["seeds"] = num_splits(file.experiment, choice)
    else:
        found["repeats"] = num_splits(file.experiment, choice)
    return {"name": found.pop("name"), "store": found.pop("store"), **found}


def rows_of(experiment: Experiment, *, quick: bool = False) -> Iterator[tuple[Variant, str]]:
    """Variants and their features, as the rows of a table, whatever the graph."""
    cut = experiment.quick if quick else None
    values: Sequence[float | None] = [None]
    if experiment.vary is not None:
        values = (cut.values if cut else None) or experiment.vary.values
    for name, method in experiment.methods.items():
        if cut and cut.methods and name not in cut.methods:
            continue
        for features in method.features or experiment.features:
            if cut and cut.features and features not in cut.features:
                continue
            for value in values:
                yield Variant(name, value), features


def graphs_of(experiment: Experiment, *, quick: bool = False) -> list[str]:
    """The columns of the table."""
    chosen = experiment.quick.graphs if quick else None
    return [name for name in experiment.graphs if chosen is None or name in chosen]


def _combinations(file: ExperimentFile, choice: Choice) -> dict[str, list[tuple[Variant, str]]]:
    """By graph, the variants and features of which some split is wanted."""
    experiment = file.experiment
    splits = [str(split) for split in range(num_splits(experiment, choice))]
    found = {}
    for graph in graphs_of(experiment, quick=choice.quick):
        found[graph] = [
            (variant, features)
            for variant, features in rows_of(experiment, quick=choice.quick)
            if graph in (experiment.methods[variant.method].graphs or experiment.graphs)
            and any(
                _is_chosen(f"{graph}/{variant.name}/{features}", split, choice.only)
                for split in splits
            )
        ]
    return found


def _is_chosen(row: str, split: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern fits the name of a cell or its first parts."""
    parts = [*row.split("/"), split]
    begun = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return not patterns or any(fnmatchcase(name, p) for p in patterns for name in begun)


def _layers(graph: str, variant: Variant, features: str) -> list[tuple[tuple[str, ...], Any]]:
    """Sections of the file in the order in which they are laid over each other, and where."""
    return [
        (("settings",), ()),
        (("graphs", graph, "settings"), ()),
        (("features", features), ("features",)),
        (("methods", variant.method, "settings"), ()),
        (("methods", variant.method, "on_graph", graph), ()),
    ]


def _of_split(file: ExperimentFile, config: PipelineConfig, split: int) -> PipelineConfig:
    """The configuration of one split: with the next seeds."""
    if not file.experiment.same_split:
        return repeated(config, split)
    train = config.train.model_copy(update={"seed": config.train.seed + split})
    return config.model_copy(update={"train": train})
