"""The type of a section, by its path in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from pipeline.config.field_types import keys_of
from pipeline.config.pipeline_config import PipelineConfig


def model_at(
    path: tuple[str | int, ...], root: type[BaseModel] = PipelineConfig
) -> type[BaseModel]:
    """The schema of the section at ``path``, or of the nearest one around it.

    Args:
        root: The schema of the whole file.
    """
    model = root
    for name in path:
        field = keys_of(model).get(str(name))
        model = next(_sections(field.annotation), model) if field else model
    return model


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for kind in get_args(annotation):
        yield from _sections(kind)
