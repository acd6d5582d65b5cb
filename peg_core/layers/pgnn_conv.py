"""The P-GNN layer."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from peg_core.layers.message_graph import MessageGraph


class PGNNConv(nn.Module):
    r"""Messages from the nearest member of every anchor set, weighed by how close it is.

    From `Position-aware Graph Neural Networks <https://arxiv.org/abs/1906.04817>`_, as its authors'
    code computes it:

    .. math::
        m_{vi} = \mathrm{ReLU}\big(W_1\, s(v, u_{vi})\, x_{u_{vi}} + W_2 x_v + b\big), \qquad
        s(v, u) = \frac{1}{1 + d(v, u)}, \qquad
        x'_v = \frac{1}{k} \sum_i m_{vi} \quad \text{or} \quad x'_{vi} = w^\top m_{vi} + c

    with :math:`u_{vi}` the member of set i that is nearest to v. Means over the sets go on to the
    next layer; the last one gives a number for every set.

    Args:
        in_channels: Width of the input features.
        out_channels: Width of a message.
        last: Whether the output has a number for every set.
    """

    reads_reverse: ClassVar[bool] = False

    def __init__(self, in_channels: int, out_channels: int, *, last: bool = False) -> None:
        super().__init__()
        self.anchor = nn.Linear(in_channels, out_channels, bias=False)
        self.own = nn.Linear(in_channels, out_channels)
        self.position = nn.Linear(out_channels, 1) if last else None

    def pass_messages(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        """[num_targets, out_channels], or [num_targets, num_sets] of the last layer.

        Args:
            sources: [num_sources, in_channels].
            targets: [num_targets, in_channels].
            messages: As :func:`peg_core.layers.anchor_messages.anchor_messages` makes them, the
                same number for every target.
        """
        shape = (messages.num_targets, len(messages.sources) // messages.num_targets)
        sent = self.anchor(sources)[messages.sources.long()].view(*shape, -1)
        close = messages.weights.view(*shape, 1) * sent
        met = (close + self.own(targets).unsqueeze(1)).relu()  # [num_targets, num_sets, out]
        out: Tensor = met.mean(dim=1) if self.position is None else self.position(met).squeeze(-1)
        return out
