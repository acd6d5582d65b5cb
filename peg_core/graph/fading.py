"""Weights that halve as edges grow old, counted from the newest edge of a graph."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_json
from peg_core.graph.graph_store import GraphStore, load_times
from peg_core.storage.stored_path import is_there

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float32]

FADING = "fading.json"
# Weights as they were listed, beside those that have faded.
LISTED = "listed_weights.npy"
# An edge fades no further: far smaller weights would cut a graph into pieces.
MOST_HALF_LIVES = 20.0


@dataclass(frozen=True)
class Fading:
    """How weights fade.

    Args:
        half_life: After so long a weight is half, in the unit of the stored times.
    """

    half_life: float

    def fade(self, times: IntArray, newest: int, listed: FloatArray | None) -> FloatArray:
        """Weights of edges, [num_entries].

        Args:
            times: When they came.
            newest: When the newest edge of the graph came.
            listed: Their weights without fading; None: all 1.
        """
        age = (newest - np.asarray(times, dtype=np.int64)) / self.half_life
        share = np.exp2(-np.minimum(age, MOST_HALF_LIVES))
        return (share if listed is None else share * listed).astype(np.float32)

    def save(self, folder: Path) -> None:
        write_json(folder / FADING, {"half_life": self.half_life})

    @classmethod
    def read(cls, folder: Path) -> Fading | None:
        """Of a stored graph; None where weights do not fade."""
        file = folder / FADING
        return cls(**json.loads(file.read_text())) if is_there(file) else None


class FadedWeights:
    """The weights of a graph counted from another newest edge, computed where they are read.

    Args:
        fading: How they fade.
        times: [num_entries].
        listed: [num_entries], weights without fading; None: all 1.
        newest: When the newest edge of the part of the graph came that is looked at.
    """

    dtype = np.dtype(np.float32)

    def __init__(
        self, fading: Fading, times: IntArray, listed: FloatArray | None, newest: int
    ) -> None:
        self._fading, self._times, self._listed, self._newest = fading, times, listed, newest

    def __getitem__(self, span: slice) -> FloatArray:
        """Some of them; entries that came later than the newest count as that new."""
        times = np.minimum(np.asarray(self._times[span], dtype=np.int64), self._newest)
        listed = None if self._listed is None else self._listed[span]
        return self._fading.fade(times, self._newest, listed)


def fade_from(graph: GraphStore, folder: Path, newest: int) -> GraphStore:
    """A stored graph whose weights are counted from another newest edge; else as it is.

    What is held out is newer than the training graph: its age must not reach the weights there.
    """
    fading, times = Fading.read(folder), load_times(folder)
    if fading is None or times is None:
        return graph
    listed = np.load(folder / LISTED, mmap_mode="r") if is_there(folder / LISTED) else None
    weights: Any = FadedWeights(fading, times, listed, newest)
    context: Any = graph.context_weights  # as they were listed
    if context is not None:
        context = FadedWeights(fading, times, context, newest)
    arrays = graph.indptr, graph.indices, weights, graph.codes
    return GraphStore(*arrays, relations=graph.relations, context_weights=context)


def find_newest(times: IntArray, chosen: npt.NDArray[np.bool_]) -> int | None:
    """When the newest of some entries came; None where there are none."""
    own = times[chosen]
    return int(own.max()) if len(own) else None
