"""Edges per second of ``peg generate``, from nothing to a Parquet file.

    .venv/bin/python benchmarks/generate.py

The peer draws the same kinds of graphs the plain way: whole columns with vectorised numpy,
self-loops drawn again, then one call of pyarrow with the same compression. Both write
integer ids, zstd level 1, no dictionary. The best of three repeats counts; ours runs once
before, to compile. The last line is the geometric mean of our rate over the peer's.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from pipeline.cli.generate_command import generate

Int64Array = npt.NDArray[np.int64]
Columns = tuple[Int64Array, Int64Array]
KINDS = ("sbm", "dcsbm", "rmat", "grid")


def redraw_loops(source: Int64Array, draw: Callable[[Int64Array], Int64Array]) -> Int64Array:
    """Targets by ``draw(rows)``, drawn again where they equal the source."""
    target = draw(np.arange(len(source)))
    while len(loops := np.flatnonzero(source == target)):
        target[loops] = draw(loops)
    return target


def peer_blocks(nodes: int, edges: int, blocks: int, exponent: float | None) -> Columns:
    """Block model with uniform (no exponent) or power-law expected degrees."""
    stream = np.random.default_rng(0)
    decay = 0.0 if exponent is None else 1 / (exponent - 1)
    size = nodes // blocks
    cumulated = np.cumsum(np.arange(1, size + 1) ** -decay)

    def member(block: Int64Array) -> Int64Array:
        if exponent is None:
            return block * size + stream.integers(0, size, len(block))
        return block * size + np.searchsorted(cumulated, stream.random(len(block)) * cumulated[-1])

    block = stream.integers(0, blocks, edges)
    elsewhere = (block + stream.integers(1, blocks, edges)) % blocks
    other = np.where(stream.random(edges) < 0.8, block, elsewhere)
    source = member(block)
    target = redraw_loops(source, lambda rows: member(other[rows]))
    names = stream.permutation(nodes)
    return names[source], names[target]


def peer_rmat(nodes: int, edges: int) -> Columns:
    """Graph500's reference in vectorised form, for the next power of two."""
    stream = np.random.default_rng(0)
    levels = math.ceil(math.log2(nodes))
    source, target = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    redo = np.arange(edges)
    while len(redo):
        source[redo] = target[redo] = 0
        for _ in range(levels):
            uniform = stream.random(len(redo))
            high = uniform >= 0.76
            source[redo] = 2 * source[redo] + high
            target[redo] = 2 * target[redo] + np.where(high, uniform >= 0.95, uniform >= 0.57)
        redo = redo[(source[redo] == target[redo]) | (np.maximum(source, target)[redo] >= nodes)]
    names = stream.permutation(nodes)
    return names[source], names[target]


def peer_grid(nodes: int) -> Columns:
    """All edges of a square lattice."""
    side = math.isqrt(nodes)
    lattice = np.arange(side * side).reshape(side, side)
    source = np.concatenate([lattice[:, :-1].ravel(), lattice[:-1].ravel()])
    target = np.concatenate([lattice[:, 1:].ravel(), lattice[1:].ravel()])
    return source, target


def run_peer(kind: str, nodes: int, edges: int, path: Path) -> None:
    """Draw and write one graph the plain way."""
    draws: dict[str, Callable[[], Columns]] = {
        "sbm": lambda: peer_blocks(nodes, edges, blocks=10, exponent=None),
        "dcsbm": lambda: peer_blocks(nodes, edges, blocks=100, exponent=2.5),
        "rmat": lambda: peer_rmat(nodes, edges),
        "grid": lambda: peer_grid(edges // 2),
    }
    source, target = draws[kind]()
    table = pa.table({"src": source, "dst": target})
    pq.write_table(table, path, compression="zstd", compression_level=1, use_dictionary=False)


def run_ours(kind: str, nodes: int, edges: int, path: Path) -> None:
    """Draw and write one graph through the command."""
    size = ["--nodes", edges // 2] if kind == "grid" else ["--nodes", nodes, "--edges", edges]
    arguments = [kind, *size, "--out", path, "--overwrite"]
    CliRunner().invoke(generate, [str(word) for word in arguments], catch_exceptions=False)


def seconds_of(run: Callable[..., None], kind: str, nodes: int, edges: int, path: Path) -> float:
    start = time.perf_counter()
    run(kind, nodes, edges, path)
    return time.perf_counter() - start


def measure(kind: str, nodes: int, edges: int, repeats: int, path: Path) -> tuple[float, float]:
    """Edges per second of ours and of the peer, taking turns so that both meet the same load."""
    run_ours(kind, nodes, 1000, path)
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for run, found in zip((run_ours, run_peer), rates, strict=True):
            seconds = seconds_of(run, kind, nodes, edges, path)
            found.append(pq.read_metadata(path).num_rows / seconds)
    return max(rates[0]), max(rates[1])


@click.command()
@click.option("--nodes", default=1_000_000, show_default=True)
@click.option("--edges", default=5_000_000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(nodes: int, edges: int, repeats: int) -> None:
    """Measure every kind of graph, ours beside the peer."""
    ratios = []
    click.echo(f"{'kind':8}{'ours, edges/s':>16}{'numpy, edges/s':>18}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.parquet"
        for kind in KINDS:
            ours, peer = measure(kind, nodes, edges, repeats, path)
            ratios.append(ours / peer)
            click.echo(f"{kind:8}{ours:16,.0f}{peer:18,.0f}{ours / peer:8.2f}")
    click.echo(f"ratio: {math.prod(ratios) ** (1 / len(ratios)):.2f}")


if __name__ == "__main__":
    main()
