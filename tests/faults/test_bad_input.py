"""Bad input: one clear error that names file and column, exit code not 0, no artifact."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from peg_core.errors import InputError
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def run(config, address):
    """The command as a user calls it."""
    where = f"cluster.address={address}"
    return subprocess.run(
        [sys.executable, "-m", "pipeline", "run", str(config), "--set", where],
        capture_output=True,
        text=True,
        timeout=300,
    )


def rename_a_column(edges: Path) -> None:
    pl.read_parquet(edges).rename({"src": "from"}).write_parquet(edges)


def put_a_null(edges: Path) -> None:
    table = pl.read_parquet(edges)
    dst = pl.when(pl.int_range(len(table)) == 5).then(None).otherwise("dst")
    table.with_columns(dst.alias("dst")).write_parquet(edges)


def truncate(edges: Path) -> None:
    edges.write_bytes(edges.read_bytes()[:-100])


def empty(edges: Path) -> None:
    pl.read_parquet(edges).clear().write_parquet(edges)


def write_floats(edges: Path) -> None:
    pl.read_parquet(edges).with_columns(pl.col("dst") + 0.5).write_parquet(edges)


def not_parquet(edges: Path) -> None:
    edges.write_text("src,dst\n1,2\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (rename_a_column, r"edges.parquet has no column 'src'; it has 'from', 'dst'"),
        (put_a_null, r"'dst' of .*edges.parquet holds 1 null\(s\), .* row 5 of row group 0"),
        (truncate, r"edges.parquet is not a readable Parquet file .*write it again"),
        (empty, r"edges.parquet holds no edges"),
        (write_floats, r"'dst' of .*edges.parquet is of type double, needed is an integer or str"),
        (not_parquet, r"edges.parquet is not a readable Parquet file"),
    ],
)
def test_a_bad_edge_list_is_named_and_leaves_no_artifact(
    cluster, small_pipeline, display, spoil, message
):
    spoil(Path(small_pipeline.graph.edges))
    with pytest.raises(InputError, match=message):
        run_pipeline(small_pipeline, display)
    # the log and the history of runs tell of the failure; there is no artifact
    kept = {p.parent.name for p in Path(small_pipeline.store).rglob("*") if p.is_file()}
    assert kept <= {"logs", "history"}


def test_the_command_prints_one_error_and_exits_with_1(small_config, ray_address):
    put_a_null(small_config.parent / "edges.parquet")
    done = run(small_config, ray_address)
    assert done.returncode == 1
    assert done.stderr.count("error:") == 1, done.stderr
    assert "1 null(s), the first in row 5 of row group 0" in done.stderr
    assert "Traceback" not in done.stderr


def test_three_mistakes_are_told_together_with_exit_code_2(small_config, start_peg):
    text = small_config.read_text()
    text = text.replace("epochs: 6", "epochs: none").replace("hidden:", "hiden:")
    text = text.replace("kind: le", "kind: eigenmap")
    small_config.write_text(text)
    process = start_peg("run", small_config)
    assert process.wait() == 2
    for word in ("small.yaml:", "train.epochs", "did you mean 'hidden'", "known: le"):
        assert word in process.output, process.output
    assert not (small_config.parent / "store").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dst": pl.lit("x")}, r"candidates.parquet .*one kind of id everywhere"),
        ({"score": pl.lit(1.0)}, r"candidates.parquet has a column 'score' already"),
    ],
)
def test_bad_candidates_stop_before_any_score(cluster, small_pipeline, display, change, message):
    path = small_pipeline.score.candidates
    pl.read_parquet(path).with_columns(**change).write_parquet(path)
    with pytest.raises(InputError, match=message):
        run_pipeline(small_pipeline, display)
    assert not list((Path(small_pipeline.store) / "score").rglob("*.parquet"))
