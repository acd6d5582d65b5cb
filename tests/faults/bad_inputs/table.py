"""The table of all kinds, for docs/robustness.md."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.bad_inputs.kind import Outcome
from tests.faults.bad_inputs.trial import Trial

LONGEST_MESSAGE = 160
TOTALS = ("| kinds | as expected | tracebacks | silent | skipped |", "|---|---|---|---|---|")
HEAD = ("| group | kind | command | expected | outcome | message |", "|---|---|---|---|---|---|")
INTRODUCTION = """# Robustness

What happens when an input, a pipeline file or a store is broken. Each row is one kind of damage:
it is made in a tiny pipeline of 60 nodes, a command meets it, and the answer is judged as a user
would.

| outcome | meaning |
|---|---|
| refused | exit code not 0, the message names cause and remedy, no stage took the bad input |
| repaired | it succeeds, names the damage, and the scores are those of an undisturbed run |
| accepted | it is fine after all; where the user should know something, it is said |
| silent | the command succeeds and does not say what it should |
| unclear | refused, but without the cause or the remedy, or a stage took the bad input |
| traceback | the user sees the insides of the program |
| hangs | no answer within a minute |

What is expected is written beside every kind in `tests/faults/bad_inputs`, as a user would want it.
Kinds about permissions are skipped for root. Write this page again, or the rows of the kinds whose
names contain a word, with:

```
python -m tests.faults.bad_inputs
python -m tests.faults.bad_inputs "test links"
```
"""


def page_of(trials: Sequence[Trial]) -> str:
    """The whole document."""
    lines = [INTRODUCTION, totals_of(trials), ""]
    for group in dict.fromkeys(trial.kind.group for trial in trials):
        lines += [f"## {group[0].upper()}{group[1:]}", ""]
        lines += HEAD
        lines += [_row(trial) for trial in trials if trial.kind.group == group]
        lines.append("")
    return "\n".join(lines)


def page_with(trials: Sequence[Trial], page: str) -> str:
    """The document with the rows of some kinds replaced, and its totals counted again."""
    rows = {_begin(trial): _row(trial) for trial in trials}
    lines = [
        next((row for begin, row in rows.items() if line.startswith(begin)), line)
        for line in page.splitlines()
    ]
    first = lines.index(TOTALS[0])
    lines[first : first + 3] = _totals([line.split(" | ")[4] for line in lines if _is_row(line)])
    return "\n".join([*lines, ""])


def totals_of(trials: Sequence[Trial]) -> str:
    """How many kinds there are, and how many turned out as they should."""
    return "\n".join(_totals([_outcome(trial) for trial in trials]))


def _totals(outcomes: Sequence[str]) -> list[str]:
    """Of outcomes as they stand in the page: bold where they were not expected."""
    skipped = outcomes.count(Outcome.SKIPPED.value)
    good = sum("**" not in outcome for outcome in outcomes) - skipped
    tracebacks, silent = (
        sum(outcome.strip("*") == bad.value for outcome in outcomes)
        for bad in (Outcome.TRACEBACK, Outcome.SILENT)
    )
    return [*TOTALS, f"| {len(outcomes)} | {good} | {tracebacks} | {silent} | {skipped} |"]


def _row(trial: Trial) -> str:
    kind = trial.kind
    expected = " or ".join(outcome.value for outcome in kind.expected)
    cells = (f"`{kind.command}`", expected, _outcome(trial), _cell(trial.message))
    return f"{_begin(trial)}{' | '.join(cells)} |"


def _begin(trial: Trial) -> str:
    return f"| {trial.kind.group} | {trial.kind.name} | "


def _outcome(trial: Trial) -> str:
    outcome = trial.outcome.value
    return outcome if trial.as_expected else f"**{outcome}**"


def _is_row(line: str) -> bool:
    """Whether a line is about a kind: the other tables of the page have fewer columns, or more."""
    return line.startswith("| ") and line.count(" | ") == HEAD[0].count(" | ") and line != HEAD[0]


def _cell(message: str) -> str:
    """On one line, of bearable length, without signs that mean something in a table."""
    text = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    if len(text) > LONGEST_MESSAGE:
        text = text[:LONGEST_MESSAGE].rpartition(" ")[0] + " ..."
    text = text.replace("`", "'").replace("|", "/")
    return f"`{text}`" if text else ""
