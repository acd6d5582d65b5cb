"""The whole pipeline with everything in an object store, over HTTP."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from peg_core.artifacts import Run
from peg_core.errors import PegError
from peg_core.object_url import ObjectUrl
from peg_core.storage.object_storage import Storage
from pipeline.run.plan import Action
from pipeline.run.runner import plan_run, run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def remote(object_store, cluster, small_pipeline, tmp_path):
    """The small pipeline, its inputs and its store in a bucket."""
    bucket, options = object_store.new_bucket(), object_store.options()
    inputs = Storage(f"s3://{bucket}/in{options}")
    inputs.upload_file(tmp_path / "edges.parquet", "edges/day=1/part.parquet")
    inputs.upload_file(tmp_path / "candidates.parquet", "candidates.parquet")
    return small_pipeline.model_copy(
        update={
            "store": f"s3://{bucket}/store{options}",
            "graph": small_pipeline.graph.model_copy(update={"edges": inputs.location("edges")}),
            "score": small_pipeline.score.model_copy(
                update={"candidates": inputs.location("*.parquet")}
            ),
        }
    )


def actions(config):
    return {step.action for step in plan_run(config)}


def test_a_run_is_reused_and_brought_to_an_empty_cache(
    remote, small_pipeline, display, cache, tmp_path
):
    manifests = run_pipeline(remote, display)
    store = Storage(remote.store)
    assert store.read_json("current.json") == {n: m.fingerprint for n, m in manifests.items()}
    assert not store.read_json("lease/lease.json")["held"]
    assert actions(remote) == {Action.REUSE}
    assert run_pipeline(remote, display) == manifests

    shutil.rmtree(cache)
    assert actions(remote) == {Action.REUSE}
    again = run_pipeline(remote, display, forced={"score"})
    # the tasks have a cache of their own; no array comes to the machine that drives the run
    assert not list(cache.rglob("*.npy"))
    assert not list(cache.rglob("part-*.parquet"))
    store.download_folder(f"score/{again['score'].fingerprint}", tmp_path / "scores")
    scores = pl.read_parquet(tmp_path / "scores" / "*.parquet")
    candidates = pl.read_parquet(small_pipeline.score.candidates)
    assert scores.select("src", "dst", "note").equals(candidates.select("src", "dst", "note"))
    opened = Run.open(remote.store)
    assert opened.scores().collect().equals(scores)
    known = scores.filter(pl.col("score").is_not_null())
    np.testing.assert_allclose(opened.score(known["src"], known["dst"]), known["score"], rtol=1e-6)


def test_a_connection_cut_in_mid_write_leaves_no_half_artifact(
    remote, object_store, cutting_proxy, display
):
    url = ObjectUrl.parse(remote.store)
    options = object_store.options(cutting_proxy.port).removeprefix("?")
    broken = remote.model_copy(update={"store": f"s3://{url.path}?{options}", "score": None})
    # the lease and small files pass, the first larger file of an artifact never does
    cutting_proxy.cut_after, cutting_proxy.cuts = 4_000, 10_000
    with pytest.raises(PegError, match=r"cannot write .*check the network"):
        run_pipeline(broken, display)
    assert cutting_proxy.was_cut > 0
    direct = Storage(remote.store)
    for file in direct.files():
        if file.name.endswith("/manifest.json"):
            folder = str(Path(file.name).parent)
            sizes = {f.name[len(folder) + 1 :]: f.bytes for f in direct.files(folder)}
            files = direct.read_json(file.name)["files"]
            assert {n: record["bytes"] for n, record in files.items()}.items() <= sizes.items()
    cutting_proxy.cuts = 0
    manifests = run_pipeline(broken, display)
    assert actions(broken) == {Action.REUSE}
    assert "evaluate" in manifests


def test_a_missing_bucket_is_told_before_any_work(remote, object_store, display, cache):
    wrong = remote.model_copy(update={"store": f"s3://no-such-bucket/x{object_store.options()}"})
    with pytest.raises(PegError, match=r"no-such-bucket.*create the bucket"):
        run_pipeline(wrong, display)
    assert not list(cache.glob("*/entries/*"))
    with pytest.raises(PegError, match=r"holds no run.*current\.json"):
        Run.open(remote.store)
