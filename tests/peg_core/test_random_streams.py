import numpy as np

from peg_core.random_streams import random_stream, stream_seed


def test_a_stream_depends_on_seed_purpose_and_shard_alone():
    first = random_stream(seed=1, purpose="walks", shard=2).random(8)
    np.testing.assert_array_equal(first, random_stream(seed=1, purpose="walks", shard=2).random(8))
    for other in ({"seed": 2}, {"purpose": "splits"}, {"shard": 3}):
        arguments = {"seed": 1, "purpose": "walks", "shard": 2, **other}
        assert not np.array_equal(first, random_stream(**arguments).random(8))


def test_seeds_fit_a_signed_64_bit_integer():
    seeds = [stream_seed(seed=0, purpose="x", shard=shard) for shard in range(200)]
    assert len(set(seeds)) == 200
    assert all(0 <= seed < 2**63 for seed in seeds)
