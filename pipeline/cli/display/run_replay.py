"""The display of a run on another machine, from the JSON lines that it prints."""

from __future__ import annotations

import json
from typing import Any

from pipeline.run.progress import RunDisplay, StageProgress


class RunReplay:
    """Shows events of ``peg run --events`` as ``peg run`` would; other lines as they are."""

    def __init__(self, display: RunDisplay) -> None:
        self._display = display
        self._rest = ""
        self._lines: dict[str, StageProgress] = {}

    def feed(self, text: str) -> None:
        """Take in some output, cut anywhere."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._show(line)

    def close(self) -> None:
        """The output has ended."""
        if self._rest:
            self._show(self._rest)
        self._rest = ""
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def _show(self, text: str) -> None:
        event = _event(text)
        if event is None:
            self._display.console.print(text, markup=False, highlight=False, soft_wrap=True)
            return
        stage = event.get("stage", "")
        match event["event"]:
            case "stage_reused":
                self._display.reused(stage, event["reason"])
            case "stage_started":
                self._lines[stage] = self._display.start(stage, event["reason"])
            case "progress" if stage in self._lines:
                self._lines[stage].update(event["done"], event["total"], event["note"])
            case "stage_finished" if stage in self._lines:
                line = self._lines.pop(stage)
                self._display.finish(stage, line, event["seconds"], event["counts"])
            case "warning":
                self._display.warn(event["text"])


def _event(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and "event" in found and "run" in found else None
