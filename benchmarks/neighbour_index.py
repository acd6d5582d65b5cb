"""Nearest-neighbour indexes in fewer bytes and in shards, against exact search.

    python benchmarks/neighbour_index.py

Vectors in clusters, coordinates of decreasing size as in an encoding, all of them small as in a
large graph. Every index is built by one thread and searched by one. Recall is the share of the
exact nearest that are found; bytes are those of the files. The last line is the bytes of float32
over those of float16.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

from peg_core.inference.neighbour_index import IndexShard, NeighbourIndex
from peg_core.inference.vector_code import IndexDtype, VectorCode

STEP = 65_536
CASES: list[tuple[IndexDtype, int]] = [
    ("float32", 1), ("float16", 1), ("int8", 1), ("float32", 4), ("float16", 4),
]  # fmt: skip


class Measured(NamedTuple):
    build: float
    size: float
    search: float
    recall: float


def draw(rows: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    sizes = 1 / np.sqrt(1 + np.arange(width))
    centres = rng.normal(size=(rows // 200, width))
    own = rng.integers(len(centres), size=rows)
    vectors = (centres[own] + 0.5 * rng.normal(size=(rows, width))) * sizes
    return (1e-5 * vectors).astype(np.float32)


def nearest(vectors: np.ndarray, queries: np.ndarray, count: int) -> np.ndarray:
    """The exact answer, [num_queries, count]."""
    wide = vectors.astype(np.float64)
    found = [
        np.argpartition(((wide - wide[query]) ** 2).sum(axis=1), count)[:count] for query in queries
    ]
    return np.array(found)


def measure(
    vectors: np.ndarray, dtype: IndexDtype, shards: int, queries: np.ndarray, exact: np.ndarray
) -> Measured:
    code = VectorCode.fit(vectors[::13], dtype=dtype, unit_rows=False)
    cuts = [len(vectors) * i // shards for i in range(shards + 1)]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, str(shard)) for shard in range(shards)]
        start = time.perf_counter()
        for file, (first, last) in zip(files, pairwise(cuts), strict=True):
            blocks = [vectors[i : min(i + STEP, last)] for i in range(first, last, STEP)]
            IndexShard.build(file, blocks, code, width=vectors.shape[1], first=first)
        build = time.perf_counter() - start
        index = NeighbourIndex([IndexShard(file, code) for file in files], vectors)
        start = time.perf_counter()
        found = index.search(queries, count=exact.shape[1])
        search = time.perf_counter() - start
        size = sum(file.stat().st_size for file in files) / len(vectors)
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found, exact, strict=True)]
    recall = float(np.mean(shared)) / exact.shape[1]
    return Measured(len(vectors) / build, size, len(queries) / search, recall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--count", type=int, default=50)
    options = parser.parse_args()
    numba.set_num_threads(1)
    vectors = draw(options.rows, options.width)
    queries = np.random.default_rng(1).choice(options.rows, options.queries, replace=False)
    exact = nearest(vectors, queries, options.count)
    print(f"{options.rows:,} x {options.width}, load {os.getloadavg()[0]:.1f} of {os.cpu_count()}")
    print(f"{'dtype':>8} {'shards':>6} {f'recall@{options.count}':>10} {'bytes/row':>9} "
          f"{'build rows/s':>12} {'queries/s':>9}")  # fmt: skip
    sizes = {}
    for dtype, shards in CASES:
        seen = measure(vectors, dtype, shards, queries, exact)
        sizes.setdefault(dtype, seen.size)
        print(f"{dtype:>8} {shards:>6} {seen.recall:>10.4f} {seen.size:>9.0f} "
              f"{seen.build:>12,.0f} {seen.search:>9,.0f}")  # fmt: skip
    print(f"ratio: {sizes['float32'] / sizes['float16']:.2f}")


if __name__ == "__main__":
    main()
