import pytest

from workers.cluster import Cluster, ClusterSettings, ClusterUnreachable


def test_nothing_is_started_before_it_is_needed():
    Cluster(ClusterSettings()).close()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_an_address_that_nobody_answers_is_named_at_once(address):
    with pytest.raises(ClusterUnreachable, match=rf"cannot reach {address} .*remove `address`"):
        Cluster.require_listener(address)
