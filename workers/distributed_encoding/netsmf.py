"""DeepWalk's sampled matrix of one large graph, and its factorisation, by many tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.encoding.deepwalk import DeepWalk
from peg_core.encoding.walks.randomised_svd import (
    ROUNDS,
    find_rotation,
    largest_values,
    num_columns,
)
from peg_core.graph.graph_store import index_dtype
from peg_core.storage.shared_array import create_array
from peg_core.storage.stored_path import remove
from workers.distributed_encoding.eigenmap_tasks import draw_task, gram_task, rotate_task
from workers.distributed_encoding.encoded_graph import EncodedGraph, keep_graph
from workers.distributed_encoding.encoding_steps import EncodingSteps
from workers.distributed_encoding.netsmf_tasks import (
    join_task,
    merge_task,
    multiply_task,
    place_task,
    propagate_task,
    sample_task,
)
from workers.distributed_encoding.tiled_matrix import TiledMatrix, TileLayout
from workers.shard import Shard
from workers.task_map import Result, TaskMap
from workers.tasks.encode import EncodeRequest

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RangeSizes:
    """How large the tasks are.

    Args:
        rows: Nodes of a range, at most about.
        samples: Samples of a range, at most about.
        columns: Columns of a block, at most 32.
    """

    rows: int = 2**18
    samples: int = 2**24
    columns: int = 16


RANGE_SIZES = RangeSizes()


def encode_large_netsmf(
    tasks: TaskMap, request: EncodeRequest, *, work: Path, sizes: RangeSizes = RANGE_SIZES
) -> None:
    """Encode a graph by ranges of its nodes; one without edges is left to one task.

    Args:
        tasks: Of the stage; gets the mark of the encoding when everything is done.
        request: DeepWalk of a graph, with solver netsmf.
        work: Folder for samples, matrix and tiles, removed at the end.
        sizes: How large the tasks are; a part of the result, as the seed is.
    """
    steps = EncodingSteps(tasks, request, work)
    if steps.is_done:
        return
    encoder = DeepWalk(**request.parameters)
    entries = max(sizes.samples // (encoder.window * encoder.samples), 1)
    kept = keep_graph(steps, rows=sizes.rows, entries=entries)
    if kept.num_edges == 0:
        steps.leave()
        return
    run = LargeNetsmf(steps, encoder, kept, sizes.columns)
    entries = run.build_matrix()
    values, vectors = run.factorise()
    chosen = largest_values(values, min(encoder.dimensions, kept.num_nodes))
    run.place(vectors, values, chosen)
    report = encoder.describe("netsmf", entries, np.abs(values[chosen]), kept.num_nodes)
    steps.finish(kept.result({**report, "distributed": True}))


@dataclass(frozen=True)
class LargeNetsmf:
    """Each step leaves marks in the work folder, so that a killed run goes on.

    Args:
        steps: Maps the tasks.
        encoder: With solver netsmf.
        kept: The graph.
        width: Columns of a block.
    """

    steps: EncodingSteps
    encoder: DeepWalk
    kept: EncodedGraph
    width: int

    @property
    def work(self) -> Path:
        return self.steps.work

    @property
    def seed(self) -> int:
        return self.steps.request.seed

    def build_matrix(self) -> int:
        """Sample, sum and join; returns the entries of the matrix."""
        kept, samples, parts = self.kept, self.work / "samples", self.work / "parts"
        matrix = self.work / "matrix"
        shared: dict[str, Any] = {"kept": kept}
        drawing = {**shared, "encoder": self.encoder, "seed": self.seed, "folder": samples}
        self._map("sample", sample_task, kept.ranges, drawing)
        merged = self._map(
            "merge", merge_task, kept.ranges, {**shared, "samples": samples, "folder": parts}
        )
        remove(samples)
        firsts = np.cumsum([0, *(result["entries"] for result in merged)]).tolist()
        create_array(matrix / "indptr.npy", (kept.num_nodes + 1,), np.int64)
        create_array(matrix / "indices.npy", (firsts[-1],), index_dtype(kept.num_nodes))
        create_array(matrix / "weights.npy", (firsts[-1],), np.float32)
        joining = {**shared, "parts": parts, "matrix": matrix}
        self._map("join", join_task, kept.ranges, joining, each={"first": firsts[:-1]})
        remove(parts)
        return int(firsts[-1])

    def factorise(self) -> tuple[Array, TiledMatrix]:
        """Ritz values of the matrix and their vectors, after a fixed number of rounds."""
        count = num_columns(min(self.encoder.dimensions, self.kept.num_nodes), self.kept.num_nodes)
        layout = TileLayout(self.kept.bounds, count, min(self.width, count))
        before = TiledMatrix.within(layout, self.work / "round-0" / "vectors")
        shared = {"matrix": before, "seed": self.seed}
        self._map("draw", draw_task, layout.chunks, shared, key="chunk")
        values: Array = np.zeros(count)
        for number in range(1, ROUNDS + 1):
            values, before = self._round(number, layout, before)
        return values, before

    def _round(
        self, number: int, layout: TileLayout, before: TiledMatrix
    ) -> tuple[Array, TiledMatrix]:
        folder = self.work / f"round-{number}"
        product, image, after = (
            TiledMatrix.within(layout, folder / name) for name in ("product", "image", "vectors")
        )
        tiles = {"before": before, "product": product, "image": image}
        shared: dict[str, Any] = {"matrix": self.work / "matrix", **tiles}
        self._map(f"multiply-{number}", multiply_task, layout.blocks, shared, key="block")
        sums = [folder / "sums" / f"chunk-{chunk:05d}.npy" for chunk in layout.chunks]
        shared = {"columns": product, "image": image, "first": 0}
        self._map(
            f"gram-{number}", gram_task, layout.chunks, shared, key="chunk", each={"out": sums}
        )
        rotation, found = folder / "rotation.npy", folder / "values.npy"
        if not rotation.exists():  # once: tasks of a resumed run must use the same
            overlaps, images = sum(np.load(file) for file in sums)
            values, turn = find_rotation(overlaps, images)
            write_array(found, values)
            write_array(rotation, turn)
        shared = {"columns": product, "rotated": after, "rotation": rotation, "first": 0}
        shared["kind"] = "float32"
        self._map(f"rotate-{number}", rotate_task, layout.chunks, shared, key="chunk")
        for name in ("product", "image"):
            remove(folder / name)
        remove(self.work / f"round-{number - 1}" / "vectors")
        values = np.load(found)
        return values, after

    def place(self, vectors: TiledMatrix, values: Array, chosen: npt.NDArray[np.int64]) -> None:
        """Write the positions."""
        if self.encoder.propagate:
            smooth = replace(vectors, folders=(self.work / "smooth",) * len(vectors.folders))
            shared: dict[str, Any] = {"graph": self.kept.graph, "before": vectors, "after": smooth}
            blocks = vectors.layout.blocks
            self._map("propagate", propagate_task, blocks, shared, key="block")
            vectors = smooth
        file, dimensions = self.steps.request.file, self.encoder.dimensions
        create_array(file, (self.kept.num_nodes, dimensions), np.float32)
        shared = {
            "kept": self.kept,
            "table": vectors,
            "columns": tuple(chosen.tolist()),
            "factors": tuple(np.sqrt(np.abs(values[chosen])).tolist()),
            "rows": self.encoder.rows,
            "dimensions": dimensions,
            "out": file,
        }
        self._map("place", place_task, vectors.layout.chunks, shared, key="chunk")

    def _map(
        self,
        name: str,
        task: Callable[..., Result],
        numbers: range,
        shared: dict[str, Any],
        *,
        key: str = "number",
        each: dict[str, list[Any]] | None = None,
    ) -> list[Result]:
        """Run a task for every number; ``each`` holds arguments that differ."""
        shards = [
            Shard(
                f"{name}-{number:05d}",
                {**shared, key: number, **{k: v[number] for k, v in (each or {}).items()}},
            )
            for number in numbers
        ]
        return self.steps.map(name, task, shards)
