"""Any file and any command line end in a result or in an error that says what to do.

``PEG_FUZZ_EXAMPLES`` is the number of examples of each test, 200 where it is not set; 5,000 is
the long form.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peg_core.errors import ConfigError, PegError
from pipeline.cli.app import COMMANDS, cli
from pipeline.cli.config_command import build_schema
from pipeline.config.loading import dump_config, load_config

EXAMPLES = int(os.environ.get("PEG_FUZZ_EXAMPLES", "200"))
SCHEMA = build_schema()
fuzz = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])

Schema = dict[str, Any] | bool
# One value in so many is a wrong one.
RARELY = 25
ODD_TEXTS = [
    "",
    " ",
    "\0",
    "a\nb",
    "\x1b[31m",
    "\u202e",
    "\u2028",
    "\ufeff",
    "é",
    "e\u0301",
    "²",
    "\U0001f600",
    "1:30",
    "010",
    "yes",
    "null",
    "${",
    "${NOT_SET}",
    "$${x}",
    "hdfs://x/y",
    "s3://",
    "gs://@x/y",
    "S3://b",
    "~",
    "~/x",
    "..",
    "*",
    "[",
    "x" * 5000,
    "auto",
    "1e-3",
    "-1",
    "[bold]",
    "%",
    "`store`",
]
ODD_VALUES: list[Any] = [
    *ODD_TEXTS,
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    10**30,
    -(10**30),
    10**399,
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e30,
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    [],
    [[]],
    [None],
    [1, 2],
    [1, 2, 3],
    ["a", "a"],
    {},
    {"a": 1},
    {"": None},
    {"kind": "le"},
    [{}],
    b"x",
]
ODD_YAML = [
    "[[[",
    "{a: b",
    "&a [*a]",
    "*x",
    "!!python/object:os.system x",
    "!!binary x",
    "!!set {a}",
    "!!map x",
    "!!seq x",
    "!!int x",
    "!!float 1:30",
    "!!bool 3",
    "!!null x",
    "!!timestamp 2020-13-99",
    "!!omap [a: 1]",
    "!a b",
    "? a",
    "- - -",
    "|\n x",
    "0x",
    "0x_",
    "1e999",
    ".nan",
    "<<: {a: 1}",
    "{<<: 1}",
    "{<<: [1]}",
    "{[a]: b}",
    "'",
    '"\\ud800"',
    '"\\0"',
    "%TAG ! x",
    "---",
    "...",
    "@",
    "`",
    "\t",
    "a: b: c",
    "{a: 1, a: 2}",
    "[" * 100,
    "1" * 5000,
    "=",
    "<<",
    "{=: 1}",
    "\udcff",
]


@st.composite
def values(draw: st.DrawFn, schema: Schema) -> Any:
    """What a schema allows, and now and then something else."""
    if schema is True or draw(st.integers(1, RARELY)) == RARELY:
        return draw(st.sampled_from(ODD_VALUES))
    assert isinstance(schema, dict)
    if "$ref" in schema:
        return draw(values(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]))
    if "anyOf" in schema:
        return draw(values(draw(st.sampled_from(schema["anyOf"]))))
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum") or [schema["const"]]))
    return draw(BY_TYPE[schema.get("type", "string")](schema))


@st.composite
def sections(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """Keys that a section has, sometimes without a required one or with one too many."""
    known = dict(schema.get("properties", {}))
    required = set(schema.get("required", ()))
    for rule in schema.get("allOf", ())[:1] and [draw(st.sampled_from(schema["allOf"]))]:
        kind = rule["if"]["properties"]["kind"]
        known = {**rule["then"]["properties"], "kind": kind, "seed": known["seed"]}
        required = {"kind"}
    chosen = draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=5))
    if draw(st.integers(1, RARELY)) < RARELY:
        chosen = [*required.difference(chosen), *chosen]
    found = {name: draw(values(known[name])) for name in chosen}
    if draw(st.integers(1, RARELY)) == RARELY:
        found[draw(st.sampled_from(ODD_TEXTS))] = draw(st.sampled_from(ODD_VALUES))
    return found


@st.composite
def arrays(draw: st.DrawFn, schema: dict[str, Any]) -> list[Any]:
    if "prefixItems" in schema:
        return [draw(values(item)) for item in schema["prefixItems"]]
    fewest = schema.get("minItems", 0)
    return draw(st.lists(values(schema.get("items", True)), min_size=fewest, max_size=4))


def integers(schema: dict[str, Any]) -> st.SearchStrategy[int]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    return st.integers(low, schema.get("maximum", 2**40))


def numbers(schema: dict[str, Any]) -> st.SearchStrategy[float]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", 1e6))
    return st.floats(low, high)


def texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    return st.sampled_from(["edges.parquet", "src", "dst", "when", "a b", "x/*.parquet"])


BY_TYPE: dict[str, Any] = {
    "object": sections,
    "array": arrays,
    "integer": integers,
    "number": numbers,
    "string": texts,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
}


def paths(schema: Schema = SCHEMA, before: str = "") -> Iterator[str]:
    """The keys of the schema, as an override names them."""
    schema = schema if isinstance(schema, dict) else {}
    for choice in schema.get("anyOf", ()):
        yield from paths(choice, before)
    if "$ref" in schema:
        yield from paths(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], before)
    for name, inner in schema.get("properties", {}).items():
        yield before + name
        yield from paths(inner, f"{before}{name}.")


keys = st.sampled_from(sorted(set(paths()))) | st.sampled_from(
    [
        "",
        ".",
        "encodings.0",
        "encodings.0.kind",
        "encodings.9",
        "train.x",
        "name.x",
        "graph.edges.0",
    ]
)
raw_values = st.sampled_from(ODD_YAML + ODD_TEXTS) | st.text(max_size=20)
overrides = st.builds("{}={}".format, keys, raw_values) | st.sampled_from(["", "=", "a", "train="])


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of files are relative to an empty folder."""
    before, here = Path.cwd(), tmp_path_factory.mktemp("fuzz")
    os.chdir(here)
    yield here
    os.chdir(before)


