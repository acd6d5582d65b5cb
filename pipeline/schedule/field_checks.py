"""What the fields of a schedule may hold; checked before it is stored and whenever it is read.

Exports write these values into crontabs, units, DAGs and manifests. A text of one line without
control characters can be written into all of them.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from pathlib import PurePosixPath
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import ValidationError, ValidationInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_INTERVAL_SECONDS = 3650 * 86400
LONGEST_RETRY_DELAY_SECONDS = 86400
MOST_RETRIES = 100
LONGEST_NAME = 100
LONGEST_CRON = 200
LONGEST_QUOTE = 80
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Control characters, halves of characters (names that are not UTF-8), and line separators.
NOT_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})


def quoted(value: object) -> str:
    """A value for a message: in quotes, on one line, and not too long."""
    text = repr(value) if isinstance(value, str) else repr(str(value))
    if len(text) <= LONGEST_QUOTE:
        return text
    return f"{text[:LONGEST_QUOTE]}... ({len(text)} characters)"


def parse_interval(text: str) -> int:
    """``"90s"``, ``"15m"``, ``"6h"`` or ``"1d"`` in seconds."""
    match = re.fullmatch(r"0*([1-9][0-9]*)([smhd])", text.strip())
    if match is None:
        raise ValueError(f"{quoted(text)} is not an interval; write for example 90s, 15m, 6h or 1d")
    digits, unit = match.groups()
    # Python refuses to read numbers of thousands of digits
    seconds = int(digits) * SECONDS_PER_UNIT[unit] if len(digits) < 20 else None
    if seconds is None or seconds > LONGEST_INTERVAL_SECONDS:
        raise ValueError(
            f"the interval {quoted(text)} is too long; it must be at least 1 s and at most "
            "10 years (3650d): write for example 6h or 1d"
        )
    return seconds


def check_interval(seconds: int) -> int:
    if not 1 <= seconds <= LONGEST_INTERVAL_SECONDS:
        raise ValueError(
            f"found an interval of {quoted(seconds)} seconds; it must be at least 1 s and at most "
            "10 years (3650d): write for example --every 6h"
        )
    return seconds


def check_retries(retries: int) -> int:
    if not 0 <= retries <= MOST_RETRIES:
        raise ValueError(
            f"found {quoted(retries)} retries; there must be 0 to {MOST_RETRIES}: write for "
            "example --retries 3"
        )
    return retries


def check_retry_delay(seconds: float) -> float:
    if not 1 <= seconds <= LONGEST_RETRY_DELAY_SECONDS:
        raise ValueError(
            f"found a retry delay of {quoted(seconds)} seconds; it must be at least 1 s and at "
            "most a day: write for example --retry-delay 5m"
        )
    return seconds


def check_name(name: str) -> str:
    if NAME.fullmatch(name) is None or len(name) > LONGEST_NAME:
        raise ValueError(
            f"{quoted(name)} cannot name a schedule; write up to {LONGEST_NAME} letters, digits "
            "and the characters . _ -, beginning with a letter or digit"
        )
    return name


def check_cron(text: str) -> str:
    reason = _cron_fault(text)
    if reason is not None:
        raise ValueError(
            f"{quoted(text)} is not a cron expression ({reason}); write five fields, "
            "minute hour day month weekday, such as '30 2 * * *', or six with seconds first"
        )
    return text


def check_timezone(text: str) -> str:
    try:
        ZoneInfo(text if re.fullmatch(r"[A-Za-z0-9_+/-]+", text) else "")
    except (KeyError, ValueError, OSError):
        raise ValueError(f"no time zone {quoted(text)}; write for example Europe/Berlin") from None
    return text


def check_text(value: object, info: ValidationInfo) -> object:
    """One line of text, which every file and command line can hold."""
    if isinstance(value, str) and is_not_text(value):
        raise ValueError(
            f"{info.field_name} is {quoted(value)}; line breaks, control characters and names that "
            "are not UTF-8 cannot be kept: rename it, or leave these characters out"
        )
    return value


def check_path(value: str, info: ValidationInfo) -> str:
    if not PurePosixPath(value).is_absolute():
        raise ValueError(
            f"{info.field_name} is {quoted(value)}; an absolute path is needed: begin it with /"
        )
    return value


def is_not_text(text: str) -> bool:
    """Whether there are characters in it that do not belong into one line of text."""
    return any(unicodedata.category(character) in NOT_TEXT for character in text)


def faults(error: ValidationError) -> list[str]:
    """What is wrong, one line per fault, in the words of this file where it has some."""
    return [_fault(str(item["type"]), item["loc"], item["msg"], item["input"])
            for item in error.errors(include_url=False, include_context=False)]  # fmt: skip


def _fault(kind: str, place: tuple[int | str, ...], message: str, found: object) -> str:
    key = ".".join(str(part) for part in place)
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "missing":
        return f"the key {key!r} is missing"
    if kind == "extra_forbidden":
        return f"the key {quoted(key)} is unknown; did a newer version write it?"
    return f"{key or 'it'} is {quoted(found)}: {message[:1].lower()}{message[1:]}"


def _cron_fault(text: str) -> str | None:
    if re.fullmatch(r"[A-Za-z0-9*,/# -]+", text) is None:
        return "only letters, digits, spaces and * , - / # may stand in it"
    if len(text) > LONGEST_CRON:
        return f"it is longer than {LONGEST_CRON} characters"
    try:
        next(CronSim(text, EPOCH))
    except CronSimError as error:
        return str(error)
    except StopIteration:
        return "it never fires"
    return None
