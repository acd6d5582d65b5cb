"""Non-links that a split is given in files, which may belong to links of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.splits.held_out_pairs import HeldOutPairs
from workers.tasks.given_pairs import Pairs, read_numbered_pairs, read_pairs

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GivenNegatives:
    """Non-links of one part.

    Args:
        pairs: Source and target, [num_pairs] each.
        link: [num_pairs] the link that each is ranked with, by its place among the links of the
            part; None where every link is ranked among all.
        known: How many of the pairs in the file are links of the graph.
    """

    pairs: Pairs
    link: Numbers | None = None
    known: int = 0

    def __len__(self) -> int:
        return len(self.pairs[0])

    def labelled(self, links: Pairs) -> HeldOutPairs:
        """The links of the part, then these."""
        label = np.repeat(np.array([1, 0], dtype=np.uint8), [len(links[0]), len(self)])
        source, target = (np.concatenate(ends) for ends in zip(links, self.pairs, strict=True))
        if self.link is None:
            return HeldOutPairs(source, target, label)
        own = np.arange(len(links[0]))
        return HeldOutPairs(source, target, label, np.concatenate([own, self.link]))


@dataclass(frozen=True)
class GivenFile:
    """A file of non-links.

    Args:
        location: A file, folder or glob.
        columns: Those of the two ends.
        ordered: Whether pairs stay as they are listed; else source < target.
        on_known: What is done with pairs that are links: keep, drop or error.
        link: Column with the number of a link's row among all rows of ``links``; None: none.
        links: Location of the links.
    """

    location: str
    columns: tuple[str, str]
    ordered: bool
    on_known: str
    link: str | None = None
    links: str | None = None

    def read(self, graph: GraphStore, ids: GraphIds, listed: Pairs) -> GivenNegatives:
        """The non-links, with known links among them treated as was asked for.

        Args:
            graph: With the links of all parts.
            ids: Of the graph.
            listed: The links of the part, in the order in which they are ranked.
        """
        if self.link is None or self.links is None:
            pairs = read_pairs(self.location, self.columns, ids, ordered=self.ordered)
            return self._settled(graph, GivenNegatives(pairs), 0)
        pairs, rows = read_numbered_pairs(
            self.location, self.columns, ids, number=self.link, ordered=self.ordered
        )
        named = read_pairs(self.links, self.columns, ids, ordered=self.ordered)
        count = len(named[0])
        if not (rows.min() >= 0 and rows.max() < count):
            raise InputError(
                f"column {self.link!r} of {self.location} holds {int(rows.min()):,} .. "
                f"{int(rows.max()):,}, needed are row numbers of {self.links}, 0 .. {count - 1:,}; "
                "`split.negatives_link` names the link that a non-link belongs to"
            )
        places = _places(named, listed, graph.num_nodes)[rows]
        return self._settled(graph, GivenNegatives(pairs, places), len(listed[0]))

    def _settled(
        self, graph: GraphStore, negatives: GivenNegatives, num_links: int
    ) -> GivenNegatives:
        """Count the known links, and keep them, leave them out or refuse them."""
        known = graph.contains_link(*negatives.pairs)
        count, total = int(known.sum()), len(known)
        if count and self.on_known == "error":
            what = (
                "edges" if graph.relations is None else f"links of {graph.relations.target.name!r}"
            )
            raise InputError(
                f"{count:,} of {total:,} negatives in {self.location} are {what} of the "
                "graph; remove them, or set `split.on_known_negatives` to drop or, where published "
                "figures count them as non-links, to keep"
            )
        kept = ~known if self.on_known == "drop" else np.ones(total, dtype=bool)
        source, target = (end[kept] for end in negatives.pairs)
        link = None if negatives.link is None else negatives.link[kept]
        if link is not None and (bare := num_links - len(np.unique(link))):
            # it would rank first whatever it scores
            raise InputError(
                f"{bare:,} of {num_links:,} links have no non-link of their own in "
                f"{self.location}; give each at least one, or leave `split.negatives_link` out "
                "to rank all links among all"
            )
        return GivenNegatives((source, target), link, count)


def count_known(negatives: dict[str, GivenNegatives]) -> dict[str, int]:
    """Given non-links that are links, by part; nothing where there are none."""
    return {f"{name}_known_negatives": one.known for name, one in negatives.items() if one.known}


def _places(named: Pairs, listed: Pairs, num_nodes: int) -> Numbers:
    """Where the links of a file stand among those of the part, which has them all."""
    keys = listed[0] * num_nodes + listed[1]
    order = np.argsort(keys)
    places: Numbers = order[np.searchsorted(keys[order], named[0] * num_nodes + named[1])]
    return places
