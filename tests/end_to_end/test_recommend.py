"""`peg recommend` on a real local Ray, against scoring every pair."""

import re
import signal
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from peg_core.artifacts import EmbeddedGraph, Embeddings, Positions, TrainedModel
from peg_core.errors import ConfigError, InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.metrics.calibration import Calibration
from pipeline.cli.app import cli
from pipeline.config.result_sections import RecommendConfig
from pipeline.run.plan import needed_stages
from pipeline.run.runner import plan_run, run_pipeline
from pipeline.stages import STAGES, index

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def with_recommend(config, **settings):
    return config.model_copy(update={"score": None, "recommend": RecommendConfig(**settings)})


def recommend(config, display):
    manifests = run_pipeline(config, display, target="recommend")
    return manifests, Path(config.store) / "current"


def outputs(current):
    return pl.read_parquet(sorted((current / "recommend").glob("part-*.parquet")))


def exhaustive(current, nodes, top_k):
    """The best candidates of some nodes, by scoring them with all nodes."""
    graph = GraphStore.open(current / "ingest")
    embedded = EmbeddedGraph.of(
        graph, Positions(current / "encode_all"), Embeddings(current / "embed_all")
    )
    scorer = embedded.scorer(TrainedModel(current / "train" / "seed-0"))
    calibration = Calibration.open(current / "calibrate" / "seed-0")
    everyone = np.arange(graph.num_nodes)
    rows = []
    for node in nodes:
        new = everyone[(everyone != node) & ~np.isin(everyone, graph.neighbours(node))]
        score = calibration.probabilities(scorer.logits(np.full(len(new), node), new))
        best = np.lexsort((new, -score))[:top_k]
        rows += [(node, rank, new[i], score[i]) for rank, i in enumerate(best, start=1)]
    schema = {"node": pl.Int64, "rank": pl.Int32, "candidate": pl.Int64, "score": pl.Float32}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_generous_candidates_give_exactly_the_exhaustive_answer(cluster, shared_pipeline, display):
    config = with_recommend(shared_pipeline, top_k=8, nearby=120, nearest=120, shard_nodes=50)
    manifests, current = recommend(config, display)
    found = outputs(current)
    expected = exhaustive(current, range(120), 8)
    assert found.select("node", "rank").equals(expected.select("node", "rank"))
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-6)
    # equal scores may change places
    same = (found["candidate"] == expected["candidate"]).mean()
    assert same > 0.95
    assert manifests["recommend"].counts == {
        "nodes": 120, "rows": 960, "short": 0, "unknown": 0, "files": 3, "recall": 1.0
    }  # fmt: skip
    needed = [stage.name for stage in needed_stages(STAGES.values(), "recommend")]
    assert set(manifests) <= set(needed)
    assert not {"evaluate", "score", "report", "negatives"} & set(manifests)


def test_few_candidates_find_most_and_say_how_many(cluster, shared_pipeline, display):
    config = with_recommend(shared_pipeline, top_k=10, nearby=25, nearest=15, measure_recall=60)
    manifests, current = recommend(config, display)
    recall = manifests["recommend"].details["recall"]
    assert recall["nodes"] == 60
    assert 0.6 < recall["mean"] <= 1
    found = outputs(current)
    graph = GraphStore.open(current / "ingest")
    assert not graph.contains(found["node"].to_numpy(), found["candidate"].to_numpy()).any()
    assert (found["node"] != found["candidate"]).all()
    best = exhaustive(current, range(120), 10).group_by("node").agg(pl.col("score").min())
    joined = found.join(best, on="node", suffix="_needed")
    share = (joined["score"] >= joined["score_needed"] - 1e-6).mean()
    assert share == pytest.approx(recall["mean"], abs=0.1)


def test_indexes_in_shards_and_fewer_bytes_lead_to_the_same_answer(
    cluster, shared_pipeline, display, monkeypatch
):
    generous = {"top_k": 8, "nearby": 120, "nearest": 120, "measure_recall": 0}
    manifests, current = recommend(with_recommend(shared_pipeline, **generous), display)
    expected = outputs(current)
    assert manifests["index"].details == {"dtype": "float32", "shards": 1}
    monkeypatch.setattr(index, "ROWS_PER_SHARD", 50)
    config = with_recommend(shared_pipeline, **generous, index_dtype="int8")
    manifests, current = recommend(config, display)
    assert manifests["index"].details == {"dtype": "int8", "shards": 3}
    assert manifests["index"].counts["rows"] == 120
    assert outputs(current).equals(expected)


def test_lost_shards_are_redone_and_nothing_else(cluster, shared_pipeline, display):
    config = with_recommend(shared_pipeline, top_k=5, shard_nodes=30, measure_recall=0)
    _, current = recommend(config, display)
    expected = outputs(current)
    folder = (current / "recommend").resolve()
    (folder / "manifest.json").unlink()
    (folder / "done" / "part-000001.json").unlink()
    (folder / "part-000001.parquet").write_bytes(b"half a file")
    untouched = (folder / "part-000002.parquet").stat().st_mtime_ns
    recommend(config, display)
    assert outputs(current).equals(expected)
    assert (folder / "part-000002.parquet").stat().st_mtime_ns == untouched


