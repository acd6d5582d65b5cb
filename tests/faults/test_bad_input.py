"""Bad input: one clear error that names file and column, exit code not 0, no artifact."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from peg_core.errors import InputError, LeakFound
from pipeline.config.pipeline_config import PipelineConfig
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


def repeat_a_column(edges: Path) -> None:
    table = pq.read_table(edges)
    pq.write_table(table.append_column("src", table["src"]), edges)


def only_loops(edges: Path) -> None:
    pl.DataFrame({"src": [1, 2, 2], "dst": [1, 2, 2]}).write_parquet(edges)


def with_keys(config: PipelineConfig, section: str, **keys: object) -> PipelineConfig:
    changed = getattr(config, section).model_copy(update=keys)
    return config.model_copy(update={section: changed})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (rename_a_column, r"edges.parquet has no column 'src'; it has 'from', 'dst'"),
        (put_a_null, r"'dst' of .*edges.parquet holds 1 null\(s\), .* row 5 of row group 0"),
        (truncate, r"edges.parquet is not a readable Parquet file .*write it again"),
        (empty, r"edges.parquet holds no edges"),
        (write_floats, r"'dst' of .*edges.parquet is of type double, needed is an integer or str"),
        (not_parquet, r"edges.parquet is not a readable Parquet file, but a text file, .*read_csv"),
        (repeat_a_column, r"edges.parquet has 2 columns named 'src', one is needed"),
        (only_loops, r"edges.parquet holds no edge that can be used: of 3 rows 3 lead from a nod"),
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


@pytest.mark.parametrize("with_nodes", [True, False])
def test_a_graph_of_which_no_row_is_left_is_called_empty(
    cluster, small_pipeline, display, with_nodes
):
    edges = Path(small_pipeline.graph.edges)
    nothing = pl.Series("dst", [None] * 7, pl.Int64)
    pl.DataFrame({"src": range(7), "dst": nothing}).write_parquet(edges)
    config = with_keys(small_pipeline, "graph", on_bad_rows="drop")
    if not with_nodes:
        config = with_keys(config, "graph", nodes=None, features=None)
    message = r"edges.parquet holds no edge that can be used: .*drop` left out all 7 rows"
    with pytest.raises(InputError, match=message):
        run_pipeline(config, display, target="ingest")


def test_an_added_file_of_which_no_row_is_left_changes_nothing(
    cluster, small_pipeline, display, tmp_path
):
    folder = tmp_path / "edges"
    folder.mkdir()
    pl.read_parquet(small_pipeline.graph.edges).write_parquet(folder / "a.parquet")
    config = with_keys(small_pipeline, "graph", edges=str(folder), on_bad_rows="drop")
    before = run_pipeline(config, display, target="ingest")["ingest"].counts
    nothing = pl.Series("dst", [None] * 7, pl.Int64)
    pl.DataFrame({"src": range(7), "dst": nothing}).write_parquet(folder / "b.parquet")
    after = run_pipeline(config, display, target="ingest")["ingest"].counts
    assert (after["nodes"], after["edges"]) == (before["nodes"], before["edges"])
    assert after["null_ids"] == 7


def test_a_node_table_of_few_nodes_is_warned_of(cluster, small_pipeline, display):
    nodes = pl.read_parquet(small_pipeline.graph.nodes)
    nodes[:3].write_parquet(small_pipeline.graph.nodes)
    manifests = run_pipeline(small_pipeline, display, target="ingest")
    share = f"rows for 3 of {len(nodes):,} nodes ({3 / len(nodes):.1%})"
    (warning,) = manifests["ingest"].warnings
    assert share in warning


def test_a_node_table_with_ids_of_its_own_is_warned_of(cluster, small_pipeline, display):
    nodes = pl.read_parquet(small_pipeline.graph.nodes)
    nodes.with_columns(pl.col("id") + 10**6).write_parquet(small_pipeline.graph.nodes)
    manifests = run_pipeline(small_pipeline, display, target="ingest")
    assert f"{len(nodes):,} nodes have no edge" in manifests["ingest"].warnings[-1]


def test_links_that_validate_and_test_are_a_leak(cluster, small_pipeline, display, tmp_path):
    edges = pl.read_parquet(small_pipeline.graph.edges)
    valid, test = str(tmp_path / "valid.parquet"), str(tmp_path / "test.parquet")
    edges[:20].write_parquet(valid)
    edges[15:40].rename({"src": "dst", "dst": "src"}).write_parquet(test)
    config = with_keys(small_pipeline, "split", by="files", valid_edges=valid, test_edges=test)
    with pytest.raises(LeakFound, match=r"5 link\(s\) stand in both .*valid.parquet and .*test"):
        run_pipeline(config, display, target="split")


def test_a_split_on_one_time_is_refused_and_ties_are_warned_of(cluster, small_pipeline, display):
    path = small_pipeline.graph.edges
    edges = pl.read_parquet(path)
    config = with_keys(with_keys(small_pipeline, "split", by="time"), "graph", time="when")
    edges.with_columns(when=pl.lit(7)).write_parquet(path)
    with pytest.raises(InputError, match="edges have the same time, 7, a split by time needs"):
        run_pipeline(config, display, target="split")
    years = pl.int_range(len(edges)) // (len(edges) // 2)
    edges.with_columns(when=years + 2000).write_parquet(path)
    first, second = run_pipeline(config, display, target="split")["split"].warnings
    assert "the time 2001, on which the split between train and valid falls" in first
    assert "between valid and test falls" in second


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
