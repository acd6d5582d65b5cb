"""Links that supervise against the other partners that their nodes might have had."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from peg_core.random_streams import random_stream
from peg_core.splits.partners import Partners
from peg_core.training.link_schedule import IntArray, LinkSchedule, Supervision

# Similarities of a step, [num_anchors, num_partners]: 64 MB, and a few times that for gradients.
MOST_SIMILARITIES = 2**24


class PartnerSchedule(LinkSchedule):
    """Steps without non-links: every link is held against all partners, or a sample of them.

    Args:
        most_partners: How many partners a step may hold its links against; None: as many as
            :data:`MOST_SIMILARITIES` allows. All are taken where there are no more.
    """

    def __init__(self, *args: Any, most_partners: int | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.partners, self.most_partners = Partners.of(self.graph), most_partners

    def supervision(self, number: int, fold: int, links: IntArray) -> Supervision:
        """This process's share of the links from anchor to partner, and partners for all of them.

        Processes draw the same partners.
        """
        mine = links[self.share.rank :: self.share.world_size]
        source, target = self.partners.anchored(self.source[mine], self.target[mine])
        count, possible = self._num_partners(len(links)), self.partners.count
        if count == possible:
            partners = self.partners.nodes()
        else:
            rng = random_stream(seed=self.seed, purpose="training partners", shard=number)
            partners = self.partners.first + rng.choice(possible, count, replace=False)
        step = Supervision(number, fold, source, target, len(source))
        return replace(step, partners=partners.astype(np.int64), possible_partners=possible)

    def _num_partners(self, links: int) -> int:
        anchors = min(self.partners.num_anchors, links * (1 + self.partners.both_ways))
        most = max(1, MOST_SIMILARITIES // max(1, anchors))
        if self.most_partners is not None:
            most = min(most, self.most_partners)
        return min(most, self.partners.count)
