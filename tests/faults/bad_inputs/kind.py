"""What a kind of damage is, and the list of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tests.faults.bad_inputs.place import Place


class Outcome(Enum):
    """What a user meets; the first three are good."""

    REFUSED = "refused"
    REPAIRED = "repaired"
    ACCEPTED = "accepted"
    SILENT = "silent"
    UNCLEAR = "unclear"
    TRACEBACK = "traceback"
    HANGS = "hangs"
    SKIPPED = "skipped"


REFUSED, REPAIRED, ACCEPTED = Outcome.REFUSED, Outcome.REPAIRED, Outcome.ACCEPTED
Make = Callable[[Place], None]


@dataclass(frozen=True)
class Kind:
    """One kind of damage.

    Args:
        group: What is damaged.
        name: In plain words.
        make: Brings the damage to a place where all is well.
        command: What the user types; CONFIG, STORE, CANDIDATES and OUT stand for paths.
        expected: What a user may expect: one of these.
        says: What the message must name, a regular expression.
        warns: Whether a user expects a word on it even where it is accepted.
        stage: Must not finish where the input is refused.
        alone: Runs in a process of its own, since it may hang.
        not_as_root: Permissions mean nothing to root.
    """

    group: str
    name: str
    make: Make
    command: str
    expected: tuple[Outcome, ...]
    says: str = ""
    warns: bool = True
    stage: str = ""
    alone: bool = False
    not_as_root: bool = False

    @property
    def needs_ray(self) -> bool:
        """Whether the command runs stages."""
        return self.command.split()[1] in ("run", "score", "recommend")


class Group:
    """Adds the kinds of one group to the list of all."""

    def __init__(self, name: str, *, command: str, says: str = "", stage: str = "") -> None:
        self.name = name
        self._defaults = {"command": command, "says": says, "stage": stage}

    def kind(self, *expected: Outcome, **differences: object) -> Callable[[Make], Make]:
        """Decorates the function that makes the damage; its name is that of the kind."""

        def add(make: Make) -> Make:
            self.add(make.__name__.replace("_", " "), make, *expected, **differences)
            return make

        return add

    def add(self, name: str, make: Make, *expected: Outcome, **differences: object) -> None:
        """A kind that is a line of a table rather than a function of its own."""
        chosen: dict[str, object] = {**self._defaults, **differences}
        if any(kind.group == self.name and kind.name == name for kind in KINDS):
            raise ValueError(f"{self.name} has two kinds named {name!r}")
        KINDS.append(Kind(self.name, name, make, expected=expected, **chosen))  # type: ignore[arg-type]


KINDS: list[Kind] = []
