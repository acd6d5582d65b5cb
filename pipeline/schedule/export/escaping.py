"""Texts as crontabs and units of systemd need them, so that they come back as they were."""

from __future__ import annotations

from peg_core.errors import ConfigError
from pipeline.schedule.field_checks import is_not_text, quoted


def crontab_command(command: str) -> str:
    """A command of the shell, quoted by shlex, as the rest of a line of a crontab.

    A bare % ends the command, so it gets a backslash, which cron takes away. Crons disagree about
    a backslash before another one: a quote is closed and opened after each, so that there is none.
    """
    return command.replace("\\", "\\''").replace("%", "\\%")


def systemd_word(text: str) -> str:
    """One argument of ``ExecStart=``: no specifiers, no variables, quoted."""
    plain = text.replace("%", "%%").replace("$", "$$")
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def systemd_path(path: str) -> str:
    """The value of a setting that takes a path, which systemd reads without quotes."""
    if path != path.strip() or path.endswith("\\"):
        raise ConfigError(
            f"systemd cannot read the path {quoted(path)}: it ends with a space or a backslash; "
            "rename the folder, or choose another --kind"
        )
    return path.replace("%", "%%")


def require_text(*texts: str) -> None:
    """Refuse what no scheduler can read in one line."""
    for text in texts:
        if is_not_text(text):
            raise ConfigError(
                f"{quoted(text)} has line breaks or control characters, which files for schedulers "
                "cannot hold; rename it, or leave these characters out"
            )
