"""The schema of a pipeline file: what is computed, and in ``cluster`` where.

Descriptions are shown by ``peg config schema`` and by editors; keep them useful.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from peg_core.encoding import ENCODERS
from peg_core.errors import nearest_hint
from peg_core.heuristics import HEURISTICS
from peg_core.models import MODELS

BYTES_PER_UNIT = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_bytes(value: object) -> object:
    """``"2GB"`` to 2000000000; anything else is left to pydantic."""
    if not isinstance(value, str):
        return value
    text = value.strip().upper()
    for unit in ("KB", "MB", "GB", "TB", "B"):
        number = text.removesuffix(unit).strip()
        if text.endswith(unit) and number.replace(".", "", 1).isdigit():
            return int(float(number) * BYTES_PER_UNIT[unit])
    raise ValueError(f"{value!r} is not a size; write for example 500MB or 2GB")


def registered(registry: dict[str, Any], what: str) -> AfterValidator:
    """A validator that accepts the names of a registry."""

    def check(name: str) -> str:
        if name not in registry:
            known = ", ".join(registry)
            raise ValueError(f"no {what} {name!r}; known: {known}{nearest_hint(name, registry)}")
        return name

    return AfterValidator(check)


def as_list(value: object) -> object:
    """One name as a list of one; anything else is left to pydantic."""
    return [value] if isinstance(value, str) else value


Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(gt=0)]
Ratio = Annotated[float, Field(gt=0, lt=1)]
Workers = Annotated[int, Field(ge=1)]
Protocols = Annotated[
    list[Literal["random", "given", "heart"]],
    BeforeValidator(as_list, json_schema_input_type=str | list[str]),
]
Names = Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str])]


def null_as_text(value: object) -> object:
    """The word ``null`` without quotes is YAML's null; here it is one of the choices."""
    return "null" if value is None else value


