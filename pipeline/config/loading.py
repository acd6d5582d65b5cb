"""Reading a pipeline file: every mistake at once, each with its line and a hint."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from peg_core.encoding import ENCODERS
from peg_core.errors import ConfigError
from pipeline.config.data_sections import EncodingConfig, check_encoder
from pipeline.config.document import ConfigDocument, KeyPath, Problem
from pipeline.config.explanation import explain, explain_unknown_key
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.relation_sections import PLACE, SECTIONS
from pipeline.config.yaml_loader import ConfigDumper

Model = TypeVar("Model", bound=BaseModel)

# A file that is not meant for us has thousands.
MOST_PROBLEMS = 100


def load_config(
    path: Path, overrides: Sequence[str] = (), *, cluster_file: Path | None = None
) -> PipelineConfig:
    """The checked configuration of a pipeline file.

    Values may hold ``${NAME}`` and ``${NAME:-default}``, replaced from the environment: in
    quotes the result is text, without them it may be a number. ``$${`` stands for the
    characters ``${``. Relative paths stay as they are.

    Args:
        path: YAML file.
        overrides: ``KEY=VALUE`` items such as ``train.epochs=5``; the last one wins.
        cluster_file: YAML file with a `cluster` section, which replaces that of ``path``.

    Raises:
        ConfigError: With all problems found, one per line.
    """
    document = ConfigDocument()
    document.read_file(path)
    if document.data is not None and "experiment" in document.data:
        raise ConfigError(
            f"{path} is an experiment, made of many pipelines; start it with `peg reproduce {path}`"
        )
    if cluster_file is not None:
        document.replace_section("cluster", cluster_file)
    for item in overrides:
        document.override(item)
    config = validate(document)
    if config is None or document.problems:
        raise all_problems(document.problems, path)
    return config


def all_problems(problems: Sequence[Problem], path: Path) -> ConfigError:
    """The error that lists all problems with a file in the order of its lines."""
    texts = [text for _, text in sorted(problems, key=lambda problem: problem[0])]
    count = f"{len(texts)} problem{'s' if len(texts) > 1 else ''}"
    if len(texts) > MOST_PROBLEMS:
        texts[MOST_PROBLEMS:] = [f"and {len(texts) - MOST_PROBLEMS:,} more"]
    message = "\n".join([f"{count} found in {path}; nothing was started", *texts])
    return ConfigError(message.encode(errors="backslashreplace").decode())


def dump_config(config: PipelineConfig) -> str:
    """The configuration with all its defaults as YAML; loading it gives an equal one."""
    return dump_values(config.model_dump())


def dump_values(values: dict[str, Any]) -> str:
    """The keys of a pipeline file as YAML; loading it gives the same ones."""

    def escape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: escape(item) for key, item in value.items()}
        if isinstance(value, list):
            return [escape(item) for item in value]
        return value.replace("${", "$${") if isinstance(value, str) else value

    return yaml.dump(
        escape(values), Dumper=ConfigDumper, sort_keys=False, allow_unicode=True, width=1000
    )


def validate(document: ConfigDocument) -> PipelineConfig | None:
    """The checked configuration, or None and its problems in the document."""
    data = document.data or {}
    return validate_as(PipelineConfig, document, list(_check_encoders(data.get("encodings"))))


def validate_as(
    schema: type[Model], document: ConfigDocument, found: Sequence[tuple[KeyPath, str]] = ()
) -> Model | None:
    """What a document holds, or None and its problems in the document.

    Args:
        found: Problems that are known already.
    """
    problems, checked = [*document.unset.items(), *found], None
    if document.data is not None:
        try:
            checked = schema.model_validate(document.data, strict=True)
        except ValidationError as error:
            problems += [_verdict(_located(detail), document) for detail in error.errors()]
    for path, message in problems:
        if document.unset.get(path, message) == message:  # one problem with a ${NAME} is enough
            document.report(path, message)
    return checked


def _located(detail: ErrorDetails) -> ErrorDetails:
    """An error at the key of the file, without what pydantic tried there."""
    path = tuple(part for part in detail["loc"] if part not in (PLACE, SECTIONS))
    return {**detail, "loc": path}


def _verdict(detail: ErrorDetails, document: ConfigDocument) -> tuple[KeyPath, str]:
    """The key that a pydantic error is about, and the error in words.

    A validator's message names keys in backticks: the first that the file has is meant.
    """
    path = detail["loc"]
    if detail["type"] != "value_error":
        return path, explain(detail, document.schema)
    message = str(detail["ctx"]["error"])
    named = [(*path, *name.split(".")) for name in re.findall(r"`([\w.+/-]+)", message)]
    return next((key for key in named if key in document.locations), path), message


def _check_encoders(items: object) -> Iterator[tuple[KeyPath, str]]:
    """Problems with encoders' own parameters, all of them: pydantic would stop at the first.

    Parameters that were reported are taken out of ``items``.
    """
    for index, item in enumerate(items if isinstance(items, list) else []):
        kind = _encoder_kind(item)
        if kind is None:
            continue
        for name, problem in list(_parameter_problems(kind, item)):
            del item[name]
            yield ("encodings", index, name), problem


def _encoder_kind(item: object) -> str | None:
    """The encoder an item of ``encodings`` asks for, if there is such a one."""
    if not isinstance(item, dict):
        return None
    kind = item.get("kind", EncodingConfig.model_fields["kind"].default)
    return kind if isinstance(kind, str) and kind in ENCODERS else None


def _parameter_problems(kind: str, item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Unknown parameters of an encoder first, then those with a wrong value."""
    own = list(EncodingConfig.model_fields)
    accepted = inspect.signature(ENCODERS[kind]).parameters
    for name in item:
        if name not in own and name not in accepted:
            yield name, explain_unknown_key(name, [*own, *accepted])
    for name, fault in _faults(kind, {name: item[name] for name in item if name in accepted}):
        default = accepted[name].default
        yield name, f"{fault}; leave `{name}` out for the default, {default!r}"


def _faults(kind: str, parameters: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Parameters that are wrong by themselves; rules over several are left to the schema."""
    while (fault := _first_fault(kind, parameters)) is not None:
        alone = (n for n in parameters if _first_fault(kind, {n: parameters[n]}) == fault)
        name = next(alone, None)
        if name is None:
            return
        yield name, fault
        parameters = {other: parameters[other] for other in parameters if other != name}


def _first_fault(kind: str, parameters: dict[str, Any]) -> str | None:
    """What an encoder has against its parameters."""
    try:
        check_encoder(kind, parameters)
    except (TypeError, ValueError) as error:
        return str(error)
    return None
