"""Reading a pipeline file: every mistake at once, each with its place and a hint."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_jsonable_python

from peg_core.encoding import ENCODERS
from peg_core.errors import ConfigError, nearest_hint
from pipeline.config import EncodingConfig, PipelineConfig

KeyPath = tuple[str | int, ...]
Place = tuple[int, str]  # line to sort by, and what the user reads

NUMBER = re.compile(r"[-+]?\.?\d")
TAG = "tag:yaml.org,2002:"
# YAML 1.1 reads 1e-3 as text: it wants a dot, and a sign in the exponent.
SHORT_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)[eE][-+]?\d+$")
VARIABLE = re.compile(r"\$\$(?=\{)|\$\{([A-Za-z_]\w*)(?::-([^{}]*))?\}|\$\{[^}]*\}?")
NEEDED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
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


class ConfigLoader(yaml.SafeLoader):
    """A SafeLoader that reads ``1e-3`` as a number and leaves dates as text."""


class ConfigDumper(yaml.SafeDumper):
    """A SafeDumper that quotes text which ConfigLoader would read as a number."""


ConfigLoader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != TAG + "timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for yaml_class in (ConfigLoader, ConfigDumper):
    yaml_class.add_implicit_resolver(TAG + "float", SHORT_FLOAT, list("-+.0123456789"))


def load_config(path: Path, overrides: Sequence[str] = ()) -> PipelineConfig:
    """The checked configuration of a pipeline file.

    Values may hold ``${NAME}`` and ``${NAME:-default}``, replaced from the environment;
    ``$${`` stands for the characters ``${``. Relative paths stay as they are.

    Args:
        path: YAML file.
        overrides: ``KEY=VALUE`` items such as ``train.epochs=5``; the last one wins.

    Raises:
        ConfigError: With all problems found, one a line.
    """
    document = ConfigDocument()
    document.read_file(path)
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
    for index, item in enumerate(items if isinstance(items, list) else []):
        default_kind = EncodingConfig.model_fields["kind"].default
        kind = item.get("kind", default_kind) if isinstance(item, dict) else None
        if not isinstance(kind, str) or kind not in ENCODERS:
            continue
        own = list(EncodingConfig.model_fields)
        accepted = inspect.signature(ENCODERS[kind]).parameters
        for name in [name for name in item if name not in own and name not in accepted]:
            del item[name]
            yield ("encodings", index, name), _unknown_key(name, [*own, *accepted])
        if _fault(kind, {name: item[name] for name in item if name in accepted}) is None:
            continue
        for name in [name for name in item if name in accepted]:
            fault = _fault(kind, {name: item[name]})
            if fault is not None:
                del item[name]
                hint = f"leave `{name}` out for the default, {accepted[name].default!r}"
                yield ("encodings", index, name), f"{fault}; {hint}"


def _fault(kind: str, parameters: dict[str, Any]) -> str | None:
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
    model = _model_at(names[:-1])
    if kind == "extra_forbidden":
        return _unknown_key(names[-1], list(model.model_fields))
    field = model.model_fields[names[-1]]
    about = field.description or inspect.getdoc(_model_at(names)) or ""
    if kind == "missing":
        return f"a required key is missing; add `{names[-1]}:` ({about.rstrip('.')})"
    needed = NEEDED[kind].format(**context) if kind in NEEDED else detail["msg"]
    needed = PATTERN_IN_WORDS.get(context.get("pattern", ""), needed)
    hint = about
    if kind == "model_type":
        hint = f"write its keys below it: {', '.join(_model_at(names).model_fields)}"
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
    return f"found {_describe(value)}, needed {needed}; {hint}"


def _unknown_key(name: str, known: list[str]) -> str:
    return f"unknown key {name!r}; known: {', '.join(known)}{nearest_hint(name, known)}"


class ConfigDocument:
    """A pipeline file as plain data, with the place of each key and the problems so far.

    Attributes:
        data: Sections as dictionaries; None when the file could not be read.
        places: Where each key stands; a key set by an override has that as its place.
        problems: Place and text of every problem.
        unset: What is wrong with the ``${NAME}`` in a value, for the keys that have one.
    """

    def __init__(self) -> None:
        self.data: Any = None
        self.places: dict[KeyPath, Place] = {}
        self.problems: list[Place] = []
        self.unset: dict[KeyPath, str] = {}

    def report(self, path: KeyPath, message: str, place: Place | None = None) -> None:
        """Note a problem with a key, at its own place or that of its nearest section."""
        nearest = path
        while nearest and nearest not in self.places:
            nearest = nearest[:-1]
        line, where = place or self.places[nearest]
        key = ".".join(map(str, path))
        self.problems.append((line, ": ".join(filter(None, (where, key, message)))))

    def read_file(self, path: Path) -> None:
        """Take in the file; the data stay None when there is nothing to check."""
        self.places[()] = (0, str(path))
        try:
            data = self.read_text(path.read_text(encoding="utf-8-sig"), str(path), ())
        except FileNotFoundError:
            near = nearest_hint(path.name, [file.name for file in path.parent.glob("*.y*ml")])
            self.report((), f"there is no such file; check the path{near}")
        except (OSError, UnicodeDecodeError) as error:
            self.report((), f"the file cannot be read ({error}); give a YAML file in UTF-8")
        except ConfigError as error:
            self.report((), str(error))
        else:
            if isinstance(data, dict):
                self.data = data
                return
            found = "the file is empty" if data is None else f"the file holds {_describe(data)}"
            fields = PipelineConfig.model_fields.items()
            required = ", ".join(name for name, field in fields if field.is_required())
            self.report((), f"{found}, needed are keys; write at least {required}")

    def read_text(self, text: str, source: str, path: KeyPath) -> Any:
        """The data of a YAML text that stands at ``path``; ConfigError when it is not YAML."""
        try:
            loader = ConfigLoader(text)
            loader.name = source
            node = loader.get_single_node()
            if node is None:
                return None
            self.places[path] = _place(node.start_mark)
            return self.build(loader, node, path, ())
        except yaml.YAMLError as error:
            mark, reason = _syntax_error(error, text, source)
        self.places[path] = _place(mark)
        hint = "indent with spaces" if "'\\t'" in reason else "check colons, quotes and indentation"
        raise ConfigError(f"column {mark.column + 1}: not valid YAML, {reason}; {hint}")

    def build(
        self, loader: ConfigLoader, node: yaml.Node, path: KeyPath, above: tuple[yaml.Node, ...]
    ) -> Any:
        """A node as plain data; notes the places of its keys."""
        if node in above:
            raise yaml.MarkedYAMLError(problem="this contains itself", problem_mark=node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return self.read_scalar(loader, node, path)
        if isinstance(node, yaml.MappingNode):
            self.check_keys(node, path)
            loader.flatten_mapping(node)  # `<<: *anchor`
            node.value = list({key.value: (key, value) for key, value in node.value}.values())
            entries = [(key.value, key.start_mark, value) for key, value in node.value]
        else:
            entries = [(index, item.start_mark, item) for index, item in enumerate(node.value)]
        data = {}
        for name, mark, value in entries:
            self.places[(*path, name)] = _place(mark)
            data[name] = self.build(loader, value, (*path, name), (*above, node))
        return data if isinstance(node, yaml.MappingNode) else list(data.values())

    def check_keys(self, node: yaml.MappingNode, path: KeyPath) -> None:
        """Report keys that stand twice: PyYAML would silently keep the last."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            mark = key.start_mark
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=mark)
            if key.value in lines:
                both = f"{lines[key.value]} and {mark.line + 1}"
                message = f"found twice, on lines {both}; keep one of the two"
                self.report((*path, key.value), message, _place(mark))
            lines.setdefault(key.value, mark.line + 1)

    def read_scalar(self, loader: ConfigLoader, node: yaml.ScalarNode, path: KeyPath) -> Any:
        """A single value, with ``${NAME}`` replaced."""
        text, tag = node.value, node.tag
        if tag == TAG + "str" and "${" in text:
            try:
                text = VARIABLE.sub(_variable, text)
            except ConfigError as error:
                self.unset[path] = str(error)
            if node.style is None:  # without quotes it may have become a number
                tag = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        try:
            return loader.construct_object(yaml.ScalarNode(tag, text, node.start_mark))
        except ValueError:  # `0b_` looks like a number and is none
            return text

    def override(self, item: str) -> None:
        """Put the value of ``KEY=VALUE`` into the data, creating the sections on the way."""
        place = (sys.maxsize, f"--set {item}")
        name, equals, text = item.partition("=")
        parts = tuple(name.strip().split("."))
        if not equals or not all(parts):
            self.report((), "needed is KEY=VALUE; write for example --set train.epochs=5", place)
            return
        try:
            path, section = self.descend(parts, place)
            for by_path in (self.places, self.unset):
                for stale in [key for key in by_path if key[: len(path)] == path]:
                    del by_path[stale]
            self.places[path] = place
            section[path[-1]] = self.read_text(text, place[1], path)
        except ConfigError as error:
            self.report(parts, str(error), place)

    def descend(self, parts: tuple[str, ...], place: Place) -> tuple[KeyPath, Any]:
        """The path of an override, and the section or list that its last part belongs to."""
        path: KeyPath = ()
        section = {} if self.data is None else self.data
        for part in parts:
            here = ".".join(map(str, path))
            if path:
                section = section[path[-1]]
            if isinstance(section, list):
                if not part.isdecimal() or int(part) >= len(section):
                    last = len(section) - 1
                    raise ConfigError(f"no item {part!r}; the items of `{here}` are 0 to {last}")
                path = (*path, int(part))
            elif isinstance(section, dict):
                path = (*path, part)
            else:
                found = _describe(section)
                raise ConfigError(f"`{here}` is {found}, not a section; set `{here}` itself")
            is_last = len(path) == len(parts)
            if not is_last and isinstance(section, dict) and section.get(part) is None:
                section[part] = _default(path)
                self.places.setdefault(path, place)
        return path, section


def _place(mark: yaml.Mark) -> Place:
    """A line of the file; overrides have none and are listed last."""
    if mark.name.startswith("--set "):
        return sys.maxsize, mark.name
    return mark.line + 1, f"{mark.name}:{mark.line + 1}"


def _syntax_error(error: yaml.YAMLError, text: str, source: str) -> tuple[yaml.Mark, str]:
    """Where and why a text is not YAML."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            return mark, str(error.problem)
    before = text[: getattr(error, "position", 0)]
    column = len(before) - before.rfind("\n") - 1
    mark = yaml.Mark(source, len(before), before.count("\n"), column, None, 0)
    return mark, str(error).splitlines()[0]


def _variable(match: re.Match[str]) -> str:
    """The text that replaces a match of VARIABLE; ConfigError when there is none."""
    if match[0] == "$$":
        return "$"
    name, default = match[1], match[2]
    if name is None:
        raise ConfigError(f"found {match[0]!r}, needed ${{NAME}}; write $${{ to mean ${{ itself")
    value = os.environ.get(name)
    if value is None and default is None:
        hint = f"set it, or write ${{{name}:-default}}"
        raise ConfigError(f"the environment variable {name} is not set; {hint}")
    return value or default or ""


def _model_at(path: KeyPath) -> type[BaseModel]:
    """The schema of the section at ``path``, or of the nearest one around it."""
    model: type[BaseModel] = PipelineConfig
    for name in path:
        field = model.model_fields.get(str(name))
        for kind in (field.annotation, *get_args(field.annotation)) if field else ():
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return model


def _default(path: KeyPath) -> Any:
    """What an absent section or list stands for: the default list, or an empty section."""
    field = _model_at(path[:-1]).model_fields.get(str(path[-1]))
    is_list = field is not None and isinstance(field.default, list)
    return to_jsonable_python(field.default) if field and is_list else {}


def _describe(value: object) -> str:
    """A value as a user would name it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a section"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:57]}..."
    return f"the text {text}" if isinstance(value, str) else text
