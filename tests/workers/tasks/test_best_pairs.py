"""The best of the scored pairs."""

from __future__ import annotations

import polars as pl

from workers.tasks.explaining.best_pairs import best_pairs


def test_the_best_pairs_are_different_and_in_order(tmp_path):
    parts = [
        {"u": ["a", "b", "c"], "v": ["x", "x", "y"], "score": [0.5, None, 0.9]},
        {"u": ["c", "a", "d"], "v": ["y", "z", "w"], "score": [0.9, 0.5, 0.1]},
    ]
    files = [tmp_path / f"part-{number}.parquet" for number in range(2)]
    for part, file in zip(parts, files, strict=True):
        pl.DataFrame(part).write_parquet(file)
    found = best_pairs(files, ("u", "v"), "score", 3).to_pydict()
    assert found == {"u": ["c", "a", "a"], "v": ["y", "z", "x"], "score": [0.9, 0.5, 0.5]}
