"""Ways to damage a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], None]


def cut(file: Path, *, kept: float = 0.5) -> None:
    """Leave the first part of a file."""
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * kept)])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def garbage(file: Path) -> None:
    """Bytes that are neither text nor any format."""
    file.write_bytes(bytes(range(128, 256)) * 4)


def flip(file: Path, *, at: float = 0.5) -> None:
    """Change one byte."""
    content = bytearray(file.read_bytes())
    content[int((len(content) - 1) * at)] ^= 0xFF
    file.write_bytes(content)


def remove(file: Path) -> None:
    file.unlink()


def become_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def become_a_list(file: Path) -> None:
    """JSON, of a kind that nobody expects."""
    file.write_text('["not", "an", "object"]')
