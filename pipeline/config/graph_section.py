"""The section on the graph: where its edges and nodes are, and how they are read."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from peg_core.errors import nearest_hint
from peg_core.graph.feature_columns import MAX_WIDTH
from pipeline.config.field_types import LATER, Column, Location, Names, Section, shorten
from pipeline.config.half_life import parse_half_life
from pipeline.config.relation_sections import (
    COLUMN_PAIRS,
    NodeTableConfig,
    PlaceOr,
    RelationConfig,
    require_different,
    require_relations,
)

# What the one relation and the one kind of node of a plain edge list are called.
EDGES, NODE = "edges", "node"


def optional_half_life(value: object) -> object:
    """A length of time, or none."""
    return None if value is None else parse_half_life(value)


class GraphConfig(Section):
    """Where the edges are, and the names of their columns."""

    edges: Annotated[Location | list[RelationConfig], PlaceOr(list[RelationConfig], list)] = Field(
        description="Parquet edge list: a file, a folder or a glob; or a list of relations, each "
        "with files and columns of its own."
    )
    source: Column = Field("src", description="Column with one end of the edge.")
    target: Column = Field("dst", description="Column with the other end.")
    weight: Column | None = Field(None, description="Column with edge weights; none: all 1.")
    duplicates: Literal["sum", "max", "first"] = Field(
        "sum", description="Weight of an edge that is listed several times."
    )
    on_bad_rows: Literal["error", "drop"] = Field(
        "error",
        description="Rows with a null id, a null value, a weight that is not positive or a date in "
        "the future: stop and name the first, or leave them out and count them.",
    )
    time: Column | None = Field(None, description="Column with timestamps, for `split.by: time`.")
    half_life: Annotated[str | float | None, LATER, BeforeValidator(optional_half_life)] = Field(
        None,
        description="Edges fade: a weight halves in this time, counted from the newest edge of the "
        "graph, for example 90d; a number where `time` holds integers. none: they do not.",
    )
    predict: Annotated[str | None, LATER] = Field(
        None, description="Which relation is predicted, where `edges` lists several."
    )
    bipartite: Annotated[bool, LATER] = Field(
        False,
        description="Whether `source` and `target` hold nodes of two kinds, such as users and "
        "items; the kinds are called like the columns.",
    )
    directed: Annotated[bool, LATER] = Field(
        False, description="Whether (u, v) and (v, u) are different links."
    )
    nodes: Annotated[
        Location | dict[str, NodeTableConfig] | None,
        PlaceOr(dict[str, NodeTableConfig] | None, (dict, type(None))),
    ] = Field(
        None,
        description="Parquet node table: ids, and what is known about the nodes. Or a table for "
        "each kind of node.",
    )
    node_id: Column = Field("id", description="Id column of the node table.")
    features: Names | None = Field(
        None,
        min_length=1,
        description="Feature column of the node table: lists of floats, or of the indices of "
        "binary features. Or a list of columns, which may be plain numbers too.",
    )
    feature_width: int | None = Field(
        None,
        ge=1,
        le=MAX_WIDTH,
        description="Number of binary features, where `features` holds indices; none: the "
        "largest index decides.",
    )
    label: Column | None = Field(None, description="Column with the class of a node.")
    node_split: Column | None = Field(
        None, description="Column with the part of the split that a node belongs to."
    )

    @property
    def is_relational(self) -> bool:
        """Whether there is more to the graph than one undirected edge list."""
        return isinstance(self.edges, list) or self.bipartite or self.directed

    @property
    def relations(self) -> list[RelationConfig]:
        """All edge lists, that of a plain graph as the only one."""
        if isinstance(self.edges, list):
            return self.edges
        kinds = (self.source, self.target) if self.bipartite else (NODE, NODE)
        return [
            RelationConfig.model_construct(
                name=EDGES,
                files=self.edges,
                source=self.source,
                target=self.target,
                weight=self.weight,
                time=self.time,
                source_kind=kinds[0],
                target_kind=kinds[1],
                directed=self.directed,
            )
        ]

    @property
    def predicted(self) -> RelationConfig:
        """The relation that is predicted."""
        names = {relation.name: relation for relation in self.relations}
        return names[self.predict] if self.predict else self.relations[0]

    @property
    def kinds(self) -> list[str]:
        """Kinds of node in the order of their numbers: first those of a predicted link."""
        ends = [*self.predicted.kinds, *(kind for each in self.relations for kind in each.kinds)]
        return list(dict.fromkeys([*ends, *(self.nodes if isinstance(self.nodes, dict) else ())]))

    @property
    def node_tables(self) -> dict[str, NodeTableConfig]:
        """The table of each kind of node that has one."""
        if isinstance(self.nodes, dict) or self.nodes is None:
            return self.nodes or {}
        table = NodeTableConfig.model_construct(
            files=self.nodes,
            id=self.node_id,
            features=self.features,
            feature_width=self.feature_width,
            label=self.label,
            split=self.node_split,
        )
        return {self.kinds[0]: table}

    @property
    def meaning(self) -> list[tuple[Any, ...]]:
        """What the relations are, wherever their edges stand."""
        each = [(r.name, r.kinds, r.directed, r == self.predicted) for r in self.relations]
        return each if self.is_relational else []

    @property
    def has_features(self) -> bool:
        """Whether any node table has features."""
        return any(table.features for table in self.node_tables.values())

    @property
    def locations(self) -> dict[str, str]:
        """Every place that is read, by its key."""
        found = {self.key_of(relation): relation.files for relation in self.relations}
        for kind, table in self.node_tables.items():
            found["nodes" if isinstance(self.nodes, str) else f"nodes.{kind}"] = table.files
        return found

    def key_of(self, relation: RelationConfig) -> str:
        """The key that says where the edges of a relation are."""
        return f"edges.{relation.name}" if isinstance(self.edges, list) else "edges"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if isinstance(self.edges, list):
            self._check_relations(self.edges)
        elif self.predict is not None:
            raise ValueError("`predict` needs `edges` to be a list of relations; leave it out")
        elif self.bipartite and self.directed:
            raise ValueError(
                "`directed` and `bipartite` are both set: links between two kinds have one "
                "direction anyway; leave `directed` out"
            )
        self._check_nodes()
        if self.half_life is not None:
            if self.predicted.time is None:
                raise ValueError("`half_life` needs `time`, the column with the times of the edges")
            if len(self.relations) > 1:
                raise ValueError("`half_life` needs a single relation; leave it out")
        if self.feature_width is not None and len(self.features or []) != 1:
            raise ValueError("`feature_width` needs `features` to name one column, with indices")
        self._check_columns()
        return self

    def _check_relations(self, relations: list[RelationConfig]) -> None:
        """Refuse a list that is no graph, and keys that belong into it."""
        require_relations(relations, self.predict)
        for key in ("source", "target", "weight", "time", "bipartite", "directed"):
            if getattr(self, key) != type(self).model_fields[key].get_default():
                where = "leave it out: `source_kind` and `target_kind` say it"
                raise ValueError(
                    f"`{key}` belongs to one edge list, `edges` lists relations; "
                    + (where if key == "bipartite" else "move it into the relation")
                )

    def _check_nodes(self) -> None:
        """Refuse node tables that do not fit the kinds of node."""
        if isinstance(self.nodes, dict):
            known = {kind: "" for relation in self.relations for kind in relation.kinds}
            for kind in self.nodes:
                if kind not in known:
                    raise ValueError(
                        f"`nodes` has a table of the kind {shorten(kind)}, the kinds of the edges "
                        f"are {', '.join(known)}{nearest_hint(kind, known)}"
                    )
            for key in ("features", "feature_width", "label", "node_split"):
                if getattr(self, key) is not None:
                    raise ValueError(f"`{key}` belongs into the table of a kind, below `nodes`")
            return
        for key in ("features", "label", "node_split"):
            if getattr(self, key) is not None and self.nodes is None:
                raise ValueError(f"`{key}` needs `nodes`, the table that has the column")
        if self.nodes is not None and len(self.kinds) > 1:
            kinds = ", ".join(self.kinds)
            raise ValueError(
                f"`nodes` is one table, the graph has nodes of the kinds {kinds}; give a table "
                f"for each: `nodes: {{{self.kinds[0]}: {{files: ..., id: ...}}}}`"
            )

    def _check_columns(self) -> None:
        """Refuse two keys that name one column where they mean different things."""
        if isinstance(self.edges, str):
            require_different(self, COLUMN_PAIRS)
        nodes = [("label", "node_id"), ("node_split", "node_id"), ("label", "node_split")]
        require_different(self, nodes)
        features = self.features or []
        for name in features:
            if features.count(name) > 1:
                raise ValueError(f"`features` names the column {shorten(name)} twice; name it once")
        if self.node_id in features:
            raise ValueError(
                f"`features` names {shorten(self.node_id)}, the column of `node_id`; ids say "
                "nothing about nodes: take it out of `features`"
            )


def columns_of_links(graph: dict[str, Any]) -> dict[str, Any]:
    """The columns of the predicted relation of a section that was not looked at yet.

    Nothing of a single undirected list, and of a section that has other mistakes.
    """
    edges, predict = graph.get("edges"), graph.get("predict")
    if isinstance(edges, list):
        listed = [each for each in edges if isinstance(each, dict)]
        chosen = [each for each in listed if predict in (None, each.get("name"))][:1]
    else:
        chosen = [graph] if graph.get("bipartite") or graph.get("directed") else []
    return {key: each[key] for each in chosen for key in ("source", "target") if key in each}
