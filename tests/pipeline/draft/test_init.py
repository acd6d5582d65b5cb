"""`peg init`: the file it writes is one that a run accepts, and its guesses have reasons."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from peg_core.errors import ConfigError, InputError
from pipeline.cli.app import cli
from pipeline.config.loading import load_config
from pipeline.draft.column_names import pair_words, words_of
from pipeline.draft.draft import name_of
from pipeline.run.runner import plan_run
from pipeline.run.sizing.expectation import estimate_run
from pipeline.store.local_store import open_store

ROWS = 400


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def init(*arguments):
    done = CliRunner().invoke(cli, ["init", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    config = load_config(Path("pipeline.yaml"))
    # the tables, with all columns that the file names, are those that a run accepts
    estimate_run(config, open_store(config.store), plan_run(config))
    return config, done.output


def write(name, **columns):
    pl.DataFrame(columns).write_parquet(name)
    return name


@pytest.fixture(scope="module")
def links():
    """Both ends of 400 links between 60 nodes."""
    graph = nx.gnm_random_graph(60, ROWS, seed=4)
    ends = np.array(graph.edges())
    return ends[:, 0], ends[:, 1]


def test_a_plain_list(links):
    config, output = init(write("friends.parquet", source_id=links[0], target_id=links[1]))
    assert (config.graph.source, config.graph.target) == ("source_id", "target_id")
    assert not config.graph.is_relational
    assert config.name == "friends"
    assert config.encodings[0].parameters["dimensions"] == 8
    assert "60 nodes, 400 rows" in output
    assert "the first run: about" in Path("pipeline.yaml").read_text()


def test_text_ids_in_columns_of_other_names(links):
    names = [np.array([f"n{i}" for i in end]) for end in links]
    edges = write("e.parquet", note=["x"] * ROWS, score=np.ones(ROWS), u=names[0], v=names[1])
    config, _ = init(edges)
    assert (config.graph.source, config.graph.target) == ("u", "v")
    assert config.graph.weight is None  # it is 1 everywhere


def test_users_and_items_with_tables_of_their_own(links):
    rng = np.random.default_rng(1)
    edges = write("plays.parquet", item=links[1], user_id=links[0], plays=rng.integers(1, 9, ROWS))
    users = write("users.parquet", user_id=np.arange(60), age=rng.integers(1, 90, 60))
    items = write("items.parquet", id=np.arange(60), x=rng.normal(size=(60, 3)).tolist())
    pairs = write("pairs.parquet", user_id=[1, 2], item=[3, 4])
    config, _ = init(edges, "--nodes", users, "--candidates", pairs)
    assert config.graph.bipartite
    assert (config.graph.source, config.graph.target) == ("user_id", "item")
    assert config.graph.weight == "plays"
    assert config.graph.nodes["user_id"].features == ["age"]
    assert config.features.standardise
    assert (config.score.source, config.score.target) == ("user_id", "item")
    edges = write("plays.parquet", user=links[0], item=links[1] + 1000)
    items = write("items.parquet", id=np.arange(60) + 1000, x=rng.normal(size=(60, 3)).tolist())
    config, _ = init(edges, "--nodes", items, "--overwrite")
    assert config.graph.nodes["item"].features == ["x"]


def test_ids_that_no_two_columns_share_are_two_kinds(links):
    config, output = init(write("e.parquet", src=links[0], dst=links[1] + 10_000))
    assert config.graph.bipartite
    assert "no id stands in both columns" in " ".join(output.split())


def test_dated_citations(links):
    days = [date(2020, 1, 1) + timedelta(days=int(n)) for n in range(ROWS)]
    edges = write("c.parquet", cited=links[1], citing=links[0], published=days)
    config, _ = init(edges)
    assert config.graph.directed
    assert (config.graph.source, config.graph.target) == ("citing", "cited")
    assert config.graph.time == "published"
    assert config.split.by == "time"


def test_a_list_with_both_orders_has_no_direction(links):
    both = np.concatenate(links), np.concatenate(links[::-1])
    config, _ = init(write("e.parquet", follower=both[0], followee=both[1]))
    assert not config.graph.directed


def test_weights_and_a_node_table(links):
    rng = np.random.default_rng(2)
    edges = write("e.parquet", src=links[0], dst=links[1], weight=rng.uniform(0.1, 2, ROWS))
    table = {"id": np.arange(70), "label": np.arange(70) % 3, "height": rng.normal(size=70)}
    ragged = [[1.0] * (n % 2 + 1) for n in range(70)]
    config, _ = init(edges, "--nodes", write("n.parquet", **table, gaps=ragged))
    assert config.graph.weight == "weight"
    assert config.graph.node_id == "id"
    assert config.graph.features == ["height"]


def test_rows_that_would_stop_a_run_are_left_out(links):
    first = pl.Series([None, *links[0][1:].tolist()])
    config, output = init(write("e.parquet", src=first, dst=links[1], w=[0.0, *[1.5] * 399]))
    assert config.graph.on_bad_rows == "drop"
    assert config.graph.weight is None
    assert "1 values that are not above 0" in " ".join(output.split())


def test_odd_names_are_written_as_they_are(links):
    odd = "from: ${HOME} # 'x'\n[1]"
    config, _ = init(
        write("e.parquet", **{odd: links[0], "other": links[1]}),
        "--source",
        odd,
        "--target",
        "other",
    )
    assert config.graph.source == odd
    config, _ = init("e.parquet", "--source", "other", "--overwrite")
    assert (config.graph.source, config.graph.target) == ("other", odd)


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"a": [1.5], "b": [2]}, "has 1 column.s. that can hold ids"),
        ({"apple": [1], "pear": [2], "plum": [3]}, "--source COLUMN --target COLUMN"),
    ],
)
def test_a_table_without_ends_is_refused(columns, fault):
    with pytest.raises(InputError, match=fault):
        init(write("e.parquet", **columns))


def test_other_formats_and_files_that_exist_are_refused(links):
    edges = write("e.parquet", src=links[0], dst=links[1])
    Path("e.csv").write_text("src,dst\n1,2\n")
    with pytest.raises(InputError, match="perhaps CSV; convert it"):
        init("e.csv")
    init(edges)
    with pytest.raises(ConfigError, match=r"pipeline.yaml exists already; .*--overwrite"):
        init(edges)
    with pytest.raises(InputError, match="no column with the ids of the edges"):
        init(edges, "--nodes", write("n.parquet", id=["a", "b"]), "--overwrite")


def test_names_are_taken_apart():
    assert words_of("sourceNodeId") == words_of("SOURCE_NODE_ID") == ("source", "node", "id")
    assert pair_words("source_paper", "target_paper") == ("source", "target")
    assert pair_words("node1", "node2") == ("1", "2")
    assert name_of("s3://bucket/my plays/edges.parquet") == "my-plays"
    assert name_of("data/*.parquet") == "data"
