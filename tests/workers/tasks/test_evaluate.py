"""The tasks of an evaluation, called in this process."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from peg_core.artifacts.evaluation import TEST_PAIRS, MethodScores
from peg_core.artifacts.ranking_negatives import RankingNegatives
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.metrics.bootstrap import Bootstrap
from tests.fixtures.relational_graphs import graph_of, relations_of
from workers.artifact_ref import ArtifactRef
from workers.tasks.evaluate import (
    MethodRequest,
    PairSubset,
    RankRequest,
    rank_hard_task,
    rank_pooled_task,
    score_hard_task,
    score_pairs_task,
)

NODES = 6
LOGITS = np.random.default_rng(0).normal(size=(NODES, NODES)).astype(np.float32)


def scored(folder, links, test, known):
    """A request whose logits of the test pairs, from a table, are written; and the test pairs."""
    relations = relations_of("directed", NODES)
    graphs = {"train": np.array(known).T, "all": np.array(links).T}
    for name, ends in graphs.items():
        graph_of(relations, [ends], NODES).save(folder / name)
    NodeIds(pa.array(np.arange(NODES))).save(folder)
    table = folder / "test.parquet"
    rows = [(*pair, 1) for pair in test] + [(0, 4, 0), (4, 1, 0)]
    pl.DataFrame(rows, schema=["source", "target", "label"], orient="row").write_parquet(table)
    scorer = SimpleNamespace(logits=lambda source, target: LOGITS[source, target])
    request = MethodRequest(
        ArtifactRef.of_folder(folder / "train", GraphStore),
        ArtifactRef.of_folder(folder, GraphIds),
        ("source", "target"),
        ArtifactRef.of_folder(folder / "scores", MethodScores),
        scorer=SimpleNamespace(open=lambda: scorer),
        known=ArtifactRef.of_folder(folder / "all", GraphStore),
    )
    score_pairs_task(request, table, TEST_PAIRS, 0)
    return request, table


def evaluated(folder, links, test, known):
    """Metrics of logits from a table, all pairs and warm ones."""
    request, table = scored(folder, links, test, known)
    rank = RankRequest(request.out, "logit", 0, [], Bootstrap(10), 0)
    warm = PairSubset(table, request.graph, cold=False)
    return [rank_pooled_task(rank, TEST_PAIRS, subset) for subset in (None, warm)]


def test_direction_is_judged_by_links_whose_reverse_is_no_link(tmp_path):
    known = [(0, 1), (1, 2), (2, 3), (3, 1), (4, 0)]  # node 5 is cold
    test = [(0, 2), (1, 3), (5, 0), (2, 1), (3, 0)]
    found = evaluated(tmp_path, known + test, test, known)
    judged = [(0, 2), (5, 0), (3, 0)]  # (3, 1) and (1, 2) are links
    for metrics, pairs in zip(found, (judged, [judged[0], judged[2]]), strict=True):
        right = np.mean([LOGITS[u, v] > LOGITS[v, u] for u, v in pairs])
        assert metrics["direction_accuracy"][0] == pytest.approx(right)
        assert metrics["direction_accuracy"][1] is not None


def test_hard_non_links_take_the_place_of_the_end_that_they_replace(tmp_path):
    """Those of a source are its targets, those of a target its sources."""
    known, test = [(0, 1), (1, 2), (2, 3), (3, 1), (4, 0)], [(0, 2), (5, 3)]
    request, table = scored(tmp_path, known + test, test, known)
    negatives = ArtifactRef.of_folder(tmp_path / "negatives", RankingNegatives)
    hard = {0: [3, 5], 2: [4, 5], 3: [0, 4], 5: [1, -1]}
    negatives.open().write_anchors(np.array(list(hard)))
    negatives.open().write_part(0, np.array(list(hard.values())))
    score_hard_task(request, negatives, "hard", 0)
    rank = RankRequest(request.out, "logit", 0, [], Bootstrap(10), 0)
    found = rank_hard_task(rank, table, "hard", negatives)
    reciprocal = []
    for u, v in test:
        others = [(u, w) for w in hard[u] if w >= 0] + [(w, v) for w in hard[v] if w >= 0]
        reciprocal.append(1 / (1 + sum(LOGITS[pair] > LOGITS[u, v] for pair in others)))
    assert found["mrr"][0] == pytest.approx(np.mean(reciprocal))
