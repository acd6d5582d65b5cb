"""What the sections of a pipeline file have in common: their base and kinds of values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from peg_core.errors import ConfigError, nearest_hint
from peg_core.object_url import require_location

# Larger than any number that makes sense, small enough that sums of a few fit 64 bits.
MOST = 10**9
MOST_WORKERS = 10_000
BYTES_PER_UNIT = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
LONGEST_SIZE = 20


def parse_bytes(size: str) -> int:
    """``"2GB"`` to 2000000000.

    pydantic's own ``ByteSize`` stops reading in the middle of a text: it takes ``1,500MB`` for
    1 byte and ``2.GB`` for 2.
    """
    text = size.strip().upper()
    for unit in ("KB", "MB", "GB", "TB", "B"):
        number = text.removesuffix(unit).strip()
        is_number = number.isascii() and number.replace(".", "", 1).isdigit()
        if text.endswith(unit) and is_number and len(number) < LONGEST_SIZE:
            return int(float(number) * BYTES_PER_UNIT[unit])
    raise ValueError(f"{size!r} is not a size; write for example 500MB or 2GB")


def as_bytes(value: object) -> object:
    """A size with its unit as a number; anything else is left to pydantic."""
    return parse_bytes(value) if isinstance(value, str) else value


def registered(registry: Mapping[str, Any], what: str) -> AfterValidator:
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


def as_list_of_one(value: object) -> object:
    """One number as a list of one; anything else is left to pydantic."""
    return [value] if isinstance(value, int) else value


def as_location(location: str) -> str:
    """A path or URL that can be one."""
    try:
        require_location(location)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return location


def as_text(text: str) -> str:
    """One line of printable text."""
    if not text or not text.isprintable():
        raise ValueError(f"found {text!a}, needed one line of text; leave the key out for none")
    return text


def as_column(name: str) -> str:
    """A name that a column can have."""
    if not name:
        raise ValueError("found an empty name, needed that of a column; leave the key out for none")
    return name


def as_workers(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """One number of workers, or the least and the most of them."""
    ends = value if isinstance(value, list | tuple) and len(value) == 2 else [value]
    is_count = [type(end) is int and 1 <= end <= MOST_WORKERS for end in ends]
    if not all(is_count) or list(ends) != sorted(ends):
        raise ValueError(
            f"found {shorten(value)}, needed a whole number from 1 to {MOST_WORKERS:,}, or "
            "[least, most]; write for example 4 or [2, 8]"
        )
    return handler(tuple(ends) if len(ends) == 2 else value)


def shorten(value: object) -> str:
    """A value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


Auto = Literal["auto"]


class OrAuto:
    """Marks a key that may also be the word auto: ``Annotated[int | Auto, OrAuto(Count)]``.

    A plain union would explain what is wrong with a value once for each of its members.

    Args:
        kind: What any other value must be.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        del source
        return core_schema.no_info_wrap_validator_function(
            lambda value, check: value if value == "auto" else check(value),
            handler.generate_schema(self._kind),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"const": "auto", "type": "string"}]}


class Later:
    """Marks a key that came after artifacts had been made without it: ``Annotated[int, LATER]``.

    Args:
        before: The value that means what was done before there was a choice; none given: the
            default.
    """

    def __init__(self, *before: Any) -> None:
        self._before = before

    def left_out(self, value: Any, default: Any) -> bool:
        """Whether artifacts with this value are those that were made without the key."""
        return bool(value == (self._before[0] if self._before else default))


LATER = Later()


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields as they are called in the file: a key can be a word that Python keeps for itself."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


class Section(BaseModel):
    """A part of the file; unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, serialize_by_alias=True
    )

    def dependencies(self, *, exclude: Collection[str] = ()) -> dict[str, Any]:
        """What an artifact made with this section depends on.

        Keys marked ``LATER`` count where they do not mean what was done without them, so that
        what was made before they existed is still found.
        """
        found = self.model_dump(exclude=set(exclude))
        for name, field in type(self).model_fields.items():
            value, key = getattr(self, name), field.alias or name
            if key in found and isinstance(value, Section):
                found[key] = value.dependencies()
            later = next((mark for mark in field.metadata if isinstance(mark, Later)), None)
            if key in found and later and later.left_out(value, field.get_default()):
                del found[key]
        return found


class OrWords:
    """Marks a key that is one of some words, or a section: ``Annotated[Words | S, OrWords(S, w)]``.

    Args:
        kind: The section.
        words: The words.
        example: How a section is written.
    """

    def __init__(self, kind: type[Section], words: Collection[str], *, example: str) -> None:
        self._kind, self._words, self._example = kind, words, example

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        del source

        def check(value: Any, section: ValidatorFunctionWrapHandler) -> Any:
            if isinstance(value, str) and value in self._words:
                return value
            if isinstance(value, dict | self._kind):
                return section(value)
            words = ", ".join(self._words)
            hint = nearest_hint(value, self._words) if isinstance(value, str) else ""
            raise ValueError(
                f"found {shorten(value)}, needed {words}, or shares of kinds; write for example "
                f"{self._example}{hint}"
            )

        return core_schema.no_info_wrap_validator_function(
            check,
            handler.generate_schema(self._kind),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: value.model_dump() if isinstance(value, BaseModel) else value
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"enum": list(self._words), "type": "string"}]}


Bytes = Annotated[int, BeforeValidator(as_bytes), Field(gt=0, le=10**15)]
Ratio = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1, le=MOST)]
# `auto` is chosen by the size of the graph: pipeline/run/sizing/automatic.py.
AutoCount = Annotated[int | Auto, OrAuto(Count)]
AutoCountOrNone = Annotated[int | Auto | None, OrAuto(Count | None)]
Width = Annotated[int, Field(ge=1, le=65_536)]
Seed = Annotated[int, Field(ge=0, le=2**63)]
Location = Annotated[str, AfterValidator(as_location), Field(json_schema_extra={"minLength": 1})]
Column = Annotated[str, AfterValidator(as_column), Field(json_schema_extra={"minLength": 1})]
Text = Annotated[str, AfterValidator(as_text), Field(json_schema_extra={"minLength": 1})]
Workers = Annotated[int, Field(ge=1, le=MOST_WORKERS)]
TrainWorkers = Annotated[Workers | tuple[Workers, Workers], WrapValidator(as_workers)]
Protocols = Annotated[
    list[Literal["random", "given", "heart", "recommend"]],
    BeforeValidator(as_list, json_schema_input_type=str | list[str]),
]
Names = Annotated[list[Column], BeforeValidator(as_list, json_schema_input_type=str | list[str])]


def null_as_text(value: object) -> object:
    """The word ``null`` without quotes is YAML's null; here it is one of the choices."""
    return "null" if value is None else value
