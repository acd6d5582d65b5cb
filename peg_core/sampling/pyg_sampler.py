"""The two ways between our sampler and PyG: ours in its loaders, its own in our training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import stream_seed
from peg_core.sampling.neighbour_sampler import NOTHING, NeighbourSampler, SampledNeighbours


class LoaderSampler(BaseSampler):
    """Our kernel behind PyG's interface, for ``NodeLoader`` and ``LinkLoader``.

    Args:
        graph: The graph; an edge of PyG's output is (source, target) with the target the
            node whose neighbours were drawn.
        fan_outs: Neighbours per hop; -1 for all.
        seed: Of the draws, which go on from call to call.
    """

    def __init__(self, graph: GraphStore, fan_outs: Sequence[int], *, seed: int) -> None:
        self.graph, self.seed, self.calls = graph, seed, 0
        self._sampler = NeighbourSampler(graph, fan_outs)

    def sample_from_nodes(self, index: Any, **_: Any) -> SamplerOutput:
        return node_sample(index, self._sample)

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> SamplerOutput:
        return edge_sample(
            index, self._sample, self.graph.num_nodes, False, neg_sampling=neg_sampling
        )

    def _sample(self, seeds: Tensor, _seed_time: Tensor | None = None) -> SamplerOutput:
        number = stream_seed(seed=self.seed, purpose="neighbors", shard=self.calls)
        self.calls += 1
        found = self._sampler.sample(seeds.numpy(), seed=number)
        targets = np.repeat(np.arange(len(found.indptr) - 1), np.diff(found.indptr))
        return SamplerOutput(
            node=torch.from_numpy(found.nodes),
            row=torch.from_numpy(found.sources.astype(np.int64)),
            col=torch.from_numpy(targets),
            edge=torch.from_numpy(found.entries),
            num_sampled_nodes=np.diff(found.counts, prepend=0).tolist(),
            num_sampled_edges=_edges_per_hop(found),
        )


class PygNeighbourSampler(NeighbourSampler):
    """PyG's compiled kernel (pyg-lib or torch-sparse) in our training.

    Its random numbers are torch's own: samples are not repeated by ``seed`` where
    the package draws them elsewhere.
    """

    def __init__(self, graph: GraphStore, fan_outs: Sequence[int]) -> None:
        super().__init__(graph, fan_outs)
        self._kernel = _pyg_kernel()
        self._rows = torch.from_numpy(np.array(graph.indptr, dtype=np.int64))
        self._columns = torch.from_numpy(np.array(graph.indices, dtype=np.int64))

    def sample(
        self, seeds: npt.NDArray[np.int64], *, seed: int, excluded: npt.NDArray[np.int64] = NOTHING
    ) -> SampledNeighbours:
        torch.manual_seed(seed)
        row, col, nodes, entries = self._kernel(
            self._rows, self._columns, torch.from_numpy(seeds), self.fan_outs.tolist()
        )
        nodes, entries = nodes.numpy(), entries.numpy()
        sources, targets = row.numpy(), col.numpy()
        counts = _hops(len(seeds), sources, targets, len(self.fan_outs))
        if len(excluded):
            keys = nodes[targets] * self.graph.num_nodes + nodes[sources]
            kept = ~np.isin(keys, excluded)
        else:
            kept = np.ones(len(sources), dtype=np.bool_)
        drawn = np.bincount(targets, minlength=counts[-2])
        degrees = (
            self.graph.indptr[nodes[: counts[-2]] + 1] - self.graph.indptr[nodes[: counts[-2]]]
        )
        scale = np.divide(degrees, drawn, out=np.ones(counts[-2]), where=drawn > 0)
        order = np.argsort(targets[kept], kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(targets[kept], minlength=counts[-2]))])
        return SampledNeighbours(
            nodes,
            counts,
            indptr.astype(np.int64),
            sources[kept][order].astype(np.int32),
            entries[kept][order],
            scale.astype(np.float32),
        )


def _pyg_kernel() -> Any:
    if torch_geometric.typing.WITH_PYG_LIB:

        def sample(rows: Tensor, columns: Tensor, seeds: Tensor, fan_outs: list[int]) -> Any:
            found = torch.ops.pyg.neighbor_sample(rows, columns, seeds, fan_outs)
            return found[0], found[1], found[2], found[3]

        return sample
    if torch_geometric.typing.WITH_TORCH_SPARSE:

        def sample_sparse(rows: Tensor, columns: Tensor, seeds: Tensor, fan_outs: list[int]) -> Any:
            nodes, row, col, edges = torch.ops.torch_sparse.neighbor_sample(
                rows, columns, seeds, fan_outs, False, True
            )
            return row, col, nodes, edges

        return sample_sparse
    raise PegError(
        "`train.sampler: pyg` needs pyg-lib or torch-sparse, neither is installed; install one "
        "(README, Installation), or leave the setting at numba"
    )


def _hops(
    num_seeds: int, sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], hops: int
) -> tuple[int, ...]:
    """Nodes known after each hop: those before, and the largest row that they drew."""
    counts = [num_seeds]
    for _ in range(hops):
        drawn = sources[targets < counts[-1]]
        counts.append(max(counts[-1], int(drawn.max()) + 1 if len(drawn) else 0))
    return tuple(counts)


def _edges_per_hop(found: SampledNeighbours) -> list[int]:
    ends = found.indptr[np.array(found.counts[:-1])]
    return np.diff(ends, prepend=0).tolist()
