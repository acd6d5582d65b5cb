"""The command ``peg generate``."""

from __future__ import annotations

import networkx as nx
import polars as pl
import pytest
from click.testing import CliRunner

from peg_core.errors import ConfigError
from peg_core.generators.random_graphs import GENERATORS
from pipeline.cli.generate_command import generate

SIZES = {
    "sbm": ["--nodes", "1_000", "--edges", "5_000"],
    "dcsbm": ["--nodes", "1_000", "--edges", "5_000", "--blocks", "20"],
    "rmat": ["--nodes", "1_000", "--edges", "5_000"],
    "grid": ["--nodes", "1_000", "--columns", "40"],
}
RELATIONAL = ("bipartite", "citations", "papers")


def run(*arguments):
    """Run the command; a PegError is raised, as for the main command."""
    result = CliRunner().invoke(generate, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def files_under(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_every_generator_has_a_command():
    assert GENERATORS.keys() == SIZES.keys()
    assert set(generate.commands) == {*GENERATORS, *RELATIONAL}


@pytest.mark.parametrize("name", SIZES)
def test_edges_are_read_by_polars(name, tmp_path):
    result = run(name, *SIZES[name], "--out", tmp_path / "new" / "edges.parquet")
    edges = pl.read_parquet(tmp_path / "new" / "edges.parquet")
    assert edges.schema == {"src": pl.Int64, "dst": pl.Int64}
    expected = nx.grid_2d_graph(25, 40).number_of_edges() if name == "grid" else 5000
    assert len(edges) == expected
    assert f"wrote {expected:,} edges to" in result.output
    assert edges.filter(pl.col("src") == pl.col("dst")).is_empty()
    assert edges.select(pl.max_horizontal("src", "dst").max()).item() < 1000
    assert files_under(tmp_path) == ["edges.parquet"]


@pytest.mark.parametrize("name", ["sbm", "dcsbm"])
def test_all_tables_are_written_as_the_options_say(name, tmp_path):
    result = run(
        name, *SIZES[name], "--seed", 9, "--weights", "--time", "--string-ids",
        "--out", tmp_path / "edges.parquet",
        "--features", 16, "--feature-noise", 0.5, "--nodes-out", tmp_path / "nodes.parquet",
        "--candidates", 300, "--candidates-out", tmp_path / "candidates.parquet",
    )  # fmt: skip
    edges = pl.read_parquet(tmp_path / "edges.parquet")
    assert edges.columns == ["src", "dst", "weight", "time"]
    assert edges["src"].str.starts_with("node-").all()
    nodes = pl.read_parquet(tmp_path / "nodes.parquet")
    assert nodes.columns == ["id", "x", "label"]
    assert nodes["x"].list.len().unique().to_list() == [16]
    deviation = nodes.group_by("label").agg(pl.col("x").list.first().std())["x"].mean()
    assert deviation == pytest.approx(0.5, abs=0.05)
    candidates = pl.read_parquet(tmp_path / "candidates.parquet")
    assert candidates.columns == ["src", "dst"]
    assert result.output.splitlines() == [
        f"wrote {len(table):,} {what} to {tmp_path / what}.parquet"
        for what, table in (("edges", edges), ("nodes", nodes), ("candidates", candidates))
    ]


@pytest.mark.parametrize("name", SIZES)
def test_same_seed_gives_the_same_bytes(name, tmp_path):
    for file in ("first", "second"):
        run(name, *SIZES[name], "--seed", 3, "--weights", "--time", "--out", tmp_path / file)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_existing_file_is_replaced_only_when_asked(tmp_path):
    out = tmp_path / "edges.parquet"
    out.write_text("precious")
    with pytest.raises(ConfigError, match=r"edges.parquet already exists; .*--overwrite"):
        run("sbm", *SIZES["sbm"], "--out", out)
    assert out.read_text() == "precious"
    run("sbm", *SIZES["sbm"], "--out", out, "--overwrite")
    assert len(pl.read_parquet(out)) == 5000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--edges", "0"], "0 edges were asked for"),
        (["--blocks", "501"], "501 blocks were asked for"),
        (["--seed", "-1"], "the seed is -1"),
        (["--features", "4"], "--features 4 was given without --nodes-out"),
        (["--nodes-out", "nodes"], "--nodes-out nodes was given without --features"),
        (["--features", "0", "--nodes-out", "nodes"], "0 features were asked for"),
        (["--candidates", "4"], "--candidates 4 was given without --candidates-out"),
        (["--candidates-out", "pairs"], "--candidates-out pairs was given without --candidates"),
        (["--candidates", "0", "--candidates-out", "pairs"], "0 candidates were asked for"),
        (["--candidates", "9_999_999", "--candidates-out", "pairs"], "form only 499,500 pairs"),
        (["--candidates", "4", "--candidates-out", "edges"], "edges was given for two outputs"),
        (["--out", "."], "is a folder; add a file name"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    options, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        run("sbm", *SIZES["sbm"], "--out", "edges", *options)
    assert files_under(tmp_path) == []


@pytest.mark.parametrize("name", ["", *SIZES, *RELATIONAL])
def test_help_teaches_by_example(name):
    result = run(*name.split(), "--help")
    assert f"peg generate {name}".strip() in result.output
    assert "--out data/" in result.output
