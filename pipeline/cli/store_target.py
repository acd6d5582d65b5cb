"""What commands over a store take: the store itself, or a pipeline file that names it."""

from __future__ import annotations

from pathlib import Path

import click

from peg_core.errors import ConfigError
from peg_core.object_url import is_url
from pipeline.config.loading import load_config

target_argument = click.argument("target", metavar="STORE")


def store_of(target: str) -> str:
    """The store that a folder, a URL or a pipeline file stands for."""
    if is_url(target) or Path(target).is_dir():
        return target
    if Path(target).suffix in (".yaml", ".yml"):
        return load_config(Path(target)).store
    raise ConfigError(
        f"{target} is not a store; give the folder or URL of one, or a pipeline file (.yaml)"
    )
