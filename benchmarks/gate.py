"""The gate's compiled loops against the same four layers in torch.

    python benchmarks/gate.py

Weights of edges and the gradients of the gate's parameters, one thread each, milliseconds,
the best of several repeats. The last line is the geometric mean of torch's time over ours.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np
import torch
from torch import Tensor, nn

from peg_core.layers.gate import Gate


def milliseconds(gate: Callable[[Tensor], Tensor], measures: Tensor, repeats: int) -> float:
    """Forward and backward."""
    gradient = torch.ones(len(measures))
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        gate(measures).backward(gradient)
        times.append(1000 * (time.perf_counter() - start))
    return min(times[1:])  # the first one compiles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", default="10000,100000,1000000")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    print(f"{'edges':>10} {'encodings':>10} {'torch ms':>10} {'ours ms':>10} {'ratio':>8}")
    ratios = []
    for edges in (int(text) for text in options.edges.split(",")):
        for encodings in (1, 2):
            torch.manual_seed(0)
            gate, measures = Gate(encodings), torch.rand(edges, encodings)
            layers = nn.Sequential(*gate, nn.Flatten(0))
            theirs = milliseconds(layers, measures, options.repeats)
            ours = milliseconds(gate, measures, options.repeats)
            ratios.append(theirs / ours)
            print(f"{edges:>10,} {encodings:>10} {theirs:>10.2f} {ours:>10.2f} {ratios[-1]:>8.1f}")
    print(f"ratio: {np.exp(np.mean(np.log(ratios))):.1f}")


if __name__ == "__main__":
    main()
