"""A training step with memory kept between steps, against the same step without.

    python benchmarks/heap.py

The step is the head ``mlp`` on a batch of pairs, forward and backward, in one thread: the
largest arrays of a training. Milliseconds, the best of several repeats; the last line is the
time without over the time with the memory kept, for the largest batch.
"""

from __future__ import annotations

import argparse
import time

import torch

from peg_core.kernels.pair_structure import NUM_STRUCTURAL
from peg_core.models.heads import MLPHead
from workers.process_memory.heap import freed_memory_kept


def milliseconds(pairs: int, hidden: int, repeats: int) -> float:
    """Gather both ends, apply the head, and go back."""
    torch.manual_seed(0)
    head = MLPHead(hidden, 1, dropout=0.2, width=64)
    embeddings = torch.randn(5_000, hidden, requires_grad=True)
    ends = torch.randint(5_000, (2, pairs))
    geometry, structure = torch.randn(pairs, 3), torch.zeros(pairs, NUM_STRUCTURAL)
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        first, second = (embeddings.index_select(0, end) for end in ends)
        head(first, second, geometry, structure).square().mean().backward()
        times.append(1000 * (time.perf_counter() - start))
    return min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", default="4096,16384,65536")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'pairs':>10} {'without ms':>12} {'kept ms':>10} {'ratio':>8}")
    for pairs in (int(text) for text in options.pairs.split(",")):
        without = milliseconds(pairs, options.hidden, options.repeats)
        with freed_memory_kept():
            kept = milliseconds(pairs, options.hidden, options.repeats)
        print(f"{pairs:>10,} {without:>12.1f} {kept:>10.1f} {without / kept:>8.2f}")
    print(f"ratio: {without / kept:.2f}")


if __name__ == "__main__":
    main()
