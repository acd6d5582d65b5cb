"""Options that belong together."""

from __future__ import annotations

from pathlib import Path

from peg_core.errors import ConfigError


def both_given(
    number_option: str, number: int | None, path_option: str, path: Path | None
) -> tuple[int, Path] | None:
    """A number of rows and their file; None where neither was asked for."""
    if number is None and path is None:
        return None
    if number is None or path is None:
        raise only_one_given({number_option: number, path_option: path})
    return number, path


def only_one_given(options: dict[str, object]) -> ConfigError:
    """The error for two options that belong together when one of them is None."""
    missing, given = sorted(options, key=lambda option: options[option] is not None)
    return ConfigError(
        f"{given} {options[given]} was given without {missing}; add {missing}, or drop both"
    )
