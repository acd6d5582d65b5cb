"""What the sections of a pipeline file have in common: their base and kinds of values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from peg_core.errors import nearest_hint

BYTES_PER_UNIT = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_bytes(size: str) -> int:
    """``"2GB"`` to 2000000000.

    pydantic's own ``ByteSize`` stops reading in the middle of a text: it takes ``1,500MB`` for
    1 byte and ``2.GB`` for 2.
    """
    text = size.strip().upper()
    for unit in ("KB", "MB", "GB", "TB", "B"):
        number = text.removesuffix(unit).strip()
        if text.endswith(unit) and number.replace(".", "", 1).isdigit():
            return int(float(number) * BYTES_PER_UNIT[unit])
    raise ValueError(f"{size!r} is not a size; write for example 500MB or 2GB")


def as_bytes(value: object) -> object:
    """A size with its unit as a number; anything else is left to pydantic."""
    return parse_bytes(value) if isinstance(value, str) else value


def registered(registry: dict[str, Any], what: str) -> AfterValidator:
    """A validator that accepts the names of a registry."""

    def check(name: str) -> str:
        if name not in registry:
            known = ", ".join(registry)
            raise ValueError(f"no {what} {name!r}; known: {known}{nearest_hint(name, registry)}")
        return name

    return AfterValidator(check)


def as_list(value: object) -> object:
    """One name as a list of one; anything else is left to pydantic."""
    return [value] if isinstance(value, str) else value


Bytes = Annotated[int, BeforeValidator(as_bytes), Field(gt=0)]
Ratio = Annotated[float, Field(gt=0, lt=1)]
Workers = Annotated[int, Field(ge=1)]
Protocols = Annotated[
    list[Literal["random", "given", "heart"]],
    BeforeValidator(as_list, json_schema_input_type=str | list[str]),
]
Names = Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str])]


def null_as_text(value: object) -> object:
    """The word ``null`` without quotes is YAML's null; here it is one of the choices."""
    return "null" if value is None else value


class Section(BaseModel):
    """A part of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
