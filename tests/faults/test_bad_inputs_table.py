"""Damage of every kind is refused, repaired or accepted, as docs/robustness.md says."""

import re
from pathlib import Path

import pytest

from tests.faults.bad_inputs.all_kinds import all_kinds
from tests.faults.bad_inputs.kind import Outcome
from tests.faults.bad_inputs.table import page_of, page_with
from tests.faults.bad_inputs.trial import Trial, Trials

PAGE = Path(__file__).parents[2] / "docs/robustness.md"
KINDS = all_kinds()
# Commands that run stages take a second each: every eighth kind of these is tried here, and all
# of them by `python -m tests.faults.bad_inputs`.
CHEAP = [kind for kind in KINDS if not kind.needs_ray]
SAMPLE = [kind for kind in KINDS if kind.needs_ray][::8]


@pytest.fixture(scope="module")
def trials(cluster, tmp_path_factory):
    return Trials(tmp_path_factory.mktemp("bad-inputs"))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("kind", CHEAP + SAMPLE, ids=lambda kind: f"{kind.group}: {kind.name}")
def test_damage_ends_as_a_user_expects(kind, trials):
    trial = trials.try_kind(kind)
    if trial.outcome.value == "skipped":
        pytest.skip(trial.message)
    assert trial.as_expected, f"{trial.outcome.value}\n{trial.output}"


def test_there_are_a_hundred_kinds_and_more():
    assert len(KINDS) >= 100


def test_the_page_has_every_kind_with_what_is_expected_of_it():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    missing = [kind.name for kind in KINDS if not any(row.startswith(_begin(kind)) for row in rows)]
    assert missing == []


def _begin(kind):
    expected = " or ".join(outcome.value for outcome in kind.expected)
    return f"| {kind.group} | {kind.name} | `{kind.command}` | {expected} |"


def test_the_page_has_no_traceback_and_nothing_that_was_not_expected():
    page = PAGE.read_text()
    totals = re.search(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    kinds, expected, tracebacks, silent, skipped = map(int, totals.groups())
    assert (kinds, tracebacks, silent) == (len(KINDS), 0, 0)
    assert expected + skipped == kinds
    assert "**" not in page, "an outcome that was not expected is printed in bold"


def test_rows_of_some_kinds_are_replaced_and_counted():
    before = [Trial(kind, kind.expected[0], "as it was") for kind in KINDS]
    before[3] = Trial(KINDS[3], Outcome.SILENT, "")
    after = list(before)
    after[3] = Trial(KINDS[3], KINDS[3].expected[0], "error: a | b")
    after[5] = Trial(KINDS[5], Outcome.TRACEBACK, "KeyError")
    changed = [after[5], after[3]]
    assert page_with(changed, page_of(before)) == page_of(after)
