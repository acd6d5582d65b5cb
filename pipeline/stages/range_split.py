"""The split of a large graph step by step; memory is bounded at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from peg_core.errors import PegError
from peg_core.graph.graph_outline import GraphOutline
from peg_core.splits.edge_split import hash_bounds, last_ranks
from peg_core.splits.entry_chunk import entry_ranges
from peg_core.splits.leak_check import require_none
from peg_core.splits.order_statistic import DigitSearch, Key
from peg_core.splits.split_store import require_folds
from peg_core.storage.stored_path import remove
from workers.shard import Shard
from workers.task_map import Result
from workers.tasks.split import PARTS, count_left_out, require_enough
from workers.tasks.split_folds import deal_task, fold_task, mirror_task, train_task
from workers.tasks.split_ranges import (
    RangeRequest,
    collect_task,
    count_task,
    finish_task,
    leak_task,
    mark_task,
    narrow_task,
    pick_task,
    prepare_task,
)

# Pieces of a table of pairs that a task looks at.
ROW_GROUPS_PER_TASK = 8


class RunMap(Protocol):
    """Runs a task for every shard; finished ones leave their marks under the name of the step."""

    def __call__(
        self, task: Callable[..., Result], shards: Sequence[Shard], step: str
    ) -> list[Result]: ...


@dataclass(frozen=True)
class RangeSplit:
    """One split by ranges of entries.

    Args:
        request: How to split.
        map: How tasks are run.
        entries: Of a range.
    """

    request: RangeRequest
    map: RunMap
    entries: int

    def run(self) -> dict[str, int]:
        """Write the split; returns the counts for the manifest."""
        split, store = self.request.split, self.request.split.out.open()
        size = split.graph.at(GraphOutline).open()
        spans = entry_ranges(2 * size.num_edges, self.entries)
        (prepared,) = self.map(prepare_task, [self._shard("prepare")], "prepare")
        last = None
        if split.by != "files":
            last = self._find_last(prepared["pairs"], spans)
            store.create_parts(2 * size.num_edges)
        marked = self.map(mark_task, self._ranges(spans, last=last), "mark")
        totals = {name: sum(done[name] for done in marked) for name in ("train", *PARTS)}
        require_enough(totals["train"], prepared["pairs"])
        require_folds(split.folds, totals["train"])
        entries = [done["train_entries"] for done in marked]
        store.create_train(size.num_nodes, sum(entries), prepared["columns"])
        newest = max((done["newest"] for done in marked if "newest" in done), default=None)
        self._train(spans, entries, totals["train"], newest)
        pairs = self._finish(len(spans), totals)
        leaks = self._count_leaks(pairs["row_groups"], totals)
        counts = {"train_links": sum(done["train_links"] for done in marked)}
        for name in PARTS:
            counts[f"{name}_links"] = totals[name]
            counts[f"{name}_negatives"] = pairs["negatives"][name]
        counts |= count_left_out(prepared["links"], counts) | pairs["known"]
        return {**counts, **{f"{name}_leaks": count for name, count in leaks.items()}}

    def _find_last(self, pairs: int, spans: list[slice]) -> dict[int, Key]:
        """The keys of the last linked pair to test and to validate, digit by digit."""
        split = self.request.split
        words = 2 if split.by == "time" else 1
        shares = {"valid": split.valid, "test": split.test, "leave_out": split.leave_out}
        ranks = last_ranks(pairs, **shares)
        found = {part: DigitSearch(rank, words) for part, rank in ranks.items()}
        turn = 0
        while wide := [part for part, search in found.items() if not search.is_narrow]:
            shared: dict[str, Any] = {"turn": turn, "searches": [found[part] for part in wide]}
            self.map(count_task, self._ranges(spans, **shared), f"count-{turn}")
            shards = [self._shard("narrow", ranges=len(spans), **shared)]
            (narrowed,) = self.map(narrow_task, shards, f"narrow-{turn}")
            for part, (rank, digits, left) in zip(wide, narrowed["searches"], strict=True):
                found[part] = DigitSearch(rank, words, tuple(digits), left)
            turn += 1
        searches = list(found.values())
        self.map(collect_task, self._ranges(spans, searches=searches), "collect")
        shards = [self._shard("pick", ranges=len(spans), searches=searches)]
        (picked,) = self.map(pick_task, shards, "pick")
        return {part: tuple(key) for part, key in zip(found, picked["keys"], strict=True)}

    def _train(
        self, spans: list[slice], entries: list[int], num_links: int, newest: int | None
    ) -> None:
        """Write the training graph, and deal out its folds.

        Args:
            spans: Ranges of all entries.
            entries: How many of each are in the training graph.
            num_links: Linked pairs of the training graph.
            newest: When the newest training edge came, where weights fade.
        """
        folds, work = self.request.split.folds, self.request.work.open()
        bounds = hash_bounds(num_links) if folds > 1 else []
        cuts = np.cumsum([0, *entries]).tolist()
        each = [{"first": first} for first in cuts[:-1]]
        trained = self.map(
            train_task, self._ranges(spans, each, bounds=bounds, newest=newest), "train"
        )
        counts = np.array([done["counts"] for done in trained], dtype=np.int64)  # [ranges, bounds]
        ranks = np.cumsum([0, *counts.sum(axis=0).tolist()]).tolist()
        shards = [
            self._shard(f"hashes-{number:05}", number=number, rank=ranks[number], rows=rows)
            for number, rows in enumerate(_rows(counts).swapaxes(0, 1).tolist())
        ]
        self.map(deal_task, shards, "deal")
        remove(work.hashes)
        work.create_upper_folds(sum(entries))
        own = [slice(first, last) for first, last in pairwise(cuts)]
        each = [{"rows": rows} for rows in _rows(counts.T).swapaxes(0, 1).tolist()]
        self.map(fold_task, self._ranges(own, each, bounds=bounds), "folds")
        shards = [self._shard(f"range-{n:05}", span=span) for n, span in enumerate(own)]
        self.map(mirror_task, shards, "mirror")

    def _finish(self, ranges: int, totals: dict[str, int]) -> Any:
        """Join the links, and beside it write the tables of pairs; returns what is in these."""
        shared = {"ranges": ranges, "totals": totals}
        shards = [self._shard(what, what=what, **shared) for what in ("pairs", "links")]
        return self.map(finish_task, shards, "finish")[0]

    def _count_leaks(self, row_groups: dict[str, int], totals: dict[str, int]) -> dict[str, int]:
        """Show that no held-out link of the tables stands in the training graph."""
        shards = [
            self._shard(f"{part}-{first:05}", part=part, row_groups=groups)
            for part, count in row_groups.items()
            for first in range(0, count, ROW_GROUPS_PER_TASK)
            for groups in [list(range(count))[first : first + ROW_GROUPS_PER_TASK]]
        ]
        found = self.map(leak_task, shards, "leaks")
        counts = dict.fromkeys(PARTS, 0)
        seen = dict.fromkeys(PARTS, 0)
        for shard, done in zip(shards, found, strict=True):
            counts[shard.arguments["part"]] += done["leaks"]
            seen[shard.arguments["part"]] += done["links"]
        for part in PARTS:
            if seen[part] != totals[part]:
                raise PegError(
                    f"{seen[part]:,} of {totals[part]:,} {part} links were compared with the "
                    "training graph, all have to be: run again with `--force split`"
                )
        require_none(counts, found_in="the training graph")
        return counts

    def _shard(self, name: str, **arguments: Any) -> Shard:
        return Shard(name, {"request": self.request, **arguments})

    def _ranges(
        self,
        spans: Sequence[slice],
        each: Sequence[dict[str, Any]] | None = None,
        **shared: Any,
    ) -> list[Shard]:
        """A shard for every range; ``each`` holds arguments that differ."""
        own = each or [{} for _ in spans]
        return [
            self._shard(f"range-{number:05}", number=number, span=span, **arguments, **shared)
            for number, (span, arguments) in enumerate(zip(spans, own, strict=True))
        ]


def _rows(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where the rows begin and end that each file has for others, [files, others, 2].

    Args:
        counts: How many rows it has for each, [files, others].
    """
    ends = np.cumsum(counts, axis=1)
    return np.stack([ends - counts, ends], axis=2)
