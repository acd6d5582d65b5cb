from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.linalg
import scipy.stats
import yaml
from click.testing import CliRunner

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import ArtifactMismatch, ConfigError, PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.node_ids import NodeIds
from pipeline.cli.app import cli
from pipeline.config.loading import load_config
from pipeline.run.runner import plan_run, run_pipeline
from pipeline.store.local_store import ArtifactStore


def invoke(*arguments, **environment):
    runner = CliRunner(env=environment)
    result = runner.invoke(cli, ["inspect", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def inspect_json(*arguments):
    return json.loads(invoke(*arguments, "--json"))


def finish(config_file: Path, stage: str) -> Path:
    """The folder of a stage's artifact that `peg plan` takes for finished."""
    config = load_config(config_file)
    (step,) = [step for step in plan_run(config) if step.stage.name == stage]
    folder = ArtifactStore(Path(config.store)).prepare(stage, step.fingerprint, afresh=False).folder
    counts = {"nodes": 1, "edges": 1}
    Manifest(step.identity, step.fingerprint, "then", "now", 0.0, 0, counts).write(folder)
    return folder


def finish_encoding(config_file: Path, stage: str, positions: np.ndarray) -> None:
    file = finish(config_file, stage) / "encoding-0" / "all.npy"
    file.parent.mkdir(parents=True)
    np.save(file, positions)


def finish_ingest(config_file: Path, graph: GraphStore, ids: list[object]) -> Path:
    folder = finish(config_file, "ingest")
    graph.save(folder)
    NodeIds(pa.array(ids)).save(folder)
    return folder


@pytest.fixture
def positions():
    return np.random.default_rng(8).normal(size=(120, 4)).astype(np.float32)


@pytest.fixture
def position_files(tmp_path, positions):
    """A, and B: A rotated, node 33 moved by 5, four new nodes at the end."""
    moved = positions.copy()
    moved[33] += [0, 5, 0, 0]
    rotated = np.vstack([moved, moved[:4]]) @ scipy.stats.ortho_group.rvs(4, random_state=1)
    files = tmp_path / "a.npy", tmp_path / "b.npy"
    for file, array in zip(files, (positions, rotated), strict=True):
        np.save(file, array)
    return files


@pytest.fixture
def other_config(small_config):
    """A second pipeline on the same edges."""
    settings = yaml.safe_load(small_config.read_text())
    settings["encodings"][0]["seed"] = 1
    file = small_config.with_name("other.yaml")
    file.write_text(yaml.safe_dump(settings))
    return file


@pytest.mark.parametrize(
    ("arguments", "taught"),
    [
        ([], ["peg inspect graph", "peg inspect encoding"]),
        (["graph"], ["TARGET", "configuration file", "hubs", "--json | jq"]),
        (["encoding"], [" A B", "eta(A, B)", "rotated", "more rows", "--json | jq"]),
    ],
)
def test_help_teaches(arguments, taught):
    text = invoke(*arguments, "--help")
    for part in taught:
        assert part in text


@pytest.mark.parametrize("columns", ["60", "120"])
def test_graph_of_a_configuration_shows_its_current_ingest(small_config, to_store, columns):
    graph = nx.barbell_graph(5, 3)
    finish_ingest(small_config, to_store(graph), [f"user-{node}" for node in graph])
    text = invoke("graph", small_config, COLUMNS=columns)
    words = [line.split() for line in text.splitlines()]
    assert ["nodes", "13"] in words
    assert ["edges", f"{graph.number_of_edges()},", "unweighted"] in words
    assert ["components", "1"] in words
    assert ["5", "4", "user-4"] in words  # a node where a bell and the bar meet
    assert "█" in text
    assert all(len(line) <= int(columns) for line in text.splitlines()[1:])


def test_graph_as_json_holds_what_networkx_counts(small_config, to_store):
    graph = nx.disjoint_union(nx.star_graph(7), nx.path_graph(3))
    graph.add_node(len(graph))
    folder = finish_ingest(small_config, to_store(graph), [100 + node for node in graph])
    shown = inspect_json("graph", small_config)
    assert shown["folder"] == str(folder)
    assert shown["density"] == pytest.approx(nx.density(graph))
    assert shown["components"] == nx.number_connected_components(graph)
    assert shown["largest_components"] == [8, 3, 1]
    assert shown["isolated_nodes"] == 1
    assert shown["hubs"][0] == {"id": 100, "index": 0, "degree": 7}
    histogram = nx.degree_histogram(graph)
    assert [item["nodes"] for item in shown["degree_distribution"]] == [
        histogram[0],
        histogram[1],
        sum(histogram[2:4]),
        sum(histogram[4:8]),
    ]


def test_graph_of_a_folder_needs_no_configuration(tmp_path, two_communities):
    two_communities.save(tmp_path)
    shown = inspect_json("graph", tmp_path)
    assert (shown["nodes"], shown["edges"]) == (60, two_communities.num_edges)
    assert {hub["id"] for hub in shown["hubs"]} == {None}


def test_graph_before_the_first_run_says_what_to_do(small_config):
    message = rf"no up-to-date result of ingest \(not done yet\); start `peg run {small_config}`"
    with pytest.raises(PegError, match=message):
        invoke("graph", small_config)


def test_graph_after_its_edges_changed_says_so(small_config, two_communities):
    finish_ingest(small_config, two_communities, list(range(60)))
    pl.DataFrame({"src": [1], "dst": [2]}).write_parquet(small_config.parent / "edges.parquet")
    with pytest.raises(PegError, match="edges"):
        invoke("graph", small_config)


def test_graph_of_a_folder_without_a_store_is_refused(tmp_path):
    with pytest.raises(PegError, match=r"has no indptr\.npy; name a configuration file, or"):
        invoke("graph", tmp_path)


def test_graph_of_nothing_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        invoke("graph", tmp_path / "none.yaml")


def test_encoding_finds_the_node_that_moved(position_files):
    shown = inspect_json("encoding", *position_files)
    first = np.load(position_files[0]).astype(np.float64)
    rotation, _ = scipy.linalg.orthogonal_procrustes(np.load(position_files[1])[:120], first)
    distances = np.linalg.norm(first - np.load(position_files[1])[:120] @ rotation, axis=1)
    assert shown["a"] == {"file": str(position_files[0]), "stage": None, "shape": [120, 4]}
    assert shown["b"]["shape"] == [124, 4]
    assert (shown["compared_nodes"], shown["new_nodes"]) == (120, 4)
    assert shown["eta"] == pytest.approx(np.linalg.norm(distances), rel=1e-5)
    assert shown["mean_distance"] == pytest.approx(distances.mean(), rel=1e-5)
    assert shown["max_distance"] == pytest.approx(distances[33], rel=1e-5)
    assert len(shown["moved_most"]) == 5
    assert shown["moved_most"][0]["index"] == 33
    text = invoke("encoding", *position_files, COLUMNS="60")
    assert "120 compared, 4 new in B left out" in text
    assert f"{shown['eta']:.4g}" in text


def test_encoding_of_configurations_names_nodes_by_their_ids(
    small_config, other_config, two_communities, positions
):
    finish_ingest(small_config, two_communities, [f"user-{node}" for node in range(120)])
    moved = positions.copy()
    moved[33] += 5
    finish_encoding(small_config, "encode_all", positions)
    finish_encoding(other_config, "encode_all", moved)
    shown = inspect_json("encoding", small_config, other_config)
    assert shown["a"]["stage"] == shown["b"]["stage"] == "encode_all"
    assert shown["a"]["file"] != shown["b"]["file"]
    assert shown["moved_most"][0]["id"] == "user-33"
    assert "user-33" in invoke("encoding", small_config, other_config)


def test_encoding_falls_back_to_the_training_graph(small_config, position_files, positions):
    finish_encoding(small_config, "encode", positions)
    shown = inspect_json("encoding", small_config, position_files[0])
    assert shown["a"]["stage"] == "encode"
    assert shown["eta"] == pytest.approx(0, abs=1e-4)


def test_encoding_before_the_first_run_says_what_to_do(small_config, position_files):
    message = r"no up-to-date result of encode_all \(not done yet\) or encode \(not done yet\)"
    with pytest.raises(PegError, match=message):
        invoke("encoding", position_files[0], small_config)


def test_encodings_of_other_nodes_are_refused(
    small_config, other_config, two_communities, positions
):
    settings = yaml.safe_load(other_config.read_text())
    settings["graph"]["edges"] = str(small_config.parent / "candidates.parquet")
    other_config.write_text(yaml.safe_dump(settings))
    for file, ids in ((small_config, range(120)), (other_config, range(7, 127))):
        finish_ingest(file, two_communities, list(ids))
        finish_encoding(file, "encode_all", positions)
    with pytest.raises(ArtifactMismatch, match=r"not encodings of the same nodes.* 0 \.\. 119"):
        invoke("encoding", small_config, other_config)


@pytest.mark.parametrize("shape", [(119, 4), (120, 5)])
def test_encodings_that_do_not_fit_are_refused_with_both_shapes(position_files, shape):
    np.save(position_files[1], np.ones(shape))
    message = rf"shape \(120, 4\) and B has shape \({shape[0]}, {shape[1]}\)"
    with pytest.raises(ArtifactMismatch, match=message):
        invoke("encoding", *position_files)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(5), r"float64 of shape \(5,\); give a table of numbers"),
        (np.ones((0, 4)), r"shape \(0, 4\); give a table"),
        (np.array([["a", "b"]]), "give a table of numbers"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "NaN or infinity in row 1;"),
    ],
)
def test_arrays_that_are_no_positions_are_refused(position_files, array, message):
    np.save(position_files[1], array)
    with pytest.raises(PegError, match=message):
        invoke("encoding", *position_files)


