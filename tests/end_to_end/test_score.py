"""``peg score``, called as a user does, on a real local Ray."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import yaml

from peg_core.artifacts.trained_model import TrainedModel
from peg_core.errors import ArtifactMismatch, ConfigError, InputError
from peg_core.graph.components import connected_components
from peg_core.graph.node_features import input_features
from peg_core.inference.pair_scoring import PairScorer, probabilities
from peg_core.layers.message_graph import MessageGraph
from peg_core.metrics.calibration import Calibration
from pipeline.cli.app import cli
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import ScoreConfig
from pipeline.run.runner import run_pipeline
from pipeline.run.stage_runner import StageRunner
from pipeline.run.transfer import OtherGraph, embed_other_graph, transfer_config
from pipeline.store.local_store import ArtifactStore
from workers.artifact_ref import ArtifactRef

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def peg_score(*arguments):
    cli.main(["score", *map(str, arguments)], standalone_mode=False)


def read(folder):
    return pl.read_parquet(sorted(folder.glob("part-*.parquet")))


@pytest.fixture
def candidates(trained_run):
    return trained_run.parent / "candidates.parquet"


@pytest.fixture
def train(trained_run):
    return trained_run.parent / "store" / "current" / "train"


def test_a_run_scores_other_candidates_as_its_own(trained_run, candidates, tmp_path, display):
    out = tmp_path / "scores"
    arguments = ("--run", trained_run, "--candidates", candidates, "--out", out)
    peg_score(*arguments, "--shard-rows", 200, "--column", "score", "--column", "logit")
    table = read(out)
    assert table.columns == ["src", "dst", "score", "logit", "reason", "note"]
    assert sorted(f.name for f in out.iterdir()) == [
        "done", "manifest.json", *(f"part-{i:06}.parquet" for i in range(3))
    ]  # fmt: skip
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["counts"] == {
        "pairs": 600, "unknown": 1, "null_ids": 0, "self_pairs": 5, "files": 3
    }  # fmt: skip

    values = yaml.safe_load(trained_run.read_text())
    score = {"candidates": str(candidates), "shard_rows": 100, "columns": ["logit"]}
    config = PipelineConfig(**values, score=score)
    run_pipeline(config, display)
    by_run = pl.read_parquet(Path(config.store) / "current/score/*.parquet")
    assert by_run["logit"].equals(table["logit"])

    before = (out / "part-000000.parquet").stat().st_mtime_ns
    peg_score(*arguments, "--shard-rows", 200, "--column", "score", "--column", "logit")
    assert (out / "part-000000.parquet").stat().st_mtime_ns == before
    with pytest.raises(ConfigError, match="holds the scores of another request; name another"):
        peg_score(*arguments)


def write_other_graph(folder, width=4):
    """80 nodes called a-0 .. a-79, with features, and 200 candidates."""
    rng = np.random.default_rng(8)
    edges = rng.integers(0, 80, size=(400, 2))
    named = [[f"a-{node}" for node in end] for end in edges.T]
    pl.DataFrame({"src": named[0], "dst": named[1]}).write_parquet(folder / "other.parquet")
    x = rng.normal(size=(80, width)).astype(np.float32)
    names = [f"a-{node}" for node in range(80)]
    pl.DataFrame({"id": names, "x": x.tolist()}).write_parquet(folder / "other-nodes.parquet")
    pairs = rng.choice(names, size=(2, 200))
    pl.DataFrame({"u": pairs[0], "v": pairs[1]}).write_parquet(folder / "pairs.parquet")
    return [
        "--graph", folder / "other.parquet", "--nodes", folder / "other-nodes.parquet",
        "--candidates", folder / "pairs.parquet", "--source", "u", "--target", "v",
    ]  # fmt: skip


def test_a_model_scores_a_graph_that_it_has_not_seen(train, tmp_path, cluster, display):
    arguments = write_other_graph(tmp_path)
    peg_score("--model", train, "--out", tmp_path / "out", *arguments)
    other = OtherGraph(str(tmp_path / "other.parquet"), str(tmp_path / "other-nodes.parquet"))
    trained = ArtifactRef.of_folder(train / "seed-0", TrainedModel)
    score = ScoreConfig(candidates=str(tmp_path / "other.parquet"))
    config = transfer_config(trained.open(), other, score, tmp_path / "work")
    runner = StageRunner(config, cluster, display)
    made = embed_other_graph(runner, trained, other, ArtifactStore(tmp_path / "work"))
    table = read(tmp_path / "out")
    assert table.columns == ["u", "v", "score", "reason"]
    itself = table["u"] == table["v"]
    assert set(table.filter(itself)["reason"]) == {"self_pair"}
    assert table.filter(~itself)["score"].null_count() == 0

    model = TrainedModel(train / "seed-0").network
    graph = made.graph.open()
    positions = [np.load(made.all_positions.folder / "encoding-0" / "all.npy")]
    x = input_features(made.features.open(), graph, positions)
    given = pl.read_parquet(tmp_path / "other-nodes.parquet")
    ids = made.node_ids.open().source
    raw = np.array(given["x"].to_list())[np.argsort(ids.lookup(given["id"].to_arrow()))]
    np.testing.assert_allclose(x, raw / np.linalg.norm(raw, axis=1, keepdims=True), rtol=1e-5)
    messages = MessageGraph.of_graph(graph, positions)
    with torch.no_grad():
        embeddings = model(torch.from_numpy(x), messages).numpy()
    np.testing.assert_allclose(made.all_embeddings.open().array(), embeddings, atol=1e-5)
    scorer = PairScorer(model, graph, embeddings, positions, connected_components(graph)[1])
    logits = scorer.logits(*(ids.lookup(table[name].to_arrow()) for name in "uv"))
    expected = probabilities(logits)
    expected[itself] = np.nan
    np.testing.assert_allclose(table["score"].fill_null(np.nan), expected, atol=1e-5)


def test_the_folder_of_a_graph_store_is_read_as_it_is(trained_run, train, candidates, tmp_path):
    store = trained_run.parent / "store" / "current" / "ingest"
    peg_score("--model", train / "seed-0", "--graph", store, "--candidates", candidates,
              "--out", tmp_path / "other")  # fmt: skip
    peg_score("--run", trained_run, "--candidates", candidates, "--out", tmp_path / "own")
    other, own = read(tmp_path / "other"), read(tmp_path / "own")
    # a model apart from its run has no calibration
    calibration = Calibration.open(store.parent / "calibrate" / "seed-0")
    chance = other["score"].to_numpy()
    expected = calibration.probabilities(np.log(chance / (1 - chance)))
    np.testing.assert_allclose(own["score"], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("width", "message"),
    [(7, r"node features of .* found 7 columns, needed 4"), (None, "found none, needed 4")],
)
def test_other_features_are_refused_with_both_named(train, tmp_path, width, message):
    arguments = write_other_graph(tmp_path, width or 4)
    if width is None:
        arguments = arguments[:2] + arguments[4:]
    with pytest.raises(ArtifactMismatch, match=message):
        peg_score("--model", train, "--out", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_not_trained_yet_is_told(small_config, tmp_path):
    rest = ["--candidates", tmp_path / "candidates.parquet", "--out", tmp_path / "out"]
    with pytest.raises(InputError, match=r"no trained model .* run `peg run` with it first"):
        peg_score("--run", small_config, *rest)
    with pytest.raises(InputError, match=r"model\.json is missing"):
        peg_score("--model", tmp_path, "--graph", tmp_path / "edges.parquet", *rest)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", [[], ["--run", "a", "--model", "b"], ["--model", "b"]])
def test_half_a_request_is_refused(given):
    with pytest.raises(ConfigError, match="give"):
        peg_score(*given, "--candidates", "c.parquet", "--out", "out")


def test_a_folder_with_other_files_is_left_alone(trained_run, candidates, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds other files"):
        peg_score("--run", trained_run, "--candidates", candidates, "--out", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def put_nulls(file):
    table = pl.read_parquet(file)
    src = pl.when(pl.int_range(len(table)) < 3).then(None).otherwise("src")
    table.with_columns(src.alias("src")).write_parquet(file)


def test_nulls_and_unknown_ids_are_counted_apart(trained_run, candidates, tmp_path, capsys):
    file = Path(shutil.copy(candidates, tmp_path))
    put_nulls(file)
    peg_score("--run", trained_run, "--candidates", file, "--out", tmp_path / "out")
    table = read(tmp_path / "out")
    assert table["reason"].value_counts(sort=True).rows() == [
        (None, 591), ("self_pair", 5), ("null_id", 3), ("unknown_node", 1)
    ]  # fmt: skip
    assert table["score"].null_count() == 9
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 of 600 candidate pairs name a node that the graph does not have" in shown
    assert "3 of 600 candidate pairs have a null id" in shown


def rename_a_column(file):
    pl.read_parquet(file).rename({"dst": "destination"}).write_parquet(file)


def truncate(file):
    file.write_bytes(file.read_bytes()[:-200])


def empty(file):
    pl.read_parquet(file).clear().write_parquet(file)


def write_text_ids(file):
    as_text = [pl.col(name).cast(pl.String) for name in ("src", "dst")]
    pl.read_parquet(file).with_columns(as_text).write_parquet(file)


@pytest.mark.parametrize(
    ("spoil", "kind", "message"),
    [
        (rename_a_column, InputError, r"candidates.parquet has no column 'dst'; it has 'note', "),
        (truncate, InputError, r"candidates.parquet is not a readable Parquet file .*write it ag"),
        (empty, InputError, r"candidates.parquet holds no candidate pairs"),
        (Path.unlink, InputError, r"no Parquet file at .*candidates.parquet"),
        (write_text_ids, ArtifactMismatch, r"the ids in .* found large_string, needed int64"),
        (put_nulls, InputError, r"'src' of .*candidates.parquet holds a null, and `on_unknown` is"),
    ],
)
def test_bad_candidates_are_named_and_leave_nothing(
    trained_run, candidates, tmp_path, spoil, kind, message
):
    file = Path(shutil.copy(candidates, tmp_path))
    spoil(file)
    with pytest.raises(kind, match=message):
        peg_score("--run", trained_run, "--candidates", file, "--out", tmp_path / "out",
                  "--on-unknown", "error")  # fmt: skip
    assert not (tmp_path / "out").exists()
