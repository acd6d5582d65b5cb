"""Lines and tables about trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.faults.chaos.disturbed_run import Outcome

# Differing files named for one trial.
SHOWN = 5
HEADER = (
    f"{'trial':>5}  {'store':<6}{'victim':<11}{'signal':<7}{'stage':<22}"
    f"{'delay':>7}  {'outcome':<30}{'seconds':>7}"
)


def trial_line(outcome: Outcome) -> str:
    """One trial; a stage with an arrow was over when the signal came."""
    trial = outcome.trial
    stage = trial.stage if outcome.hit == trial.stage else f"{trial.stage}>{outcome.hit}"
    store = trial.store + ("+" if trial.copied else "")
    line = (
        f"{trial.number:>5}  {store:<6}{trial.victim:<11}{trial.signal:<7}{stage:<22}"
        f"{outcome.delay_seconds:>5.2f} s  {outcome.text:<30}{outcome.seconds:>7.1f}"
    )
    if outcome.good:
        return line
    problems = [f"differs: {name}" for name in outcome.mismatches[:SHOWN]]
    if len(outcome.mismatches) > SHOWN:
        problems += [f"differs: {len(outcome.mismatches) - SHOWN} more files"]
    problems += [f"left: {name}" for name in outcome.leftovers]
    problems += [f"output: {outcome.folder}"]
    return "\n".join([line, *(f"       {problem}" for problem in problems)])


def summary_tables(outcomes: Sequence[Outcome]) -> str:
    """How many trials there were, and how many went well, by victim and by stage hit."""
    by_victim = _table("victim", outcomes, lambda outcome: outcome.trial.victim)
    by_stage = _table("stage", outcomes, lambda outcome: outcome.hit)
    return f"{by_victim}\n\n{by_stage}"


def _table(title: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> str:
    heads = f"{'trials':>7}{'good':>6}{'survived':>10}{'longest block':>15}{'outlived by':>16}"
    lines = [f"{title:<12}{heads}"]
    for name in dict.fromkeys(map(key, outcomes)):
        mine = [outcome for outcome in outcomes if key(outcome) == name]
        good = sum(outcome.good for outcome in mine)
        survived = sum(outcome.text == "survived" for outcome in mine)
        linger = max(outcome.linger_seconds for outcome in mine)
        block = max(outcome.block_seconds for outcome in mine)
        lines.append(
            f"{name:<12}{len(mine):>7}{good:>6}{survived:>10}{block:>13.1f} s{linger:>14.1f} s"
        )
    return "\n".join(lines)


def last_line(outcomes: Sequence[Outcome]) -> str:
    """The result in one line."""
    return (
        f"trials {len(outcomes)}, successes {sum(outcome.success for outcome in outcomes)}, "
        f"mismatches {sum(bool(outcome.mismatches) for outcome in outcomes)}, "
        f"leftovers {sum(bool(outcome.leftovers) for outcome in outcomes)}, "
        f"longest block {max(outcome.block_seconds for outcome in outcomes):.1f} s"
    )
