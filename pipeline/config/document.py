"""A pipeline file as read: plain values, where each of them stands, and what is wrong so far."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from peg_core.errors import ConfigError, nearest_hint
from pipeline.config.field_types import keys_of
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.section_types import model_at
from pipeline.config.yaml_loader import (
    BEYOND,
    MAX_BYTES,
    MAX_DEPTH,
    SURROGATE,
    TAG,
    ConfigLoader,
)

KeyPath = tuple[str | int, ...]
Value = TypeVar("Value")
Location = tuple[int, str]  # line to sort by, and what the user reads
Problem = tuple[int, str]  # line to sort by, and the text

VARIABLE = re.compile(r"\$\$(?=\{)|\$\{([A-Za-z_]\w*)(?::-([^{}]*))?\}|\$\{[^}]*\}?")


class ConfigDocument:
    """A pipeline file as plain data, with the location of each key and the problems so far.

    Args:
        schema: Of the file.
        variables: What replaces ``${NAME}``; None: the environment.

    Attributes:
        data: Sections as dictionaries; None when the file could not be read.
        locations: Where each key stands; a key set by an override is located there.
        problems: Line and text of every problem.
        unset: What is wrong with the ``${NAME}`` in a value, for the keys that have one.
    """

    def __init__(
        self,
        schema: type[BaseModel] = PipelineConfig,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.schema, self.variables = schema, os.environ if variables is None else variables
        self.data: Any = None
        self.locations: dict[KeyPath, Location] = {}
        self.problems: list[Problem] = []
        self.unset: dict[KeyPath, str] = {}

    def report(self, path: KeyPath, message: str, location: Location | None = None) -> None:
        """Note a problem with a key, at its own location or that of its nearest section."""
        nearest = path
        while nearest and nearest not in self.locations:
            nearest = nearest[:-1]
        line, where = location or self.locations[nearest]
        key = ".".join(map(str, path))
        self.problems.append((line, ": ".join(filter(None, (where, key, message)))))

    def read_file(self, path: Path) -> None:
        """Take in the file; the data stay None when there is nothing to check."""
        self.locations[()] = (0, str(path))
        try:
            data = self.read_text(_text_of(path), str(path), ())
        except FileNotFoundError:
            near = nearest_hint(path.name, [file.name for file in path.parent.glob("*.y*ml")])
            self.report((), f"there is no such file; check the path{near}")
        except (OSError, ValueError) as error:
            self.report((), f"the file cannot be read ({error}); give a YAML file in UTF-8")
        except ConfigError as error:
            self.report((), str(error))
        else:
            if isinstance(data, dict):
                self.data = data
                return
            found = "the file is empty" if data is None else f"the file holds {describe(data)}"
            fields = self.schema.model_fields.items()
            required = ", ".join(name for name, field in fields if field.is_required())
            self.report((), f"{found}, it must hold keys; write at least {required}")

    def replace_section(self, name: str, path: Path) -> None:
        """Take the section ``name`` from another file, which holds nothing else."""
        other = ConfigDocument()
        other.read_file(path)
        if other.data is not None and set(other.data) != {name}:
            found = ", ".join(map(str, other.data)) or "nothing"
            other.report(
                (), f"found {found}, the file must hold the section `{name}:` and nothing else"
            )
        self.problems += other.problems
        if other.problems or self.data is None or other.data is None:
            return
        self.data[name] = other.data[name]
        self.locations = _with_section(name, self.locations, other.locations)
        self.unset = _with_section(name, self.unset, other.unset)

    def read_text(self, text: str, source: str, path: KeyPath) -> Any:
        """The data of a YAML text located at ``path``; ConfigError when it is not YAML."""
        try:
            loader = ConfigLoader(text)
            loader.name = source
            node = loader.get_single_node()
            if node is None:
                return None
            self.locations[path] = _location(node.start_mark)
            return self.build(loader, node, path, ())
        except yaml.YAMLError as error:
            mark, reason = _syntax_error(error, text, source)
        self.locations[path] = _location(mark)
        hint = "check colons, quotes and indentation"
        if "'\\t'" in reason:
            hint = "indent with spaces"
        elif reason.startswith(BEYOND):
            hint = "no setting needs that: write it flatter, with fewer aliases"
        elif "'{'" in reason and "${" in text:
            hint = "write a section that holds ${NAME} over several lines, without braces"
        raise ConfigError(f"column {mark.column + 1}: not valid YAML, {reason}; {hint}")

    def build(
        self, loader: ConfigLoader, node: yaml.Node, path: KeyPath, above: tuple[yaml.Node, ...]
    ) -> Any:
        """A node as plain data; notes the locations of its keys."""
        if node in above:
            raise yaml.MarkedYAMLError(problem="this contains itself", problem_mark=node.start_mark)
        loader.count(node)
        if isinstance(node, yaml.ScalarNode):
            return self.read_scalar(loader, node, path)
        if isinstance(node, yaml.MappingNode):
            self.check_keys(node, path)
            loader.flatten_mapping(node)  # `<<: *anchor`
            entries = [(key.value, key.start_mark, value) for key, value in node.value]
        else:
            entries = [(index, item.start_mark, item) for index, item in enumerate(node.value)]
        data = {}
        for name, mark, value in entries:
            self.locations[(*path, name)] = _location(mark)
            data[name] = self.build(loader, value, (*path, name), (*above, node))
        return data if isinstance(node, yaml.MappingNode) else list(data.values())

    def check_keys(self, node: yaml.MappingNode, path: KeyPath) -> None:
        """Report keys that occur twice: PyYAML would silently keep the last."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            mark = key.start_mark
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=mark)
            if key.value in lines:
                both = f"{lines[key.value]} and {mark.line + 1}"
                message = f"found twice, on lines {both}; keep one of the two"
                self.report((*path, key.value), message, _location(mark))
            lines.setdefault(key.value, mark.line + 1)

    def read_scalar(self, loader: ConfigLoader, node: yaml.ScalarNode, path: KeyPath) -> Any:
        """A single value, with ``${NAME}`` replaced."""
        text, tag = node.value, node.tag
        if tag == TAG + "str" and "${" in text:
            try:
                text = VARIABLE.sub(self._variable, text)
            except ConfigError as error:
                self.unset[path] = str(error)
            if node.style is None:  # without quotes it may have become a number
                tag = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        if SURROGATE.search(text):
            raise yaml.MarkedYAMLError(
                problem="a character that Unicode does not have", problem_mark=node.start_mark
            )
        try:
            return loader.construct_object(yaml.ScalarNode(tag, text, node.start_mark))
        except (AttributeError, LookupError, ValueError):  # `0b_`, `!!bool x`: no such value
            return text

    def _variable(self, match: re.Match[str]) -> str:
        """The text that replaces a match of VARIABLE; ConfigError when there is none."""
        if match[0] == "$$":
            return "$"
        name, default = match[1], match[2]
        if name is None:
            needed = "${NAME}; write $${ to mean ${ itself"
            raise ConfigError(f"found {match[0]!r}, needed {needed}")
        value = self.variables.get(name)
        if value is None and default is None:
            hint = f"set it, or write ${{{name}:-default}}"
            raise ConfigError(f"the environment variable {name} is not set; {hint}")
        return value or default or ""

    def override(self, item: str) -> None:
        """Put the value of ``KEY=VALUE`` into the data, creating the sections on the way."""
        location = (sys.maxsize, f"--set {item}")
        name, equals, text = item.partition("=")
        parts = tuple(name.strip().split("."))
        if not equals or not all(parts) or len(parts) > MAX_DEPTH:
            self.report(
                (),
                "an override must be KEY=VALUE; write for example --set train.epochs=5",
                location,
            )
            return
        try:
            path, section = self.descend(parts, location)
            for by_path in (self.locations, self.unset):
                for stale in [key for key in by_path if key[: len(path)] == path]:
                    del by_path[stale]
            self.locations[path] = location
            section[path[-1]] = self.read_text(text, location[1], path)
        except ConfigError as error:
            self.report(parts, str(error), location)

    def descend(self, parts: tuple[str, ...], location: Location) -> tuple[KeyPath, Any]:
        """The path of an override, and the section or list that its last part belongs to."""
        path: KeyPath = ()
        section = {} if self.data is None else self.data
        for part in parts:
            here = ".".join(map(str, path))
            if path:
                section = section[path[-1]]
            if isinstance(section, list):
                if part not in map(str, range(len(section))):
                    last = len(section) - 1
                    raise ConfigError(f"no item {part!r}; the items of `{here}` are 0 to {last}")
                path = (*path, int(part))
            elif isinstance(section, dict):
                path = (*path, part)
            else:
                found = describe(section)
                raise ConfigError(f"`{here}` is {found}, not a section; set `{here}` itself")
            is_last = len(path) == len(parts)
            if not is_last and isinstance(section, dict) and section.get(part) is None:
                section[part] = _default(path)
                self.locations.setdefault(path, location)
        return path, section


def _text_of(path: Path) -> str:
    """The text of a file, as far as it is not too large to be one of ours."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(
            f"the file is larger than {MAX_BYTES:,} bytes, a pipeline file is not; check the path"
        )
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _with_section(
    name: str, mine: dict[KeyPath, Value], theirs: dict[KeyPath, Value]
) -> dict[KeyPath, Value]:
    """Entries of the section from ``theirs``, all others from ``mine``."""
    kept = {key: value for key, value in mine.items() if key[:1] != (name,)}
    return kept | {key: value for key, value in theirs.items() if key[:1] == (name,)}


def _location(mark: yaml.Mark) -> Location:
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


def _default(path: KeyPath) -> Any:
    """What an absent section or list stands for: the default list, or an empty section."""
    field = keys_of(model_at(path[:-1])).get(str(path[-1]))
    is_list = field is not None and isinstance(field.default, list)
    return to_jsonable_python(field.default) if field and is_list else {}


def describe(value: object) -> str:
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
