"""New edges under a trained model, on a real local Ray."""

import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from sklearn.metrics import roc_auc_score

from peg_core.artifacts import EmbeddedGraph, Embeddings, Positions, TrainedModel
from peg_core.errors import InputError
from peg_core.generators.random_graphs import StochasticBlockModel
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.node_ids import NodeIds
from pipeline.cli.app import cli
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.plan import Action
from pipeline.run.progress import RunDisplay
from pipeline.run.refresh import plan_refresh, run_refresh
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NODES, BLOCKS, NEW_NODE = 1_200, 6, 5_000


def draw_edges(seed, count):
    pieces = StochasticBlockModel(NODES, count, blocks=BLOCKS, inside_share=0.9).chunks(seed=seed)
    ends = [(piece.source, piece.target) for piece in pieces]
    source, target = (np.concatenate(side) for side in zip(*ends, strict=True))
    return pl.DataFrame({"src": source.astype(np.int64), "dst": target.astype(np.int64)})


def settings(folder):
    return {
        "name": "refreshed",
        "store": str(folder / "store"),
        "graph": {
            "edges": str(folder / "edges"),
            "nodes": str(folder / "nodes.parquet"),
            "features": "x",
        },
        "features": {"dimensions": 4},
        "split": {"folds": 2},
        "encodings": [{"kind": "le", "dimensions": BLOCKS - 1}],
        "model": {"hidden": 8},
        "train": {"epochs": 4},
        "evaluate": {"hits": [5], "heuristics": [], "intervals": {"repeats": 0}},
        "score": {"candidates": str(folder / "candidates.parquet")},
        "refresh": {"max_score_shift": None},
    }


def write_inputs(folder):
    rng = np.random.default_rng(0)
    (folder / "edges").mkdir()
    draw_edges(0, 9_000).write_parquet(folder / "edges" / "2026-01.parquet")
    x = rng.normal(size=(NODES, 7)).astype(np.float32)
    pl.DataFrame({"id": np.arange(NODES), "x": x.tolist()}).write_parquet(folder / "nodes.parquet")
    pairs = rng.integers(0, NODES, size=(500, 2))
    pairs[:3, 0] = NEW_NODE
    table = pl.DataFrame({"src": pairs[:, 0], "dst": pairs[:, 1]})
    table.write_parquet(folder / "candidates.parquet")


def add_edges(folder, name="2026-02"):
    """2 % new edges, and a node that nobody knew."""
    new = pl.DataFrame({"src": [NEW_NODE] * 3, "dst": [0, BLOCKS, 2 * BLOCKS]})
    pl.concat([draw_edges(1, 180), new]).write_parquet(folder / "edges" / f"{name}.parquet")


def digests(folder):
    return {
        str(file.relative_to(folder)): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
        )
        for file in folder.rglob("*")
        if file.is_file()
    }


def resolve(current, *stages):
    return {stage: (current / stage).resolve() for stage in stages}


@pytest.fixture(scope="module")
def refreshed(cluster, tmp_path_factory):
    """(configuration, current artifacts, those before, files of the training, outcome)."""
    display = RunDisplay(Console(quiet=True))
    folder = tmp_path_factory.mktemp("refresh")
    write_inputs(folder)
    config = PipelineConfig(**settings(folder))
    with pytest.raises(InputError, match="run `peg run` once first"):
        run_refresh(config, display)
    assert not (folder / "store" / "ingest").exists()
    run_pipeline(config, display)
    current = Path(config.store) / "current"
    before = resolve(current, "ingest", "encode_all", "embed_all", "score", "train", "features")
    training = digests(Path(config.store) / "train")
    add_edges(folder)
    outcome = run_refresh(config, display)
    return config, current, before, training, outcome


def test_no_training_runs_and_the_model_is_the_same(refreshed):
    config, current, before, training, outcome = refreshed
    assert training == digests(Path(config.store) / "train")
    assert len(list((Path(config.store) / "train").iterdir())) == 1
    assert (current / "train").resolve() == before["train"]
    for stage in ("split", "encode", "embed", "calibrate", "evaluate"):
        assert len(list((Path(config.store) / stage).iterdir())) == 1
    for stage in ("ingest", "features", "encode_all", "embed_all", "score"):
        assert len(list((Path(config.store) / stage).iterdir())) == 2
    assert not outcome.retrained
    assert outcome.manifests["ingest"].details["merged_into"] == before["ingest"].name


def test_features_keep_the_transform_that_the_model_knows(refreshed):
    _, current, before, _, _ = refreshed
    name = "transform.safetensors"
    assert (current / "features" / name).read_bytes() == (before["features"] / name).read_bytes()
    old, new = (np.load(f / "features.npy") for f in (before["features"], current / "features"))
    np.testing.assert_array_equal(new[:NODES], old)
    assert len(new) == NODES + 1


def test_pairs_of_a_new_node_get_scores(refreshed):
    _, current, before, _, _ = refreshed
    assert pl.read_parquet(before["score"] / "*.parquet")["score"].null_count() == 3
    scores = pl.read_parquet(current / "score" / "*.parquet")
    assert scores["score"].null_count() == 0
    assert scores.filter(pl.col("src") == NEW_NODE).height == 3


def procrustes(first, second):
    """Distances after the best rotation, densely."""
    left, _, right = np.linalg.svd(second.T @ first)
    return np.linalg.norm(first - second @ left @ right, axis=1)


