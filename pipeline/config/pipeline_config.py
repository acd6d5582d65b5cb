"""The schema of a pipeline file: what is computed, and in ``cluster`` where.

Descriptions are shown by ``peg config schema`` and by editors; keep them useful.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from pipeline.config.data_sections import EncodingConfig, FeaturesConfig, GraphConfig, SplitConfig
from pipeline.config.field_types import Bytes, Section, Workers
from pipeline.config.model_sections import ModelConfig, TrainConfig
from pipeline.config.result_sections import (
    EmbedConfig,
    EvaluateConfig,
    RecommendConfig,
    RefreshConfig,
    ScoreConfig,
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
