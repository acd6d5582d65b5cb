"""Two real processes that train one model over gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from peg_core.training import validation_share
from peg_core.training.link_schedule import Share
from tests.peg_core.training.small_training import build_trainer, write_split
from tests.peg_core.training.two_ranks import BUDGET, CHUNK, SCENARIOS

pytestmark = pytest.mark.slow
every_scenario = pytest.mark.parametrize("name", SCENARIOS)
every_way = pytest.mark.parametrize("loops", ["compiled", "generic"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The split, and what both ranks left: (name, loops, rank) -> weights and facts."""
    folder, store = (tmp_path_factory.mktemp(name) for name in ("split", "ranks"))
    split = write_split(folder)
    command = [sys.executable, "-m", "tests.peg_core.training.two_ranks", folder, store]
    root = Path(__file__).parents[3]
    ranks = [
        subprocess.Popen(
            [*map(str, command), str(rank)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "NUMBA_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        for process in ranks:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
    finally:
        for process in ranks:
            process.kill()

    def of(name, loops, rank):
        stem = store / f"{name}-{loops}-{rank}"
        facts = json.loads(Path(f"{stem}.json").read_text())
        return load_file(f"{stem}.safetensors"), facts

    def by_links(rank):
        return json.loads((store / f"by-links-{rank}.json").read_text())

    of.by_links = by_links
    return split, of


def learned(weights):
    """Without the statistics of the head, of which each rank has its own."""
    return {name: value for name, value in weights.items() if "running" not in name}


@every_scenario
@every_way
def test_both_ranks_end_with_the_same_weights_and_metrics(trained, name, loops):
    (first, mine), (second, theirs) = (trained[1](name, loops, rank) for rank in (0, 1))
    for key, value in learned(first).items():
        torch.testing.assert_close(second[key], value, rtol=0, atol=0)
    assert mine["found"]["auc"] == theirs["found"]["auc"]


@every_scenario
def test_the_generic_path_trains_the_same_model(trained, name):
    (compiled, facts), (generic, others) = (
        trained[1](name, loops, 0) for loops in ("compiled", "generic")
    )
    for key, value in compiled.items():
        torch.testing.assert_close(generic[key], value, rtol=1e-3, atol=1e-4)
    assert others["found"] == pytest.approx(facts["found"], rel=1e-3)


def by_hand(split, options):
    """The mean of the gradients of both shares, one share after the other, in one process."""
    pair = [build_trainer(split, 4, share=Share(rank, 2), **options) for rank in (0, 1)]
    steps = list(zip(*(trainer.source.steps(0) for trainer in pair), strict=True))
    for number, shares in enumerate(steps, start=1):
        for trainer, step in zip(pair, shares, strict=True):
            trainer.network.train()
            trainer._gradients(step)
        if number % options.get("accumulate", 1) == 0 or number == len(steps):
            for first, second in zip(*(each.network.parameters() for each in pair), strict=True):
                mean = (first.grad + second.grad) / 2
                first.grad, second.grad = mean, mean.clone()
            for trainer in pair:
                trainer._move()
    return pair[0]


@every_scenario
def test_two_ranks_move_by_the_mean_of_their_shares(trained, name):
    split, of = trained
    weights, _ = of(name, "generic", 0)
    expected = by_hand(split, SCENARIOS[name]).average.weights()
    for key, value in learned(expected).items():
        torch.testing.assert_close(weights[key], value, rtol=1e-3, atol=1e-4)


@every_way
def test_gradients_are_exchanged_once_a_move(trained, loops):
    split, of = trained
    steps = len(build_trainer(split, 4, **SCENARIOS["accumulate"]).source.schedule.batches(0))
    assert steps % 3 != 0
    assert of("accumulate", loops, 0)[1]["exchanges"] == -(-steps // 3)
    assert of("sampled validation", loops, 0)[1]["exchanges"] == steps


@every_scenario
def test_shared_validation_finds_what_one_process_finds(trained, name, monkeypatch):
    split, of = trained
    weights, facts = of(name, "compiled", 0)
    alone = build_trainer(split, 4, **{**SCENARIOS[name], "average": 0.0})
    alone.model.load_state_dict(weights)
    monkeypatch.setattr(validation_share, "CHUNK", CHUNK)  # samples are drawn chunk by chunk
    metrics = alone.validate()
    assert metrics == pytest.approx({key: facts["found"][key] for key in metrics}, abs=1e-6)


def test_both_ranks_validate_and_stop_at_the_same_steps(trained):
    """Where one process would: by the links of all of them, also within an epoch."""
    split, of = trained
    first, second = of.by_links(0), of.by_links(1)
    assert first["steps"] == second["steps"]
    assert [row["valid_auc"] for row in first["history"]] == [
        row["valid_auc"] for row in second["history"]
    ]
    links = split.train_graph().num_edges
    seen = [round(row["epoch"] * links) for row in first["history"]]
    assert len(seen) == BUDGET["links"] // BUDGET["validate_links"]
    for number, count in enumerate(seen, start=1):
        assert 100 * number <= count < 100 * (number + 1)
