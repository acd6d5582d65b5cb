"""Links set aside for validation and test; folds of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from peg_core.graph.graph_outline import GraphOutline
from peg_core.splits.split_store import SplitStore
from peg_core.splits.split_work import SplitWork
from peg_core.storage.stored_path import is_there, remove
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.range_split import RangeSplit
from workers.artifact_ref import ArtifactRef
from workers.shard import Shard
from workers.task_map import Result
from workers.tasks.split import SplitRequest, TieResult, split_task, tie_task
from workers.tasks.split_ranges import RangeRequest

# The shard whose marker holds the counts.
SPLIT = "split"
# Entries of a graph that one task looks at; a graph with no more of them is split by one. Fixed:
# how a graph is split does not depend on the cluster.
ENTRIES_PER_TASK = 2**24


def settings(config: PipelineConfig) -> dict[str, Any]:
    found: dict[str, Any] = {"split": config.split.dependencies(exclude={"windows"})}
    if config.negatives != "random":  # what there was before there was a choice
        found["negatives"] = config.negatives
    return found


def files(config: PipelineConfig) -> dict[str, str]:
    split = config.split
    given = {
        "split.valid_edges": split.valid_edges,
        "split.test_edges": split.test_edges,
        "split.valid_negatives": split.valid_negatives,
        "split.test_negatives": split.test_negatives,
    }
    return {name: location for name, location in given.items() if location}


def split_request(context: StageContext) -> SplitRequest:
    """How the graph is split."""
    split, graph = context.config.split, context.config.graph
    return SplitRequest(
        by=split.by,
        valid=split.valid,
        test=split.test,
        folds=split.num_folds,
        seed=split.seed,
        given_links={"valid": split.valid_edges, "test": split.test_edges},
        given_negatives={"valid": split.valid_negatives, "test": split.test_negatives},
        columns=graph.predicted.ends,
        graph=context.inputs.graph,
        out=context.out.at(SplitStore),
        negatives=context.config.negatives,
        leave_out=split.leave_out,
        negatives_link=split.negatives_link,
        on_known=split.on_known_negatives,
        keep_connected=split.keep_connected,
    )


def run(context: StageContext) -> StageResult:
    split, request = context.config.split, split_request(context)
    is_large = 2 * request.graph.at(GraphOutline).open().num_edges > ENTRIES_PER_TASK
    if is_large and not split.keep_connected:  # which looks at all edges of a node
        split_by_ranges(context, request)
    # a graph that is split by now has its marker
    (counts,) = context.map(split_task, [Shard(SPLIT, {"request": request})], note="splitting")
    ties: list[TieResult] = []
    if split.by == "time":
        shards = [
            Shard(f"tie-{newer}", {"request": request, "older": older, "newer": newer})
            for older, newer in (("train", "valid"), ("valid", "test"))
        ]
        ties = context.map(tie_task, shards, note="looking for ties")
    return StageResult(counts=counts, warnings=tie_warnings(ties) + known_warnings(counts))


def known_warnings(counts: dict[str, int]) -> list[str]:
    """Given non-links that are links."""
    return [
        f"{counts[key]:,} of the given non-links of {part} are links of the graph; "
        "`split.on_known_negatives` says what is done with them"
        for part in ("valid", "test")
        if (key := f"{part}_known_negatives") in counts
    ]


def split_by_ranges(context: StageContext, request: SplitRequest) -> None:
    """Split a large graph by many tasks, and leave the marker of the one that would do it all."""
    if is_there(context.tasks.markers / f"{SPLIT}.json"):
        return
    work = context.folder / "work"

    def run_map(task: Callable[..., Result], shards: Sequence[Shard], step: str) -> list[Result]:
        return context.map(task, shards, note=step, markers=work / "done" / step)

    ranges = RangeRequest(request, ArtifactRef.of_folder(work, SplitWork))
    context.tasks.mark(SPLIT, RangeSplit(ranges, run_map, ENTRIES_PER_TASK).run())
    remove(work)


def tie_warnings(ties: Sequence[TieResult]) -> list[str]:
    """Boundaries of a split by time that fall between edges of one time."""
    return [
        f"{tie['in_older'] + tie['in_newer']:,} edges have the time {tie['time']}, on which the "
        f"split between {tie['older']} and {tie['newer']} falls: {tie['in_newer']:,} of them, "
        f"drawn by lot, are in {tie['newer']}; change `split.valid` or `split.test`, or give "
        "finer times"
        for tie in ties
        if tie["time"] is not None
    ]


STAGE = Stage("split", 3, ("ingest",), settings, run, files)
