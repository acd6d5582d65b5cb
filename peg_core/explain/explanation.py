"""The reasons for one score, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class CommonNeighbour:
    """A node that both ends of a pair have an edge to.

    Args:
        id: As in the edge list.
        kind: Of the node; None where all are of one.
        degree: A common neighbour tells more, the fewer neighbours it has.
        source_weight, target_weight: Of its edges to the two ends; None in an unweighted graph.
    """

    id: Any
    kind: str | None
    degree: int
    source_weight: float | None
    target_weight: float | None


@dataclass(frozen=True)
class Closeness:
    """How near the ends of a pair are by one measure.

    Args:
        name: Of the encoding.
        distance: Between the two positions.
        closer_than: Share of random pairs that lie further apart, from 0 to 1.
    """

    name: str
    distance: float
    closer_than: float


@dataclass(frozen=True)
class Part:
    """What a part of the head's input adds to the logit."""

    name: str
    added: float


@dataclass(frozen=True)
class PairExplanation:
    """Why a pair has its score.

    Args:
        source, target: Their ids.
        linked: Whether the pair is a known link already.
        score: The calibrated chance that it is a link; None where the model is not calibrated.
        logit: The model's number; ``baseline`` and what the parts add come to it.
        baseline: The logit of the average random pair, with which this one is compared.
        parts: Those that add or take most first.
        degrees: Neighbours of the source and of the target.
        num_common: Common neighbours, of which ``common`` lists those of smallest degree.
        encodings: Distances of the positions.
        feature_similarity: Cosine of the node features; None where the model reads none.
        features_closer_than: Share of random pairs whose features are less alike.
        same_component: Whether a path joins the two.
    """

    source: Any
    target: Any
    linked: bool
    score: float | None
    logit: float
    baseline: float
    parts: list[Part]
    degrees: tuple[int, int]
    num_common: int
    common: list[CommonNeighbour]
    encodings: list[Closeness]
    feature_similarity: float | None
    features_closer_than: float | None
    same_component: bool

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries and lists of plain values, ready for JSON but for ids of bytes."""
        return {**asdict(self), "degrees": list(self.degrees)}


# The table of the best pairs of a run.
FILE_NAME = "explanations.parquet"

COMMON_TYPE = pa.struct(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("degree", pa.int64()),
        ("source_weight", pa.float64()),
        ("target_weight", pa.float64()),
    ]
)
CLOSENESS_TYPE = pa.struct(
    [("name", pa.string()), ("distance", pa.float64()), ("closer_than", pa.float64())]
)
# A column of reasons; ids of neighbours are text, since neighbours can be of several kinds.
WHY_TYPE = pa.struct(
    [
        ("linked", pa.bool_()),
        ("logit", pa.float64()),
        ("baseline", pa.float64()),
        ("parts", pa.list_(pa.struct([("name", pa.string()), ("added", pa.float64())]))),
        ("degrees", pa.list_(pa.int64())),
        ("num_common", pa.int64()),
        ("common", pa.list_(COMMON_TYPE)),
        ("encodings", pa.list_(CLOSENESS_TYPE)),
        ("feature_similarity", pa.float64()),
        ("features_closer_than", pa.float64()),
        ("same_component", pa.bool_()),
    ]
)


def why_column(explanations: list[PairExplanation | None]) -> pa.Array:
    """Explanations as a column of :data:`WHY_TYPE`; null where there is none."""
    rows: list[dict[str, Any] | None] = []
    for each in explanations:
        row = None if each is None else each.as_dict()
        if row is not None:
            row["common"] = [{**one, "id": as_text(one["id"])} for one in row["common"]]
        rows.append(row)
    names = [field.name for field in WHY_TYPE]
    kept = [None if row is None else {name: row[name] for name in names} for row in rows]
    return pa.array(kept, WHY_TYPE)


def as_text(node: Any) -> str:
    """An id for people; bytes as hexadecimal digits."""
    return node.hex() if isinstance(node, bytes) else str(node)
