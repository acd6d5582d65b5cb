"""Papers that cite older papers: directed links with dates."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np

from peg_core.generators.distinct_pairs import check_count, check_rows, draw_distinct
from peg_core.generators.edge_generator import EdgeChunk, check_seed, check_share
from peg_core.generators.ranked_groups import check_skew
from peg_core.kernels.generator_kernels import Int64Array
from peg_core.random_streams import random_stream
from peg_core.scramble import Scramble

FIRST_DAY = datetime.date(2010, 1, 1)
DAYS = 3652  # ten years


@dataclass(frozen=True)
class CitationGraph:
    """Papers of ten years; each cites older ones of its topic, and popular ones.

    No paper cites one of the same day, and none cites a paper twice.

    Args:
        papers: Number of papers; not every one has to cite or to be cited.
        edges: Different pairs of a citing and a cited paper.
        topics: Number of topics; their sizes differ by at most one paper.
        inside_share: Share of the draws with a paper of the own topic; others are of any.
        popularity_skew: A share q of the papers is drawn more than ``q ** -skew`` times as often
            as the least popular one.
    """

    papers: int
    edges: int
    topics: int = 20
    inside_share: float = 0.8
    popularity_skew: float = 0.5

    def check(self) -> None:
        """Raise a ConfigError when the parameters describe no graph."""
        check_count("papers", self.papers, least=2)
        check_count("topics", self.topics, least=1, most=self.papers // 2)
        check_share("inside_share", self.inside_share)
        check_skew("popularity_skew", self.popularity_skew)
        check_rows(rows=self.edges, pairs=self._pairs, what="edges")

    def paper_topics(self, *, seed: int) -> Int64Array:
        """The topic of every paper, [papers]."""
        self.check()
        order = np.arange(self.papers)
        return self._by_id(order % self.topics, seed)

    def paper_days(self, *, seed: int) -> Int64Array:
        """The day of every paper, counted from 1970, [papers]."""
        self.check()
        return self._by_id(self._days(seed), seed)

    def citations(self, *, seed: int) -> EdgeChunk:
        """A citing and a cited paper each, [edges]."""
        self.check()
        check_seed(seed)
        older = self._older(seed)
        stream = random_stream(seed=seed, purpose="popularity of papers")
        # topic by topic, the oldest first
        numbers = np.lexsort((np.arange(self.papers), np.arange(self.papers) % self.topics))
        popularity = (1 - stream.random(self.papers)) ** -self.popularity_skew
        reach = np.concatenate([[0.0], np.cumsum(popularity[numbers])])
        sizes = self._count_of_topic(self.papers, np.arange(self.topics))
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])

        def draw(turn: int, count: int) -> EdgeChunk:
            stream = random_stream(seed=seed, purpose="citations", shard=turn)
            citing = stream.integers(0, self.papers, count)
            inside = stream.random(count) < self.inside_share
            topic = np.where(inside, citing % self.topics, stream.integers(0, self.topics, count))
            start = first[topic]
            end = start + self._count_of_topic(older[citing], topic)
            drawn = reach[start] + stream.random(count) * (reach[end] - reach[start])
            place = np.searchsorted(reach, drawn, side="right") - 1
            known = start < end  # a topic may be younger than the paper
            place = np.minimum(place, end - 1)[known]
            return EdgeChunk(citing[known], numbers[place])

        ids = self._ids(seed)
        pairs = draw_distinct(draw, rows=self.edges, targets=self.papers, what="edges")
        return EdgeChunk(ids.apply(pairs.source), ids.apply(pairs.target))

    def candidates(self, *, rows: int, seed: int) -> EdgeChunk:
        """Different random pairs of a paper and an older one, some of them edges, [rows]."""
        self.check()
        self.check_candidates(rows)
        older = self._older(seed)

        def draw(turn: int, count: int) -> EdgeChunk:
            stream = random_stream(seed=seed, purpose="citation candidates", shard=turn)
            citing = stream.integers(0, self.papers, count)
            citing = citing[older[citing] > 0]
            cited = (stream.random(len(citing)) * older[citing]).astype(np.int64)
            return EdgeChunk(citing, cited)

        ids = self._ids(seed)
        pairs = draw_distinct(draw, rows=rows, targets=self.papers, what="candidates")
        return EdgeChunk(ids.apply(pairs.source), ids.apply(pairs.target))

    def check_candidates(self, rows: int) -> None:
        """Raise a ConfigError when there are not as many."""
        check_rows(rows=rows, pairs=self._pairs, what="candidates")

    @property
    def _pairs(self) -> int:
        return self.papers * (self.papers - 1) // 2

    def _days(self, seed: int) -> Int64Array:
        """Days of the papers from the oldest to the newest."""
        start = (FIRST_DAY - datetime.date(1970, 1, 1)).days
        stream = random_stream(seed=seed, purpose="days of papers")
        return np.sort(start + stream.integers(0, DAYS, self.papers))

    def _older(self, seed: int) -> Int64Array:
        """How many papers are older than each, by a day at least, [papers]."""
        days = self._days(seed)
        return np.searchsorted(days, days, side="left")

    def _count_of_topic(self, papers: int | Int64Array, topic: Int64Array) -> Int64Array:
        """How many of the first ``papers`` papers are of the topic."""
        return (papers - topic + self.topics - 1) // self.topics

    def _by_id(self, values: Int64Array, seed: int) -> Int64Array:
        found = np.empty_like(values)
        found[self._ids(seed).apply(np.arange(self.papers))] = values
        return found

    def _ids(self, seed: int) -> Scramble:
        return Scramble.of(self.papers, seed=seed, purpose="ids of papers")
