"""Sections on what is made with a trained model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from peg_core.heuristics import HEURISTICS
from pipeline.config.field_types import (
    LATER,
    MOST,
    Auto,
    Column,
    Count,
    Location,
    OrAuto,
    Protocols,
    Ratio,
    Section,
    as_list,
    as_list_of_one,
    null_as_text,
    registered,
    shorten,
)
from pipeline.config.graph_section import GraphConfig

# What `recommend.for` calls nodes of either end.
BOTH = "both"


def require_two_columns(source: str, target: str) -> None:
    """Refuse one column for both ends of a pair."""
    if source == target:
        raise ValueError(
            f"`source` and `target` are both the column {shorten(source)}, but must be two; name "
            "another column as `source`"
        )


Heuristic = Annotated[str, registered(HEURISTICS, "heuristic")]


class IntervalConfig(Section):
    """Confidence intervals by the bootstrap."""

    repeats: int = Field(1000, ge=0, le=1_000_000, description="Resamples; 0: no intervals.")
    level: Ratio = Field(0.95, description="Share of the resamples inside the interval.")


class CalibrateConfig(Section):
    """How logits become scores."""

    stack: Annotated[bool, LATER] = Field(
        False,
        description="Add common neighbours, Adamic-Adar and resource allocation of a pair to the "
        "model's logit, with weights that the validation pairs give; evaluation, scores and "
        "recommendations all use the sum.",
    )


class EmbedConfig(Section):
    """How the embeddings of the nodes are kept."""

    dtype: Literal["float32", "float16"] = Field(
        "float32",
        description="float16 takes half the space and scores faster, but keeps only three digits.",
    )


class EvaluateConfig(Section):
    """What is measured on the test links."""

    hits: list[Count] = Field([1, 10, 20, 50, 100], min_length=1, description="K of Hits@K.")
    intervals: IntervalConfig = IntervalConfig()
    protocol: Protocols | None = Field(
        None,
        min_length=1,
        description="Non-links that the test links are ranked against; several are allowed. "
        "random: as many as there are links, drawn at random; given: `split.test_negatives`; "
        "heart: hard ones for every link of its own; recommend: all partners that a node might "
        "have, measured as recommenders are. none: given where there are any, else random.",
    )
    top_k: Annotated[
        list[Count],
        BeforeValidator(as_list_of_one, json_schema_input_type=int | list[int]),
        LATER,
    ] = Field(
        [20], min_length=1, description="K of Recall@K and so on, with `protocol: recommend`."
    )
    negatives_per_positive: int = Field(
        500, ge=2, le=1_000_000, description="Hard non-links per link, with `protocol: heart`."
    )
    negatives: Annotated[Literal["random", "matched"] | None, LATER] = Field(
        None,
        description="How the split draws its non-links. random: any pair without an edge; matched: "
        "a held-out link with one end replaced by a node that was there by then. none: matched "
        "with `split.by: time`, else random.",
    )
    heuristics: Annotated[list[str] | Auto, OrAuto(list[Heuristic])] = Field(
        "auto",
        description="What the model is compared with; may be empty. auto: all; above a million "
        "training links without personalised_pagerank, which is too coarse there.",
    )
    on: GraphConfig | None = Field(
        None,
        description="Another graph, with the keys of `graph`: 10 % of its edges are taken out, the "
        "rest is encoded and embedded by the trained model, and the links taken out are ranked.",
    )

    @property
    def chosen_heuristics(self) -> list[str]:
        """What is still automatic is that of a small graph."""
        return list(HEURISTICS) if self.heuristics == "auto" else self.heuristics


class ScoreConfig(Section):
    """The candidate pairs to score."""

    candidates: Location = Field(description="Parquet pairs: a file, a folder or a glob.")
    source: Column = Field("src", description="Column with one end of the pair.")
    target: Column = Field("dst", description="Column with the other end.")
    graph: Literal["all", "train"] = Field(
        "all", description="Edges the scores are based on: all known ones, or those trained on."
    )
    columns: Annotated[
        list[Literal["score", "logit"]],
        BeforeValidator(as_list, json_schema_input_type=str | list[str]),
    ] = Field(
        ["score"],
        min_length=1,
        description="What is written for a pair: score, a probability, and logit, the model's "
        "output before it becomes one.",
    )
    on_unknown: Annotated[
        Literal["null", "drop", "error"],
        BeforeValidator(null_as_text, json_schema_input_type=str | None),
    ] = Field(
        "null",
        description="Pairs that cannot be scored: an id is null or not in the graph, or both ends "
        "are one node. null: no score, and `reason` says why; drop: left out and counted; error: "
        "the run stops and names the id.",
    )
    prior: Ratio | None = Field(
        None,
        description="Share of links among the candidates, if you know it; none: as many links as "
        "non-links, as in validation.",
    )
    explain: Annotated[Literal["none", "top"], LATER] = Field(
        "none",
        description="top: the 100 best pairs are also written to a table of their own, with a "
        "column `why`: what each part of the model's input adds, and common neighbours.",
    )
    shard_rows: Count = Field(
        1_000_000, description="Rows per output file; a rerun redoes whole files."
    )

    @model_validator(mode="after")
    def _consistent(self) -> ScoreConfig:
        require_two_columns(self.source, self.target)
        return self


class AllowedConfig(Section):
    """The nodes that may be recommended."""

    files: Location = Field(description="Parquet table: a file, a folder or a glob.")
    column: Column = Field("id", description="Column with their ids.")


class ExcludeConfig(Section):
    """Pairs that are never recommended."""

    files: Location = Field(description="Parquet table: a file, a folder or a glob.")
    source: Column = Field("src", description="Column with the id of the source of the link.")
    target: Column = Field("dst", description="Column with the id of its target.")

    @model_validator(mode="after")
    def _consistent(self) -> ExcludeConfig:
        require_two_columns(self.source, self.target)
        return self


class RecommendConfig(Section):
    """The best new partners of nodes."""

    made_for: Annotated[str | None, LATER] = Field(
        None,
        alias="for",
        min_length=1,
        description="Kind of node whose lists are made, one of the two ends of the predicted "
        "relation; both: of either, with a column `kind`. none: that of its source.",
    )
    top_k: Count = Field(50, description="Candidates per node.")
    allowed: Annotated[AllowedConfig | None, LATER] = Field(
        None, description="Table of the only nodes that may be recommended; none: all of the kind."
    )
    exclude: Annotated[ExcludeConfig | None, LATER] = Field(
        None, description="Table of pairs that are never recommended."
    )
    least_score: Annotated[float | None, LATER] = Field(
        None, ge=0, le=1, description="Candidates with a lower score are left out; none: none are."
    )
    nodes: Location | None = Field(
        None,
        description="Parquet table with the nodes: a file, a folder or a glob; none: all nodes.",
    )
    column: Column = Field("id", description="Column of that table with the ids.")
    on_unknown: Literal["drop", "error"] = Field(
        "drop",
        description="Ids that the graph does not have: leave them out and count them, or stop.",
    )
    graph: Literal["all", "train"] = Field(
        "all", description="Edges the scores are based on: all known ones, or those trained on."
    )
    nearby: Count = Field(
        500, description="Candidates per node from two steps away, by resource allocation."
    )
    nearest: int = Field(
        100,
        ge=2,
        le=MOST,
        description="Candidates per node near it in every encoding and the embedding.",
    )
    index_dtype: Literal["auto", "float32", "float16", "int8"] = Field(
        "auto",
        description="Values in the indexes that candidates are found with; scores are exact with "
        "any. auto: float32 up to 4,000,000 nodes, float16 above.",
    )
    shard_nodes: Count = Field(
        10_000, description="Nodes per output file; a rerun redoes whole files."
    )
    measure_recall: int | None = Field(
        None,
        ge=0,
        le=MOST,
        description="Number of nodes for which the result is compared with scoring every pair; "
        "none: 200 in graphs of up to 20,000 nodes.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> RecommendConfig:
        if self.made_for == BOTH and self.nodes is not None:
            raise ValueError(
                "`for: both` makes lists for nodes of two kinds, `nodes` has ids of one; name the "
                "kind as `for`, or leave `nodes` out"
            )
        return self


class RefreshConfig(Section):
    """When `peg run --refresh` trains again. Nothing here changes a result."""

    max_movement: float | None = Field(
        None,
        gt=0,
        description="How far an encoding may have moved since training: the Procrustes distance "
        "over the length of the encoding, between 0 and 2; none: any distance.",
    )
    max_score_shift: float | None = Field(
        0.25,
        gt=0,
        description="How far scores may have shifted since training, as a population stability "
        "index; none: any shift.",
    )
    min_new_edge_auc: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Lowest AUC accepted on the newest edges, scored before they were known; "
        "none: any.",
    )
    retrain: Literal["auto", "never"] = Field(
        "auto", description="auto: train again when a limit is passed; never: warn only."
    )
