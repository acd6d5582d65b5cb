"""Positions of the nodes in the training graph, and without each of its folds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from peg_core.artifacts.positions import Positions
from peg_core.encoding import ENCODERS
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.fold_graph import MOST_HELD_ENTRIES
from peg_core.splits.split_store import NO_FOLD, TRAIN_GRAPH
from peg_core.storage.stored_path import is_there, remove
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.facts import fact_of
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.artifact_ref import ArtifactRef
from workers.distributed_encoding.large_encoders import large_encoder
from workers.shard import Shard
from workers.tasks.encode import EncodeRequest, EncodeResult, encode_task, fold_graph_task

# The folder for what tasks leave to each other.
WORK = "work"


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {
        "encodings": [
            {**item.model_dump(), "version": ENCODERS[item.kind].version}
            for item in config.encodings
        ]
    }


def run(context: StageContext) -> StageResult:
    folds = context.config.split.num_folds
    graphs = [NO_FOLD, *(range(folds) if folds > 1 else [])]
    requests = [
        EncodeRequest(
            kind=item.kind,
            parameters=item.parameters,
            seed=item.seed,
            out=context.out.at(Positions),
            encoding=number,
            split=context.inputs.split,
            fold=fold,
        )
        for number, item in enumerate(context.config.encodings)
        for fold in graphs
    ]
    return encode_graphs(context, keep_fold_graphs(context, requests))


def keep_fold_graphs(context: StageContext, requests: list[EncodeRequest]) -> list[EncodeRequest]:
    """Write the graphs without a fold side by side where the graph is large, for all encodings."""
    split = context.inputs.split
    size = split.at(GraphOutline, TRAIN_GRAPH).open()
    if 2 * size.num_edges <= MOST_HELD_ENTRIES:
        return requests
    done = context.tasks.markers
    work = context.folder / WORK / "graphs"
    missing = {r.fold for r in requests if not is_there(done / f"{r.name}.json")} - {NO_FOLD}
    graphs = {
        fold: ArtifactRef.of_folder(work / f"without-fold-{fold}", GraphStore)
        for fold in sorted(missing)
    }
    shards = [
        Shard(f"without-fold-{fold}", {"split": split, "fold": fold, "out": graph})
        for fold, graph in graphs.items()
    ]
    context.map(fold_graph_task, shards, note="graphs without a fold", markers=work / "done")
    return [replace(request, fold_graph=graphs.get(request.fold)) for request in requests]


def encode_graphs(context: StageContext, requests: list[EncodeRequest]) -> StageResult:
    """Run the encodings side by side, large ones one after the other; gather their reports."""
    names = [request.name for request in requests]
    work = context.folder / WORK
    for request in requests:
        encode_large = large_encoder(context.tasks.settings, request)
        if encode_large is not None:
            encode_large(context.tasks, request, work=work / request.name)
    # graphs that are encoded by now have their marker
    shards = [Shard(request.name, {"request": request}) for request in requests]
    results = context.map(encode_task, shards, note="graphs")
    remove(work)
    leaked = sum(sum(result["leaks"].values()) for result in results)
    return StageResult(
        counts={"graphs": len(requests), "leaked_links": leaked, **_quality(results)},
        details=dict(zip(names, results, strict=True)),
        warnings=warnings_once(requests, results),
    )


def _quality(results: list[EncodeResult]) -> dict[str, float]:
    """What tells a good spectral encoding: the largest residual, the smallest gap at the cut."""
    reports = [result["report"] for result in results]
    residuals = [report["largest_residual"] for report in reports if "largest_residual" in report]
    gaps = [report["gap"] for report in reports if report.get("gap") is not None]
    return {
        **({"largest_residual": max(residuals)} if residuals else {}),
        **({"smallest_gap": min(gaps)} if gaps else {}),
    }


def warnings_once(requests: list[EncodeRequest], results: list[EncodeResult]) -> list[str]:
    """Each warning once, in the words of the first graph that it came from."""
    first: dict[str, str] = {}
    count: Counter[str] = Counter()
    for request, result in zip(requests, results, strict=True):
        for text in result["report"].get("warnings", []):
            first.setdefault(fact_of(text), f"{request.name}: {text}")
            count[fact_of(text)] += 1
    total = len(requests)
    return [
        f"{text} ({count[fact]} of {total} graphs)" if total > 1 else text
        for fact, text in first.items()
    ]


STAGE = Stage("encode", 1, ("split",), settings, run)
