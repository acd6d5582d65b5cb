"""How well the models rank the test links, beside heuristics that need no training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from peg_core.artifacts.evaluation import TEST_PAIRS, Evaluation, MethodScores
from peg_core.artifacts.trained_model import seed_part
from peg_core.graph.graph_outline import GraphOutline
from peg_core.metrics.bootstrap import Bootstrap
from peg_core.metrics.reliability import expected_calibration_error, reliability_curve
from peg_core.splits.held_out_pairs import count_pairs, is_linked
from peg_core.splits.population import Population, cold_shares, subsets
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.guard_rails import evaluation_rails
from pipeline.report.headline import headline_counts, headline_metric
from pipeline.report.metric_rows import SCHEMA, Ranking, by_seed, metric_rows, tabulate
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.negatives import protocols
from pipeline.stages.train import seeds_of
from workers.shard import Shard
from workers.tasks.evaluate import (
    ROWS_PER_PART,
    MethodRequest,
    PairsResult,
    PairSubset,
    RankRequest,
    RankResult,
    population_task,
    rank_hard_task,
    rank_pooled_task,
    score_hard_task,
    score_pairs_task,
)
from workers.tasks.link_ranks import rank_linked_task
from workers.tasks.partner_lists import (
    PartnersRequest,
    partner_lists_task,
    parts_task,
    rank_partners_task,
)

HARD, RECOMMEND = "heart", "recommend"
# Part of the artifact with the scores of all heuristics; models have one per seed.
HEURISTICS, POPULARITY = "heuristics", "popularity"


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {
        "evaluate": config.evaluate.dependencies(exclude={"on", "negatives"}),
        "protocols": protocols(config),
    }


def run(context: StageContext) -> StageResult:
    methods = _methods(context)
    population = _population(context)
    scored = _score(context, methods)
    rankings, results = _rank(context, methods, population)
    rows = metric_rows(protocols(context.config), rankings, results)
    context.out.at(Evaluation).open().write_metrics(pl.DataFrame(rows, schema=SCHEMA))
    table, first = tabulate(rows), protocols(context.config)[0]
    curves = _calibration(context.config, scored)
    return StageResult(
        counts=headline_counts(table[first], curves, _headline(context.config))
        | cold_shares(population),
        details={
            "table": table,
            "population": population,
            "calibration": curves,
            "seeds": by_seed(
                {seed_part(seed): str(seed) for seed in seeds_of(context.config)},
                rankings,
                results,
            ),
        },
        warnings=evaluation_rails(
            table[first],
            population,
            metric=_headline(context.config),
            features=context.config.reads_node_features,
            tables=table,
            stacked=context.config.calibrate.stack,
        ),
    )


def _methods(context: StageContext) -> dict[str, MethodRequest]:
    """What scores pairs, by the part of the artifact that its scores go to."""
    graph, inputs = context.config.graph, context.inputs
    shared: dict[str, Any] = {
        "graph": inputs.train_graph,
        "nodes": inputs.node_ids,
        "columns": graph.predicted.ends,
        "known": inputs.graph if inputs.graph.at(GraphOutline).open().is_directed else None,
    }
    methods = {}
    for seed in seeds_of(context.config):
        part = seed_part(seed)
        methods[part] = MethodRequest(
            **shared,
            out=context.out.at(MethodScores, part),
            scorer=inputs.train_graph_scorer(seed),
            calibration=inputs.calibration(seed),
        )
    if context.config.evaluate.chosen_heuristics:
        methods[HEURISTICS] = MethodRequest(
            **shared,
            out=context.out.at(MethodScores, HEURISTICS),
            heuristics=tuple(context.config.evaluate.chosen_heuristics),
        )
    return methods


def _tables(context: StageContext) -> dict[str, Path]:
    """Labelled pairs by the name of their scores; the split's own are always scored."""
    tables = {TEST_PAIRS: _test_file(context)}
    for protocol in protocols(context.config):
        if protocol == RECOMMEND:
            continue
        if (name := _scores_name(context.config, protocol)) not in (TEST_PAIRS, HARD):
            tables[name] = context.inputs.negatives.open().random_file
    return tables


def _test_file(context: StageContext) -> Path:
    return context.inputs.split.open().held_out_file("test")


def _scores_name(config: PipelineConfig, protocol: str) -> str:
    if protocol == "random" and config.split.test_negatives is not None:
        return "random_pairs"
    return HARD if protocol == "heart" else TEST_PAIRS


