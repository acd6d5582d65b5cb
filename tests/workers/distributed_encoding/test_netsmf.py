"""Factorised DeepWalk of one graph by many tasks, on a real local Ray."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from peg_core.encoding import ENCODERS
from peg_core.encoding.walks.netsmf import sampled_matrix
from peg_core.graph.graph_store import GraphStore
from tests.workers.distributed_encoding.conftest import (
    NETSMF,
    Interrupted,
    new_tasks,
    not_listening,
    request_for,
    run_encoder,
    save_blocks,
)
from workers.distributed_encoding.encoded_graph import keep_graph
from workers.distributed_encoding.encoding_steps import EncodingSteps
from workers.distributed_encoding.netsmf import LargeNetsmf, RangeSizes, encode_large_netsmf

pytestmark = pytest.mark.ray

SMALL, WHOLE = RangeSizes(rows=250, samples=40_000, columns=8), RangeSizes()


@pytest.fixture(scope="module")
def netsmf(cluster, blocks, tmp_path_factory):
    """Positions and result of an undisturbed run."""
    return encode(blocks, tmp_path_factory.mktemp("run"))


def encode(graph, folder, hear=not_listening):
    request = request_for(graph, folder, "deepwalk", NETSMF, seed=3)
    return run_encoder(encode_large_netsmf, request, folder, hear=hear, sizes=SMALL)


@pytest.mark.parametrize(
    ("sizes", "weighted"), [(SMALL, False), (SMALL, True), (WHOLE, False)], ids=str
)
def test_the_matrix_is_that_of_one_process(cluster, tmp_path, sizes, weighted):
    graph = save_blocks(tmp_path / "graph", weighted=weighted)
    request = request_for(graph, tmp_path, "deepwalk", NETSMF, seed=3)
    encoder = ENCODERS["deepwalk"](**NETSMF)
    steps = EncodingSteps(new_tasks(tmp_path), request, tmp_path / "work")
    entries = sizes.samples // (encoder.window * encoder.samples)
    kept = keep_graph(steps, rows=sizes.rows, entries=entries)
    assert (len(kept.ranges) > 2) is (sizes is SMALL)
    run = LargeNetsmf(steps, encoder, kept, sizes.columns)
    found = run.build_matrix(), GraphStore.open(tmp_path / "work" / "matrix")
    expected = sampled_matrix(GraphStore.open(graph), window=5, samples=2, negatives=1, seed=3)
    assert found[0] == len(expected.values)
    np.testing.assert_array_equal(found[1].indptr, expected.indptr)
    np.testing.assert_array_equal(found[1].indices, expected.indices)
    np.testing.assert_array_equal(found[1].weights, expected.values)


def test_netsmf_by_many_tasks_is_that_of_one_process(blocks, netsmf):
    found, result = netsmf
    expected = ENCODERS["deepwalk"](**NETSMF).solve(GraphStore.open(blocks), seed=3)
    # six communities stand out of the spectrum; the other columns have no gap to speak of
    values = result["report"]["singular_values"]
    np.testing.assert_allclose(values[:6], expected.report["singular_values"][:6], rtol=1e-3)
    np.testing.assert_allclose(values, expected.report["singular_values"], rtol=0.1)
    assert np.abs(found @ found.T - expected.positions @ expected.positions.T).mean() < 0.1
    assert not found[[5, 250]].any()
    for key in ("solver", "rows", "matrix_entries", "warnings"):
        assert result["report"][key] == expected.report[key]
    labels = np.delete(np.repeat(np.arange(6), 100), [5, 250])
    clusters = KMeans(6, n_init=5, random_state=0).fit_predict(np.delete(found, [5, 250], axis=0))
    assert adjusted_rand_score(labels, clusters) >= 0.9


@pytest.mark.parametrize("moment", ["join", "gram-2"])
def test_an_interrupted_netsmf_goes_on(blocks, netsmf, tmp_path, moment):
    def interrupt(what, done, total):
        if what == moment and done:
            raise Interrupted

    with pytest.raises(Interrupted):
        encode(blocks, tmp_path, interrupt)
    begun = set()

    def note(what, done, total):
        if done == 0:  # no shard was left from the run before
            begun.add(what)

    found, _ = encode(blocks, tmp_path, note)
    assert "place" in begun
    assert not {"graph", "sample", "merge", moment} & begun
    np.testing.assert_array_equal(found, netsmf[0])