def test_movement_is_the_procrustes_distance_of_every_node(refreshed):
    _, current, before, _, outcome = refreshed
    old, new = (
        np.load(folder / "encoding-0" / "all.npy").astype(np.float64)
        for folder in (before["encode_all"], current / "encode_all")
    )
    expected = procrustes(old, new[: len(old)])
    moved = pl.read_parquet(current / "drift" / "movement.parquet")
    np.testing.assert_allclose(moved["encoding-0"], expected, atol=1e-5)
    ids = NodeIds.open(before["ingest"]).values.to_numpy()
    np.testing.assert_array_equal(moved["id"], ids)
    found = outcome.drift["movement"]
    assert found["nodes"] == NODES
    assert found["new_nodes"] == 1
    (whole,) = found["encodings"]
    assert whole["eta"] == pytest.approx(np.linalg.norm(expected), rel=1e-5)
    assert whole["relative_eta"] == pytest.approx(whole["eta"] / np.linalg.norm(old), rel=1e-5)
    assert 0.001 < whole["relative_eta"] < 0.5


def test_score_shift_is_the_stability_index_of_the_scores(refreshed):
    _, current, before, _, outcome = refreshed
    old, new = (
        np.histogram(
            pl.read_parquet(folder / "*.parquet")["score"].drop_nulls(), bins=50, range=(0, 1)
        )[0]
        for folder in (before["score"], current / "score")
    )
    groups, share = [[0, 0]], 0
    for expected, found in zip(old, new, strict=True):  # at least a tenth each
        while share >= len(groups) * old.sum() / 10:
            groups.append([0, 0])
        groups[-1][0] += expected
        groups[-1][1] += found
        share += expected
    p, q = np.array([group for group in groups if any(group)], dtype=float).T
    p, q = np.maximum(p, 0.5) / old.sum(), np.maximum(q, 0.5) / new.sum()
    assert outcome.drift["score_shift"] == pytest.approx(np.sum((q - p) * np.log(q / p)))


def test_newest_edges_are_scored_without_knowing_them(refreshed):
    _, current, before, _, outcome = refreshed
    old, new = (GraphStore.open(folder) for folder in (before["ingest"], current / "ingest"))
    known = {tuple(edge) for edge in np.stack(old.edges(), axis=1).tolist()}
    fresh = [e for e in np.stack(new.edges(), axis=1).tolist() if tuple(e) not in known]
    fresh = np.array([edge for edge in fresh if max(edge) < NODES])
    found = outcome.drift["newest_edges"]
    assert found["edges"] == found["scored"] == len(fresh) > 100
    embedded = EmbeddedGraph.of(
        GraphStore.open(before["ingest"]),
        Positions(before["encode_all"]),
        Embeddings(before["embed_all"]),
    )
    scorer = embedded.scorer(TrainedModel(before["train"] / "seed-0"))
    rng = np.random.default_rng(3)
    others = rng.integers(0, NODES, (20_000, 2))
    keep = ~new.contains(*others.T) & (others[:, 0] != others[:, 1])
    logits = [scorer.logits(*pairs.T) for pairs in (fresh, others[keep])]
    labels = np.repeat([1, 0], [len(side) for side in logits])
    # the non-links are others, hence not the same number
    assert found["auc"] == pytest.approx(roc_auc_score(labels, np.concatenate(logits)), abs=0.07)


def test_the_encoding_started_from_the_earlier_one_and_says_so(refreshed):
    _, current, before, _, outcome = refreshed
    facts = outcome.drift["encodings"]["encoding-0-all"]
    assert facts["start"] == "used"
    cold = json.loads((before["encode_all"] / "manifest.json").read_text())
    report = cold["details"]["encoding-0-all"]["report"]
    assert facts["operator_applications"] < report["operator_applications"]
    values = exact_eigenvalues(GraphStore.open(current / "ingest"))
    gap = values[BLOCKS] - values[BLOCKS - 1]
    assert facts["gap"] == pytest.approx(gap, rel=0.1)
    assert facts["gap_before"] == pytest.approx(report["gap"])


def exact_eigenvalues(graph):
    """Of the normalised Laplacian, ascending, the null one first."""
    adjacency = graph.adjacency(np.float64).toarray()
    root = np.sqrt(adjacency.sum(axis=1))
    return np.linalg.eigvalsh(np.eye(len(root)) - adjacency / root[:, None] / root)


def test_a_second_refresh_finds_everything_done(refreshed, display):
    config, _, _, _, outcome = refreshed
    assert {step.action for step in plan_refresh(config)} == {Action.REUSE}
    assert run_refresh(config, display).drift == outcome.drift


def test_limits_are_told_and_lead_to_training(refreshed, tmp_path, capsys):
    """Last: it trains."""
    config, current, before, _, _ = refreshed
    file = tmp_path / "refreshed.yaml"
    file.write_text(json.dumps(config.model_dump(exclude={"encodings"}) | {
        "encodings": [{"kind": "le", "dimensions": BLOCKS - 1}]
    }))  # fmt: skip
    limits = ["--set", "refresh.max_movement=0.001"]
    run = ["run", str(file), "--refresh", *limits]
    cli.main([*run, "--set", "refresh.retrain=never"], standalone_mode=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "above `refresh.max_movement` 0.001" in shown
    assert "AUC of the newest edges" in shown
    assert (current / "train").resolve() == before["train"]
    cli.main(run, standalone_mode=False)
    assert (current / "train").resolve() != before["train"]
    assert len(list((Path(config.store) / "train").iterdir())) == 2
    capsys.readouterr()
    cli.main(run, standalone_mode=False)
    assert "no new edges since the training" in capsys.readouterr().out
    assert len(list((Path(config.store) / "train").iterdir())) == 2
