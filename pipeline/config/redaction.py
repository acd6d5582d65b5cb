"""Nothing secret in what is shown or kept: logs, histories and schedules pass through here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|ACCESS_KEY|API_KEY", re.IGNORECASE
)
# shorter values are words that occur in any text
SHORTEST_SECRET = 8
USER_IN_URL = re.compile(r"(\w+://)[^/@\s]+@")
SECRET_IN_QUERY = re.compile(r"((?:secret|token|password|key)\w*=)[^&\s'\"]+", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds something that must not be shown."""
    return bool(SECRET_NAME.search(name)) and not name.endswith("_PATH")


def redact(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The text without secrets of the environment and without credentials in URLs."""
    for name, value in environment.items():
        if len(value) >= SHORTEST_SECRET and is_secret_name(name):
            text = text.replace(value, MASK)
    return SECRET_IN_QUERY.sub(rf"\1{MASK}", USER_IN_URL.sub(rf"\1{MASK}@", text))


def redact_all(value: Any) -> Any:
    """A JSON-ready value with every text in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(item) for item in value]
    return value
