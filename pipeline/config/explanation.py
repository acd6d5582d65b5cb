"""Errors of pydantic in words: what was found, what was needed, what to do."""

from __future__ import annotations

import inspect
import re

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, to_jsonable_python

from peg_core.errors import nearest_hint
from pipeline.config.document import describe
from pipeline.config.field_types import keys_of
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.section_types import model_at
from pipeline.config.yaml_loader import FRACTION, WHOLE_NUMBER

DIGITS = re.compile(r"[-+]?\.?[0-9]")
# Whole numbers up to this one are exact when they are written with an exponent.
MOST_EXACT = 2**53
NEEDED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a section with keys of its own",
    "dict_type": "a section with keys of its own",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "too_short": "at least {min_length} item(s)",
    "too_long": "at most {max_length} item(s)",
    "string_pattern_mismatch": "text that matches {pattern}",
}
PATTERN_IN_WORDS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits, '.', '_' and '-', the first not a sign",
    r"^[A-Za-z0-9][A-Za-z0-9._+-]*$": "letters, digits and '._+-', the first not a sign",
}


def explain(detail: ErrorDetails, root: type[BaseModel] = PipelineConfig) -> str:
    """What is wrong with the key at ``detail["loc"]``.

    Args:
        root: The schema of the whole file.
    """
    names = tuple(part for part in detail["loc"] if isinstance(part, str))
    if not names:
        return f"found {describe(detail['input'])}, needed {_needed(detail)}"
    fields = keys_of(model_at(names[:-1], root))
    if detail["type"] == "extra_forbidden":
        return explain_unknown_key(names[-1], list(fields))
    while names[-1] not in fields:  # pydantic adds the name of a type
        names = names[:-1]
        fields = keys_of(model_at(names[:-1], root))
    field = fields[names[-1]]
    about = field.description or inspect.getdoc(model_at(names, root)) or ""
    if detail["type"] == "missing":
        return f"a required key is missing; add `{names[-1]}:` ({about.rstrip('.')})"
    section = model_at(names, root)
    hint = _rewriting(detail, section) or _fallback(names[-1], field, about)
    return f"found {describe(detail['input'])}, needed {_needed(detail)}; {hint}{_nearest(detail)}"


def explain_unknown_key(name: str, known: list[str]) -> str:
    """Which keys there are, and which of them was perhaps meant."""
    shown = repr(name) if len(name) <= 60 else f"{name[:57]!r}..."
    return f"unknown key {shown}; known: {', '.join(known)}{nearest_hint(name, known)}"


def _needed(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if context.get("pattern") in PATTERN_IN_WORDS:
        return PATTERN_IN_WORDS[context["pattern"]]
    return NEEDED[kind].format(**context) if kind in NEEDED else detail["msg"]


def _rewriting(detail: ErrorDetails, section: type[BaseModel]) -> str | None:
    """How to write what was probably meant; None where that is not known."""
    kind, value = detail["type"], detail["input"]
    if kind == "model_type":
        return f"write its keys below it: {', '.join(keys_of(section))}"
    if kind in ("string_type", "literal_error") and isinstance(value, bool):
        return "yes, no, on and off mean true and false: write the word in quotes"
    if kind == "string_type" and isinstance(value, int | float):
        return "write it in quotes"
    if kind in ("int_type", "float_type") and isinstance(value, str) and DIGITS.match(value):
        is_number = WHOLE_NUMBER.match(value) or FRACTION.match(value)
        return "write it without quotes" if is_number else "write it in plain digits, such as 90"
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"write {value:.0f}" if abs(value) <= MOST_EXACT else None
    return None


def _fallback(name: str, field: FieldInfo, about: str) -> str:
    """The default of a key, or what a key without one is for."""
    if field.is_required():
        return about
    return f"leave `{name}` out for the default, {to_jsonable_python(field.default)!r}"


def _nearest(detail: ErrorDetails) -> str:
    """The choice that was perhaps meant, for keys with a fixed list of them."""
    if detail["type"] != "literal_error":
        return ""
    choices = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
    return nearest_hint(str(detail["input"]), choices)