def load_or_explain(path: Path, items: list[str]) -> None:
    """Load; what was loaded survives being written, what was not is explained."""
    try:
        config = load_config(path, items)
    except ConfigError as error:
        message = str(error)
        assert "nothing was started\n" in message
        assert "Traceback" not in message
        message.encode()  # can be shown
        return
    again = Path("again.yaml")
    again.write_text(dump_config(config), encoding="utf-8", newline="")
    assert load_config(again) == config


@given(document=sections(SCHEMA), items=st.lists(overrides, max_size=2))
@fuzz
def test_any_document_is_loaded_or_explained(document: dict[str, Any], items: list[str]) -> None:
    path = Path("run.yaml")
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8", newline="")
    load_or_explain(path, items)


@given(
    content=st.binary(max_size=200)
    | st.lists(raw_values).map("\n".join).map(lambda text: text.encode(errors="surrogatepass"))
)
@fuzz
def test_any_bytes_are_loaded_or_explained(content: bytes) -> None:
    Path("run.yaml").write_bytes(content)
    load_or_explain(Path("run.yaml"), [])


# `run` and the like are asked for help alone: nothing may be started here.
harmless = st.sampled_from([["plan"], ["status"], ["config", "show"], ["config", "schema"]])
options = st.lists(
    st.builds(lambda item: ["--set", item], overrides)
    | st.sampled_from([["--from"], ["--from", "train"], ["--force", "x"], ["--force", "split"]])
    | st.sampled_from([["--set"], ["--wrong"], ["-"], ["--"], ["--help"], ["--version"], ["-h"]])
    | st.sampled_from([["run.yaml"], ["none.yaml"], ["."], [""], ["x" * 5000], ["\udcff"]]),
    max_size=3,
).map(lambda lists: [item for items in lists for item in items])
asked_for_help = st.tuples(st.sampled_from(sorted(COMMANDS)), options).map(
    lambda pair: [pair[0], "--help", *pair[1]]
)
command_lines = asked_for_help | st.tuples(harmless, options).map(lambda pair: pair[0] + pair[1])


@given(arguments=command_lines)
@fuzz
def test_any_command_line_ends_in_a_result_or_an_error_that_is_explained(
    arguments: list[str],
) -> None:
    Path("run.yaml").write_text("name: a\nstore: runs\ngraph: {edges: edges.parquet}\n")
    done = CliRunner().invoke(cli, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit | PegError), arguments
    if isinstance(done.exception, PegError):
        assert done.exception.exit_code in (1, 2)
        str(done.exception).encode()
