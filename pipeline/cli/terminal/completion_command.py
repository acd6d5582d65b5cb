"""``peg completion``: commands and options completed by the shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM, VARIABLE = "peg", "_PEG_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what completes commands and options in SHELL.

    Put the line of your shell into its start-up file; from then on the tab key completes.

    \b
    bash   eval "$(peg completion bash)"       in ~/.bashrc
    zsh    eval "$(peg completion zsh)"        in ~/.zshrc
    fish   peg completion fish | source        in ~/.config/fish/config.fish
    """
    chosen = get_completion_class(shell)
    if chosen is None:
        raise click.ClickException(f"this version of click completes nothing in {shell}")
    root = click.get_current_context().find_root().command
    click.echo(chosen(root, {}, PROGRAM, VARIABLE).source())
