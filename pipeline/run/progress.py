"""What the user sees while a run goes on: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

PLAIN_SECONDS = 5.0


class StageProgress(Protocol):
    """How a stage tells how far it is."""

    def update(self, done: float, total: float, note: str = "") -> None:
        """So much of the total is done."""
        ...

    def close(self) -> None:
        """Nothing more will be told."""
        ...


class RunDisplay:
    """The display of one run; every stage gets a line of its own."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Progress | None = None
        if console.is_terminal:
            self._live = Progress(
                TextColumn("  {task.description}"),
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                console=console,
            )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def reused(self, name: str, reason: str) -> None:
        self.console.print(f"  [dim]{name:<10} reused[/dim]  {reason}", highlight=False)

    def start(self, name: str, reason: str) -> StageProgress:
        if self._live:
            task = self._live.add_task(f"{name:<10}", total=None, note=reason)
            return LiveLine(self._live, task)
        self.console.print(f"  {name:<10} started  {reason}", highlight=False, markup=False)
        return PlainLine(self.console, name)

    def finish(
        self, name: str, line: StageProgress, seconds: float, counts: dict[str, Any]
    ) -> None:
        line.close()
        facts = ", ".join(f"{key.replace('_', ' ')} {show(value)}" for key, value in counts.items())
        self.console.print(
            f"  [green]{name:<10} done[/green]    {seconds:.1f} s  {facts}", highlight=False
        )

    def warn(self, text: str) -> None:
        self.console.print(f"  [yellow]warning:[/yellow] {text}", highlight=False)


class LiveLine:
    """A progress bar."""

    def __init__(self, live: Progress, task: TaskID) -> None:
        self._live, self._task = live, task

    def update(self, done: float, total: float, note: str = "") -> None:
        self._live.update(self._task, completed=done, total=total, note=note)

    def close(self) -> None:
        self._live.remove_task(self._task)


class PlainLine:
    """A line now and then, for logs; none that says what the last one said."""

    def __init__(self, console: Console, name: str) -> None:
        self._console, self._name = console, name
        self._last, self._told = time.monotonic(), ""

    def update(self, done: float, total: float, note: str = "") -> None:
        if time.monotonic() - self._last < PLAIN_SECONDS:
            return
        self._last = time.monotonic()
        share = 100 * done / max(total, 1)
        line = f"  {self._name:<10} {share:3.0f} %    {note}"
        if line != self._told:
            self._console.print(line, highlight=False)
            self._told = line

    def close(self) -> None:
        """Nothing to take away."""


def show(value: Any) -> str:
    """A number as people write it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
