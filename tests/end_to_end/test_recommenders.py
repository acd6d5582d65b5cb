"""LightGCN with a softmax through the pipeline, measured as recommenders are."""

from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest

from peg_core.artifacts import Embeddings, MethodScores, Positions, TrainedModel
from peg_core.graph.graph_store import GraphStore
from peg_core.layers.message_graph import MessageGraph
from peg_core.splits.split_store import SplitStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.runner import plan_run, run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]
K = 5


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recommenders")
    graph = nx.stochastic_block_model([20] * 4, np.eye(4) * 0.5 + 0.01, seed=1)
    edges = [(f"u{a}", f"u{b}") for a, b in graph.edges()]
    pl.DataFrame(edges, schema=["src", "dst"], orient="row").write_parquet(folder / "e.parquet")
    return {
        "name": "recommenders",
        "store": str(folder / "store"),
        "graph": {"edges": str(folder / "e.parquet")},
        "features": {"kind": "learned", "dimensions": 16},
        "split": {"folds": 1},
        "encodings": [{"kind": "le", "dimensions": 4}],
        "model": {"kind": "light_gcn", "hidden": 16},
        "train": {"objective": "softmax", "metric": f"recall@{K}", "epochs": 4, "lr": 0.02},
        "evaluate": {"protocol": "recommend", "top_k": K},
    }


def test_test_links_are_ranked_among_all_partners(cluster, settings, display):
    manifests = run_pipeline(PipelineConfig(**settings), display)
    current = Path(settings["store"]) / "current"
    found = pl.read_parquet(current / "evaluate" / "metrics.parquet")
    assert found["protocol"].unique().to_list() == ["recommend"]
    values = {(row["method"], row["metric"]): row["value"] for row in found.iter_rows(named=True)}
    split = SplitStore(current / "split")
    links = [set(), *(set() for _ in range(split.train_graph().num_nodes - 1))]
    for source, target in zip(*split.held_out("test").links, strict=True):
        links[source].add(int(target))
        links[target].add(int(source))
    asked = [node for node, others in enumerate(links) if others]
    lists = MethodScores(current / "evaluate" / "seed-0").lists(1)
    recall = [
        len(links[n] & set(own.tolist())) / len(links[n])
        for n, own in zip(asked, lists, strict=True)
    ]
    assert values["light_gcn", f"recall@{K}"] == pytest.approx(np.mean(recall))
    assert values["light_gcn", f"recall@{K}"] > 2 * values["popularity", f"recall@{K}"]
    valid = split.held_out("valid").links
    known = [GraphStore.open(current / "split" / "train_graph")]
    known.append(GraphStore.from_edges(*valid, num_nodes=known[0].num_nodes))
    for node, own in zip(asked, lists, strict=True):
        assert not set(own.tolist()) & {node, *(n for g in known for n in g.neighbours(node))}
    assert f"valid_recall@{K}" in manifests["train"].counts
    page = (current / "report" / "report.html").read_text()
    for metric in ("Recall", "Precision", "NDCG", "Hit rate", "Coverage", "Popularity"):
        assert f"{metric}@{K}" in page
    assert "popularity" in page


def test_a_refit_learns_all_links_and_changes_nothing_that_is_evaluated(cluster, settings, display):
    folded = {**settings, "split": {"folds": 2}, "recommend": {"top_k": 3}}
    refitted = {**folded, "train": {**settings["train"], "refit": True}}
    without = {s.stage.name: s.fingerprint for s in plan_run(PipelineConfig(**folded))}
    planned = {s.stage.name: s.fingerprint for s in plan_run(PipelineConfig(**refitted))}
    assert {n for n in without if without[n] != planned[n]} == {
        "embed_all", "index", "recommend", "report",
    }  # fmt: skip
    manifests = run_pipeline(PipelineConfig(**refitted), display)
    current = Path(settings["store"]) / "current"
    graph, counts = GraphStore.open(current / "ingest"), manifests["refit"].counts
    links = SplitStore(current / "refit_split").links()
    assert sorted(zip(*links, strict=True)) == sorted(zip(*graph.edges(), strict=True))
    assert counts["held_out_links_learned"] == graph.num_edges - len(
        SplitStore(current / "split").links()[0]
    )
    assert counts["evaluated"] == "never"
    best = TrainedModel(current / "train" / "seed-0").summary()["best_epoch"]
    assert counts["links_seen"] == (best + 1) * graph.num_edges
    model = TrainedModel(current / "refit" / "seed-0").network
    positions = Positions(current / "encode_all").arrays(num_nodes=graph.num_nodes)
    messages = MessageGraph.of_graph(graph, positions, model.rule)
    expected = model(model.table.weight, messages).detach().numpy()
    found = Embeddings(current / "embed_all").array()
    np.testing.assert_allclose(found, expected, atol=1e-5)