def test_asked_nodes_with_string_ids_come_in_their_order(
    cluster, small_pipeline, display, tmp_path
):
    as_text = [pl.format("user-{}", pl.col(name)).alias(name) for name in ("src", "dst")]
    edges = Path(small_pipeline.graph.edges)
    pl.read_parquet(edges).with_columns(as_text).write_parquet(edges)
    nodes = Path(small_pipeline.graph.nodes)
    pl.read_parquet(nodes).with_columns(id=pl.format("user-{}", "id")).write_parquet(nodes)
    asked = ["user-7", "nobody", "user-3", None, "user-7"]
    pl.DataFrame({"who": asked}).write_parquet(tmp_path / "asked.parquet")
    settings = {"top_k": 3, "nodes": str(tmp_path / "asked.parquet"), "column": "who"}
    manifests, current = recommend(with_recommend(small_pipeline, **settings), display)
    found = outputs(current)
    assert found["node"].unique(maintain_order=True).to_list() == ["user-7", "user-3"]
    assert found["candidate"].str.starts_with("user-").all()
    assert manifests["recommend"].counts["unknown"] == 2
    assert "2 id(s)" in manifests["recommend"].warnings[0]
    strict = with_recommend(small_pipeline, **settings, on_unknown="error")
    with pytest.raises(InputError, match="names the node nobody in row 1"):
        recommend(strict, display)
    for change, message in (
        ({"column": "id"}, "no column 'id'; it has 'who'"),
        ({"nodes": str(tmp_path / "none.parquet")}, "no Parquet file at"),
    ):
        with pytest.raises(InputError, match=message):
            recommend(with_recommend(small_pipeline, **settings | change), display)
    pl.DataFrame({"who": ["x", "y"]}).write_parquet(tmp_path / "asked.parquet")
    with pytest.raises(InputError, match="none of the 2 ids"):
        recommend(with_recommend(small_pipeline, **settings), display)
    pl.DataFrame({"who": []}, schema={"who": pl.String}).write_parquet(tmp_path / "asked.parquet")
    with pytest.raises(InputError, match="holds no nodes"):
        recommend(with_recommend(small_pipeline, **settings), display)


def test_the_command_resumes_after_a_kill_and_copies_its_files(
    cluster, small_config, small_pipeline, start_peg, ray_address, display, tmp_path
):
    edges = Path(small_pipeline.graph.edges)
    narrow = pl.read_parquet(edges).cast({"src": pl.Int32, "dst": pl.Int32})
    narrow.write_parquet(edges)
    graph = small_pipeline.graph.model_copy(update={"nodes": None, "features": None})
    ready = with_recommend(small_pipeline).model_copy(update={"graph": graph})
    run_pipeline(ready, display, target="index")  # all that recommending needs
    command = [
        "recommend", small_config, "--top-k", "4", "--out", tmp_path / "out",
        "--set", f"cluster.address={ray_address}", "--set", "recommend.shard_nodes=5",
        "--set", "graph.nodes=null", "--set", "graph.features=null",
    ]  # fmt: skip
    process = start_peg(*command)
    store = Path(small_pipeline.store)
    while not list(store.glob("recommend/*/done/*.json")):
        assert process.poll() is None, process.output
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {file: file.read_bytes() for file in store.glob("recommend/*/part-*.parquet")}
    again = start_peg(*command)
    assert again.wait() == 0, again.output
    assert {file: file.read_bytes() for file in finished} == finished
    assert len(list((store / "train").iterdir())) == 1  # nothing but the recommendations was run
    assert re.search(r"recall against scoring every pair: [01]\.\d{4} on average", again.output)
    found = pl.read_parquet(sorted((tmp_path / "out").glob("*.parquet")))
    assert found.schema == {
        "node": pl.Int32, "rank": pl.Int32, "candidate": pl.Int32, "score": pl.Float32
    }  # fmt: skip
    assert found["node"].to_list() == np.repeat(np.arange(120), 4).tolist()


def test_a_run_with_a_recommend_section_recommends(small_pipeline):
    steps = [step.stage.name for step in plan_run(with_recommend(small_pipeline))]
    assert steps[-3:] == ["index", "recommend", "report"]
    assert "encode_all" in steps


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--top-k", "0"], "recommend.top_k: found 0, needed at least 1"),
        (["--out", "."], "not an empty folder; name another --out"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(small_config, monkeypatch, options, message):
    monkeypatch.chdir(small_config.parent)
    result = CliRunner().invoke(cli, ["recommend", str(small_config), *options])
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
    assert not (small_config.parent / "store").exists()
