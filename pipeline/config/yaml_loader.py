"""How YAML is read and written: a subset without surprises, and without room for bombs."""

from __future__ import annotations

import re
from typing import Any

import yaml

TAG = "tag:yaml.org,2002:"
MAX_BYTES = 1_000_000
MAX_DEPTH = 32
# Values after aliases were replaced by what they stand for.
MAX_VALUES = 20_000
# How problems with these limits begin.
BEYOND = ("nested", "more than")
# More digits than any setting has; Python itself refuses to print very long numbers.
MAX_DIGITS = 400

# YAML 1.1 takes 1:30 for 90, 010 for 8 and 0b11 for 3: here they are text.
WHOLE_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$")
# YAML 1.1 reads 1e-3 as text: it wants a dot, and a sign in the exponent.
FRACTION = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?$"
    r"|[-+]?\.(?:inf|Inf|INF)$"
    r"|\.(?:nan|NaN|NAN)$"
)
NUMBERS = {"int": WHOLE_NUMBER, "float": FRACTION}
SURROGATE = re.compile("[\ud800-\udfff]")


class ConfigLoader(yaml.SafeLoader):
    """A SafeLoader that reads ``1e-3`` as a number and leaves dates and ``1:30`` as text."""

    depth = 0
    values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a value; one that is nested too deeply is refused before Python gives up."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem=f"{BEYOND[0]} more than {MAX_DEPTH} levels deep", problem_mark=mark
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Take in ``<<: *anchor``; every key is kept once, so that merges cannot pile up."""
        super().flatten_mapping(node)
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    problem="a key must be text", problem_mark=key.start_mark
                )
        node.value = list({key.value: (key, value) for key, value in node.value}.values())

    def count(self, node: yaml.Node) -> None:
        """Count a value, once for every alias that stands for it."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"{BEYOND[1]} {MAX_VALUES:,} values, aliases written out",
                problem_mark=node.start_mark,
            )

    def read_number(self, node: yaml.ScalarNode) -> Any:
        """A number in plain digits; ValueError for anything else, also with a tag before it."""
        kind = node.tag.removeprefix(TAG)
        if len(node.value) > MAX_DIGITS or not NUMBERS[kind].match(node.value):
            raise ValueError(node.value)
        if kind == "int":
            return self.construct_yaml_int(node)
        return self.construct_yaml_float(node)


class ConfigDumper(yaml.SafeDumper):
    """A SafeDumper that quotes text which ConfigLoader would read as a number."""


ConfigLoader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0].removeprefix(TAG) not in ("timestamp", *NUMBERS)]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for kind, pattern in NUMBERS.items():
    ConfigLoader.add_constructor(TAG + kind, ConfigLoader.read_number)
    for yaml_class in (ConfigLoader, ConfigDumper):
        yaml_class.add_implicit_resolver(TAG + kind, pattern, list("-+.0123456789"))
