"""Sections on what a model learns from: features, split, encodings."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from peg_core.encoding import ENCODERS
from pipeline.config.field_types import (
    LATER,
    MOST,
    Auto,
    Column,
    Location,
    OrAuto,
    Ratio,
    Section,
    Seed,
    Width,
    registered,
    shorten,
)

# Of graphs that are not large.
FOLDS = 10


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
        "above ten million, for each fold is another encoding; 1 with a baseline model.",
    )
    valid_edges: Location | None = Field(None, description="Parquet file, with `by: files`.")
    test_edges: Location | None = Field(None, description="Parquet file, with `by: files`.")
    valid_negatives: Location | None = Field(
        None, description="Parquet file of non-links to validate with; none: drawn at random."
    )
    test_negatives: Location | None = Field(
        None, description="Parquet file of non-links to test with; none: drawn at random."
    )
    negatives_link: Annotated[Column | None, LATER] = Field(
        None,
        description="Column of given non-links with the link that each belongs to: the number of "
        "its row in `valid_edges` or `test_edges`. Links are then ranked among their own "
        "non-links. none: every link is ranked among all.",
    )
    on_known_negatives: Annotated[Literal["keep", "drop", "error"], LATER] = Field(
        "error",
        description="Given non-links that are links of the graph: the run stops; or they are left "
        "out, or kept as published figures do, and counted.",
    )
    seed: Seed = Field(0, description="Seed of the split.")
    keep_connected: Annotated[bool, LATER] = Field(
        False,
        description="Leave every node an edge to train with, with `by: random`. Held-out links are "
        "then between nodes of more edges than in the graph at large.",
    )
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
        self._check_negatives()
        if self.keep_connected and self.by != "random":
            raise ValueError(
                f"`keep_connected` needs `by: random`, found `by: {self.by}`; leave it out"
            )
        if self.valid + self.test >= 1:
            raise ValueError("`valid` and `test` together must leave edges to train on")
        self._check_time()
        return self

    def _check_negatives(self) -> None:
        """Refuse what has a meaning for given non-links alone."""
        given = self.valid_negatives or self.test_negatives
        if self.on_known_negatives != "error" and not given:
            raise ValueError(
                "`on_known_negatives` needs `valid_negatives` or `test_negatives`; leave it out"
            )
        if self.negatives_link and not (given and self.by == "files"):
            raise ValueError(
                "`negatives_link` needs non-links in `valid_negatives` or `test_negatives`, and "
                "`by: files`, whose rows it counts"
            )

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