@pytest.mark.parametrize("dtype", ["float16", "int64", ">f4"])
def test_other_numbers_are_positions_too(position_files, positions, dtype):
    for file in position_files:
        np.save(file, (10 * positions).astype(dtype))
    assert inspect_json("encoding", *position_files)["relative_eta"] == pytest.approx(0, abs=1e-5)


def test_files_that_are_no_arrays_are_refused(position_files):
    for content in (b"", b"positions", position_files[0].read_bytes()[:-8]):
        position_files[1].write_bytes(content)
        with pytest.raises(PegError, match=r"b\.npy cannot be read \(.+\); give a \.npy"):
            invoke("encoding", *position_files)
    with pytest.raises(PegError, match=r"none\.npy cannot be read"):
        invoke("encoding", position_files[0], position_files[0].with_name("none.npy"))


def test_a_folder_is_no_encoding(tmp_path, position_files):
    with pytest.raises(PegError, match=r"is a folder, not a \.npy file"):
        invoke("encoding", tmp_path, position_files[0])


@pytest.mark.slow
def test_a_pipe_gets_plain_text(tmp_path, two_communities):
    two_communities.save(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "inspect", "graph", str(tmp_path)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert b"###" in done.stdout
    assert b"\x1b" not in done.stdout


@pytest.mark.ray
@pytest.mark.slow
def test_what_a_real_run_made_can_be_inspected(cluster, small_config, display):
    run_pipeline(load_config(small_config), display)
    edges = pl.read_parquet(small_config.parent / "edges.parquet")
    graph = nx.Graph(edges.rows())
    graph.add_nodes_from(range(120))
    shown = inspect_json("graph", small_config)
    assert (shown["nodes"], shown["edges"]) == (120, graph.number_of_edges())
    ranked = sorted(graph.degree(), key=lambda pair: (-pair[1], pair[0]))
    assert [(hub["id"], hub["degree"]) for hub in shown["hubs"]] == ranked[:10]
    assert shown["feature_width"] == 4
    assert inspect_json("encoding", small_config, small_config)["eta"] < 1e-4
