"""Skip-gram training of one graph by shards of its starts, on a real local Ray."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from peg_core.encoding import ENCODERS
from peg_core.graph.graph_store import GraphStore
from tests.workers.distributed_encoding.conftest import (
    SGNS,
    Interrupted,
    not_listening,
    request_for,
    run_encoder,
)
from workers.distributed_encoding.skip_gram_tasks import encode_large_skip_gram

pytestmark = pytest.mark.ray


def encode(graph, folder, parameters, *, shards, kind="deepwalk", hear=not_listening):
    request = request_for(graph, folder, kind, parameters, seed=3)
    return run_encoder(encode_large_skip_gram, request, folder, hear=hear, shards=shards)


def test_the_mean_of_shards_learns_and_goes_on(cluster, blocks, tmp_path):
    parameters = {**SGNS, "learning_rate": 0.1}
    first, second = tmp_path / "a", tmp_path / "b"
    expected, result = encode(blocks, first, parameters, shards=2)
    loss = result["report"]["loss"]
    assert len(loss) == 4
    assert loss[-1] < 0.9 * loss[0]
    assert not expected[[5, 250]].any()
    length = np.linalg.norm(np.delete(expected, [5, 250], axis=0), axis=1)
    np.testing.assert_allclose(length, 1, atol=1e-5)

    def interrupt(what, done, total):
        if what == "mean-001" and done:
            raise Interrupted

    with pytest.raises(Interrupted):
        encode(blocks, second, parameters, shards=2, hear=interrupt)
    again, _ = encode(blocks, second, parameters, shards=2)
    np.testing.assert_array_equal(again, expected)


def test_one_shard_of_node2vec_is_the_training_of_one_process(cluster, blocks, tmp_path):
    parameters = {"p": 0.5, "dimensions": 8, "walks": 2, "walk_length": 20}
    found, _ = encode(blocks, tmp_path, parameters, kind="node2vec", shards=1)
    before = numba.get_num_threads()
    numba.set_num_threads(1)  # as in a task of one CPU
    try:
        expected = ENCODERS["node2vec"](**parameters).encode(GraphStore.open(blocks), seed=3)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found, expected)
