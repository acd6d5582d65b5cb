"""Small random graphs in the layout of the real ones, for where those are not at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from peg_core.atomic_file import atomic_path
from peg_core.generators.random_graphs import StochasticBlockModel
from peg_core.generators.synthetic_tables import community_features, sample_candidates
from peg_core.random_streams import random_stream

NODES, ROWS, BLOCKS, FEATURES = 240, 1800, 8, 24
# Folders with an official split of a graph are called like the graph and this.
OFFICIAL = "-heart"
SHARES = {"valid": 0.05, "test": 0.10}
NEGATIVES_PER_LINK = 20

Pairs = npt.NDArray[np.int64]


def write_stand_in(folder: Path) -> None:
    """Write edges, nodes, an official split and its non-links; nothing where they are there.

    Graphs of different names are different; what is written depends on the name alone.
    """
    if (folder / "edges.parquet").exists():
        return
    name = folder.name.removesuffix(OFFICIAL)
    seed = int(random_stream(seed=0, purpose=f"stand-in {name}").integers(2**31))
    model = StochasticBlockModel(nodes=NODES, edges=ROWS, blocks=BLOCKS)
    chunks = [np.stack([chunk.source, chunk.target], axis=1) for chunk in model.chunks(seed=seed)]
    edges = np.unique(np.sort(np.concatenate(chunks), axis=1), axis=0).astype(np.int64)
    tables = {"nodes": _nodes(model.communities(seed=seed), seed), **_split(edges, seed)}
    tables["edges"] = _pairs(edges)  # the last: with it the others are there
    folder.mkdir(parents=True, exist_ok=True)
    for table, content in tables.items():
        with atomic_path(folder / f"{table}.parquet") as temporary:
            content.write_parquet(temporary)


def _pairs(pairs: Pairs) -> pl.DataFrame:
    return pl.DataFrame({"src": pairs[:, 0], "dst": pairs[:, 1]})


def _nodes(communities: npt.NDArray[np.int32], seed: int) -> pl.DataFrame:
    """Features as a list of numbers, and as the indices of those above 0."""
    x = community_features(communities, dimensions=FEATURES, seed=seed)
    return pl.DataFrame(
        {
            "id": np.arange(NODES),
            "x": pl.Series(x.tolist(), dtype=pl.List(pl.Float32)),
            "x_indices": pl.Series(
                [np.flatnonzero(row > 0).tolist() for row in x], dtype=pl.List(pl.Int32)
            ),
        }
    )


def _split(edges: Pairs, seed: int) -> dict[str, pl.DataFrame]:
    """Links of every part, as many non-links, and a list of them for every link."""
    shuffled = random_stream(seed=seed, purpose="stand-in split").permutation(edges)
    known = set(map(tuple, edges.tolist()))
    drawn = sample_candidates(nodes=NODES, rows=NODES * (NODES - 1) // 2, seed=seed)
    pairs = np.sort(np.stack([drawn.source, drawn.target], axis=1), axis=1)
    others = pairs[[tuple(pair) not in known for pair in pairs.tolist()]]
    tables: dict[str, Any] = {}
    start = 0
    for part, share in SHARES.items():
        count = round(share * len(edges))
        tables[part] = _pairs(shuffled[start : start + count])
        tables[f"{part}_neg"] = _pairs(others[start : start + count])
        listed = np.resize(others, (count * NEGATIVES_PER_LINK, 2))
        links = np.repeat(np.arange(count), NEGATIVES_PER_LINK)
        tables[f"{part}_heart"] = _pairs(listed).with_columns(link=pl.Series(links))
        start += count
    tables["train"] = _pairs(shuffled[start:])
    return tables
