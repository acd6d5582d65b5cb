"""Run the commands of the README and write what they print into it: `make readme`.

A block of the README that is fenced as ``console`` holds commands, each after ``$``, and their
output. They run one after the other in a folder of their own, laid out as a fresh clone after
`make demo` has generated its graph.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "$ "
# Columns of the terminal that is recorded.
WIDTH = 102
# First lines of what is left out, up to the next empty line.
APART = re.compile(r"  \w+ +(started|done|reused|\d+ %) | \w+, (warm|cold) pairs |next:")
LEFT_OUT = "..."


def commands_of(block: str) -> list[str]:
    """The commands of a block, in order."""
    return [line.removeprefix(PROMPT) for line in block.splitlines() if line.startswith(PROMPT)]


def record(command: str, folder: Path) -> str:
    """The command and what it prints, as the README shows it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": str(WIDTH)}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    kept = shorten([line.rstrip() for line in done.stdout.splitlines()])
    return "\n".join([PROMPT + command, *kept]) + "\n"


def shorten(lines: list[str]) -> list[str]:
    """Without what stages report, the tables of warm and cold pairs, and what to do next."""
    kept: list[str] = []
    apart = False
    for line in lines:
        apart = bool(APART.match(line)) or (apart and line != "")
        if apart and kept[-1:] != [LEFT_OUT]:
            kept.append(LEFT_OUT)
        if not apart and (line or kept[-1:] != [LEFT_OUT]):
            kept.append(line)
    while kept and kept[-1] in ("", LEFT_OUT):
        kept.pop()
    return kept


def main() -> None:
    """Record every block, then replace the README."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "configs", folder / "configs")
        (folder / "data").symlink_to(ROOT / "data")
        for block in BLOCK.findall(text):
            recorded = "\n".join(record(command, folder) for command in commands_of(block))
            text = text.replace(f"```console\n{block}```", f"```console\n{recorded}```")
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
