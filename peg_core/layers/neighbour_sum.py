"""What the layers share: a weighted sum over neighbours."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from torch import Tensor
from torch._inductor.runtime.cache_dir_utils import default_cache_dir
from torch_geometric.nn import MessagePassing

from peg_core.layers.gated_sum import GatedSum, can_sum
from peg_core.layers.message_graph import MessageGraph

# PyG's import makes torch's folder for compiled code in the temporary folder, although nothing is
# compiled here, and tells all processes that are started from here to do the same. Torch makes it
# again where it needs it; a folder in use is not empty and stays.
if os.environ.get("TORCHINDUCTOR_CACHE_DIR") == default_cache_dir():
    del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    with suppress(OSError):
        Path(default_cache_dir()).rmdir()


class NeighbourSum(MessagePassing):
    """Message passing with one weight per edge: compiled on a CPU, PyG's own elsewhere.

    ``reads_reverse`` says whether the compiled gradients read the edges by their source.
    """

    reads_reverse: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def sum_neighbours(self, x: Tensor, coefficients: Tensor, messages: MessageGraph) -> Tensor:
        """``out[t] = sum_e c_e x[s_e]``, [num_targets, width].

        Args:
            x: [num_sources, width].
            coefficients: [num_edges].
            messages: The edges.
        """
        if can_sum(x):
            out: Tensor = GatedSum.apply(x, coefficients, messages)  # type: ignore[no-untyped-call]
            return out
        size = (messages.num_sources, messages.num_targets)
        summed: Tensor = self.propagate(
            messages.edge_index, x=(x, None), coefficients=coefficients, size=size
        )
        return summed

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        """Keep PyG's general ``propagate``.

        PyG would write a special one for every class to a file in the temporary folder, in every
        process, and leave it there.
        """
        del raise_on_error
        kind = type(self)
        kind._orig_propagate = kind._jinja_propagate = kind.propagate

    def message(self, x_j: Tensor, coefficients: Tensor) -> Tensor:
        return coefficients.unsqueeze(-1) * x_j
