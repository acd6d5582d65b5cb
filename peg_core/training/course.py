"""The course of a training: when it validates, what counts as a gain, and when it ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from peg_core.errors import PegError
from peg_core.training.checkpoint import TrainingState
from peg_core.training.learning_rate import SCHEDULES, set_learning_rate
from peg_core.training.link_schedule import LinkSchedule
from peg_core.training.link_trainer import LinkTrainer
from peg_core.training.settings import Optimisation


@dataclass(frozen=True)
class Moved:
    """What a move of the weights came with.

    Args:
        step: Steps of the epoch that were done.
        ended_epoch: Whether it was the last one of its epoch.
        validated: Whether the validation pairs were ranked after it.
    """

    step: int
    ended_epoch: bool
    validated: bool


class Course:
    """Decides by the links that have supervised, and by the metrics so far.

    All of it is a function of the state, which is the same in every process and after every
    interruption: processes validate and stop at the same step, and so does a resumed run.

    Args:
        schedule: The steps of every epoch.
        wanted: Budget, validations, patience.
    """

    def __init__(self, schedule: LinkSchedule, wanted: Optimisation) -> None:
        self.wanted, self._schedule = wanted, schedule
        self._epoch, self._seen = 0, schedule.links_seen(0)

    @property
    def most_links(self) -> int:
        """Links that the training sees if nothing ends it early."""
        if self.wanted.links is not None:
            return self.wanted.links
        return self.wanted.epochs * self._schedule.num_links

    @property
    def last_link(self) -> int:
        """Links after which the training ends at the latest."""
        if self.wanted.passes is None:
            return self.most_links
        return min(self.most_links, round(self.wanted.passes * self._schedule.num_links))

    def links_seen(self, epoch: int, step: int) -> int:
        """Links that have supervised before a step."""
        if epoch != self._epoch:
            self._epoch, self._seen = epoch, self._schedule.links_seen(epoch)
        return int(self._seen[step])

    def is_last(self, epoch: int, step: int) -> bool:
        """Whether an epoch has no step of such a number."""
        self.links_seen(epoch, 0)
        return step == len(self._seen) - 1

    def passes(self, epoch: int, step: int) -> float:
        """The same in epochs."""
        return self.links_seen(epoch, step) / self._schedule.num_links

    def is_over(self, state: TrainingState) -> bool:
        """Whether the budget is used up, or patience."""
        return self.links_seen(state.epoch, state.step) >= self.last_link or (
            self._position(state) - state.gained > self.wanted.patience
        )

    def is_due(self, state: TrainingState, *, before: int) -> bool:
        """Whether the steps of an epoch from ``before`` on call for a validation."""
        seen = self.links_seen(state.epoch, state.step)
        if seen >= self.last_link:
            return True
        every = self.wanted.validate_links
        if every is not None:
            return seen // every > self.links_seen(state.epoch, before) // every
        done = state.epoch + 1
        return self.is_last(state.epoch, state.step) and done % self.wanted.validate_every == 0

    def rate(self, state: TrainingState) -> float:
        """The learning rate of the next move."""
        schedule = SCHEDULES[self.wanted.lr_schedule]
        if self.wanted.links is None:
            return self.wanted.lr * schedule(state.epoch, self.wanted.epochs)
        seen = self.links_seen(state.epoch, state.step)
        return self.wanted.lr * schedule(seen, self.wanted.links)

    def judge(self, state: TrainingState, value: float) -> bool:
        """Note a gain, which patience waits for; returns whether it is the best value so far."""
        if value > state.gain_value and value >= state.gain_value + self.wanted.min_gain:
            state.gain_value, state.gained = value, self._position(state)
        return value > state.best_value

    def _position(self, state: TrainingState) -> int:
        """What patience counts: epochs, or validations where links set their pace."""
        return state.epoch if self.wanted.validate_links is None else len(state.history)


def follow(course: Course, trainer: LinkTrainer, state: TrainingState) -> Iterator[Moved]:
    """Train until the course is over; the state is that after the move when it is yielded."""
    while not course.is_over(state):
        set_learning_rate(trainer.optimizer, course.rate(state))
        with closing(trainer.moves(state.epoch, start=state.step)) as moves:
            for done, losses in moves:
                yield _moved(course, trainer, state, done, losses)
                if state.step == 0 or course.is_over(state):
                    break
                set_learning_rate(trainer.optimizer, course.rate(state))


def _moved(
    course: Course, trainer: LinkTrainer, state: TrainingState, done: int, losses: list[float]
) -> Moved:
    """Bring the state to after a move, and validate where that is due."""
    before, state.step = state.step, done
    state.losses += losses
    ended, due = course.is_last(state.epoch, done), course.is_due(state, before=before)
    if due or (ended and course.wanted.validate_links is None):
        loss = _mean(state)
        state.losses = []
        if due:
            _validate(course, trainer, state, loss)
    if ended:
        state.epoch, state.step = state.epoch + 1, 0
    return Moved(done, ended, due)


def _validate(course: Course, trainer: LinkTrainer, state: TrainingState, loss: float) -> None:
    """All workers come to the same metrics, and so stop at the same step."""
    epoch: float = state.epoch
    if not len(trainer.valid.label):  # nothing is held out: the last weights are kept
        state.best, state.best_epoch = trainer.average.weights(), epoch
        state.history.append({"epoch": epoch, "loss": loss})
        return
    metrics = trainer.validate()
    value = metrics[trainer.metric]
    if course.wanted.validate_links is not None or not course.is_last(state.epoch, state.step):
        epoch = course.passes(state.epoch, state.step)
    row = {"epoch": epoch, "loss": loss, "valid_auc": metrics["auc"]}
    if trainer.metric != "auc":
        row[f"valid_{trainer.metric}"] = value
    if course.judge(state, value):
        state.best_value, state.best_epoch = value, epoch
        state.best = trainer.average.weights()
    state.history.append(row)


def _mean(state: TrainingState) -> float:
    loss = sum(state.losses) / len(state.losses)
    if not math.isfinite(loss):
        raise PegError(
            f"the training loss became {loss} in epoch {state.epoch}; lower `train.lr`, "
            "or check the features for extreme values"
        )
    return loss
