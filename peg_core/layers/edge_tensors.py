"""Messages from an ``edge_index`` and positions as tensors, as PyG's layers are called.

The same numbers as :meth:`MessageGraph.of_graph` to rounding, but gradients reach the
positions and the edge weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from peg_core.errors import PegError
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph

TensorPositions = Tensor | Sequence[Tensor]


def position_list(positions: TensorPositions, *, num_encodings: int) -> list[Tensor]:
    """One tensor or several as a list, [num_nodes, p] each."""
    found = [positions] if isinstance(positions, Tensor) else list(positions)
    if len(found) != num_encodings:
        raise PegError(
            f"positions are {len(found)} encodings, the layer reads {num_encodings}; "
            "pass one [num_nodes, p] tensor for each"
        )
    return found


def edge_columns(edge_attr: Tensor | None, *, edge_dim: int) -> Tensor | None:
    """What the gate reads beside the distances, [num_edges, edge_dim]; None for a layer without."""
    found = 0 if edge_attr is None else edge_attr.shape[-1]
    if found != edge_dim:
        raise PegError(
            f"edge_attr has {found} columns, the layer reads {edge_dim}; "
            "pass [num_edges, edge_dim], or make the layer with another `edge_dim`"
        )
    return edge_attr if edge_dim else None


def edge_messages(
    edge_index: Tensor,
    positions: Sequence[Tensor],
    rule: EdgeRule,
    edge_weight: Tensor | None,
    edge_attr: Tensor | None = None,
) -> MessageGraph:
    """The edges of a graph, ordered by target.

    Self-loops in ``edge_index`` are left out: a layer that wants them adds its own. An edge
    that is listed twice counts twice.

    Args:
        edge_index: [2, num_edges] (source, target); undirected edges in both directions.
        positions: [num_nodes, p] for every encoding.
        rule: How edges are weighed and measured.
        edge_weight: [num_edges], or None for 1.
        edge_attr: [num_edges, columns] that the gate reads beside the distances.
    """
    num_nodes = len(positions[0])
    kept = edge_index[0] != edge_index[1]
    order = torch.argsort(edge_index[1][kept], stable=True)
    source, target = edge_index[:, kept][:, order]
    if edge_weight is None:
        value = positions[0].new_ones(len(source))
    else:
        value = edge_weight[kept][order].to(positions[0].dtype)
    degrees = value.new_zeros(num_nodes).index_add(0, target, value)
    indptr = target.new_zeros(num_nodes + 1)
    indptr[1:] = torch.bincount(target, minlength=num_nodes).cumsum(0)
    weights, loop_weights = _weights(rule, value, degrees, source, target)
    measures = torch.stack([_measure(rule, z[source], z[target]) for z in positions], dim=-1)
    loops = torch.stack([_loop_measure(rule, z) for z in positions], dim=-1)
    if edge_attr is not None:
        measures = torch.cat([measures, edge_attr[kept][order].to(measures.dtype)], dim=-1)
        loops = torch.cat([loops, loops.new_zeros(num_nodes, edge_attr.shape[1])], dim=-1)
    return MessageGraph(indptr, source, weights, measures, loop_weights, loops, num_nodes)


def _weights(
    rule: EdgeRule, value: Tensor, degrees: Tensor, source: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    """Weights of the edges and of the self-loops."""
    if rule.normalisation == "mean":
        return value / degrees[target], torch.zeros_like(degrees)
    if rule.normalisation == "neighbours":
        roots = (degrees[target] * degrees[source]).sqrt()
        return value / roots, torch.zeros_like(degrees)
    product = (1 + degrees[target]) * (1 + degrees[source])
    return value / product.sqrt(), 1 / (1 + degrees)


def _measure(rule: EdgeRule, first: Tensor, second: Tensor) -> Tensor:
    if rule.measure == "inner":
        return (first * second).sum(-1)
    if rule.measure == "squared":
        return (first - second).square().sum(-1)
    # unlike a square root, its gradient is 0 where two nodes share a position
    length: Tensor = torch.linalg.vector_norm(first - second, dim=-1)
    return length


def _loop_measure(rule: EdgeRule, positions: Tensor) -> Tensor:
    if rule.measure == "inner":
        return positions.square().sum(-1)
    return positions.new_zeros(len(positions))