def _score(context: StageContext, methods: dict[str, MethodRequest]) -> list[PairsResult]:
    """Scores of all pairs by all methods; returns what is told of labelled pairs."""
    pairs = [
        Shard(
            f"{name}-{method}-{part:06}",
            {"request": request, "table": table, "name": name, "part": part},
        )
        for method, request in methods.items()
        for name, table in _tables(context).items()
        for part in range(-(-count_pairs(table) // ROWS_PER_PART))
    ]
    results = context.map(score_pairs_task, pairs, note="scoring test pairs")
    if HARD in protocols(context.config):
        negatives = context.inputs.negatives
        hard = [
            Shard(
                f"{HARD}-{method}-{part:06}",
                {"request": request, "negatives": negatives, "name": HARD, "part": part},
            )
            for method, request in methods.items()
            for part in range(negatives.open().num_parts)
        ]
        context.map(score_hard_task, hard, note="scoring hard non-links")
    return results


def _population(context: StageContext) -> Population:
    """Whom the test pairs are about."""
    arguments = {"table": _test_file(context), "graph": context.inputs.train_graph}
    return context.map(population_task, [Shard("population", arguments)])[0]


def _rank(
    context: StageContext, methods: dict[str, MethodRequest], population: Population
) -> tuple[list[Ranking], list[RankResult]]:
    """Metrics of every score under every protocol, and of warm and cold pairs apart."""
    table, graph = _test_file(context), context.inputs.train_graph
    pooled: dict[Ranking, Shard] = {}
    hard: dict[Ranking, Shard] = {}
    linked: dict[Ranking, Shard] = {}
    for protocol in protocols(context.config):
        if protocol == RECOMMEND:
            continue
        name = _scores_name(context.config, protocol)
        for ranking, request in _rankings(context, protocol, methods):
            shard = f"rank-{protocol}-{ranking.part}-{ranking.column}"
            if name == HARD:
                arguments = {
                    "request": request,
                    "links": _test_file(context),
                    "hard": HARD,
                    "negatives": context.inputs.negatives,
                }
                hard[ranking] = Shard(shard, arguments)
                continue
            in_lists = protocol == "given" and is_linked(table)
            shards = linked if in_lists else pooled
            arguments = {"request": request, **({"links": table} if in_lists else {"name": name})}
            shards[ranking] = Shard(shard, arguments)
            for subset in subsets(population) if name == TEST_PAIRS else []:
                chosen = PairSubset(table, graph, cold=subset == "cold")
                own = ranking._replace(subset=subset)
                shards[own] = Shard(f"{shard}-{subset}", {**arguments, "subset": chosen})
    results = context.map(rank_pooled_task, list(pooled.values()), note="ranking")
    results += context.map(rank_hard_task, list(hard.values()), note="ranking")
    results += context.map(rank_linked_task, list(linked.values()), note="ranking")
    rankings = [*pooled, *hard, *linked]
    if RECOMMEND in protocols(context.config):
        partners = _rank_partners(context)
        return [*rankings, *partners], [*results, *partners.values()]
    return rankings, results


def _rank_partners(context: StageContext) -> dict[Ranking, RankResult]:
    """Every model, and popularity, as recommenders of the test links."""
    evaluate, inputs = context.config.evaluate, context.inputs
    requests: dict[Ranking, PartnersRequest] = {}
    models = {seed_part(seed): inputs.train_graph_scorer(seed) for seed in seeds_of(context.config)}
    for part, scorer in {**models, POPULARITY: None}.items():
        method = context.config.model.kind if scorer else POPULARITY
        requests[Ranking(RECOMMEND, method, part, POPULARITY, 0)] = PartnersRequest(
            split=inputs.split,
            out=context.out.at(MethodScores, part),
            scorer=scorer,
            top_k=tuple(evaluate.top_k),
            bootstrap=Bootstrap(evaluate.intervals.repeats, evaluate.intervals.level),
            seed=context.config.split.seed,
        )
    shards = [
        Shard(f"partners-{ranking.part}", {"request": request})
        for ranking, request in requests.items()
    ]
    parts = context.map(parts_task, shards, note="nodes with test links")
    lists = [
        Shard(f"partners-{ranking.part}-{part:06}", {"request": request, "part": part})
        for (ranking, request), found in zip(requests.items(), parts, strict=True)
        for part in range(found["parts"])
    ]
    context.map(partner_lists_task, lists, note="ranking all partners")
    ranks = [
        Shard(f"rank-{RECOMMEND}-{ranking.part}", {"request": request})
        for ranking, request in requests.items()
    ]
    return dict(zip(requests, context.map(rank_partners_task, ranks), strict=True))


def _rankings(
    context: StageContext, protocol: str, methods: dict[str, MethodRequest]
) -> Iterator[tuple[Ranking, RankRequest]]:
    """Every score under one protocol."""
    evaluate, seed = context.config.evaluate, context.config.split.seed
    bootstrap = Bootstrap(evaluate.intervals.repeats, evaluate.intervals.level)
    for part, request in methods.items():
        for number, column in enumerate(request.score_columns):
            method = context.config.model.kind if request.scorer else column
            rank = RankRequest(request.out, column, number, evaluate.hits, bootstrap, seed)
            yield Ranking(protocol, method, part, column, number), rank


def _calibration(config: PipelineConfig, scored: list[PairsResult]) -> dict[str, Any]:
    """Reliability curve and expected calibration error on the test pairs, by seed."""
    found = {}
    for seed in seeds_of(config):
        parts = (
            result["reliability"]
            for result in scored
            if result["table"] == TEST_PAIRS and result["method"] == seed_part(seed)
        )
        sums = np.sum([*parts], axis=0)
        found[str(seed)] = {
            "error": expected_calibration_error(sums),
            "curve": reliability_curve(sums),
        }
    return found


def _headline(config: PipelineConfig) -> str:
    """The metric by which methods are compared."""
    linked = config.split.negatives_link is not None
    return headline_metric(protocols(config)[0], top_k=config.evaluate.top_k[0], linked=linked)


STAGE = Stage(
    "evaluate",
    2,
    ("ingest", "split", "encode", "train", "embed", "calibrate", "negatives"),
    settings,
    run,
)
