"""The run on one page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import yaml

from peg_core.artifacts.evaluation import TEST_PAIRS, MethodScores
from peg_core.artifacts.manifest import Manifest
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.scored_pairs import ScoredPairs
from peg_core.artifacts.trained_model import seed_part
from peg_core.atomic_file import atomic_path
from peg_core.inference.candidate_batch import HISTOGRAM_BINS
from peg_core.splits.population import Population, describe_cold
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.data import DegreeClass, NodeMap, ReportData, StageRow, TopPair
from pipeline.report.facts import each_fact_once
from pipeline.report.summary import best_rival
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.shard import Shard
from workers.tasks.reporting.nodes_and_pairs import (
    SHOWN_PARTS,
    MapResult,
    ReportRequest,
    report_task,
)

INPUTS = (
    "ingest", "features", "split", "encode", "train", "embed", "calibrate", "negatives",
    "evaluate", "other_evaluate", "encode_all", "embed_all", "score", "index", "recommend",
)  # fmt: skip


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"config": config.dependencies(exclude={"cluster", "store", "refresh", "integrity"})}


def run(context: StageContext) -> StageResult:
    inputs = context.inputs
    found, best = inputs.manifests(), inputs.best_seed
    method = inputs.evaluation.open().method(seed_part(best))
    pairs = method.pairs(TEST_PAIRS, ["score", "label"], most_parts=SHOWN_PARTS)
    tables = evaluation_tables(found)
    rival = best_rival(next(iter(tables.values())), "auc")
    request = _request(context, rival and rival.method)
    [seen] = context.map(report_task, [Shard("nodes", {"request": request})], note="nodes")
    data = ReportData(
        name=context.config.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        config_yaml=yaml.safe_dump(context.config.model_dump(), sort_keys=False),
        stages=[
            StageRow(name, manifest.fingerprint, "done", manifest.seconds, manifest.counts)
            for name, manifest in found.items()
        ],
        metrics=tables,
        epochs=pl.read_parquet(inputs.training.open().epochs_file).to_dicts(),
        test_labels=pairs["label"].to_numpy(),
        test_scores=pairs["score"].to_numpy(),
        calibration=found["evaluate"].details["calibration"][str(best)]["curve"],
        score_histogram=_histogram(found.get("score")),
        eigenvalues=_eigenvalues(found["encode"], len(context.config.encodings)),
        outputs={name: inputs.ref(name).location for name in inputs},
        warnings=each_fact_once(text for each in found.values() for text in each.warnings),
        note=cold_note(found["evaluate"]),
        top=[TopPair(**row) for row in seen["top"]],
        node_map=_node_map(seen["node_map"]),
        by_degree=[DegreeClass(**row) for row in seen["by_degree"]],
        rival=rival and rival.method,
    )
    from pipeline.report.build import build_report  # nobody else waits for matplotlib

    html = build_report(data)
    with atomic_path(context.folder / "report.html") as temporary:
        temporary.write_text(html, encoding="utf-8")
    return StageResult(counts={"bytes": len(html)})


def _request(context: StageContext, heuristic: str | None) -> ReportRequest:
    """What a task looks up: arrays do not come to the process that drives the run."""
    inputs, score = context.inputs, context.config.score
    evaluation = inputs.evaluation
    return ReportRequest(
        graph=inputs.graph,
        ids=inputs.node_ids,
        train_graph=inputs.train_graph,
        positions=inputs.all_positions if "encode_all" in inputs else None,
        embeddings=inputs.all_embeddings if "embed_all" in inputs else None,
        scored=inputs.ref("score").at(ScoredPairs) if "score" in inputs else None,
        score="score" if score is None else score.columns[0],
        model=evaluation.at(MethodScores, seed_part(inputs.best_seed)),
        heuristics=evaluation.at(MethodScores, "heuristics"),
        heuristic=heuristic,
        columns=context.config.graph.predicted.ends,
    )


def _node_map(found: MapResult | None) -> NodeMap | None:
    if found is None:
        return None
    return NodeMap(
        points=np.array(found["points"]),
        groups=found["groups"],
        grouped_by=found["grouped_by"],
        links=np.array(found["links"], dtype=np.int64).reshape(-1, 2),
        num_nodes=found["num_nodes"],
    )


def evaluation_tables(found: dict[str, Manifest]) -> dict[str, list[dict[str, Any]]]:
    """Metrics by protocol, those on another graph last."""
    tables: dict[str, list[dict[str, Any]]] = dict(found["evaluate"].details["table"])
    if "other_evaluate" in found:
        for protocol, rows in found["other_evaluate"].details["table"].items():
            tables[f"{protocol}, other graph"] = rows
    return tables


def cold_note(evaluate: Manifest) -> str:
    """Which share of the test pairs has a cold end; empty where there are few."""
    population: Population | None = evaluate.details.get("population")
    return describe_cold(population) if population else ""  # earlier evaluations do not know


def _histogram(score: Manifest | None) -> tuple[Any, Any] | None:
    if score is None:
        return None
    return np.array(score.details["histogram"]), np.linspace(0, 1, HISTOGRAM_BINS + 1)


def _eigenvalues(encode: Manifest, num_encodings: int) -> dict[str, list[float]]:
    """Of every encoding of the whole training graph that has any."""
    reports = {
        Positions.column(number): encode.details[Positions.name(number)]["report"]
        for number in range(num_encodings)
    }
    return {
        name: report["eigenvalues"] for name, report in reports.items() if report.get("eigenvalues")
    }


STAGE = Stage("report", 4, INPUTS, settings, run)
