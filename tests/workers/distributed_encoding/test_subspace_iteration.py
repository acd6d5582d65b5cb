import dataclasses
import json
import os
import signal

import numpy as np
import psutil
import pytest

from tests.workers.distributed_encoding.conftest import (
    PLAIN,
    REFERENCE,
    SETTINGS,
    Interrupted,
    communities,
    dense_eigenpairs,
    encode_eigenmaps,
    laplacian,
    largest_sine,
)
from workers.distributed_encoding import subspace_iteration
from workers.distributed_encoding.subspace_iteration import IterationState

pytestmark = pytest.mark.ray


def test_columns_that_are_locked_stay_right(cluster, tmp_path):
    graph = communities(blocks=12, size=60)
    values, vectors = dense_eigenpairs(graph)
    cut = 12 + int(np.argmax(np.diff(values)[12:30]))
    seen = []
    positions, _ = encode_eigenmaps(
        graph,
        tmp_path,
        dimensions=cut,
        tolerance=1e-5,
        hear=lambda *step: seen.append(step),
        **PLAIN,
    )
    filtered = [total for what, _, total in seen if "filter" in what]
    assert min(filtered) < max(filtered)  # fewer blocks are filtered at the end
    gap = values[cut + 1] - values[cut]
    assert largest_sine(positions, vectors[:, 1 : cut + 1]) <= 1e-4 * cut / gap


@pytest.mark.parametrize("sizes", [(150, 8), (400, 32), (10_000, 16)])
def test_tiles_do_not_change_the_subspace(reference, tmp_path, sizes):
    positions, _ = encode_eigenmaps(communities(), tmp_path, sizes=sizes, **REFERENCE)
    assert largest_sine(positions, reference[0]) <= 1e-3


def test_one_worker_gives_the_numbers_of_two(reference, tmp_path):
    alone = dataclasses.replace(SETTINGS, workers=1)
    positions, result = encode_eigenmaps(communities(), tmp_path, alone, **REFERENCE)
    np.testing.assert_array_equal(positions, reference[0])
    assert result["report"] == reference[1]["report"]


@pytest.mark.parametrize(
    "phase",
    [
        "filter",
        pytest.param("gram", marks=pytest.mark.slow),
        "rotate",
        pytest.param("measure", marks=pytest.mark.slow),
        "positions",
    ],
)
def test_an_interrupted_run_goes_on_at_the_last_finished_shard(reference, tmp_path, phase):
    step = "positions" if phase == "positions" else f"iteration 2, {phase}"

    def interrupt(what, done, total):
        if what == step and done == 1:
            raise Interrupted

    alone = dataclasses.replace(SETTINGS, workers=1)
    with pytest.raises(Interrupted):
        encode_eigenmaps(communities(), tmp_path, alone, hear=interrupt, **REFERENCE)
    seen = []
    again, result = encode_eigenmaps(
        communities(),
        tmp_path,
        hear=lambda *step: seen.append(step),
        **REFERENCE,
    )
    np.testing.assert_array_equal(again, reference[0])
    assert result["report"] == reference[1]["report"]
    first_of_phase = next(event for event in seen if event[0] == step)
    assert 1 <= first_of_phase[1] < first_of_phase[2]
    assert not any(what.startswith(("iteration 0", "iteration 1,")) for what, _, _ in seen)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(reference, tmp_path):
    killed = []

    def kill(what, done, total):
        if what == "iteration 2, gram" and done == 1 and not killed:
            mine = psutil.Process().children(recursive=True)
            workers = [p for p in mine if p.name() in ("ray::run_shard", "ray::IDLE")]
            killed.extend(worker.pid for worker in workers)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    again, _ = encode_eigenmaps(communities(), tmp_path, hear=kill, **REFERENCE)
    assert killed
    np.testing.assert_array_equal(again, reference[0])


def test_two_iterations_at_most_are_kept_on_disk(cluster, tmp_path):
    most = []

    def count(what, done, total):
        most.append(len(list((tmp_path / "work").glob("iteration-*"))))

    encode_eigenmaps(communities(), tmp_path, dimensions=5, tolerance=1e-4, hear=count, **PLAIN)
    assert max(most) == 2


def test_a_state_of_an_earlier_version_is_read(tmp_path):
    state = IterationState(3, [3, 3], "float32", ritz_values=(0.9, 0.8), applications=7)
    file = tmp_path / "state.json"
    file.write_text(json.dumps({**dataclasses.asdict(state), "peak_memory_bytes": 10**9}))
    found = IterationState.load(file)
    assert dataclasses.replace(found, ritz_values=tuple(found.ritz_values)) == dataclasses.replace(
        state, values=found.values, residuals=found.residuals
    )


def test_a_spent_budget_ends_the_iteration_with_what_was_reached(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(subspace_iteration, "application_budget", lambda *_: 1)
    graph = communities()
    positions, result = encode_eigenmaps(graph, tmp_path, **REFERENCE)
    report = result["report"]
    assert report["largest_residual"] > report["tolerance"]
    assert any(f"{report['largest_residual']:.1e}" in text for text in report["warnings"])
    found = np.linalg.qr(positions.astype(np.float64))[0]
    matrix = laplacian(graph)
    ritz = np.linalg.eigvalsh(found.T @ matrix @ found)
    np.testing.assert_allclose(report["eigenvalues"][:7], ritz, atol=1e-4)
