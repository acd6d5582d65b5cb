from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from peg_core.encoding import ENCODERS
from peg_core.encoding.encoder import Encoder, Encoding
from peg_core.errors import ConfigError
from peg_core.graph.graph_store import GraphStore
from peg_core.models import MODELS
from pipeline.cli.config_command import config, describe_arguments, parameter_schemas
from pipeline.config.loading import load_config

VALID: dict[str, Any] = {"name": "demo", "store": "runs", "graph": {"edges": "e.parquet"}}


@dataclass(frozen=True)
class Walker(Encoder):
    """Walk about.

    Args:
        dimensions: Length of a position,
            in numbers.
        start: Where to start; none: anywhere.

    Raises:
        dimensions: Not an argument.
    """

    version: ClassVar[int] = 1
    dimensions: int
    start: str | None = None
    undescribed: float = 0.5

    def solve(self, graph: GraphStore, *, seed: int) -> Encoding:
        raise NotImplementedError


@pytest.fixture
def pipeline_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(VALID))
    return path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(config, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def is_valid(**sections: object) -> bool:
    schema = json.loads(run("schema"))
    return Draft202012Validator(schema).is_valid({**VALID, **sections})


def test_show_prints_every_default(pipeline_file):
    shown = yaml.safe_load(run("show", pipeline_file))
    assert shown["name"] == "demo"
    assert shown["train"]["epochs"] == "auto"
    assert shown["encodings"] == [{"kind": "le", "seed": 0}]


def test_show_applies_overrides_in_their_order(pipeline_file):
    shown = yaml.safe_load(
        run("show", pipeline_file, "--set", "train.epochs=2", "--set", "train.epochs=3")
    )
    assert shown["train"]["epochs"] == 3


def test_what_show_prints_can_be_run_again(pipeline_file, tmp_path):
    again = tmp_path / "resolved.yaml"
    again.write_text(run("show", pipeline_file, "--set", "encodings.0.dimensions=4"))
    assert load_config(again) == load_config(pipeline_file, ["encodings.0.dimensions=4"])


def test_mistakes_reach_the_caller(pipeline_file):
    with pytest.raises(
        ConfigError, match=r"--set train\.epoch=2: train\.epoch: unknown key 'epoch'"
    ):
        run("show", pipeline_file, "--set", "train.epoch=2")
    with pytest.raises(ConfigError, match="there is no such file"):
        run("show", pipeline_file.with_name("other.yaml"))


@pytest.mark.parametrize(
    ("arguments", "taught"),
    [
        (["--help"], "schema"),
        (["show", "--help"], "--set train.epochs=5"),
        (["show", "--help"], "${NAME:-default}"),
        (["schema", "--help"], "# yaml-language-server: $schema=peg.schema.json"),
        (["schema", "--help"], "yaml.schemas"),
    ],
)
def test_help_teaches(arguments, taught):
    assert taught in run(*arguments)


def test_the_schema_is_a_schema():
    schema = json.loads(run("schema"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


def test_the_schema_names_the_registries():
    sections = json.loads(run("schema"))["$defs"]
    assert sections["EncodingConfig"]["properties"]["kind"]["enum"] == list(ENCODERS)
    assert sections["ModelConfig"]["properties"]["kind"]["enum"] == list(MODELS)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"score": None},
        {"encodings": [{}, {"kind": "le", "seed": 1, "dimensions": 8, "tolerance": 0.01}]},
        {"encodings": [{"dimensions": 8}]},
        {"encodings": ["le", "deepwalk", {"kind": "node2vec", "p": 0.5, "walks": 2}]},
        {"cluster": {"task_memory": "2GB"}},
        {"cluster": {"task_memory": "1.5 gb"}},
        {"cluster": {"task_memory": 1000}},
    ],
)
def test_the_schema_accepts_what_the_pipeline_accepts(sections, tmp_path):
    assert is_valid(**sections)
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({**VALID, **sections}))
    load_config(path)


@pytest.mark.parametrize(
    "sections",
    [
        {"name": "my run"},
        {"trian": {}},
        {"graph": {}},
        {"train": {"epochs": 0}},
        {"train": {"epochs": "many"}},
        {"train": {"epoch": 1}},
        {"encodings": []},
        {"encodings": [{"kind": "unheard-of"}]},
        {"encodings": ["unheard-of"]},
        {"encodings": [{"dimension": 8}]},
        {"encodings": [{"kind": "le", "dimensions": "wide"}]},
        {"model": {"kind": "unheard-of"}},
        {"cluster": {"task_memory": "2QB"}},
        {"cluster": {"task_memory": 0}},
    ],
)
def test_the_schema_refuses_what_the_pipeline_refuses(sections, tmp_path):
    assert not is_valid(**sections)
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({**VALID, **sections}))
    with pytest.raises(ConfigError, match="1 problem found"):
        load_config(path)


def test_each_kind_of_encoding_accepts_its_own_parameters_only(monkeypatch):
    monkeypatch.setitem(ENCODERS, "walker", Walker)
    assert is_valid(encodings=[{"kind": "walker", "dimensions": 3, "start": "home"}])
    assert not is_valid(encodings=[{"kind": "walker", "tolerance": 0.1}])
    assert not is_valid(encodings=[{"kind": "le", "start": "home"}])
    assert not is_valid(encodings=[{"start": "home"}])


def test_parameters_have_type_default_and_description():
    assert parameter_schemas(Walker) == {
        "dimensions": {"type": "integer", "description": "Length of a position, in numbers."},
        "start": {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": "Where to start; none: anywhere.",
            "default": None,
        },
        "undescribed": {"type": "number", "default": 0.5},
    }


@pytest.mark.parametrize("name", ENCODERS)
def test_every_parameter_of_every_encoder_is_described(name):
    schemas = parameter_schemas(ENCODERS[name])
    assert "dimensions" in schemas
    assert all(schema.get("description") for schema in schemas.values())


def test_a_docstring_without_arguments_describes_none():
    assert describe_arguments("Walk about.\n\nArgs are not listed here: none.") == {}
