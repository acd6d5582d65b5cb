"""Reading a pipeline file: every mistake at once, each with its place and a hint."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails, to_jsonable_python

from peg_core.encoding import ENCODERS
from peg_core.errors import ConfigError, nearest_hint
from pipeline.config.data_sections import EncodingConfig
from pipeline.config.document import ConfigDocument, ConfigDumper, KeyPath, describe, model_at
from pipeline.config.pipeline_config import PipelineConfig

NUMBER = re.compile(r"[-+]?\.?\d")
NEEDED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a section with keys of its own",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "too_short": "at least {min_length} item(s)",
    "string_pattern_mismatch": "text that matches {pattern}",
}
PATTERN_IN_WORDS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits, '.', '_' and '-', the first not a sign",
}


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
        ConfigError: With all problems found, one a line.
    """
    document = ConfigDocument()
    document.read_file(path)
    if cluster_file is not None:
        document.replace_section("cluster", cluster_file)
    for item in overrides:
        document.override(item)
    config = _validate(document)
    if config is not None and not document.problems:
        return config
    problems = [text for _, text in sorted(document.problems, key=lambda problem: problem[0])]
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    raise ConfigError("\n".join([f"{count} found in {path}; nothing was started", *problems]))


def dump_config(config: PipelineConfig) -> str:
    """The configuration with all its defaults as YAML; loading it gives an equal one."""

    def escape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: escape(item) for key, item in value.items()}
        if isinstance(value, list):
            return [escape(item) for item in value]
        return value.replace("${", "$${") if isinstance(value, str) else value

    document = escape(config.model_dump())
    return yaml.dump(document, Dumper=ConfigDumper, sort_keys=False, allow_unicode=True, width=1000)


def _validate(document: ConfigDocument) -> PipelineConfig | None:
    """The checked configuration, or None and its problems in the document."""
    found = list(document.unset.items())
    config = None
    if document.data is not None:
        found += _check_encoders(document.data.get("encodings"))
        try:
            config = PipelineConfig.model_validate(document.data, strict=True)
        except ValidationError as error:
            found += [_verdict(detail, document) for detail in error.errors()]
    for path, message in found:
        if document.unset.get(path, message) == message:  # one problem with a ${NAME} is enough
            document.report(path, message)
    return config


def _verdict(detail: ErrorDetails, document: ConfigDocument) -> tuple[KeyPath, str]:
    """The key that a pydantic error is about, and the error in words.

    A validator's message names keys in backticks: the first that the file has is meant.
    """
    path = detail["loc"]
    if detail["type"] != "value_error":
        return path, _explain(detail)
    message = str(detail["ctx"]["error"])
    named = [(*path, *name.split(".")) for name in re.findall(r"`([\w.]+)", message)]
    return next((key for key in named if key in document.places), path), message


def _check_encoders(items: object) -> Iterator[tuple[KeyPath, str]]:
    """Problems with encoders' own parameters, all of them: pydantic would stop at the first.

    Parameters that were reported are taken out of ``items``.
    """
    own = list(EncodingConfig.model_fields)
    default_kind = EncodingConfig.model_fields["kind"].default
    for index, item in enumerate(items if isinstance(items, list) else []):
        kind = item.get("kind", default_kind) if isinstance(item, dict) else None
        if not isinstance(kind, str) or kind not in ENCODERS:
            continue
        accepted = inspect.signature(ENCODERS[kind]).parameters
        for name in [name for name in item if name not in own and name not in accepted]:
            del item[name]
            yield ("encodings", index, name), _unknown_key(name, [*own, *accepted])
        for name, fault in _faults(kind, {name: item[name] for name in item if name in accepted}):
            del item[name]
            hint = f"leave `{name}` out for the default, {accepted[name].default!r}"
            yield ("encodings", index, name), f"{fault}; {hint}"


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
        ENCODERS[kind].check_parameters(parameters)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def _explain(detail: ErrorDetails) -> str:
    """A pydantic error in words: what was found, what was needed, what to do."""
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    names = tuple(part for part in detail["loc"] if isinstance(part, str))
    model = model_at(names[:-1])
    if kind == "extra_forbidden":
        return _unknown_key(names[-1], list(model.model_fields))
    field = model.model_fields[names[-1]]
    about = field.description or inspect.getdoc(model_at(names)) or ""
    if kind == "missing":
        return f"a required key is missing; add `{names[-1]}:` ({about.rstrip('.')})"
    needed = NEEDED[kind].format(**context) if kind in NEEDED else detail["msg"]
    needed = PATTERN_IN_WORDS.get(context.get("pattern", ""), needed)
    hint = about
    if kind == "model_type":
        hint = f"write its keys below it: {', '.join(model_at(names).model_fields)}"
    elif kind == "string_type" and isinstance(value, int | float):
        hint = "write it in quotes"
    elif kind in ("int_type", "float_type") and isinstance(value, str) and NUMBER.match(value):
        hint = "write it without quotes"
    elif kind == "int_type" and isinstance(value, float) and value.is_integer():
        hint = f"write {value:.0f}"
    elif not field.is_required():
        hint = f"leave `{names[-1]}` out for the default, {to_jsonable_python(field.default)!r}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        hint += nearest_hint(str(value), choices)
    return f"found {describe(value)}, needed {needed}; {hint}"


def _unknown_key(name: str, known: list[str]) -> str:
    return f"unknown key {name!r}; known: {', '.join(known)}{nearest_hint(name, known)}"
