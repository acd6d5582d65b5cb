"""What the nodes and the edges of a graph are: kinds of node, relations, directions."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_json
from peg_core.errors import InputError, nearest_hint

Codes = npt.NDArray[np.uint16]

FILE_NAME = "relations.json"
# Two bits each in the codes of entries.
MOST_RELATIONS = 8


@dataclass(frozen=True)
class NodeKind:
    """Nodes of one kind, which stand side by side: ``start .. stop``."""

    name: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Relation:
    """Edges of one meaning, from nodes of one kind to nodes of one kind.

    Args:
        name: As users type it.
        source_kind, target_kind: The kinds of its ends.
        directed: Whether (u, v) and (v, u) are different links.
    """

    name: str
    source_kind: str
    target_kind: str
    directed: bool = False


@dataclass(frozen=True)
class Relations:
    """Kinds and relations of a graph that has more than one undirected edge list.

    An entry (row, column) of the graph has a code: bit ``2 r`` where relation r lists row ->
    column, bit ``2 r + 1`` where it lists column -> row; an undirected relation sets both.

    Args:
        kinds: In the order of their nodes, which they cover.
        relations: In the order of their bits.
        predicted: Which of them is predicted; the others are context.
    """

    kinds: tuple[NodeKind, ...]
    relations: tuple[Relation, ...]
    predicted: int = 0

    @property
    def target(self) -> Relation:
        """The relation that is predicted."""
        return self.relations[self.predicted]

    @property
    def source_nodes(self) -> NodeKind:
        """The nodes that a predicted link can come from."""
        return self.kind(self.target.source_kind)

    @property
    def target_nodes(self) -> NodeKind:
        """The nodes that a predicted link can lead to."""
        return self.kind(self.target.target_kind)

    @property
    def has_codes(self) -> bool:
        """Whether one edge can differ from another in more than its ends."""
        return len(self.relations) > 1 or any(relation.directed for relation in self.relations)

    def kind(self, name: str) -> NodeKind:
        """A kind by its name."""
        known = {kind.name: kind for kind in self.kinds}
        if name not in known:
            raise InputError(
                f"no kind of node {name!r}; known: {', '.join(known)}{nearest_hint(name, known)}"
            )
        return known[name]

    @property
    def link_bits(self) -> tuple[int, int]:
        """The bits of the predicted relation, as :meth:`bits`."""
        return self.bits(self.predicted)

    @property
    def link_mask(self) -> np.uint16:
        """Both of them together."""
        return np.uint16(sum(self.link_bits))

    @property
    def has_reverses(self) -> bool:
        """Whether (v, u) can be another link than (u, v) of the predicted relation."""
        return self.target.directed and self.source_nodes == self.target_nodes

    def bits(self, relation: int) -> tuple[int, int]:
        """The bits of a relation that lists row -> column, and column -> row."""
        return 1 << 2 * relation, 2 << 2 * relation

    @property
    def num_columns(self) -> int:
        """Columns of :meth:`columns`."""
        return len(self._column_bits)

    def columns(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Codes as a gate reads them, [num_entries, num_columns] of zeros and ones.

        A directed relation has a column for messages that go with the edge, from its source to
        its target, and one for those against it; an undirected one has a single column. A
        message goes from column to row.
        """
        bits = np.array(self._column_bits, dtype=np.uint16)
        return (codes[:, None] & bits != 0).astype(np.float32)

    @property
    def all_codes(self) -> Codes:
        """Every code that an entry can have, 0 first, [4 ** num_relations]."""
        return np.arange(4 ** len(self.relations)).astype(np.uint16)

    @property
    def _column_bits(self) -> list[int]:
        if not self.has_codes:
            return []
        found = []
        for number, relation in enumerate(self.relations):
            listed, reverse = self.bits(number)
            found += [reverse, listed] if relation.directed else [listed]
        return found

    def save(self, folder: Path) -> None:
        """Write into the folder of a graph."""
        write_json(folder / FILE_NAME, asdict(self))

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """Of the graph in a folder; None where it is one undirected edge list."""
        file = folder / FILE_NAME
        if not file.exists():
            return None
        found: dict[str, Any] = json.loads(file.read_text())
        return cls(
            tuple(NodeKind(**kind) for kind in found["kinds"]),
            tuple(Relation(**relation) for relation in found["relations"]),
            found["predicted"],
        )
