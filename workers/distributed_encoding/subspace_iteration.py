"""Chebyshev-filtered subspace iteration on tiles, driven by small matrices.

The driver sees Gram matrices, Ritz values and residuals; its memory does not depend
on the number of nodes. After every outer iteration the state is written down, and
within one, finished shards have markers: a killed run goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array, write_json
from peg_core.encoding.spectral.chebyshev_filter import ChebyshevFilter, choose_degree
from peg_core.encoding.spectral.chebyshev_subspace import MOST_ITERATIONS, STALLED_ITERATIONS
from peg_core.encoding.spectral.eigenpairs import residual_limits
from peg_core.encoding.spectral.ritz_rotation import ritz_rotation
from peg_core.encoding.spectral.solve_limits import (
    application_budget,
    cluster_limits,
    ends_in_cluster,
    is_large,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.storage.stored_path import publish, remove
from workers.artifact_ref import ArtifactRef
from workers.distributed_encoding.eigenmap_tasks import (
    FilterResult,
    MeasureResult,
    draw_task,
    filter_task,
    gram_task,
    measure_task,
    rotate_task,
)
from workers.distributed_encoding.encoding_steps import EncodingSteps
from workers.distributed_encoding.tiled_matrix import TiledMatrix, TileLayout
from workers.shard import Shard
from workers.task_map import Result

# Locked columns are no longer corrected, and their errors show in the others' residuals.
LOCKED_BELOW = 0.3

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class IterationState:
    """What is known after an outer iteration; JSON-ready.

    Args:
        iteration: Its number; 0 is the random start.
        homes: Iteration whose folder holds the Ritz vectors of a column block, [blocks].
        locked_blocks: Column blocks that are accurate and no longer change.
        ritz_values: Of N, [columns]; empty at the start.
        values, residuals: Eigenvalues of L and true residuals of the columns that count.
        best, stalled: The smallest worst residual so far, relative to its limit, and
            iterations since.
        kind: "float32" or "float64".
        applications: Columns multiplied with the adjacency so far.
        finished: Whether to stop.
    """

    iteration: int
    homes: list[int]
    kind: str
    locked_blocks: int = 0
    ritz_values: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    residuals: tuple[float, ...] = ()
    best: float = float("inf")
    stalled: int = 0
    applications: int = 0
    finished: bool = False

    @classmethod
    def load(cls, file: Path) -> IterationState:
        """Read what an interrupted run wrote; fields of an earlier version are passed over."""
        known = {field.name for field in fields(cls)}
        values = json.loads(file.read_text())
        return cls(**{name: value for name, value in values.items() if name in known})


@dataclass(frozen=True)
class SubspaceIteration:
    """The smallest non-zero eigenvalues of L on one component.

    Args:
        steps: Maps the tasks; its work folder holds the tiles, an ``iteration-<number>``
            folder per outer iteration.
        component: The component.
        layout: Where the matrix of eigenvectors is cut.
        wanted, extra: Eigenpairs to find, and further ones of which only the eigenvalue
            is used.
        tolerance: Largest ``||L u - lambda u||``.
        kind: "float32" or "float64"; the former turns into the latter where it stalls.
    """

    steps: EncodingSteps
    component: ArtifactRef[GraphStore]
    layout: TileLayout
    wanted: int
    extra: int
    tolerance: float
    kind: str

    def run(self) -> IterationState:
        """Iterate until the residuals are small, or no longer become smaller."""
        file = self.steps.work / "state.json"
        state = IterationState.load(file) if file.exists() else self._start()
        while not state.finished:
            state = self._advance(state)
            write_json(file, asdict(state))
            publish([file])  # before that from which another machine would go on is gone
            self._remove_old(state)
        return state

    def vectors(self, state: IterationState) -> TiledMatrix:
        """The Ritz vectors after an iteration."""
        folders = tuple(self._folder(home) / "vectors" for home in state.homes)
        return TiledMatrix(self.layout, folders)

    def _folder(self, iteration: int) -> Path:
        return self.steps.work / f"iteration-{iteration:03d}"

    def _start(self) -> IterationState:
        state = IterationState(0, [0] * len(self.layout.blocks), self.kind)
        matrix = self.vectors(state)
        shards = [
            Shard(
                f"draw-{chunk:05d}",
                {"matrix": matrix, "chunk": chunk, "seed": self.steps.request.seed},
            )
            for chunk in self.layout.chunks
        ]
        self._map(0, draw_task, shards)
        return state

    def _advance(self, state: IterationState) -> IterationState:
        """One outer iteration: filter, orthonormalise and rotate, measure."""
        number, first = state.iteration + 1, state.locked_blocks
        folder = self._folder(number)
        homes = state.homes[:first] + [number] * (len(state.homes) - first)
        moved = replace(state, iteration=number, homes=homes)
        before, after = self.vectors(state), self.vectors(moved)
        folders = before.folders[:first] + (folder / "filtered",) * (len(homes) - first)
        columns = TiledMatrix(self.layout, folders)
        image = TiledMatrix.within(self.layout, folder / "image")
        filtered = self._filter(state, before, columns, image)
        self._gram(number, columns, image, first)
        ritz_values = self._find_rotation(folder, state)
        self._rotate(number, columns, after, first, state.kind)
        measured = self._measure(number, after, first, state.kind)
        applications = sum(result["applications"] for result in [*filtered, *measured])
        return self._judge(moved, ritz_values, measured, applications)

    def _filter(
        self, state: IterationState, before: TiledMatrix, filtered: TiledMatrix, image: TiledMatrix
    ) -> list[FilterResult]:
        shared = {
            "component": self.component,
            "chebyshev": self._choose_filter(state),
            "before": before,
            "filtered": filtered,
            "image": image,
            "kind": state.kind,
        }
        blocks = self.layout.blocks[state.locked_blocks :]
        shards = [Shard(f"filter-{block:03d}", {**shared, "block": block}) for block in blocks]
        return self._map(state.iteration + 1, filter_task, shards)

    def _choose_filter(self, state: IterationState) -> ChebyshevFilter:
        """The cut at the lowest Ritz value; random columns are first rid of N's lower half."""
        precision = float(np.finfo(state.kind).eps) / self.tolerance / 8
        values = state.ritz_values or (1.0, 0.0)
        return choose_degree(lower=-1.0, cut=min(values), highest=max(values), precision=precision)

    def _gram(self, number: int, columns: TiledMatrix, image: TiledMatrix, first: int) -> None:
        shared = {"columns": columns, "image": image, "first": first}
        shards = [
            Shard(f"gram-{chunk:05d}", {**shared, "chunk": chunk, "out": self._sums(number, chunk)})
            for chunk in self.layout.chunks
        ]
        self._map(number, gram_task, shards)

    def _sums(self, number: int, chunk: int) -> Path:
        return self._folder(number) / "sums" / f"chunk-{chunk:05d}.npy"

    def _find_rotation(self, folder: Path, state: IterationState) -> Array:
        """Write the rotation down, once: tasks of a resumed run must use the same."""
        rotation_file, values_file = folder / "rotation.npy", folder / "ritz-values.npy"
        if not rotation_file.exists():
            total: Array = np.zeros(())
            for chunk in self.layout.chunks:  # in the order of the rows, one at a time
                total = total + np.load(self._sums(state.iteration + 1, chunk))
            locked = state.locked_blocks * self.layout.width
            overlaps, images = total
            active, rotation = ritz_rotation(overlaps, images, np.array(state.ritz_values[:locked]))
            write_array(values_file, np.concatenate([state.ritz_values[:locked], active]))
            write_array(rotation_file, rotation)
        values: Array = np.load(values_file)
        return values

    def _rotate(
        self, number: int, columns: TiledMatrix, rotated: TiledMatrix, first: int, kind: str
    ) -> None:
        shared = {
            "columns": columns,
            "rotated": rotated,
            "rotation": self._folder(number) / "rotation.npy",
            "first": first,
            "kind": kind,
        }
        shards = [
            Shard(f"rotate-{chunk:05d}", {**shared, "chunk": chunk}) for chunk in self.layout.chunks
        ]
        self._map(number, rotate_task, shards)

    def _measure(
        self, number: int, vectors: TiledMatrix, first: int, kind: str
    ) -> list[MeasureResult]:
        """Residuals of the columns that count, from the vectors as they are stored."""
        shared = {"component": self.component, "vectors": vectors, "kind": kind}
        count = self.wanted + self.extra
        shards = [
            Shard(
                f"measure-{block:03d}",
                {**shared, "block": block, "count": min(columns.stop, count) - columns.start},
            )
            for block in self.layout.blocks[first:]
            if (columns := self.layout.columns(block)).start < count
        ]
        return self._map(number, measure_task, shards)

    def _judge(
        self,
        state: IterationState,
        ritz_values: Array,
        measured: list[MeasureResult],
        applications: int,
    ) -> IterationState:
        """Lock what is accurate, and decide whether to go on."""
        locked = state.locked_blocks * self.layout.width
        values = [*state.values[:locked], *(v for r in measured for v in r["values"])]
        residuals = [*state.residuals[:locked], *(v for r in measured for v in r["residuals"])]
        limits = residual_limits(wanted=self.wanted, extra=self.extra, tolerance=self.tolerance)
        num_nodes = self.layout.num_rows
        spectrum = 1 - ritz_values
        if is_large(num_nodes) and ends_in_cluster(spectrum, len(values), self.tolerance):
            limits = cluster_limits(limits, np.array(values), self.tolerance)
        relative = np.array(residuals) / limits
        worst = float(relative.max())
        stalled = 0 if worst < 0.9 * state.best else state.stalled + 1
        state = replace(
            state,
            ritz_values=tuple(ritz_values.tolist()),
            values=tuple(values),
            residuals=tuple(residuals),
            best=min(state.best, worst),
            stalled=stalled,
            locked_blocks=int(np.argmax(relative > LOCKED_BELOW)) // self.layout.width,
            applications=state.applications + applications,
        )
        spent = state.applications >= application_budget(num_nodes, len(values))
        if worst <= 1 or spent or state.iteration == MOST_ITERATIONS:
            return replace(state, finished=True)
        if stalled < STALLED_ITERATIONS:
            return state
        if state.kind == "float64":
            return replace(state, finished=True)
        return replace(state, kind="float64", stalled=0, locked_blocks=0)

    def _map(self, number: int, task: Callable[..., Result], shards: list[Shard]) -> list[Result]:
        what = f"iteration {number}, {task.__name__.removesuffix('_task')}"
        return self.steps.map(what, task, shards, markers=self._folder(number) / "done")

    def _remove_old(self, state: IterationState) -> None:
        """Keep the vectors of this iteration and of columns locked before; nothing else."""
        for number in range(state.iteration + 1):
            folder = self._folder(number)
            kept = [block for block, home in enumerate(state.homes) if home == number]
            if not kept:
                remove(folder)
                continue
            for name in ("filtered", "image", "sums"):
                remove(folder / name)
            for block in set(self.layout.blocks) - set(kept):
                remove(folder / "vectors" / f"block-{block:03d}")
