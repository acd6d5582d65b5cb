"""A group of commands that are imported when they are used."""

from __future__ import annotations

from importlib import import_module

import click


class LazyGroup(click.Group):
    """Commands by module, so that ``--help`` does not wait for torch.

    Args:
        entries: For every command its ``module:attribute`` and the line that help shows of it.
    """

    def __init__(self, *, entries: dict[str, tuple[str, str]], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.entries:
            return None
        module, _, attribute = self.entries[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self.entries[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
