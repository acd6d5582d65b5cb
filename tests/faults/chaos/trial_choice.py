"""What is killed, how and when: chosen at random, and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

STORES = ("local", "s3")
# Before the first stage and after the last one.
START, END = "start", "end"
# How often each victim is chosen. session: every process of the run, workers too.
VICTIMS = {"driver": 5, "worker": 4, "group": 2, "session": 2, "raylet": 2, "gcs_server": 1}
# Before the first stage there is no Ray, and after the last one it is on its way out.
VICTIMS_WITHOUT_RAY = ("driver", "group", "session")
SIGNALS = {"KILL": 7, "TERM": 1, "INT": 1, "HUP": 1}
COPY_CHANCE = 0.3


@dataclass(frozen=True)
class Trial:
    """One run that is disturbed.

    Args:
        moment: Share of the stage's usual time that passes before the signal.
        copied: The store has all that comes before the stage; else it is empty.
    """

    number: int
    store: str
    victim: str
    signal: str
    stage: str
    moment: float
    copied: bool


def choose_trials(stages: Sequence[str], count: int, *, seed: int) -> list[Trial]:
    """Trials in which every stage, the start and the end come up equally often.

    Args:
        stages: Of the pipeline, in order.
    """
    rng = random.Random(seed)
    phases: list[str] = []
    trials = []
    for number in range(1, count + 1):
        if not phases:
            phases = [START, *stages, END]
            rng.shuffle(phases)
        trials.append(_choose(number, phases.pop(), rng))
    return trials


def _choose(number: int, stage: str, rng: random.Random) -> Trial:
    has_ray = stage not in (START, END)
    victims = {v: w for v, w in VICTIMS.items() if has_ray or v in VICTIMS_WITHOUT_RAY}
    return Trial(
        number,
        store=rng.choice(STORES),
        victim=_weighted(victims, rng),
        signal=_weighted(SIGNALS, rng),
        stage=stage,
        moment=rng.random(),
        copied=rng.random() < COPY_CHANCE and stage != START,
    )


def _weighted(weights: dict[str, int], rng: random.Random) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]
