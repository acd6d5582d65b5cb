"""Users, items and friendships from Parquet to lists; users and items have the same numbers."""

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import SplitStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]
USERS, ITEMS, TASTES = 60, 40, 4


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("relations")
    rng = np.random.default_rng(3)
    user = rng.integers(0, USERS, 900)
    liked = rng.integers(0, ITEMS // TASTES, 900) * TASTES + user % TASTES
    item = np.where(rng.random(900) < 0.9, liked, rng.integers(0, ITEMS, 900))
    plays = pl.DataFrame({"user": user, "item": item}).unique(maintain_order=True)
    friend = (user[:120] + TASTES * rng.integers(1, 9, 120)) % USERS
    friends = pl.DataFrame({"user": user[:120], "friend": friend})
    pairs = pl.DataFrame({"user": [0, 1, 2, 99], "item": [39, 1, 2, 0]})
    for name, table in (("plays", plays), ("friends", friends), ("pairs", pairs)):
        table.write_parquet(folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def finished(tables, cluster):
    config = PipelineConfig(
        name="relations",
        store=str(tables / "store"),
        graph={
            "edges": [
                {"name": "friends", "files": str(tables / "friends.parquet"), "source": "user",
                 "target": "friend", "source_kind": "user", "target_kind": "user"},
                {"name": "plays", "files": str(tables / "plays.parquet"), "source": "user",
                 "target": "item"},
            ],
            "predict": "plays",
        },
        split={"folds": 2},
        encodings=[{"kind": "le", "dimensions": 8}],
        train={"epochs": 3},
        evaluate={"protocol": ["random", "heart"], "negatives_per_positive": 5},
        score={"candidates": str(tables / "pairs.parquet")},
        recommend={"top_k": 5, "for": "both"},
    )  # fmt: skip
    run_pipeline(config, RunDisplay(Console(quiet=True)))
    return tables / "store" / "current"


def linked(tables):
    return set(pl.read_parquet(tables / "plays.parquet").rows())


def test_non_links_join_users_with_items_that_they_did_not_play(tables, finished):
    split, users = SplitStore(finished / "split"), USERS
    plays = {(u, users + i) for u, i in linked(tables)}
    for part in ("valid", "test"):
        pairs = split.held_out(part)
        found = set(zip(*(end[pairs.label == 0].tolist() for end in (pairs.source, pairs.target)),
                        strict=True))  # fmt: skip
        assert len(found) == (pairs.label == 1).sum()
        assert all(u < users <= i for u, i in found)
        assert not found & plays
        assert set(zip(*(end.tolist() for end in pairs.links), strict=True)) <= plays


def test_friendships_are_never_held_out(tables, finished):
    train = GraphStore.open(finished / "split" / "train_graph")
    for user, friend in pl.read_parquet(tables / "friends.parquet").iter_rows():
        assert user == friend or friend in train.neighbours(user)
    valid = SplitStore(finished / "split").held_out("test").links
    assert not train.contains(*valid).any()


def test_lists_hold_the_other_kind_and_nothing_known(tables, finished):
    rows = pl.read_parquet(finished / "recommend" / "*.parquet")
    known = linked(tables)
    of_users, of_items = (rows.filter(pl.col("kind") == kind) for kind in ("user", "item"))
    assert of_users["node"].n_unique() == USERS
    assert of_items["node"].n_unique() == ITEMS
    assert set(of_users["candidate"]) <= set(range(ITEMS))
    assert not known & set(of_users.select("node", "candidate").rows())
    assert not known & set(of_items.select("candidate", "node").rows())


def test_candidates_are_looked_up_by_their_kinds(finished):
    scores = pl.read_parquet(finished / "score" / "*.parquet")
    assert scores.columns[:3] == ["user", "item", "score"]
    assert scores["score"].is_null().to_list() == [False, False, False, True]


def test_the_model_finds_what_a_user_likes(finished):
    metrics = pl.read_parquet(finished / "evaluate" / "metrics.parquet")
    (auc,) = metrics.filter(method="peg", metric="auc", protocol="random")["value"]
    assert auc > 0.7
