"""The table of all kinds, for docs/robustness.md."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.bad_inputs.kind import Outcome
from tests.faults.bad_inputs.trial import Trial

LONGEST_MESSAGE = 160
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
Kinds about permissions are skipped for root. Write this page again with:

```
python -m tests.faults.bad_inputs
```
"""


def page_of(trials: Sequence[Trial]) -> str:
    """The whole document."""
    lines = [INTRODUCTION, totals_of(trials), ""]
    for group in dict.fromkeys(trial.kind.group for trial in trials):
        lines += [f"## {group[0].upper()}{group[1:]}", ""]
        lines += [
            "| group | kind | command | expected | outcome | message |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_row(trial) for trial in trials if trial.kind.group == group]
        lines.append("")
    return "\n".join(lines)


def totals_of(trials: Sequence[Trial]) -> str:
    """How many kinds there are, and how many turned out as they should."""
    tracebacks = sum(trial.outcome is Outcome.TRACEBACK for trial in trials)
    silent = sum(trial.outcome is Outcome.SILENT for trial in trials)
    skipped = sum(trial.outcome is Outcome.SKIPPED for trial in trials)
    good = sum(trial.as_expected for trial in trials) - skipped
    return (
        "| kinds | as expected | tracebacks | silent | skipped |\n|---|---|---|---|---|\n"
        f"| {len(trials)} | {good} | {tracebacks} | {silent} | {skipped} |"
    )


def _row(trial: Trial) -> str:
    kind = trial.kind
    expected = " or ".join(outcome.value for outcome in kind.expected)
    outcome = trial.outcome.value if trial.as_expected else f"**{trial.outcome.value}**"
    cells = (kind.group, kind.name, f"`{kind.command}`", expected, outcome, _cell(trial.message))
    return f"| {' | '.join(cells)} |"


def _cell(message: str) -> str:
    """On one line, of bearable length, without signs that mean something in a table."""
    text = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    if len(text) > LONGEST_MESSAGE:
        text = text[:LONGEST_MESSAGE].rpartition(" ")[0] + " ..."
    text = text.replace("`", "'").replace("|", "/")
    return f"`{text}`" if text else ""
