"""How vectors are written in an index: as they are, or in fewer bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_json

FloatArray = npt.NDArray[np.floating[Any]]
IndexDtype = Literal["float32", "float16", "int8"]

# Values stay below this: of float16 far from its largest, so that sums of squares are finite.
LARGEST = {"float16": 1e4, "int8": 127.0}
# Share of the values that int8 cuts off, so that the others get finer steps.
CUT_OFF = 1e-3


@dataclass(frozen=True)
class VectorCode:
    """Turns rows into what an index holds; rows and queries alike.

    Fewer bytes need values of a known size: float16 knows nothing below 6e-8, and coordinates
    of a large graph are small. So rows are moved to their centre and stretched, all dimensions
    alike: distances keep their order.

    Args:
        dtype: Of the values in the index.
        unit_rows: Scale rows to length 1 first, so that angles count.
        centre: [width] what is subtracted; None: nothing. float32 has none.
        scale: What the rest is multiplied with.
    """

    dtype: IndexDtype = "float32"
    unit_rows: bool = False
    centre: npt.NDArray[np.float32] | None = None
    scale: float = 1.0

    @classmethod
    def fit(cls, sample: FloatArray, *, dtype: IndexDtype, unit_rows: bool) -> Self:
        """The code of vectors like these, [num_rows, width]."""
        plain = cls(unit_rows=unit_rows)
        if dtype == "float32":
            return plain
        rows = plain.encode(sample)
        centre = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        away = np.abs(rows - centre)
        if dtype == "int8":
            size, wanted = float(np.quantile(away, 1 - CUT_OFF)), LARGEST[dtype]
        else:
            size, wanted = float(np.sqrt(np.mean(away.astype(np.float64) ** 2))), 1.0
        return cls(dtype, unit_rows, centre, wanted / max(size, 1e-30))

    def encode(self, rows: FloatArray) -> npt.NDArray[Any]:
        """What the index gets for rows, [num_rows, width]."""
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        if self.unit_rows:
            rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        if self.centre is None:
            return rows
        limit = LARGEST[self.dtype]
        # in float64: the scale of tiny coordinates is a large number
        moved = np.clip((rows - self.centre) * np.float64(self.scale), -limit, limit)
        return (np.rint(moved) if self.dtype == "int8" else moved).astype(self.dtype)

    def save(self, file: Path) -> None:
        centre = None if self.centre is None else self.centre.tolist()
        write_json(file, {"dtype": self.dtype, "scale": self.scale, "centre": centre})

    @classmethod
    def open(cls, file: Path, *, unit_rows: bool) -> Self:
        """What :meth:`save` wrote."""
        kept = json.loads(file.read_text())
        centre = np.array(kept["centre"], dtype=np.float32)
        return cls(kept["dtype"], unit_rows, centre, kept["scale"])
