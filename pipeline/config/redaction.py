"""Nothing secret in what is shown or kept: logs, histories and schedules pass through here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

MASK = "***"
SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|ACCESS_KEY|API_KEY", re.IGNORECASE
)
# shorter values are words that occur in any text
SHORTEST_SECRET = 8

# In each the group "secret" is what must go.
# http://user:password@host; a password may hold "@" and "/", a port is none
USER_IN_URL = re.compile(
    r"\w://(?P<secret>[^/\s:@'\"]*:(?!\d+(?:/|\s|$))[^\s'\"<>]+|[^/\s'\"?#]+)@"
)
KEY_ID = re.compile(r"(?<![A-Z0-9])(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{16})(?![A-Z0-9])")
# with a capital: bearers of news are no secret
BEARER = re.compile(r"(?:Bearer[ \t]+)+(?P<secret>[^\s'\"\\]*[^\s'\"\\,;.)}\]])")
# Quotes may be escaped, as in JSON inside JSON.
NAME = re.compile(
    r"(?:[\w.-]{0,64}(?:token(?!s)|secret|password|passwd|credential(?!s)|signature"
    r"|(?:access|api|private|account)[_-]?key)[\w-]{0,64}(?<!_path)|authorization"
    r"|(?<=[?&])[\w.-]{0,64}key[\w-]{0,64})\\*['\"]?[ \t]*[:=][ \t]*",
    re.IGNORECASE,
)
SCHEME = r"(?:(?:bearer|basic|digest|token)[ \t]+)?"
VALUE = re.compile(
    rf"(?P<quote>['\"]){SCHEME}(?P<quoted>(?:\\.|(?!(?P=quote))[^\\])+)(?P=quote)"
    rf"|\\*['\"]?{SCHEME}(?P<plain>[^\s'\"&\\]+)",
    re.IGNORECASE | re.DOTALL,
)
END_OF_CLAUSE = ",;.)}]"
NO_SECRET = frozenset({"", "null", "none", "true", "false"})


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds something that must not be shown."""
    return bool(SECRET_NAME.search(name)) and not name.endswith("_PATH")


def redact(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The text without secrets of the environment, and without those that it names itself.

    Those are users in URLs, AWS keys, ``Authorization`` headers, and what follows ``password:``,
    ``token=`` and the like.
    """
    for name, value in environment.items():
        if len(value) >= SHORTEST_SECRET and is_secret_name(name):
            text = text.replace(value, MASK)
    return _mask(text, [*_spans_by_form(text), *_spans_by_name(text)])


def redact_all(value: Any) -> Any:
    """A JSON-ready value with every text in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redact_item(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(item) for item in value]
    return value


def _redact_item(key: Any, item: Any) -> Any:
    if isinstance(item, str) and item and is_secret_name(str(key)):
        return MASK
    return redact_all(item)


def _spans_by_form(text: str) -> Iterator[tuple[int, int]]:
    for form in (USER_IN_URL, KEY_ID, BEARER):
        for found in form.finditer(text):
            yield found.span("secret")


def _spans_by_name(text: str) -> Iterator[tuple[int, int]]:
    """Of values that stand behind a name; the value of one name may hold another name."""
    for name in NAME.finditer(text):
        value = VALUE.match(text, name.end())
        if value is None:
            continue
        if value["quoted"] is not None:
            yield value.span("quoted")
            continue
        plain = value["plain"].rstrip(END_OF_CLAUSE)
        if plain.lower() not in NO_SECRET:
            yield value.start("plain"), value.start("plain") + len(plain)


def _mask(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with every span masked; spans that overlap get one mask."""
    parts, done = [], 0
    for start, end in sorted(spans):
        if start >= done:
            parts += [text[done:start], MASK]
        done = max(done, end)
    return "".join([*parts, text[done:]])
