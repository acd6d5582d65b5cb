"""Where the graphs of the experiments are: real ones, or small ones that stand in for them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peg_core.errors import ConfigError
from pipeline.reproduce.grid import Cell
from pipeline.reproduce.stand_in import write_stand_in

VARIABLE = "PEG_DATA_DIR"
# Where pipeline files look without the variable.
DEFAULT = Path("../shared/data")


@dataclass(frozen=True)
class GraphData:
    """The folder with a folder for every graph.

    Args:
        folder: What ``${PEG_DATA_DIR}`` stands for in experiment files.
        generated: Whether small random graphs are written there.
    """

    folder: Path
    generated: bool = False

    @classmethod
    def choose(cls, given: Path | None, *, out: Path, quick: bool) -> GraphData:
        """The folder that is given or named by the variable; else, of a quick run, generated ones.

        Raises:
            ConfigError: There are no graphs.
        """
        named = given or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
        if named is None and quick:
            return cls(out / "generated", generated=True)
        folder = named or DEFAULT
        if not folder.is_dir():
            raise ConfigError(
                f"no graphs at {folder}: it is not a folder; name the one that has them with "
                f"--data DIR or {VARIABLE}, or try everything on small random graphs with --quick"
            )
        return cls(folder)

    @property
    def variables(self) -> dict[str, str]:
        """What replaces ``${NAME}`` in experiment files."""
        return {**os.environ, VARIABLE: str(self.folder)}

    def prepare(self, cells: Iterable[Cell]) -> None:
        """Write what the cells read, where it is generated."""
        if not self.generated:
            return
        named = {path for cell in cells for path in _locations(cell.config.model_dump())}
        for path in sorted(named):
            if path.is_relative_to(self.folder):
                write_stand_in(self.folder / path.relative_to(self.folder).parts[0])


def _locations(value: Any) -> set[Path]:
    """All Parquet files that a configuration names."""
    if isinstance(value, dict):
        return set().union(*(_locations(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(_locations(item) for item in value))
    return {Path(value)} if isinstance(value, str) and value.endswith(".parquet") else set()
