"""Tries one kind: makes the damage, calls the command, and judges what came of it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from tests.faults.bad_inputs.call import FIRST_RUN_SECONDS, Answer, call_alone, call_here
from tests.faults.bad_inputs.kind import Kind, Outcome
from tests.faults.bad_inputs.place import Place, make_place, write_inputs

# A message tells what to do: it ends in an instruction, or says what is known or needed.
REMEDY = re.compile(
    r";|\b(must|needs?|needed|known|did you mean|instead|again|choose|check|give|remove|set|use)\b"
)
ERROR = re.compile(r"^(error: |Error: |Usage: )", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """What a kind came to.

    Args:
        message: The line of the output that matters, paths replaced.
        output: All of it.
    """

    kind: Kind
    outcome: Outcome
    message: str
    output: str = ""

    @property
    def as_expected(self) -> bool:
        return self.outcome in (*self.kind.expected, Outcome.SKIPPED)


class Trials:
    """Tries kinds, each in a folder of its own.

    Args:
        folder: For the inputs, an undisturbed run and the places of damage.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings: dict[str, Any] | None = None

    def settings(self) -> dict[str, Any]:
        """Of the undisturbed run, which takes place at the first call."""
        if self._settings is None:
            home = self._folder / "undisturbed"
            home.mkdir(parents=True)
            self._settings = write_inputs(home)
            place = Place(home, self._settings, home / "tiny.yaml")
            place.write_config()
            answer = call_here(["run", str(place.config)], timeout_seconds=FIRST_RUN_SECONDS)
            if answer.code != 0:
                what = "took too long" if answer.code is None else "failed"
                raise RuntimeError(f"the undisturbed run {what}:\n{answer.out}{answer.err}")
        return self._settings

    def try_kind(self, kind: Kind) -> Trial:
        """Make the damage and judge the answer."""
        if kind.not_as_root and os.geteuid() == 0:
            return Trial(kind, Outcome.SKIPPED, "root may read and write everything")
        settings = self.settings()
        name = re.sub(r"\W+", "-", f"{kind.group} {kind.name}")
        place = make_place(self._folder / name, settings)
        if kind.group == "state":
            place.copy_finished_store()
        else:
            place.use_own_inputs()
        kind.make(place)
        place.write_config()
        call = call_alone if kind.alone else call_here
        answer = call(arguments_of(kind, place))
        outcome = judge(kind, place, answer)
        output = without_paths(f"{answer.out}\n{answer.err}", place)
        return Trial(kind, outcome, message_of(kind, outcome, output), output)


def arguments_of(kind: Kind, place: Place) -> list[str]:
    """The words of the command, with paths for the names in capitals."""
    graph, score = place.settings.get("graph"), place.settings.get("score")
    paths = {"CONFIG": place.config, "STORE": place.store, "OUT": place.folder / "out"}
    if isinstance(graph, dict):
        paths |= {"EDGES": graph.get("edges"), "NODES": graph.get("nodes")}
    if isinstance(score, dict):
        paths |= {"CANDIDATES": score.get("candidates")}
    pattern = re.compile(r"\b(CONFIG|STORE|CANDIDATES|EDGES|NODES|OUT)\b")
    words = kind.command.split()[1:]
    return [pattern.sub(lambda name: str(paths[name[0]]), word) for word in words]


def judge(kind: Kind, place: Place, answer: Answer) -> Outcome:
    """What a user would call it."""
    output = without_paths(f"{answer.out}\n{answer.err}", place)
    if answer.code is None:
        return Outcome.HANGS
    if "Traceback (most recent call last)" in output or answer.code < 0:
        return Outcome.TRACEBACK
    if answer.code != 0:
        error = error_of(output)
        explained = REMEDY.search(error) and re.search(kind.says, error)
        # the words of the operating system alone explain nothing
        explained = explained and not error.startswith("error: [Errno")
        finished = kind.stage and list((place.store / kind.stage).glob("*/manifest.json"))
        return Outcome.REFUSED if explained and not finished else Outcome.UNCLEAR
    if kind.warns and not re.search(kind.says, output):
        return Outcome.SILENT
    if Outcome.REPAIRED in kind.expected:
        return Outcome.REPAIRED if is_whole(place) else Outcome.SILENT
    return Outcome.ACCEPTED if Outcome.ACCEPTED in kind.expected else Outcome.SILENT


def is_whole(place: Place) -> bool:
    """Whether the scores are those of the undisturbed run, and damaged files are back."""
    assert place.finished is not None
    made = sorted((place.folder / "out").glob("*.parquet"))
    made = made or sorted((place.store / "current/score").glob("*.parquet"))
    wanted = sorted((place.finished / "current/score").glob("*.parquet"))
    if [file.name for file in made] != [file.name for file in wanted]:
        return False
    if not all(_same_table(a, b) for a, b in zip(made, wanted, strict=True)):
        return False
    return all(_is_back(place.store / name, place.finished / name) for name in place.damaged)


def _is_back(file: Path, original: Path) -> bool:
    """Pages and states of the optimiser differ from run to run; the rest is the same."""
    if file.name in ("manifest.json", "report.html", "progress.json", "checkpoint.safetensors"):
        return True
    return file.is_file() and file.read_bytes() == original.read_bytes()


def _same_table(file: Path, original: Path) -> bool:
    try:
        return pl.read_parquet(file).equals(pl.read_parquet(original))
    except (OSError, pl.exceptions.PolarsError):
        return False


def error_of(output: str) -> str:
    """The output from its error on."""
    found = ERROR.search(output)
    return output[found.start() :] if found else ""


def message_of(kind: Kind, outcome: Outcome, output: str) -> str:
    """The one line that a reader of the table should see."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if outcome is Outcome.TRACEBACK:
        last = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
        return last[-1] if last else lines[-1] if lines else ""
    if error := error_of(output):
        return " ".join(line for line in error.splitlines()[:2] if not line.startswith("Usage"))
    if outcome in (Outcome.HANGS, Outcome.SILENT) or not kind.says:
        return ""
    return next((line for line in lines if re.search(kind.says, line)), "")


def without_paths(text: str, place: Place) -> str:
    """Nothing of this machine and this moment: paths, fingerprints, times, processes."""
    text = text.replace(f"{place.folder}/", "").replace(str(place.folder), ".")
    text = text.replace(f"{place.folder.parent}/", "")
    text = re.sub(r"/\S+/(?=(main|peg_core|pipeline|workers)/)", "", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\+00:00)?", "TIME", text)
    text = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{6}", "RUN", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "FINGERPRINT", text)
    text = re.sub(r"(?<=FINGERPRINT)-\d+", "", text)
    text = re.sub(rf"\b{os.getpid()}\b", "N", text)
    text = re.sub(r"\b(process|pid[=:]?) ?\d+", r"\1 N", text)
    text = re.sub(r"0x[0-9a-f]{8,}", "ADDRESS", text)
    return re.sub(r"\b\d+\.\d+ s\b", "N s", text)
