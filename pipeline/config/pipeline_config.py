"""The schema of a pipeline file: what is computed, and in ``cluster`` where.

Descriptions are shown by ``peg config schema`` and by editors; keep them useful.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from peg_core.errors import InputError
from peg_core.inference.list_side import chosen_kinds
from pipeline.config.data_sections import EncodingConfig, FeaturesConfig, SplitConfig
from pipeline.config.field_types import (
    LATER,
    MOST,
    Bytes,
    Location,
    Section,
    Text,
    TrainWorkers,
    Workers,
)
from pipeline.config.graph_section import GraphConfig, columns_of_links
from pipeline.config.model_sections import ModelConfig, TrainConfig
from pipeline.config.result_sections import (
    CalibrateConfig,
    EmbedConfig,
    EvaluateConfig,
    RecommendConfig,
    RefreshConfig,
    ScoreConfig,
)
from workers.cluster_settings import ClusterSettings


class ClusterConfig(Section):
    """Where the work is done. Nothing here recomputes an artifact.

    On CPUs only ``train_workers`` changes a trained model: each worker takes a share of every step.
    """

    address: Text | None = Field(
        None, description="Address of the Ray cluster to join; none: a local Ray."
    )
    workers: Workers = Field(
        ClusterSettings.workers, description="Number of tasks that run at the same time."
    )
    train_workers: TrainWorkers = Field(
        ClusterSettings.train_workers,
        description="Number of Ray Train workers; 1 trains in one task; [least, most]: as many as "
        "there is room for, even after a node is lost.",
    )
    cpus_per_worker: Workers = Field(
        ClusterSettings.cpus_per_worker, description="Threads per task."
    )
    gpus_per_worker: float = Field(
        ClusterSettings.gpus_per_worker,
        ge=0,
        le=1000,
        description="GPUs of a training task or of each train worker; 0: none. Sums on a GPU are "
        "not the same to the last bit.",
    )
    task_memory: Bytes = Field(
        ClusterSettings.task_memory_bytes, description="Memory per task, for example 2GB."
    )
    retries: int = Field(
        ClusterSettings.retries,
        ge=0,
        le=MOST,
        description="How often a task that was lost with its worker is run again.",
    )
    distribute_encoding_above: int = Field(
        ClusterSettings.distribute_encoding_above,
        ge=0,
        le=2**63,
        description="Number of nodes above which all workers compute the eigenmaps of a graph "
        "together, which are the same up to rotation and tolerance. Walks do not follow it: how "
        "they are encoded depends on the graph alone, see docs/encodings.md.",
    )

    @model_validator(mode="after")
    def _whole_gpus(self) -> Self:
        if self.train_workers != 1 and not float(self.gpus_per_worker).is_integer():
            raise ValueError(
                f"gpus_per_worker is {self.gpus_per_worker} with train_workers "
                f"{self.train_workers}: workers that train one model together need whole GPUs; set "
                "gpus_per_worker to 1, or train_workers to 1"
            )
        return self

    def settings(self) -> ClusterSettings:
        """As the workers take them, which know no configuration."""
        chosen = self.model_dump(exclude={"task_memory"})
        return ClusterSettings(**chosen, task_memory_bytes=self.task_memory)


class IntegrityConfig(Section):
    """Whether finished artifacts are still what was written. Nothing here changes a result."""

    verify: Literal["full", "sizes"] = Field(
        "full",
        description="How artifacts are looked at before a run uses them: sizes alone, or sizes and "
        "checksums of all contents.",
    )
    on_damage: Literal["rerun", "stop"] = Field(
        "rerun",
        description="What happens to a damaged artifact: it is set aside and its stage runs again, "
        "or the run stops.",
    )


class PipelineConfig(Section):
    """One file, one pipeline."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="Name of the pipeline.")
    store: Location = Field(description="Folder that holds the artifacts.")
    repeats: int = Field(
        1,
        ge=1,
        le=10_000,
        description="How often the pipeline is run, each time with the next seed for split and "
        "training; mean and standard deviation of the test metrics are shown.",
    )
    graph: GraphConfig
    features: FeaturesConfig = FeaturesConfig()
    split: SplitConfig = SplitConfig()
    encodings: list[EncodingConfig] = Field([EncodingConfig()], min_length=1)
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    embed: EmbedConfig = EmbedConfig()
    calibrate: Annotated[CalibrateConfig, LATER] = CalibrateConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    score: ScoreConfig | None = None
    recommend: RecommendConfig | None = None
    refresh: RefreshConfig = RefreshConfig()
    integrity: IntegrityConfig = IntegrityConfig()
    cluster: ClusterConfig = ClusterConfig()

    @property
    def negatives(self) -> Literal["random", "matched"]:
        """How the split draws its non-links, as asked for or by default."""
        return self.evaluate.negatives or ("matched" if self.split.by == "time" else "random")

    @property
    def reads_node_features(self) -> bool:
        """Whether the model reads what the node table says about the nodes."""
        kind = self.features.kind
        return kind in ("node", "node+positional") or (kind == "auto" and self.graph.has_features)

    def _check_other_graph(self, other: GraphConfig) -> None:
        """A model can read another graph only where its features mean the same there."""
        kind = self.features.kind
        if kind in ("learned", "one_hot"):
            raise ValueError(
                f"`evaluate.on` needs features that other nodes have too, found "
                f"`features.kind: {kind}`"
            )
        if self.graph.meaning != other.meaning:
            raise ValueError(
                "`evaluate.on` needs the kinds of node and relations that `graph` has, only the "
                "files may be others"
            )
        if self.graph.has_features != other.has_features:
            raise ValueError("`evaluate.on` needs `features` where `graph` has them, and only then")
        if other.has_features and self.features.reduce == "pca" and kind != "degree":
            raise ValueError(
                "`evaluate.on` needs one projection for both graphs, principal components are "
                "each graph's own; set `features.reduce` to random or none"
            )

    @model_validator(mode="before")
    @classmethod
    def _pairs_as_links(cls, data: Any) -> Any:
        """Pairs of a graph with relations have the columns of the predicted one."""
        sections = data if isinstance(data, dict) else {}
        graph, score = sections.get("graph"), sections.get("score")
        if not isinstance(graph, dict):
            return data
        links, recommend = columns_of_links(graph), sections.get("recommend")
        if isinstance(score, dict):
            sections = {**sections, "score": {**links, **score}}
        if isinstance(recommend, dict) and isinstance(recommend.get("exclude"), dict):
            exclude = {**links, **recommend["exclude"]}
            sections = {**sections, "recommend": {**recommend, "exclude": exclude}}
        return sections or data

    @model_validator(mode="after")
    def _lists_of_its_kinds(self) -> PipelineConfig:
        if self.recommend is not None:
            ends = self.graph.predicted.kinds if self.graph.is_relational else None
            try:
                chosen_kinds(ends, self.recommend.made_for)
            except InputError as error:
                raise ValueError(str(error)) from error
        return self

    @model_validator(mode="after")
    def _consistent(self) -> PipelineConfig:
        if self.split.by == "time" and self.graph.predicted.time is None:
            raise ValueError("`split.by: time` needs `graph.time`, the column with the timestamps")
        if self.split.windows > 1 and self.repeats > 1:
            raise ValueError(
                f"`repeats: {self.repeats}` and `split.windows` are two series of runs; set one of "
                "them to 1"
            )
        fan_outs = self.train.fan_outs
        if isinstance(fan_outs, list) and len(fan_outs) != self.model.layers:
            raise ValueError(
                f"`train.fan_outs` has {len(fan_outs)} numbers, but must have one for each of the "
                f"{self.model.layers} layers of `model.layers`"
            )
        if "given" in (self.evaluate.protocol or ()) and self.split.test_negatives is None:
            raise ValueError(
                "`evaluate.protocol: given` needs `split.test_negatives`, the file of non-links"
            )
        if self.train.metric.startswith("link_") and not (
            self.split.negatives_link and self.split.valid_negatives
        ):
            raise ValueError(
                f"`train.metric: {self.train.metric}` needs `split.valid_negatives` and "
                "`split.negatives_link`, the column with the link that a non-link belongs to"
            )
        if self.train.objective == "softmax" and self.model.head not in ("preset", "cosine"):
            raise ValueError(
                f"`train.objective: softmax` learns the cosine of embeddings, found `model.head: "
                f"{self.model.head}`; leave it out, or set it to cosine"
            )
        if self.evaluate.on is not None:
            self._check_other_graph(self.evaluate.on)
        kind = self.features.kind
        if kind in ("node", "node+positional") and not self.graph.has_features:
            raise ValueError(
                f"`features.kind: {kind}` needs node features; set `graph.nodes` and "
                "`graph.features`, or another kind"
            )
        return self
