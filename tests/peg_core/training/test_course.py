"""When a training validates and ends, on real small trainings."""

import numpy as np
import pytest
import torch

from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.training import checkpoint
from peg_core.training.checkpoint import TrainingState, read_checkpoint, write_checkpoint
from peg_core.training.course import Course, follow
from peg_core.training.settings import Optimisation

SAMPLED = {"fan_outs": (5, 5), "batch_size": 40, "average": 0.9}


def start(make_trainer, **options):
    trainer = make_trainer(4, **SAMPLED, **options)
    course = Course(trainer.source.schedule, Optimisation(**{"average": 0.9, **options}))
    return course, trainer, TrainingState()


def run(course, trainer, state):
    """The links seen after each move, and at each validation."""
    moves, validations = [], []
    for moved in follow(course, trainer, state):
        moves.append(course.links_seen(state.epoch, state.step))
        if moved.validated:
            validations.append(moves[-1])
    return moves, validations


def with_metrics(trainer, values):
    """Let a trainer find these values of the metric, one after the other."""
    found = iter(values)
    trainer.validate = lambda: {"auc": next(found)}
    return trainer


@pytest.mark.parametrize("links", [1, 100, 700])
def test_a_budget_ends_training_at_the_first_move_that_uses_it_up(make_trainer, split, links):
    course, trainer, state = start(make_trainer, links=links, epochs=1)
    moves, validations = run(course, trainer, state)
    assert moves[-1] >= links
    assert all(seen < links for seen in moves[:-1])
    assert validations[-1] == moves[-1]
    total = split.train_graph().num_edges
    assert state.epoch == moves[-1] // total  # the budget goes beyond one epoch
    assert state.history[-1]["epoch"] == pytest.approx(moves[-1] / total)


def test_validations_come_every_so_many_links_already_within_the_first_epoch(make_trainer, split):
    course, trainer, state = start(make_trainer, links=600, validate_links=60)
    moves, validations = run(course, trainer, state)
    expected = [
        seen
        for before, seen in zip([0, *moves], moves, strict=False)
        if seen // 60 > before // 60 or seen >= 600
    ]
    assert validations == expected
    assert sum(seen < split.train_graph().num_edges for seen in validations) > 2
    assert len(state.history) == len(validations)


def test_without_a_budget_epochs_validate_and_end_as_ever(make_trainer, split):
    course, trainer, state = start(make_trainer, epochs=5, validate_every=2)
    with_metrics(trainer, [0.5, 0.6, 0.7])
    _, validations = run(course, trainer, state)
    total = split.train_graph().num_edges
    assert validations == [2 * total, 4 * total, 5 * total]
    assert [row["epoch"] for row in state.history] == [1, 3, 4]
    assert state.best_epoch == 4
    assert state.epoch == 5


@pytest.mark.parametrize(
    ("min_gain", "validations"),
    [
        (0.0, 6),  # 0.63 is the last gain, then two do not gain
        (0.02, 5),  # 0.62 is the last gain: it is 0.02 above 0.6, 0.63 is only 0.01 above it
        (0.05, 3),  # nothing gains as much as that over 0.6
    ],
)
def test_patience_waits_for_a_gain_and_the_best_is_kept(make_trainer, min_gain, validations):
    values = [0.6, 0.61, 0.62, 0.63, 0.625, 0.626, 0.9]
    options = {"patience": 2, "min_gain": min_gain}
    course, trainer, state = start(make_trainer, links=10_000, validate_links=40, **options)
    run(course, with_metrics(trainer, values), state)
    assert len(state.history) == validations
    assert state.best_value == max(values[:validations])
    assert state.best_epoch == state.history[np.argmax(values[:validations])]["epoch"]


def test_patience_counts_epochs_where_they_set_the_pace(make_trainer):
    course, trainer, state = start(make_trainer, epochs=50, patience=3, validate_every=2)
    run(course, with_metrics(trainer, [0.6, 0.5, 0.5, 0.5]), state)
    # epoch 1 was the best, and after epochs 2, 3 and 4 patience is over
    assert [row["epoch"] for row in state.history] == [1, 3]
    assert state.epoch == 5


@pytest.mark.parametrize(
    ("schedule", "last"), [("constant", 0.005), ("linear", 0.005 * (1 - 500 / 600))]
)
def test_the_learning_rate_follows_the_links(make_trainer, schedule, last):
    course, _, state = start(make_trainer, links=600, lr_schedule=schedule)
    course.links_seen = lambda *_: 500
    assert course.rate(state) == pytest.approx(last)


@pytest.mark.parametrize(("stop_at", "accumulate"), [(3, 1), (8, 1), (9, 1), (4, 3)])
def test_going_on_after_any_move_ends_with_the_same_weights(
    make_trainer, tmp_path, stop_at, accumulate
):
    """Also right after a validation in the middle of an epoch, and at the end of one."""
    options = {
        "links": 700,
        "validate_links": 90,
        "lr_schedule": "linear",
        "accumulate": accumulate,
    }
    course, whole, expected = start(make_trainer, **options)
    run(course, whole, expected)

    course, stopped, state = start(make_trainer, **options)
    for number, _ in enumerate(follow(course, stopped, state), start=1):
        if number == stop_at:
            write_checkpoint(tmp_path / "c", state, stopped.average, stopped.optimizer)
            break
    course, trainer, _ = start(make_trainer, **options)
    state = read_checkpoint(tmp_path / "c", trainer.average, trainer.optimizer)
    run(course, trainer, state)
    assert state.history == expected.history
    assert (state.epoch, state.step, state.best_epoch) == (
        *(expected.epoch, expected.step),
        expected.best_epoch,
    )
    for name, value in expected.best.items():
        torch.testing.assert_close(state.best[name], value, rtol=0, atol=0)
    for name, value in whole.average.weights().items():
        torch.testing.assert_close(trainer.average.weights()[name], value, rtol=0, atol=0)


def test_a_checkpoint_from_before_gains_were_counted_keeps_its_patience(
    make_trainer, tmp_path, monkeypatch
):
    course, trainer, state = start(make_trainer, epochs=3)
    run(course, with_metrics(trainer, [0.6, 0.7, 0.65]), state)
    older = tuple(name for name in checkpoint.FACTS if not name.startswith("gain"))
    monkeypatch.setattr(checkpoint, "FACTS", older)
    write_checkpoint(tmp_path / "c", state, trainer.average, trainer.optimizer)
    found = read_checkpoint(tmp_path / "c", trainer.average, trainer.optimizer)
    assert (found.gain_value, found.gained) == (0.7, 1) == (found.best_value, found.best_epoch)


@pytest.mark.parametrize("passes", [1.0, 1.5, 2.0])
def test_with_nothing_held_out_training_ends_after_its_passes(make_trainer, split, passes):
    course, trainer, state = start(make_trainer, epochs=9, passes=passes, patience=10**9)
    nothing = np.zeros(0, dtype=np.int64)
    trainer.valid = HeldOutPairs(nothing, nothing, nothing.astype(np.uint8))
    moves, _ = run(course, trainer, state)
    wanted = round(passes * split.train_graph().num_edges)
    assert moves[-1] >= wanted
    assert all(seen < wanted for seen in moves[:-1])
    last = trainer.average.weights()
    assert all(torch.equal(value, last[name]) for name, value in state.best.items())
