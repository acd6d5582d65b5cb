"""Sections on the model and how it is fitted."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from pydantic import Field

from peg_core.models import MODELS
from peg_core.training.settings import (
    Batching,
    Gate,
    Head,
    ModelSettings,
    Negatives,
    Objective,
    Optimisation,
    Preset,
    Sampler,
    Sampling,
    Schedule,
)
from pipeline.config.field_types import LATER, MOST, Count, Section, Seed, Width, registered


class ModelConfig(Section):
    """The network that reads features and positions."""

    kind: Annotated[str, registered(MODELS, "model")] = ModelSettings.kind
    preset: Preset = Field(
        ModelSettings.preset,
        description="best: what worked best; faithful: the paper as its authors' code runs it.",
    )
    hidden: Width = Field(ModelSettings.hidden, description="Width of a layer.")
    layers: int = Field(ModelSettings.layers, ge=1, le=100, description="Message passing layers.")
    head: Head = Field(
        ModelSettings.head,
        description="How a pair is scored. inner_product: of the embeddings, beside the squared "
        "distance; cosine: of the embeddings; mlp: a network on the Hadamard product and the "
        "geometry; structural: that and common neighbours, degrees, same component. The preset "
        "best is structural, but for light_gcn inner_product; `objective: softmax` needs cosine.",
    )
    gate: Gate = Field(
        ModelSettings.gate, description="What of two positions weighs the edge between them."
    )
    gated: Annotated[bool, LATER] = Field(
        ModelSettings.gated, description="With light_gcn: weigh its edges by PEG's gate, too."
    )
    initial_deviation: Annotated[float | None, LATER] = Field(
        ModelSettings.initial_deviation,
        gt=0,
        le=1000,
        description="Standard deviation of learned features before training; none: 0.1 for "
        "light_gcn, as its authors do, else a small one that depends on the graph (Xavier).",
    )
    dropout: float | None = Field(
        ModelSettings.dropout,
        ge=0,
        lt=1,
        description="Share of the values dropped between layers and in the head while training; "
        "none: as the preset does, which for best also drops some of the input.",
    )
    head_width: Width = Field(
        ModelSettings.head_width,
        description="Width of the hidden layer of the heads mlp and structural.",
    )

    def settings(self) -> ModelSettings:
        """As a training takes them."""
        return ModelSettings(**self.model_dump())


class TrainConfig(Section):
    """How the model is fitted."""

    lr: float = Field(Optimisation.lr, gt=0, le=1e6, description="Learning rate of Adam.")
    lr_schedule: Schedule = Field(
        Optimisation.lr_schedule,
        description="linear: it falls from epoch to epoch, to nothing after the last of `epochs`.",
    )
    epochs: Count = Field(
        Optimisation.epochs, description="Passes over the training links, at most."
    )
    patience: Count = Field(
        Optimisation.patience,
        description="Epochs without a better validation metric before stopping.",
    )
    weight_decay: float = Field(
        Optimisation.weight_decay, ge=0, le=1e6, description="L2 penalty of Adam."
    )
    batching: Batching = Field(
        Sampling.batching,
        description="full: the whole graph a step; sampled: neighbourhoods of a batch of links; "
        "auto: full for graphs of up to a million edges.",
    )
    batch_size: Count = Field(
        Sampling.batch_size, description="Links of a sampled step, all workers."
    )
    fan_outs: list[Annotated[int, Field(ge=-1, le=MOST)]] | None = Field(
        None,
        description="Neighbours per hop from a link, one number a layer, -1 for all; none: 15, "
        "then 10 for every further hop.",
    )
    sampler: Sampler = Field(
        Sampling.sampler,
        description="Draws the neighbours. pyg: the compiled kernel of pyg-lib or torch-sparse, "
        "where one is installed.",
    )
    negatives: Negatives = Field(
        Sampling.negatives,
        description="Non-links to learn from. uniform: any pair; degree: one end of a link is "
        "replaced by a node drawn by degree^0.75; hard: by a neighbour of a neighbour.",
    )
    negatives_per_link: Count = Field(
        Sampling.negatives_per_link,
        description="Non-links to learn from beside every link, drawn anew in every epoch.",
    )
    objective: Objective = Field(
        Optimisation.objective,
        description="bce: cross entropy; auc: links above non-links, pair by pair; auc_squared: "
        "by 1 above, misses counting squared; bpr: links above non-links of the same node; "
        "softmax: links among all that their node might be linked to, by the cosine of "
        "embeddings.",
    )
    metric: str = Field(
        Optimisation.metric,
        pattern=r"^(auc|average_precision|mrr|hits@[1-9]\d*)$",
        description="What validation measures: auc, average_precision, mrr or hits@K.",
    )
    validate_every: Count = Field(
        Optimisation.validate_every, description="Epochs between validations."
    )
    accumulate: Count = Field(
        Optimisation.accumulate, description="Steps whose gradients are added up."
    )
    average: float = Field(
        Optimisation.average,
        ge=0,
        lt=1,
        description="Share of the running mean of the weights that is kept at a step; the mean is "
        "what is validated and kept. 0: the weights themselves.",
    )
    temperature: Annotated[float, LATER] = Field(
        Optimisation.temperature,
        gt=0,
        le=1000,
        description="What cosines are divided by, with `objective: softmax`.",
    )
    compile: bool = Field(Optimisation.compile, description="Compile the model with torch.compile.")
    seeds: Count = Field(1, description="Models trained, each from its own seed.")
    seed: Seed = Field(0, description="The first seed.")
    checkpoint_every: Count = Field(1, description="Epochs between checkpoints.")
    checkpoint_steps: Count | None = Field(
        None, description="Steps between checkpoints within an epoch; none: no such ones."
    )

    def optimisation(self) -> Optimisation:
        """As a training takes it."""
        return Optimisation(**self.model_dump(include=_names(Optimisation)))

    def sampling(self) -> Sampling:
        """As a training takes it."""
        fan_outs = None if self.fan_outs is None else tuple(self.fan_outs)
        chosen = self.model_dump(include=_names(Sampling))
        return Sampling(**{**chosen, "fan_outs": fan_outs})


def _names(settings: type[Optimisation | Sampling]) -> set[str]:
    return {field.name for field in fields(settings)}
