"""Groups of commands: imported when they are used, suggested when they are mistyped."""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import CompletionItem

from peg_core.errors import nearest_hint


class SuggestingGroup(click.Group):
    """Names the closest command where there is none of a name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        hint = nearest_hint(args[0], known) if args[0] not in known else ""
        if hint and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands without importing any of them, and the options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.entries[name][1]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)
