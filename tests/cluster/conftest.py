"""One cluster of three machines, an object store and a client, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.machine import Machine
from tests.cluster.object_machine import ObjectMachine
from tests.cluster.ray_machines import RayMachines
from tests.fixtures.machines import Network, network, why_not_isolated

__all__ = ["network"]

WORKERS = 2


@pytest.fixture(scope="session")
def objects(network: Network) -> ObjectMachine:
    """The object store that all machines reach."""
    return ObjectMachine(network.add())


@pytest.fixture(scope="session")
def ray_machines(network: Network) -> Iterator[RayMachines]:
    """A head and two workers, at the start of every test."""
    cluster = RayMachines(network, workers=WORKERS)
    yield cluster
    cluster.close()


@pytest.fixture(autouse=True)
def all_machines(request: pytest.FixtureRequest) -> None:
    """Others come for the workers that an earlier test lost, in whatever order tests run."""
    if "ray_machines" in request.fixturenames:
        cluster = request.getfixturevalue("ray_machines")
        cluster.add_workers(WORKERS - len(cluster.workers))


@pytest.fixture(scope="session")
def client(network: Network) -> Machine:
    """A machine that is no node of Ray."""
    return network.add()


@pytest.fixture
def isolated(network: Network) -> None:
    """For tests that say nothing where machines share a disk."""
    if not network.isolated:
        pytest.skip(f"machines share one disk here: {why_not_isolated()}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the machines were."""
    if why_not_isolated.cache_info().currsize:
        reason = why_not_isolated()
        form = "namespaces" if reason is None else f"folders on loopback ({reason})"
        terminalreporter.write_line(f"machines of tests/cluster: {form}")
