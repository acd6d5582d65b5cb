"""Experiment files: which there are, what they hold, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from peg_core.errors import ConfigError, nearest_hint
from pipeline.config.document import ConfigDocument
from pipeline.config.loading import all_problems, validate_as
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.reproduce.experiment import Catalogue, Experiment
from pipeline.reproduce.layered_settings import lay_over

FOLDER = Path("configs/reproduce")
# What tells an experiment from the plain pipelines beside it.
MARK = re.compile(r"^experiment\s*:", re.MULTILINE)


@dataclass(frozen=True)
class ExperimentFile:
    """An experiment and where each of its keys stands.

    Args:
        path: The file; its name without the suffix is that of the experiment.
        experiment: What it holds.
        document: The same as plain data.
        pipeline: The pipeline file that its cells start from, where there is one.
    """

    path: Path
    experiment: Experiment
    document: ConfigDocument
    pipeline: ConfigDocument | None = None

    @property
    def name(self) -> str:
        return self.path.stem


def find_experiments(folder: Path = FOLDER) -> dict[str, Path]:
    """The experiments of a folder by name; pipeline files beside them are left out."""
    found = {path.stem: path for path in sorted(folder.glob("*.yaml")) if is_experiment(path)}
    if not found:
        raise ConfigError(
            f"no experiment in {folder}; start `peg reproduce` in the folder of the repository, or "
            "name a file"
        )
    return found


def is_experiment(path: Path) -> bool:
    return bool(MARK.search(path.read_text(encoding="utf-8", errors="replace")))


def find_experiment(name: str, folder: Path = FOLDER) -> Path:
    """The file of an experiment that is named, or given as a file."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        known = find_experiments(folder)
        if name in known:
            return known[name]
        path = folder / f"{name}.yaml"
        if not path.exists():
            raise ConfigError(
                f"no experiment {name!r}; known: {', '.join(known)}, all{nearest_hint(name, known)}"
            )
    if path.exists() and not is_experiment(path):
        raise ConfigError(
            f"{path} is not an experiment: it has no key `experiment`; if it is a pipeline, start "
            f"it with `peg run {path}`"
        )
    return path


def known_experiments(
    variables: Mapping[str, str], folder: Path = FOLDER
) -> dict[str, ExperimentFile]:
    """The experiments of a folder that can be read, by name; nothing where there are none."""
    found = {}
    with suppress(ConfigError):
        for name, path in find_experiments(folder).items():
            with suppress(ConfigError):
                found[name] = load_experiment(path, variables)
    return found


def load_experiment(path: Path, variables: Mapping[str, str]) -> ExperimentFile:
    """Read and check an experiment file; its cells are checked when they are made.

    Args:
        variables: What stands for ``${NAME}`` in it and in its pipeline file.

    Raises:
        ConfigError: With all problems found, one per line.
    """
    document = _with_catalogue(path, _read(path, Experiment, variables))
    experiment = validate_as(Experiment, document)
    if experiment is None or document.problems:
        raise all_problems(document.problems, path)
    if experiment.pipeline is None:
        return ExperimentFile(path, experiment, document)
    pipeline = _read(path.with_name(experiment.pipeline), PipelineConfig, variables)
    return ExperimentFile(path, experiment, document, pipeline)


def _read(path: Path, schema: type[BaseModel], variables: Mapping[str, str]) -> ConfigDocument:
    """A file as plain data; its keys are not checked yet."""
    document = ConfigDocument(schema, variables)
    document.read_file(path)
    for key, message in document.unset.items():
        document.report(key, message)
    if document.problems:
        raise all_problems(document.problems, path)
    return document


def _with_catalogue(path: Path, own: ConfigDocument) -> ConfigDocument:
    """The document with what it names of its catalogue, under what it says itself."""
    name = own.data.get("catalogue")
    shared = ConfigDocument(Catalogue, own.variables)
    if isinstance(name, str) and name:
        shared = _read(path.with_name(name), Catalogue, own.variables)
        if validate_as(Catalogue, shared) is None or shared.problems:
            raise all_problems(shared.problems, path.with_name(name))
    together = ConfigDocument(Experiment, own.variables)
    together.data, together.locations[()] = {}, own.locations[()]
    for kind in Catalogue.model_fields:
        entries = (shared.data or {}).get(kind, {})
        _name_items(own, kind)
        for entry in own.data.get(kind) or ():
            if entry in entries:
                lay_over(together, shared, (kind, entry), (kind, entry))
                together.locations[kind,] = own.locations[kind,]
            elif isinstance(own.data[kind], dict) and own.data[kind][entry] is None:
                own.report(
                    (kind, entry),
                    f"the catalogue has no {entry!r}; it has {', '.join(entries) or 'nothing'}"
                    f"{nearest_hint(entry, entries)}",
                )
    for kind in Catalogue.model_fields:
        named = own.data.get(kind)
        if isinstance(named, dict):
            own.data[kind] = {entry: value or {} for entry, value in named.items()}
    lay_over(together, own, ())
    together.problems = own.problems
    return together


def _name_items(document: ConfigDocument, kind: str) -> None:
    """A list of names as a section that says nothing more about them."""
    names = document.data.get(kind)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return
    for number, name in enumerate(names):
        document.locations[kind, name] = document.locations.pop((kind, number))
    document.data[kind] = dict.fromkeys(names)
