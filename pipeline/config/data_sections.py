"""Sections on what a model learns from: graph, features, split, encodings."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from peg_core.encoding import ENCODERS
from peg_core.graph.feature_columns import MAX_WIDTH
from pipeline.config.field_types import (
    LATER,
    MOST,
    Auto,
    Column,
    Location,
    Names,
    OrAuto,
    Ratio,
    Section,
    Seed,
    Width,
    registered,
    shorten,
)
from pipeline.config.half_life import parse_half_life


def optional_half_life(value: object) -> object:
    """A length of time, or none."""
    return None if value is None else parse_half_life(value)


# Of graphs that are not large.
FOLDS = 10


class GraphConfig(Section):
    """Where the edges are, and the names of their columns."""

    edges: Location = Field(description="Parquet edge list: a file, a folder or a glob.")
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
    nodes: Location | None = Field(
        None, description="Parquet node table: ids, and what is known about the nodes."
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

    @model_validator(mode="after")
    def _consistent(self) -> GraphConfig:
        for key in ("features", "label", "node_split"):
            if getattr(self, key) is not None and self.nodes is None:
                raise ValueError(f"`{key}` needs `nodes`, the table that has the column")
        if self.half_life is not None and self.time is None:
            raise ValueError("`half_life` needs `time`, the column with the times of the edges")
        if self.feature_width is not None and len(self.features or []) != 1:
            raise ValueError("`feature_width` needs `features` to name one column, with indices")
        self._check_columns()
        return self

    def _check_columns(self) -> None:
        """Refuse two keys that name one column where they mean different things."""
        of_edges = (
            ("source", "target"),
            ("weight", "source"),
            ("weight", "target"),
            ("time", "source"),
            ("time", "target"),
        )
        of_nodes = ("label", "node_id"), ("node_split", "node_id"), ("label", "node_split")
        for key, other in (*of_edges, *of_nodes):
            name = getattr(self, key)
            if name is not None and name == getattr(self, other):
                raise ValueError(
                    f"`{key}` and `{other}` are both the column {shorten(name)}, but must be two; "
                    f"name another column as `{key}`"
                )
        features = self.features or []
        for name in features:
            if features.count(name) > 1:
                raise ValueError(f"`features` names the column {shorten(name)} twice; name it once")
        if self.node_id in features:
            raise ValueError(
                f"`features` names {shorten(self.node_id)}, the column of `node_id`; ids say "
                "nothing about nodes: take it out of `features`"
            )


class FeaturesConfig(Section):
    """What a model knows about the nodes themselves."""

    kind: Literal[
        "auto", "node", "degree", "one_hot", "random", "positional", "node+positional", "learned"
    ] = Field(
        "auto",
        description="node: `graph.features`; degree: degree and a constant; one_hot: a column "
        "for every node; random: numbers between 0 and 1; positional: the encodings; learned: "
        "free parameters of the model, `dimensions` per node (for one fixed set of nodes). auto: "
        "node where the graph has features, else degree.",
    )
    standardise: bool = Field(
        False, description="Give the columns of node features mean 0 and standard deviation 1."
    )
    row_normalise: bool = Field(True, description="Then give every row the Euclidean length 1.")
    reduce: Literal["none", "pca", "random"] = Field(
        "pca",
        description="How node features wider than `dimensions` are then reduced: to principal "
        "components, by a random projection, or not at all.",
    )
    dimensions: Width = Field(128, description="Width of reduced features and of random features.")
    seed: Seed = Field(0, description="Seed of random features and random projections.")


class SplitConfig(Section):
    """How links are set aside for validation and test."""

    by: Literal["random", "time", "files"] = Field(
        "random",
        description="random: shares of all edges; time: the newest edges are tested; "
        "files: `valid_edges` and `test_edges` are given.",
    )
    valid: Ratio = Field(0.05, description="Share of the edges for validation.")
    test: Ratio = Field(0.10, description="Share of the edges for the final test.")
    folds: Annotated[int | Auto, OrAuto(Annotated[int, Field(ge=1, le=100)])] = Field(
        "auto",
        description="Training folds of PEG+: each supervises in turn, while encoding and "
        "messages do without it. 1: plain PEG. auto: 10; 4 above a million training links, 2 "
        "above ten million, for each fold is another encoding.",
    )
    valid_edges: Location | None = Field(None, description="Parquet file, with `by: files`.")
    test_edges: Location | None = Field(None, description="Parquet file, with `by: files`.")
    valid_negatives: Location | None = Field(
        None, description="Parquet file of non-links to validate with; none: drawn at random."
    )
    test_negatives: Location | None = Field(
        None, description="Parquet file of non-links to test with; none: drawn at random."
    )
    seed: Seed = Field(0, description="Seed of the split.")
    leave_out: Annotated[float, LATER] = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of the edges, the newest of all, that are in no part, with `by: time`: "
        "the split of an earlier day.",
    )
    windows: Annotated[int, LATER] = Field(
        1,
        ge=1,
        le=100,
        description="Rolling backtest, with `by: time`: how many windows of `test` edges, one "
        "after the other, are tested in turn by what came before. The last is the newest.",
    )

    @property
    def num_folds(self) -> int:
        """What is still automatic is that of a small graph."""
        return FOLDS if self.folds == "auto" else self.folds

    @model_validator(mode="after")
    def _consistent(self) -> SplitConfig:
        if self.by == "files" and not (self.valid_edges and self.test_edges):
            raise ValueError("`by: files` needs both `valid_edges` and `test_edges`")
        if self.by == "files" and _same_place(self.valid_edges, self.test_edges):
            raise ValueError(
                f"`test_edges` and `valid_edges` are both {shorten(self.test_edges)}; links that "
                "choose the model must not test it: give two files without a link in common"
            )
        if self.valid + self.test >= 1:
            raise ValueError("`valid` and `test` together must leave edges to train on")
        self._check_time()
        return self

    def _check_time(self) -> None:
        """Refuse what has a meaning for a split by time alone."""
        for key, default in (("leave_out", 0.0), ("windows", 1)):
            if getattr(self, key) != default and self.by != "time":
                raise ValueError(
                    f"`{key}` needs `by: time`, found `by: {self.by}`; leave `{key}` out"
                )
        if self.windows > 1 and self.leave_out:
            raise ValueError("`windows` decides what is left out; leave `leave_out` out")
        earlier = self.leave_out + (self.windows - 1) * self.test
        aside = self.valid + self.test + earlier
        if earlier and aside >= 1:
            raise ValueError(
                f"`windows`, `leave_out`, `valid` and `test` set {aside:.0%} of the edges aside "
                "and must leave some to train on; lower one of them"
            )


class EncodingConfig(BaseModel):
    """One positional encoding; keys other than `kind` and `seed` are the encoder's parameters.

    An encoder's name alone stands for its defaults.
    """

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    kind: Annotated[str, registered(ENCODERS, "encoding")] = "le"
    seed: Seed = Field(0, description="Seed of the encoder.")

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        """``le`` is short for ``{kind: le}``."""
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parameters(self) -> EncodingConfig:
        check_encoder(self.kind, self.parameters)
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


def check_encoder(kind: str, parameters: dict[str, Any]) -> None:
    """Raise ValueError for parameters that the encoder refuses, or numbers beyond reason."""
    for name, value in parameters.items():
        if isinstance(value, int | float) and not abs(value) <= MOST:
            raise ValueError(f"{name} is {shorten(value)}, needed is a number of at most {MOST:,}")
    ENCODERS[kind].check_parameters(parameters)


def _same_place(first: str | None, second: str | None) -> bool:
    """Whether two locations are one, written the same way or not."""
    return posixpath.normpath(first or "") == posixpath.normpath(second or "")
