"""GAE, the graph auto-encoder."""

from __future__ import annotations

from peg_core.models.baselines.gcn import GCN


class GAE(GCN):
    r"""A GCN that encodes, and an inner product that decodes; not the variational one.

    `Variational Graph Auto-Encoders <https://arxiv.org/abs/1611.07308>`_:

    .. math::
        Z = \mathrm{GCN}(X, A), \qquad p(A_{uv} = 1) = \sigma(a\, z_u^\top z_v + b)

    The paper has :math:`a = 1, b = 0`, which is `head: dot`.
    """
