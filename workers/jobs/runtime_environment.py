"""Ray's runtime environment of a job: what the commands set, and what the user adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peg_core.errors import ConfigError

# How the commands set what they set themselves.
OPTIONS = {
    "working_dir": "--working-dir",
    "excludes": "--working-dir",
    "py_modules": "--with-package",
    "pip": "--pip",
    "image_uri": "--image",
    "env_vars": "--env",
}
NEVER_ADDED = ("working_dir", "excludes")
# Ray starts containers with these alone.
WITH_AN_IMAGE = frozenset({"image_uri", "config", "env_vars"})


def merge_environment(ours: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both together.

    Raises:
        ConfigError: A key stands in both, or cannot be had together with an image.
    """
    for key in more:
        if key in ours or key in NEVER_ADDED:
            raise ConfigError(
                f"found `{key}` in the runtime environment, but {OPTIONS[key]} sets it; leave one "
                "of them out"
            )
    merged = {**ours, **more}
    refused = sorted(set(merged) - WITH_AN_IMAGE) if "image_uri" in merged else []
    if refused:
        raise ConfigError(
            f"found {', '.join(f'`{key}`' for key in refused)} beside an image, and Ray starts "
            "containers without; put it into the image, or leave the image out"
        )
    return merged
