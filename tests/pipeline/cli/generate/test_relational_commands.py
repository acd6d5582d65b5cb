"""The commands ``peg generate bipartite``, ``citations`` and ``papers``."""

from __future__ import annotations

import datetime

import polars as pl
import pytest
from click.testing import CliRunner

from peg_core.errors import ConfigError
from pipeline.cli.generate_command import generate

BIPARTITE = (
    *("bipartite", "--users", 300, "--items", 200, "--edges", 3000, "--out", "edges"),
    *("--friends", 500, "--friends-out", "friends"),
    *("--candidates", 100, "--candidates-out", "candidates"),
)
CITATIONS = (
    *("citations", "--papers", 500, "--edges", 3000, "--out", "edges"),
    *("--features", 4, "--nodes-out", "papers"),
    *("--candidates", 100, "--candidates-out", "candidates"),
)
PAPERS = (
    *("papers", "--papers", 300, "--out", "edges", "--nodes-out", "papers"),
    *("--candidates", 100, "--candidates-out", "candidates"),
)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    """Run the command; a PegError is raised, as for the main command."""
    result = CliRunner().invoke(generate, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_users_items_and_friends_are_written():
    result = run(*BIPARTITE)
    tables = {name: pl.read_parquet(name) for name in ("edges", "friends", "candidates")}
    assert tables["edges"].schema == dict.fromkeys(["user", "item", "plays"], pl.Int64)
    assert tables["friends"].schema == dict.fromkeys(["user", "friend"], pl.Int64)
    assert tables["candidates"].schema == dict.fromkeys(["user", "item"], pl.Int64)
    assert [len(table) for table in tables.values()] == [3000, 500, 100]
    assert tables["edges"]["item"].max() < 200 <= tables["edges"]["user"].max()
    assert result.output.splitlines() == [
        "wrote 3,000 edges to edges",
        "wrote 500 friendships to friends",
        "wrote 100 candidates to candidates",
    ]


def test_citations_papers_and_candidates_agree_about_dates():
    run(*CITATIONS)
    edges, papers = pl.read_parquet("edges"), pl.read_parquet("papers")
    assert edges.schema == {"citing": pl.Int64, "cited": pl.Int64, "date": pl.Date}
    assert papers.columns == ["paper", "x", "topic", "date"]
    assert papers["x"].list.len().unique().to_list() == [4]
    assert papers["date"].is_between(datetime.date(2010, 1, 1), datetime.date(2019, 12, 31)).all()
    dates = papers.select("paper", of_paper="date")
    citing = edges.join(dates, left_on="citing", right_on="paper")
    assert (citing["date"] == citing["of_paper"]).all()
    cited = edges.join(dates, left_on="cited", right_on="paper")
    assert (cited["of_paper"] < cited["date"]).all()
    assert len(pl.read_parquet("candidates")) == 100


def test_papers_are_known_by_their_titles():
    run(*PAPERS)
    edges, papers = pl.read_parquet("edges"), pl.read_parquet("papers")
    assert papers.columns == ["id", "field", "topic", "year", "words", "x"]
    assert papers["words"].list.len().to_list() == papers["x"].list.len().to_list()
    assert set(edges["src"]) | set(edges["dst"]) == set(papers["id"])
    assert pl.read_parquet("candidates").n_unique() == 100


@pytest.mark.parametrize("arguments", [BIPARTITE, CITATIONS, PAPERS], ids=lambda each: each[0])
def test_same_seed_gives_the_same_bytes(arguments, tmp_path):
    def contents():
        run(*arguments, "--seed", 3, "--overwrite")
        return {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    first = contents()
    assert len(first) == 3
    assert contents() == first


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        (BIPARTITE, ["--edges", 6001], "6,001 edges were asked for, between 1 and 6,000"),
        (BIPARTITE, ["--seed", -1], "the seed is -1"),
        (BIPARTITE, ["--friends", 0], "0 friendships were asked for"),
        (BIPARTITE, ["--candidates", 60_001], "60,001 candidates were asked for"),
        (BIPARTITE, ["--friends-out", "edges"], "edges was given for two outputs"),
        (BIPARTITE[:-2], [], "--candidates 100 was given without --candidates-out"),
        (CITATIONS, ["--features", 0], "0 features were asked for"),
        (CITATIONS, ["--candidates", 0], "0 candidates were asked for"),
        (CITATIONS, ["--topics", 300], "300 topics were asked for"),
        (PAPERS, ["--papers", 99], "99 papers were asked for"),
        (CITATIONS[:-2], [], "--candidates 100 was given without --candidates-out"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(command, options, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        run(*command, *options)
    assert list(tmp_path.iterdir()) == []


def test_pairs_that_run_out_leave_nothing_behind(tmp_path):
    crowded = ("--edges", 600, "--tastes", 10, "--inside-share", 1, "--users", 100, "--items", 60)
    with pytest.raises(ConfigError, match="different ones were found"):
        run(*BIPARTITE, *crowded, "--friends", 10)
    assert list(tmp_path.iterdir()) == []
