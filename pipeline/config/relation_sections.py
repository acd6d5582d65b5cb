"""Sections of a graph with several relations or kinds of node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from pydantic import Field, GetCoreSchemaHandler, model_validator
from pydantic_core import core_schema

from peg_core.graph.feature_columns import MAX_WIDTH
from peg_core.graph.relations import MOST_RELATIONS
from pipeline.config.field_types import Column, Location, Names, Section, shorten

# Where a value may be a place or sections, pydantic's errors name which of them was tried.
PLACE, SECTIONS = "*place", "*sections"
# Keys of an edge list that must name different columns.
COLUMN_PAIRS = (
    ("source", "target"),
    ("weight", "source"),
    ("weight", "target"),
    ("time", "source"),
    ("time", "target"),
)


class PlaceOr:
    """Marks a key that is a place or sections of its own: ``Annotated[Location | list[A], ...]``.

    A plain union would explain what is wrong with a value once for each of its members.

    Args:
        kind: What it is where it is no text.
        many: The Python type of that.
    """

    def __init__(self, kind: Any, many: type | tuple[type, ...]) -> None:
        self._kind, self._many = kind, many

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        del source

        def which(value: Any) -> Hashable:
            return SECTIONS if isinstance(value, self._many) else PLACE

        choices = {
            PLACE: handler.generate_schema(Location),
            SECTIONS: handler.generate_schema(self._kind),
        }
        return core_schema.tagged_union_schema(choices, which)


class RelationConfig(Section):
    """Edges of one meaning: where they are, the names of their columns, the kinds of their ends."""

    name: Column = Field(description="What these edges are called.")
    files: Location = Field(description="Parquet edge list: a file, a folder or a glob.")
    source: Column = Field("src", description="Column with one end of the edge.")
    target: Column = Field("dst", description="Column with the other end.")
    weight: Column | None = Field(None, description="Column with edge weights; none: all 1.")
    time: Column | None = Field(None, description="Column with timestamps.")
    source_kind: Column | None = Field(
        None, description="Kind of the nodes in `source`; none: the name of the column."
    )
    target_kind: Column | None = Field(
        None, description="Kind of the nodes in `target`; none: the name of the column."
    )
    directed: bool = Field(False, description="Whether (u, v) and (v, u) are different links.")
    scale: float = Field(
        1.0, gt=0, le=1e6, description="What the weights of these edges are multiplied by."
    )

    @property
    def ends(self) -> tuple[str, str]:
        """The columns with the two ends."""
        return self.source, self.target

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of the two ends."""
        return self.source_kind or self.source, self.target_kind or self.target

    @model_validator(mode="after")
    def _consistent(self) -> RelationConfig:
        require_different(self, COLUMN_PAIRS)
        if self.directed and self.kinds[0] != self.kinds[1]:
            raise ValueError(
                f"`directed` needs both ends to be of one kind, found {shorten(self.kinds[0])} and "
                f"{shorten(self.kinds[1])}; leave it out, links between two kinds have one "
                "direction anyway, or set `source_kind` and `target_kind` to one name"
            )
        return self


class NodeTableConfig(Section):
    """The table of the nodes of one kind."""

    files: Location = Field(description="Parquet node table.")
    id: Column = Field("id", description="Its id column.")
    features: Names | None = Field(
        None, min_length=1, description="Its feature column, or a list of columns."
    )
    feature_width: int | None = Field(
        None, ge=1, le=MAX_WIDTH, description="Number of binary features, where it holds indices."
    )
    label: Column | None = Field(None, description="Column with the class of a node.")
    split: Column | None = Field(None, description="Column with the part that a node belongs to.")


def require_different(section: Section, pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse two keys that name one column where they mean different things."""
    for key, other in pairs:
        name = getattr(section, key)
        if name is not None and name == getattr(section, other):
            raise ValueError(
                f"`{key}` and `{other}` are both the column {shorten(name)}, but must be two; "
                f"name another column as `{key}`"
            )


def require_relations(relations: list[RelationConfig], predict: str | None) -> None:
    """Refuse a list of relations that cannot be one graph."""
    if not 1 <= len(relations) <= MOST_RELATIONS:
        raise ValueError(
            f"`edges` lists {len(relations)} relations, needed are 1 to {MOST_RELATIONS}"
        )
    names = [relation.name for relation in relations]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"`edges` has two relations {shorten(name)}; give each its own `name`")
    if predict is None and len(relations) > 1:
        raise ValueError(
            f"`predict` is missing: say which of the relations is predicted, {', '.join(names)}"
        )
    if predict is not None and predict not in names:
        raise ValueError(
            f"`predict` names {shorten(predict)}, the relations are {', '.join(names)}; name one "
            "of them"
        )
