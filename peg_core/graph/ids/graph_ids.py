"""The ids of a graph's nodes, kind by kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from peg_core.graph.ids.id_file import FILE_NAME
from peg_core.graph.ids.id_index import mix_all
from peg_core.graph.ids.id_types import cast_ids, joint_id_type
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.relations import Relations

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class KindIds:
    """The ids of one kind of node.

    Args:
        ids: In the order of the nodes.
        first: The number of the first node.
        name: Of the kind; None where all nodes are of one.
    """

    ids: NodeIds
    first: int = 0
    name: str | None = None

    @property
    def stop(self) -> int:
        """The number after that of the last node."""
        return self.first + len(self.ids)

    @property
    def type(self) -> pa.DataType:
        """The kind of all ids."""
        return self.ids.type

    def lookup(self, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """The node of every id, -1 for an id that is null or unknown, [len(ids)]."""
        found = self.ids.lookup(ids)
        if self.first:
            found[found >= 0] += self.first
        return found

    def take(self, nodes: Array) -> pa.Array:
        """Ids of some nodes of this kind."""
        return self.ids.take(np.asarray(nodes) - self.first)


class GraphIds:
    """The ids of all nodes of a graph; equal ids of different kinds are different nodes.

    Args:
        kinds: In the order of their nodes.
        source, target: The kinds, by their place, of the two ends of a predicted link.
    """

    def __init__(self, kinds: list[KindIds], source: int = 0, target: int = 0) -> None:
        self.kinds = kinds
        self.source, self.target = kinds[source], kinds[target]

    def __len__(self) -> int:
        return self.kinds[-1].stop

    @property
    def ends(self) -> tuple[KindIds, KindIds]:
        """The ids of both ends of a predicted link."""
        return self.source, self.target

    @property
    def type(self) -> pa.DataType:
        """What ids of all kinds can be written as."""
        return joint_id_type(kind.type for kind in self.kinds)

    def take(self, nodes: Array) -> pa.Array:
        """Ids of some nodes of any kind, as :attr:`type`."""
        if len(self.kinds) == 1:
            return self.kinds[0].take(nodes)
        place, order = self._places(nodes)
        parts = [
            cast_ids(kind.take(np.asarray(nodes)[place == number]), self.type)
            for number, kind in enumerate(self.kinds)
        ]
        return pa.concat_arrays(parts).take(pa.array(np.argsort(order, kind="stable")))

    def names(self, nodes: Array) -> pa.Array | None:
        """The kinds of some nodes; None where all nodes are of one that has no name."""
        if self.kinds[0].name is None:
            return None
        names = pa.array([kind.name for kind in self.kinds])
        return names.take(pa.array(self._places(nodes)[0]))

    def _places(self, nodes: Array) -> tuple[Array, Array]:
        """The place of every node's kind, and the nodes' places ordered by it, [num_nodes]."""
        starts = np.array([kind.first for kind in self.kinds])
        place = np.searchsorted(starts, np.asarray(nodes), side="right") - 1
        return place, np.argsort(place, kind="stable")

    def find(self, others: GraphIds) -> npt.NDArray[np.int64]:
        """The node here of every node of another graph, -1 for those that are none here.

        Kinds are known by their names.
        """
        own = {kind.name: kind for kind in self.kinds}
        found = [
            own[kind.name].lookup(kind.ids.values)
            if kind.name in own
            else np.full(len(kind.ids), -1, dtype=np.int64)
            for kind in others.kinds
        ]
        return np.concatenate(found)

    def hashes(self) -> npt.NDArray[np.uint64]:
        """64 bits per node that depend on its kind and its id alone, [num_nodes]."""
        parts = [
            mix_all(kind.ids.hashes() + np.uint64(place)) if place else kind.ids.hashes()
            for place, kind in enumerate(self.kinds)
        ]
        return np.concatenate(parts)

    @classmethod
    def open(cls, folder: Path) -> GraphIds:
        """The ids of the graph in a folder, their tables memory-mapped."""
        relations = Relations.open(folder)
        if relations is None:
            return cls([KindIds(NodeIds.open(folder))])
        names = [kind.name for kind in relations.kinds]
        kinds = [
            KindIds(NodeIds.open(kind_folder(folder, place)), kind.start, kind.name)
            for place, kind in enumerate(relations.kinds)
        ]
        target = relations.target
        return cls(kinds, names.index(target.source_kind), names.index(target.target_kind))

    @staticmethod
    def stored(folder: Path) -> bool:
        """Whether the graph in a folder has ids: one that was made in memory need not."""
        first = folder if Relations.open(folder) is None else kind_folder(folder, 0)
        return (first / FILE_NAME).exists()

    @staticmethod
    def stored_types(folder: Path) -> tuple[pa.DataType, pa.DataType]:
        """The types of the ids of both ends of a predicted link, without reading them."""
        relations = Relations.open(folder)
        if relations is None:
            kind = NodeIds.stored_type(folder)
            return kind, kind
        names = [kind.name for kind in relations.kinds]
        ends = relations.target.source_kind, relations.target.target_kind
        source, target = (NodeIds.stored_type(kind_folder(folder, names.index(e))) for e in ends)
        return source, target


def kind_folder(folder: Path, place: int) -> Path:
    """Where the ids of a kind are, in the folder of a graph that has several."""
    return folder / f"kind-{place}"
