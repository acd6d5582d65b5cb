"""Users, and the items they like: two kinds of node with ids that overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peg_core.errors import ConfigError
from peg_core.generators.distinct_pairs import check_count, check_rows, draw_distinct
from peg_core.generators.edge_generator import EdgeChunk, check_seed, check_share
from peg_core.generators.ranked_groups import RankedGroups, check_skew
from peg_core.kernels.generator_kernels import Int64Array
from peg_core.random_streams import random_stream
from peg_core.scramble import Scramble

# How unevenly users are active; items have a setting.
USER_SKEW = 0.4
# Logarithm of the number of plays: mean of items of another taste, what a user's own adds, spread.
LOG_PLAYS, OWN_TASTE, LOG_SPREAD = 0.7, 1.2, 1.1


@dataclass(frozen=True)
class TasteGraph:
    """Users and items in communities of taste; a few items are known to everybody.

    Users are 0 .. users - 1 and items 0 .. items - 1: the same number is a user and an item.
    No pair is drawn twice.

    Args:
        users: Number of users; not every one has to get an edge.
        items: Number of items; not every one has to get an edge.
        edges: Different pairs of a user and an item.
        tastes: Communities; each has as many users, and as many items, as the others.
        inside_share: Share of the draws with an item of the user's taste; others are of any.
        popularity_skew: The r-th item of a taste is drawn in proportion to ``r ** -skew``.
    """

    users: int
    items: int
    edges: int
    tastes: int = 20
    inside_share: float = 0.8
    popularity_skew: float = 0.8

    def check(self) -> None:
        """Raise a ConfigError when the parameters describe no graph."""
        check_count("users", self.users, least=2)
        check_count("items", self.items, least=2)
        check_count("tastes", self.tastes, least=1, most=min(self.users, self.items) // 2)
        check_share("inside_share", self.inside_share)
        check_skew("popularity_skew", self.popularity_skew)
        check_rows(rows=self.edges, pairs=self.users * self.items, what="edges")

    def user_tastes(self, *, seed: int) -> Int64Array:
        """The taste of every user, [users]."""
        return self._tastes(self.users, "users", seed)

    def item_tastes(self, *, seed: int) -> Int64Array:
        """The taste of every item, [items]."""
        return self._tastes(self.items, "items", seed)

    def likes(self, *, seed: int) -> EdgeChunk:
        """A user and an item each, [edges]."""
        self.check()
        check_seed(seed)
        return self._distinct(self.edges, self._items, seed=seed, purpose="likes", what="edges")

    def plays(self, likes: EdgeChunk, *, seed: int) -> Int64Array:
        """How often a user played an item, at least 1, more often of the own taste, [rows]."""
        own = self.user_tastes(seed=seed)[likes.source] == self.item_tastes(seed=seed)[likes.target]
        stream = random_stream(seed=seed, purpose="plays")
        logarithm = LOG_PLAYS + OWN_TASTE * own + LOG_SPREAD * stream.standard_normal(len(own))
        return 1 + np.exp(logarithm).astype(np.int64)

    def friendships(self, *, rows: int, seed: int) -> EdgeChunk:
        """Two users each, mostly of one taste, each two of them once, [rows]."""
        self.check()
        self.check_friendships(rows)
        pairs = self._distinct(rows, self._users, seed=seed, purpose="friends", what="friendships")
        turned = random_stream(seed=seed, purpose="turned friends").random(rows) < 0.5
        return EdgeChunk(
            np.where(turned, pairs.target, pairs.source),
            np.where(turned, pairs.source, pairs.target),
        )

    def candidates(self, *, rows: int, seed: int) -> EdgeChunk:
        """Different random pairs of a user and an item, some of them edges, [rows]."""
        self.check()
        self.check_candidates(rows)
        scramble = Scramble.of(self.users * self.items, seed=seed, purpose="user item candidates")
        return EdgeChunk(*np.divmod(scramble.apply(np.arange(rows)), self.items))

    def check_friendships(self, rows: int) -> None:
        """Raise a ConfigError when there are not as many."""
        check_rows(rows=rows, pairs=self.users * (self.users - 1) // 2, what="friendships")

    def check_candidates(self, rows: int) -> None:
        """Raise a ConfigError when there are not as many."""
        pairs = self.users * self.items
        if not 1 <= rows <= pairs:
            raise ConfigError(
                f"{rows:,} candidates were asked for, {self.users:,} users and {self.items:,} "
                f"items form 1 to {pairs:,} pairs; change the number of candidates"
            )

    @property
    def _users(self) -> RankedGroups:
        return RankedGroups(self.users, self.tastes, USER_SKEW)

    @property
    def _items(self) -> RankedGroups:
        return RankedGroups(self.items, self.tastes, self.popularity_skew)

    def _distinct(
        self, rows: int, targets: RankedGroups, *, seed: int, purpose: str, what: str
    ) -> EdgeChunk:
        """A user and one of ``targets``; of two users the smaller stands first."""
        both_users = purpose == "friends"
        source_ids = self._scramble(self.users, "users", seed)
        target_ids = source_ids if both_users else self._scramble(self.items, "items", seed)

        def draw(turn: int, count: int) -> EdgeChunk:
            stream = random_stream(seed=seed, purpose=purpose, shard=turn)
            own = stream.integers(0, self.tastes, count)
            inside = stream.random(count) < self.inside_share
            other = np.where(inside, own, stream.integers(0, self.tastes, count))
            source = source_ids.apply(self._users.draw(own, stream.random(count)))
            target = target_ids.apply(targets.draw(other, stream.random(count)))
            if not both_users:
                return EdgeChunk(source, target)
            apart = source != target
            first, second = np.minimum(source, target), np.maximum(source, target)
            return EdgeChunk(first[apart], second[apart])

        return draw_distinct(draw, rows=rows, targets=targets.members, what=what)

    def _tastes(self, members: int, kind: str, seed: int) -> Int64Array:
        indices = np.arange(members)
        tastes = np.empty(members, np.int64)
        tastes[self._scramble(members, kind, seed).apply(indices)] = indices % self.tastes
        return tastes

    def _scramble(self, members: int, kind: str, seed: int) -> Scramble:
        return Scramble.of(members, seed=seed, purpose=f"ids of {kind}")
