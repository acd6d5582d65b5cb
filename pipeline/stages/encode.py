"""Positions of the nodes in the training graph, and without each of its folds."""

from __future__ import annotations

import shutil
from typing import Any

from peg_core.encoding import ENCODERS
from peg_core.splits.split_store import NO_FOLD
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.distributed_encoding.large_encoders import LargeEncoder, large_encoder
from workers.task_map import Result, Shard, task_map
from workers.tasks.encode import EncodeRequest, encode_task, positions_file


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {
        "encodings": [
            {**item.model_dump(), "version": ENCODERS[item.kind].version}
            for item in config.encodings
        ]
    }


def run(context: StageContext) -> StageResult:
    folds = context.config.split.folds
    graphs = [NO_FOLD, *(range(folds) if folds > 1 else [])]
    split = context.inputs["split"].absolute()
    requests = [
        EncodeRequest(
            kind=item.kind,
            parameters=item.parameters,
            seed=item.seed,
            split=split,
            fold=fold,
            out=positions_file(context.folder.absolute(), number, fold),
        )
        for number, item in enumerate(context.config.encodings)
        for fold in graphs
    ]
    return encode_graphs(context, requests)


def encode_graphs(context: StageContext, requests: list[EncodeRequest]) -> StageResult:
    """Run the encodings side by side, large ones one after the other; gather their reports."""
    names = [f"{request.out.parent.name}-{request.out.stem}" for request in requests]
    folder = context.folder.absolute()
    for name, request in zip(names, requests, strict=True):
        encoder = large_encoder(context.cluster.settings, request)
        if encoder is not None:
            _encode_large(context, name, request, encoder)
    results = task_map(  # graphs that are encoded by now have their marker
        context.cluster,
        encode_task,
        [Shard(name, {"request": request}) for name, request in zip(names, requests, strict=True)],
        markers=folder / "done",
        on_progress=lambda p: context.progress.update(
            p.done, p.total, f"{p.done}/{p.total} graphs"
        ),
    )
    shutil.rmtree(folder / "work", ignore_errors=True)
    leaked = sum(sum(result["leaks"].values()) for result in results)
    return StageResult(
        counts={"graphs": len(requests), "leaked_links": leaked, **_quality(results)},
        details=dict(zip(names, results, strict=True)),
        warnings=_warnings(names, results),
        peak_memory_bytes=max(result["peak_memory_bytes"] for result in results),
    )


def _quality(results: list[Result]) -> dict[str, float]:
    """What tells a good spectral encoding: the largest residual, the smallest gap at the cut."""
    reports = [result["report"] for result in results]
    residuals = [report["largest_residual"] for report in reports if "largest_residual" in report]
    gaps = [report["gap"] for report in reports if report.get("gap") is not None]
    return {
        **({"largest_residual": max(residuals)} if residuals else {}),
        **({"smallest_gap": min(gaps)} if gaps else {}),
    }


def _encode_large(
    context: StageContext, name: str, request: EncodeRequest, encoder: LargeEncoder
) -> None:
    folder = context.folder.absolute()
    encoder(
        context.cluster,
        request,
        work=folder / "work" / name,
        marker=folder / "done" / f"{name}.json",
        tell=lambda what, p: context.progress.update(
            p.done, p.total, f"{name}: {what} {p.done}/{p.total}"
        ),
    )


def _warnings(names: list[str], results: list[Result]) -> list[str]:
    """Each warning once, with the first graph it came from."""
    seen: dict[str, str] = {}
    for name, result in zip(names, results, strict=True):
        for text in result["report"].get("warnings", []):
            seen.setdefault(text, f"{name}: {text}")
    return list(seen.values())


STAGE = Stage("encode", 1, ("split",), settings, run)
