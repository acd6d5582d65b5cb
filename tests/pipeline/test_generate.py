"""The files of ``peg generate``."""

from __future__ import annotations

import networkx as nx
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pipeline.generate
from peg_core.errors import ConfigError, PegError
from peg_core.graph.generators import (
    CHUNK_ROWS,
    GENERATORS,
    StochasticBlockModel,
    sample_candidates,
)
from pipeline.generate import generate

SIZES = {
    "sbm": ["--nodes", "1_000", "--edges", "5_000"],
    "dcsbm": ["--nodes", "1_000", "--edges", "5_000", "--blocks", "20"],
    "rmat": ["--nodes", "1_000", "--edges", "5_000"],
    "grid": ["--nodes", "1_000", "--columns", "40"],
}


def run(*arguments):
    """Run the command; a PegError is raised, as for the main command."""
    result = CliRunner().invoke(generate, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def files_under(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_every_generator_has_a_command():
    assert generate.commands.keys() == GENERATORS.keys() == SIZES.keys()


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


@pytest.mark.parametrize("name", SIZES)
def test_same_seed_gives_the_same_bytes(name, tmp_path):
    for file in ("first", "second"):
        run(name, *SIZES[name], "--seed", 3, "--weights", "--time", "--out", tmp_path / file)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_rows_beyond_a_chunk_are_written_in_order(tmp_path):
    rows = 2 * CHUNK_ROWS + 10
    run("sbm", "--nodes", 5000, "--edges", rows, "--seed", 2, "--out", tmp_path / "edges.parquet")
    chunks = list(StochasticBlockModel(5000, rows).chunks(seed=2))
    edges = pl.read_parquet(tmp_path / "edges.parquet")
    for column, ends in zip(("src", "dst"), zip(*chunks, strict=True), strict=True):
        np.testing.assert_array_equal(edges[column].to_numpy(), np.concatenate(ends))


def test_files_are_compressed_with_zstd(tmp_path):
    run("rmat", *SIZES["rmat"], "--out", tmp_path / "edges.parquet")
    column = pq.ParquetFile(tmp_path / "edges.parquet").metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_string_ids_name_the_same_nodes_in_every_file(tmp_path):
    common = [*SIZES["sbm"], "--features", 4, "--candidates", 50]
    for prefix, flags in (("plain", []), ("text", ["--string-ids"])):
        run(
            "sbm", *common, *flags,
            "--out", tmp_path / f"{prefix}-edges.parquet",
            "--nodes-out", tmp_path / f"{prefix}-nodes.parquet",
            "--candidates-out", tmp_path / f"{prefix}-candidates.parquet",
        )  # fmt: skip
    for table, columns in (("edges", "src dst"), ("nodes", "id"), ("candidates", "src dst")):
        plain = pl.read_parquet(tmp_path / f"plain-{table}.parquet")
        text = pl.read_parquet(tmp_path / f"text-{table}.parquet")
        for column in columns.split():
            assert text[column].to_list() == [f"node-{i}" for i in plain[column].to_list()]


def test_weights_and_times_are_added_as_columns(tmp_path):
    run("rmat", *SIZES["rmat"], "--weights", "--time", "--out", tmp_path / "edges.parquet")
    edges = pl.read_parquet(tmp_path / "edges.parquet")
    assert dict(edges.schema) == {
        "src": pl.Int64, "dst": pl.Int64, "weight": pl.Float32, "time": pl.Int64,
    }  # fmt: skip
    assert edges["weight"].min() > 0
    assert edges["time"].n_unique() > 4900


@pytest.mark.parametrize("name", ["sbm", "dcsbm"])
def test_node_table_holds_every_node_with_features_and_community(name, tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline.generate, "NODE_CHUNK_VALUES", 600 * 16)
    run(
        name, *SIZES[name], "--seed", 9, "--features", 16, "--feature-noise", 0.5,
        "--out", tmp_path / "edges.parquet", "--nodes-out", tmp_path / "nodes.parquet",
    )  # fmt: skip
    nodes = pl.read_parquet(tmp_path / "nodes.parquet")
    assert dict(nodes.schema) == {"id": pl.Int64, "x": pl.List(pl.Float32), "label": pl.Int64}
    assert nodes["id"].to_list() == list(range(1000))
    assert nodes["x"].list.len().unique().to_list() == [16]

    label = nodes["label"].to_numpy()
    x = np.array(nodes["x"].to_list())
    centres = np.stack([x[label == k].mean(0) for k in range(label.max() + 1)])
    nearest = ((x[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert np.mean(nearest == label) > 0.95

    edges = pl.read_parquet(tmp_path / "edges.parquet")
    same = label[edges["src"].to_numpy()] == label[edges["dst"].to_numpy()]
    assert same.mean() == pytest.approx(0.8, abs=0.03)


def test_candidates_are_distinct_pairs(tmp_path):
    run(
        "grid", *SIZES["grid"], "--seed", 2, "--out", tmp_path / "edges.parquet",
        "--candidates", 3000, "--candidates-out", tmp_path / "candidates.parquet",
    )  # fmt: skip
    candidates = pl.read_parquet(tmp_path / "candidates.parquet")
    pairs = {frozenset(pair) for pair in candidates.rows()}
    assert len(candidates) == len(pairs) == 3000
    assert all(len(pair) == 2 for pair in pairs)
    expected = sample_candidates(nodes=1000, rows=3000, seed=2)
    np.testing.assert_array_equal(candidates["src"].to_numpy(), expected.source)


def test_existing_file_is_refused_and_left_alone(tmp_path):
    out = tmp_path / "edges.parquet"
    out.write_text("precious")
    with pytest.raises(ConfigError, match=r"edges.parquet exists already; .*--overwrite"):
        run("sbm", *SIZES["sbm"], "--out", out)
    assert out.read_text() == "precious"


def test_existing_file_is_replaced_when_asked(tmp_path):
    out = tmp_path / "edges.parquet"
    out.write_text("old")
    run("sbm", *SIZES["sbm"], "--out", out, "--overwrite")
    assert len(pl.read_parquet(out)) == 5000
    assert files_under(tmp_path) == ["edges.parquet"]


def test_failing_run_leaves_no_file(tmp_path, monkeypatch):
    def fail(*, nodes, rows, seed, first_row):
        if rows:
            raise RuntimeError("out of luck")

    monkeypatch.setattr(pipeline.generate, "sample_candidates", fail)
    with pytest.raises(RuntimeError, match="out of luck"):
        run(
            "sbm", *SIZES["sbm"], "--out", tmp_path / "edges.parquet",
            "--candidates", 10, "--candidates-out", tmp_path / "candidates.parquet",
        )  # fmt: skip
    assert files_under(tmp_path) == []


def test_full_disk_is_explained_and_leaves_no_file(tmp_path, monkeypatch):
    def fail(writer, batch):
        raise OSError("No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", fail)
    with pytest.raises(PegError, match=r"cannot write .*edges.parquet: No space .* free some"):
        run("sbm", *SIZES["sbm"], "--out", tmp_path / "edges.parquet")
    assert files_under(tmp_path) == []


def test_folder_that_cannot_be_created_is_explained(tmp_path):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(PegError, match=r"cannot create .*data: .* choose another folder"):
        run("grid", *SIZES["grid"], "--out", tmp_path / "data" / "edges.parquet")


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
        (["--candidates", "0", "--candidates-out", "pairs"], "0 candidates were asked for"),
        (["--candidates", "9_999_999", "--candidates-out", "pairs"], "form only 499,500 pairs"),
        (["--candidates", "4", "--candidates-out", "edges"], "edges was given for two outputs"),
        (["--out", "."], "is a folder, needed is a file"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    options, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        run("sbm", *SIZES["sbm"], "--out", "edges", *options)
    assert files_under(tmp_path) == []


def test_progress_of_large_outputs_goes_to_stderr_in_tenths(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline.generate, "LARGE_OUTPUT_ROWS", 1000)
    rows = 3 * CHUNK_ROWS
    result = run("grid", "--nodes", rows, "--columns", 1, "--out", tmp_path / "edges.parquet")
    assert result.stderr.splitlines() == [
        f"edges: {done:,} of {rows - 1:,} written"
        for done in (CHUNK_ROWS, 2 * CHUNK_ROWS, rows - 1)
    ]
    assert "written" not in result.stdout


@pytest.mark.parametrize("name", ["", *SIZES])
def test_help_teaches_by_example(name):
    result = run(*name.split(), "--help")
    assert f"peg generate {name}".strip() in result.output
    assert "--out data/" in result.output
