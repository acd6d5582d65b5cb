"""Look up string ids: our mapped hash table beside a polars join and pyarrow's index_in.

    python benchmarks/id_lookup.py                    # 1M ids, 4M look-ups

Ours is opened from files and asked for a batch of 262,144 ids at a time, as scoring does. The
peers build their table in every call, so they get all look-ups in one. Each has one thread; what is
compared is CPU time, which other processes disturb less, the best of three.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported

import numba
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from peg_core.graph.ids.node_ids import NodeIds

BATCH = 262_144


def best_rate(rows: int, work: Callable[[], object]) -> float:
    """Look-ups per second of one core."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return rows / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ids", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=4_000_000)
    options = parser.parse_args()
    numba.set_num_threads(1)
    pa.set_cpu_count(1)
    ids = pa.array([f"user-{i * 7919 % 1_000_003:07}-{i:x}" for i in range(options.ids)])
    wanted = np.random.default_rng(0).integers(0, options.ids, size=options.rows)
    asked = ids.take(pa.array(wanted))

    with tempfile.TemporaryDirectory() as folder:
        NodeIds(ids).save(Path(folder))
        node_ids = NodeIds.open(folder)

        def ours() -> np.ndarray:
            starts = range(0, options.rows, BATCH)
            return np.concatenate([node_ids.lookup(asked.slice(s, BATCH)) for s in starts])

        known = pl.DataFrame({"id": pl.Series(ids), "index": np.arange(options.ids)})
        rows = pl.DataFrame({"id": pl.Series(asked)})

        def join() -> np.ndarray:
            return rows.join(known, on="id", how="left", maintain_order="left")["index"].to_numpy()

        def index_in() -> np.ndarray:
            return np.asarray(pc.index_in(asked, ids))

        rates = {}
        for name, work in (("ours", ours), ("polars join", join), ("pyarrow index_in", index_in)):
            assert np.array_equal(work(), wanted)
            rates[name] = best_rate(options.rows, work)
            print(f"{name:18} {rates[name] / 1e6:6.2f} M ids per second and core", flush=True)
    print(f"ratio: {rates.pop('ours') / max(rates.values()):.2f}")


if __name__ == "__main__":
    main()