class Section(BaseModel):
    """A part of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class GraphConfig(Section):
    """Where the edges are and what their columns are called."""

    edges: str = Field(description="Parquet edge list: a file, a folder or a glob.")
    source: str = Field("src", description="Column with one end of the edge.")
    target: str = Field("dst", description="Column with the other end.")
    weight: str | None = Field(None, description="Column with edge weights; none: all 1.")
    duplicates: Literal["sum", "max", "first"] = Field(
        "sum", description="Which weight an edge gets that is listed several times."
    )
    on_bad_rows: Literal["error", "drop"] = Field(
        "error",
        description="Rows with a null id, a null value or a weight that is not above 0: "
        "stop and name the first, or leave them out and count them.",
    )
    time: str | None = Field(None, description="Column with timestamps, for `split.by: time`.")
    nodes: str | None = Field(
        None, description="Parquet node table: ids and what is known of the nodes."
    )
    node_id: str = Field("id", description="Id column of the node table.")
    features: Names | None = Field(
        None,
        min_length=1,
        description="Feature column of the node table, a list of floats or of the indices of "
        "binary features, or a list of columns, numbers among them.",
    )
    feature_width: int | None = Field(
        None,
        ge=1,
        description="Number of binary features, where `features` holds indices; none: the "
        "largest index decides.",
    )
    label: str | None = Field(None, description="Column with the class of a node.")
    node_split: str | None = Field(None, description="Column with the part a node belongs to.")

    @model_validator(mode="after")
    def _consistent(self) -> GraphConfig:
        for key in ("features", "label", "node_split"):
            if getattr(self, key) is not None and self.nodes is None:
                raise ValueError(f"`{key}` needs `nodes`, the table that has the column")
        if self.feature_width is not None and len(self.features or []) != 1:
            raise ValueError("`feature_width` needs `features` to name one column, with indices")
        return self


class FeaturesConfig(Section):
    """What a model reads of the nodes themselves."""

    kind: Literal[
        "auto", "node", "degree", "one_hot", "random", "positional", "node+positional", "learned"
    ] = Field(
        "auto",
        description="node: `graph.features`; degree: degree and a constant; one_hot: a column "
        "for every node; random: numbers between 0 and 1; positional: the encodings; learned: "
        "free parameters of the model, `dimensions` a node (for one fixed set of nodes). auto: "
        "node where the graph has features, else degree.",
    )
    standardise: bool = Field(
        False, description="Give the columns of node features mean 0 and deviation 1."
    )
    row_normalise: bool = Field(True, description="Then give every row the Euclidean length 1.")
    reduce: Literal["none", "pca", "random"] = Field(
        "pca",
        description="How node features wider than `dimensions` are then reduced: to principal "
        "components, by a random projection, or not at all.",
    )
    dimensions: int = Field(128, ge=1, description="Width of reduced and of random features.")
    seed: int = Field(0, ge=0, description="Of random features and random projections.")


class SplitConfig(Section):
    """How links are set aside for validation and test."""

    by: Literal["random", "time", "files"] = Field(
        "random",
        description="random: shares of all edges; time: the newest edges are tested; "
        "files: `valid_edges` and `test_edges` are given.",
    )
    valid: Ratio = Field(0.05, description="Share of the edges for validation.")
    test: Ratio = Field(0.10, description="Share of the edges for the final test.")
    folds: int = Field(
        10,
        ge=1,
        le=100,
        description="Training folds of PEG+: each supervises while encoding and messages do "
        "without it. 1: plain PEG.",
    )
    valid_edges: str | None = Field(None, description="Parquet file, with `by: files`.")
    test_edges: str | None = Field(None, description="Parquet file, with `by: files`.")
    valid_negatives: str | None = Field(
        None, description="Parquet pairs without a link to validate with; none: drawn at random."
    )
    test_negatives: str | None = Field(
        None, description="Parquet pairs without a link to test with; none: drawn at random."
    )
    seed: int = Field(0, ge=0, description="Another seed, another split.")

    @model_validator(mode="after")
    def _consistent(self) -> SplitConfig:
        if self.by == "files" and not (self.valid_edges and self.test_edges):
            raise ValueError("`by: files` needs both `valid_edges` and `test_edges`")
        if self.valid + self.test >= 1:
            raise ValueError("`valid` and `test` together must leave edges to train on")
        return self


class EncodingConfig(BaseModel):
    """One positional encoding; the keys beside `kind` are the encoder's own parameters.

    An encoder's name alone stands for its defaults.
    """

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    kind: Annotated[str, registered(ENCODERS, "encoding")] = "le"
    seed: int = Field(0, ge=0, description="Of the encoder's random numbers.")

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        """``le`` is short for ``{kind: le}``."""
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parameters(self) -> EncodingConfig:
        ENCODERS[self.kind].check_parameters(self.parameters)
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class ModelConfig(Section):
    """The network that reads features and positions."""

    kind: Annotated[str, registered(MODELS, "model")] = "peg"
    preset: Literal["best", "faithful"] = Field(
        "best",
        description="best: what worked best; faithful: the paper as its authors' code runs it.",
    )
    hidden: int = Field(128, ge=1, description="Width of a layer.")
    layers: int = Field(2, ge=1, description="Message passing layers.")
    head: Literal["preset", "inner_product", "mlp", "structural"] = Field(
        "preset",
        description="How a pair is scored. inner_product: of the embeddings, beside the squared "
        "distance; mlp: a network on the Hadamard product and the geometry; structural: that and "
        "common neighbours, degrees, same component. The preset best is structural.",
    )
    gate: Literal["preset", "distance", "squared", "inner"] = Field(
        "preset", description="What of two positions weighs the edge between them."
    )


class TrainConfig(Section):
    """How the model is fitted."""

    lr: float = Field(0.005, gt=0, description="Learning rate of Adam.")
    epochs: int = Field(50, ge=1, description="Passes over the training links, at most.")
    patience: int = Field(
        20, ge=1, description="Epochs without a better validation metric before stopping."
    )
    weight_decay: float = Field(1e-4, ge=0, description="L2 penalty of Adam.")
    batching: Literal["auto", "full", "sampled"] = Field(
        "auto",
        description="full: the whole graph a step; sampled: neighbourhoods of a batch of links; "
        "auto: full for graphs of up to a million edges.",
    )
    batch_size: int = Field(8192, ge=1, description="Links of a sampled step, all workers.")
    fan_outs: list[int] | None = Field(
        None,
        description="Neighbours per hop from a link, one number a layer, -1 for all; none: 15, "
        "then 10 for every further hop.",
    )
    sampler: Literal["numba", "pyg"] = Field(
        "numba",
        description="Draws the neighbours. pyg: the compiled kernel of pyg-lib or torch-sparse, "
        "where one is installed.",
    )
    negatives: Literal["uniform", "degree", "hard"] = Field(
        "uniform",
        description="Non-links to learn from. uniform: any pair; degree: one end of a link is "
        "replaced by a node drawn by degree^0.75; hard: by a neighbour of a neighbour.",
    )
    objective: Literal["bce", "auc"] = Field(
        "bce", description="bce: cross entropy; auc: links above non-links, pair by pair."
    )
    metric: str = Field(
        "auc",
        pattern=r"^(auc|average_precision|mrr|hits@[1-9]\d*)$",
        description="What validation measures: auc, average_precision, mrr or hits@K.",
    )
    validate_every: int = Field(1, ge=1, description="Epochs between validations.")
    accumulate: int = Field(1, ge=1, description="Steps whose gradients are added up.")
    average: float = Field(
        0.98,
        ge=0,
        lt=1,
        description="Share of the running mean of the weights that is kept at a step; the mean is "
        "what is validated and kept. 0: the weights themselves.",
    )
    compile: bool = Field(False, description="Compile the model with torch.compile.")
    seeds: int = Field(1, ge=1, description="Models trained, each from its own seed.")
    seed: int = Field(0, ge=0, description="The first seed.")
    checkpoint_every: int = Field(1, ge=1, description="Epochs between checkpoints.")
    checkpoint_steps: int | None = Field(
        None, ge=1, description="Steps between checkpoints within an epoch; none: no such ones."
    )


class IntervalConfig(Section):
    """Confidence intervals by the bootstrap."""

    repeats: int = Field(1000, ge=0, description="Resamples; 0: no intervals.")
    level: Ratio = Field(0.95, description="Share of the resamples inside the interval.")


class EmbedConfig(Section):
    """How the embeddings of the nodes are kept."""

    dtype: Literal["float32", "float16"] = Field(
        "float32",
        description="float16 takes half the space and scores faster; its numbers carry three "
        "digits.",
    )


class EvaluateConfig(Section):
    """What is measured on the test links."""

    hits: list[Annotated[int, Field(ge=1)]] = Field(
        [1, 10, 20, 50, 100], min_length=1, description="K of Hits@K."
    )
    intervals: IntervalConfig = IntervalConfig()
    protocol: Protocols | None = Field(
        None,
        min_length=1,
        description="Non-links that the test links are ranked against; several are allowed. "
        "random: as many as there are links, drawn at random; given: `split.test_negatives`; "
        "heart: hard ones for every link of its own. none: given where there are any, else random.",
    )
    negatives_per_positive: int = Field(
        500, ge=2, description="Hard non-links of a link, with `protocol: heart`."
    )
    heuristics: list[Annotated[str, registered(HEURISTICS, "heuristic")]] = Field(
        list(HEURISTICS), description="What the model is compared with; may be empty."
    )
    on: GraphConfig | None = Field(
        None,
        description="Another graph, with the keys of `graph`: 10 % of its edges are taken out, the "
        "rest is encoded and embedded by the trained model, and the links taken out are ranked.",
    )


class ScoreConfig(Section):
    """The candidate pairs to score."""

    candidates: str = Field(description="Parquet pairs: a file, a folder or a glob.")
    source: str = Field("src", description="Column with one end of the pair.")
    target: str = Field("dst", description="Column with the other end.")
    graph: Literal["all", "train"] = Field(
        "all", description="Edges the scores are based on: all known ones, or those trained on."
    )
    columns: Annotated[
        list[Literal["score", "logit"]],
        BeforeValidator(as_list, json_schema_input_type=str | list[str]),
    ] = Field(
        ["score"],
        min_length=1,
        description="What is written of a pair: score, a probability, and logit, the model's "
        "number before it becomes one.",
    )
    on_unknown: Annotated[
        Literal["null", "drop", "error"],
        BeforeValidator(null_as_text, json_schema_input_type=str | None),
    ] = Field(
        "null",
        description="Pairs with an id that is null or not in the graph. null: no score, and "
        "`reason` says why; drop: left out and counted; error: the run stops and names the id.",
    )
    prior: Ratio | None = Field(
        None,
        description="Share of links among the candidates, if you know it; none: as many links as "
        "non-links, as in validation.",
    )
    shard_rows: int = Field(
        1_000_000, ge=1, description="Rows of an output file; a rerun redoes whole files."
    )


class RecommendConfig(Section):
    """The best new partners of nodes."""

    top_k: int = Field(50, ge=1, description="Candidates per node.")
    nodes: str | None = Field(
        None, description="Parquet table with the nodes: a file, a folder or a glob; none: all."
    )
    column: str = Field("id", description="Its column with the ids.")
    on_unknown: Literal["drop", "error"] = Field(
        "drop", description="Ids that the graph does not have: count them, or stop."
    )
    graph: Literal["all", "train"] = Field(
        "all", description="Edges the scores are based on: all known ones, or those trained on."
    )
    nearby: int = Field(
        500, ge=1, description="Candidates per node from two steps away, by resource allocation."
    )
    nearest: int = Field(
        100, ge=2, description="Candidates per node near it in every encoding and the embedding."
    )
    shard_nodes: int = Field(
        10_000, ge=1, description="Nodes of an output file; a rerun redoes whole files."
    )
    measure_recall: int | None = Field(
        None,
        ge=0,
        description="Nodes that are compared with scoring every pair; none: 200 in graphs of up to "
        "20,000 nodes.",
    )


class RefreshConfig(Section):
    """When `peg run --refresh` trains again. Nothing here changes a result."""

    max_movement: float | None = Field(
        None,
        gt=0,
        description="Most that an encoding may have moved since training: the Procrustes distance "
        "over the length of the encoding, between 0 and 2; none: any.",
    )
    max_score_shift: float | None = Field(
        0.25,
        gt=0,
        description="Most that scores may have shifted since training, as population stability "
        "index; none: any.",
    )
    min_new_edge_auc: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Least AUC of the newest edges, scored before they were known; none: any.",
    )
    retrain: Literal["auto", "never"] = Field(
        "auto", description="auto: train again when a limit is passed; never: warn only."
    )


class ClusterConfig(Section):
    """Where the work is done. Nothing here changes a result or recomputes an artifact."""

    address: str | None = Field(None, description="Ray address to join; none: a local Ray.")
    workers: int = Field(2, ge=1, description="Tasks side by side.")
    train_workers: Workers | tuple[Workers, Workers] = Field(
        1,
        description="Ray Train workers; 1 trains in one task; [least, most]: as many as there "
        "is room for, also after a node was lost.",
    )
    cpus_per_worker: int = Field(1, ge=1, description="Threads of a task.")
    gpus_per_worker: float = Field(0, ge=0, description="GPUs of a task; 0: none.")
    task_memory: Bytes = Field(2 * 10**9, description="Memory of one task, for example 2GB.")
    retries: int = Field(3, ge=0, description="Times a task lost with its worker is run again.")
    distribute_encoding_above: int = Field(
        2_000_000,
        ge=0,
        description="Nodes above which the encoding of one graph is computed by all workers "
        "together. Eigenmaps and sampled matrices are the same up to rotation and tolerance; "
        "skip-gram training then takes the mean of shards, see docs/encodings.md.",
    )


class PipelineConfig(Section):
    """One file, one pipeline."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="Name of the pipeline.")
    store: str = Field(description="Folder that holds the artifacts.")
    repeats: int = Field(
        1,
        ge=1,
        description="Times the pipeline is run, each with the next seed of split and training; "
        "mean and deviation of the test metrics are shown.",
    )
    graph: GraphConfig
    features: FeaturesConfig = FeaturesConfig()
    split: SplitConfig = SplitConfig()
    encodings: list[EncodingConfig] = Field([EncodingConfig()], min_length=1)
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    embed: EmbedConfig = EmbedConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    score: ScoreConfig | None = None
    recommend: RecommendConfig | None = None
    refresh: RefreshConfig = RefreshConfig()
    cluster: ClusterConfig = ClusterConfig()

    def _check_other_graph(self, other: GraphConfig) -> None:
        """A model can read another graph only where its features mean the same there."""
        kind = self.features.kind
        if kind in ("learned", "one_hot"):
            raise ValueError(
                f"`evaluate.on` needs features that other nodes have too, found "
                f"`features.kind: {kind}`"
            )
        if (self.graph.features is None) != (other.features is None):
            raise ValueError("`evaluate.on` needs `features` where `graph` has them, and only then")
        if other.features is not None and self.features.reduce == "pca" and kind != "degree":
            raise ValueError(
                "`evaluate.on` needs one projection for both graphs, principal components are "
                "each graph's own; set `features.reduce` to random or none"
            )

    @model_validator(mode="after")
    def _consistent(self) -> PipelineConfig:
        if self.split.by == "time" and self.graph.time is None:
            raise ValueError("`split.by: time` needs `graph.time`, the column with the timestamps")
        fan_outs = self.train.fan_outs
        if fan_outs is not None and len(fan_outs) != self.model.layers:
            raise ValueError(
                f"`train.fan_outs` has {len(fan_outs)} numbers, needed is one for each of the "
                f"{self.model.layers} layers of `model.layers`"
            )
        if "given" in (self.evaluate.protocol or ()) and self.split.test_negatives is None:
            raise ValueError(
                "`evaluate.protocol: given` needs `split.test_negatives`, the pairs without a link"
            )
        if self.evaluate.on is not None:
            self._check_other_graph(self.evaluate.on)
        kind = self.features.kind
        if kind in ("node", "node+positional") and self.graph.features is None:
            raise ValueError(
                f"`features.kind: {kind}` needs node features; set `graph.nodes` and "
                "`graph.features`, or another kind"
            )
        return self
