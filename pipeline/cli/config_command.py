"""``peg config``: look at a configuration as the pipeline sees it, and teach it to an editor."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, get_type_hints

import click
from pydantic import TypeAdapter

from peg_core.encoding import ENCODERS, Encoder
from peg_core.models import MODELS
from pipeline.cli.lazy_group import SuggestingGroup
from pipeline.config.data_sections import EncodingConfig
from pipeline.config.loading import dump_config, load_config
from pipeline.config.pipeline_config import PipelineConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@click.group(cls=SuggestingGroup)
def config() -> None:
    """Check a pipeline file, or describe the format to an editor."""


@config.command()
@click.argument("config_file", metavar="CONFIG", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override one value, for example train.epochs=5. May be given several times.",
)
@click.option(
    "--resolved", is_flag=True, help="With what `auto` means for the graph that it names."
)
def show(config_file: Path, overrides: tuple[str, ...], resolved: bool) -> None:
    """Check CONFIG and print it with all defaults filled in.

    Nothing is started. Every mistake is listed with its line; the exit code is then 2.

    \b
    What would run:
      peg config show configs/quickstart.yaml
    With other values, as `peg run` would take them:
      peg config show configs/quickstart.yaml --set train.epochs=5
      peg config show configs/quickstart.yaml --set encodings.0.dimensions=64
      peg config show configs/quickstart.yaml --set 'evaluate.hits=[10, 20]'
    Kept beside the results, with the values that `auto` became; reasons are comments:
      peg config show configs/quickstart.yaml --resolved > resolved.yaml

    Values may use the environment: ${NAME}, or ${NAME:-default} when it may be unset.
    In quotes the result is text, without them it may be a number. A literal ${ is
    written $${.
    """
    loaded = load_config(config_file, overrides)
    if not resolved:
        click.echo(dump_config(loaded), nl=False)
        return
    from pipeline.run.sizing.graph_extent import resolve_here
    from pipeline.store.local_store import open_store

    found, choices = resolve_here(loaded, open_store(loaded.store))
    click.echo(dump_config(found), nl=False)
    for choice in choices:
        click.echo(f"# {choice.key}: {choice.value}, {choice.reason}")


@config.command()
def schema() -> None:
    """Print the JSON Schema of a pipeline file.

    With it an editor completes keys, explains them and marks mistakes while you type.

    \b
    Write it next to your pipeline files:
      peg config schema > peg.schema.json
    Any editor with the YAML language server (VS Code with the YAML
    extension, Neovim, Emacs, ...) reads it from the first line of a file:
      # yaml-language-server: $schema=peg.schema.json
    Or, in the settings of VS Code, for all files of a folder:
      "yaml.schemas": {"./peg.schema.json": "configs/*.yaml"}
    JetBrains: Settings, Languages, Schemas and DTDs, JSON Schema Mappings.
    """
    click.echo(json.dumps(build_schema(), indent=2))


def build_schema() -> dict[str, Any]:
    """The JSON Schema of a pipeline file, with what the registries hold."""
    built = PipelineConfig.model_json_schema()
    sections = built["$defs"]
    sections["ModelConfig"]["properties"]["kind"]["enum"] = list(MODELS)
    _describe_encodings(sections["EncodingConfig"])
    encodings = built["properties"]["encodings"]
    encodings["items"] = {"anyOf": [{"enum": list(ENCODERS)}, encodings["items"]]}
    memory = sections["ClusterConfig"]["properties"]["task_memory"]
    for key in ("type", "gt"):
        memory.pop(key, None)
    memory["anyOf"] = [
        {"type": "integer", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*[KkMmGgTt]?[Bb]\s*$"},
    ]
    return {"$schema": DIALECT, **built}


def _describe_encodings(section: dict[str, Any]) -> None:
    """List the encoders, and let each kind accept its own parameters and no others."""
    own = section["properties"]
    own["kind"]["enum"] = list(ENCODERS)
    del section["additionalProperties"]
    default = EncodingConfig.model_fields["kind"].default
    section["allOf"] = [
        {
            "if": {
                "properties": {"kind": {"const": kind}},
                "required": [] if kind == default else ["kind"],
            },
            "then": {
                "properties": {**dict.fromkeys(own, True), **parameter_schemas(encoder)},
                "additionalProperties": False,
            },
        }
        for kind, encoder in ENCODERS.items()
    ]


def parameter_schemas(encoder: type[Encoder]) -> dict[str, Any]:
    """Type, default and description of an encoder's parameters, by name."""
    hints = get_type_hints(encoder)
    descriptions = describe_arguments(inspect.getdoc(encoder) or "")
    schemas = {}
    for name, parameter in inspect.signature(encoder).parameters.items():
        schemas[name] = TypeAdapter(hints[name]).json_schema()
        if name in descriptions:
            schemas[name]["description"] = descriptions[name]
        if parameter.default is not parameter.empty:
            schemas[name]["default"] = parameter.default
    return schemas


def describe_arguments(docstring: str) -> dict[str, str]:
    """The ``Args:`` section of a Google docstring, as one line of text by name."""
    _, _, section = docstring.partition("\nArgs:\n")
    descriptions: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line.startswith(" "):
            break  # the next section
        start = re.match(r" {4}(\w+): (.*)", line)
        if start:
            name = start[1]
            descriptions[name] = start[2]
        elif line.strip() and name:
            descriptions[name] += f" {line.strip()}"
    return descriptions
