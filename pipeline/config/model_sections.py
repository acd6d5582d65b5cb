"""Sections on the model and how it is fitted."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, get_args

from pydantic import Field, model_validator

from peg_core.models import MODELS
from peg_core.splits.mixture.mixed_negatives import Mixture
from peg_core.training.settings import (
    NEGATIVES,
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
from pipeline.config.field_types import (
    LATER,
    MOST,
    Auto,
    AutoCount,
    AutoCountOrNone,
    Count,
    Later,
    OrAuto,
    OrWords,
    Section,
    Seed,
    Width,
    registered,
)

FanOut = Annotated[int, Field(ge=-1, le=MOST)]
Gain = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]


# What the preset `ranking` means where a key is not given.
RANKING = {"kind": "linear_peg", "hidden": 256, "layers": 1, "head_width": 256}


class MixtureConfig(Section):
    """Shares of the kinds of non-links to learn from; they need not add up to 1."""

    uniform: Share = Field(Mixture.uniform, description="Any pair without an edge.")
    corrupt: Share = Field(Mixture.corrupt, description="A link with one end replaced by any node.")
    hard: Share = Field(
        Mixture.hard,
        description="A link with one end replaced by a node close to the other: one of the 100 "
        "best by personalised PageRank, of the 100 best by cosine of the features, or a neighbour "
        "of a neighbour, in equal parts.",
    )

    @model_validator(mode="after")
    def _some(self) -> MixtureConfig:
        if not self.uniform + self.corrupt + self.hard > 0:
            raise ValueError(
                "all shares are 0, one must be above; write for example {corrupt: 0.75, hard: 0.25}"
            )
        return self


class ModelConfig(Section):
    """The network that reads features and positions."""

    kind: Annotated[str, registered(MODELS, "model")] = ModelSettings.kind
    preset: Preset = Field(
        ModelSettings.preset,
        description="best: what worked best by AUC; faithful: the paper as its authors' code runs "
        "it; ranking: what ranks best among plausible candidates, linear_peg with one layer, 256 "
        "wide, and the head branches, where these keys are not given.",
    )
    hidden: Width = Field(ModelSettings.hidden, description="Width of a layer.")
    layers: int = Field(ModelSettings.layers, ge=1, le=100, description="Message passing layers.")
    head: Head = Field(
        ModelSettings.head,
        description="How a pair is scored. dot: the inner product of the embeddings; "
        "inner_product: a linear map of that and the squared distance; cosine: of the embeddings; "
        "mlp: a network on the Hadamard product and the geometry; structural: that and common "
        "neighbours, degrees, same component; branches: the product and the structure, each in a "
        "branch of its own; placed_branches: and the geometry in a third. The preset best is "
        "structural, ranking branches, but for light_gcn and baselines inner_product, for "
        "positions_only mlp; `objective: softmax` needs cosine.",
    )
    gate: Gate = Field(
        ModelSettings.gate, description="What of two positions weighs the edge between them."
    )
    gated: Annotated[bool, LATER] = Field(
        ModelSettings.gated,
        description="With light_gcn and linear_peg: weigh their edges by PEG's gate, too.",
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
        description="Width of the hidden layer of the heads that have one: mlp, structural and "
        "those with branches.",
    )

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, given: Any) -> Any:
        """The preset `ranking` stands for keys that are not given."""
        ranking = isinstance(given, dict) and given.get("preset") == "ranking"
        return {**RANKING, **given} if ranking else given

    @model_validator(mode="after")
    def _consistent(self) -> ModelConfig:
        if self.preset == "ranking" and self.kind != RANKING["kind"]:
            raise ValueError(
                f"`preset: ranking` is made of `kind: {RANKING['kind']}`, found `kind: "
                f"{self.kind}`; leave `kind` out, or set another preset"
            )
        return self

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
    epochs: AutoCount = Field(
        "auto",
        description="Passes over the training links, at most, where `links` is none. auto: 50, "
        "100 with a baseline; a number here also means none for `links: auto`.",
    )
    links: Annotated[AutoCountOrNone, Later(None)] = Field(
        "auto",
        description="Training links seen, at most, each counted every time that it supervises. "
        "none: `epochs` counts; auto: none up to a million training links, above a budget that "
        "grows with the square root of the graph.",
    )
    patience: AutoCount = Field(
        "auto",
        description="Validations without a gain before stopping; epochs where `validate_links` is "
        "none. auto: 20 epochs, 50 with a baseline, or 5 validations.",
    )
    min_gain: Annotated[float | Auto, OrAuto(Gain), Later(0.0)] = Field(
        "auto",
        description="How much better than at the last gain the validation metric must be to count "
        "as one; the best weights are kept all the same. auto: 0 with epochs, 0.001 with links.",
    )
    weight_decay: float = Field(
        Optimisation.weight_decay, ge=0, le=1e6, description="L2 penalty of Adam."
    )
    batching: Batching = Field(
        Sampling.batching,
        description="full: the whole graph a step; sampled: neighbourhoods of a batch of links; "
        "masked: the whole graph less the links of a batch; auto: full for graphs of up to a "
        "million edges.",
    )
    batch_size: AutoCount = Field(
        "auto",
        description="Links of a sampled or masked step, all workers. auto: 8192, fewer where a "
        "step would hold more than a gigabyte.",
    )
    fan_outs: Annotated[list[int] | Auto | None, OrAuto(list[FanOut] | None)] = Field(
        "auto",
        description="Neighbours per hop from a link, one number a layer, -1 for all; none: 15, "
        "then 10 for every further hop. auto: none; above ten million training links 10, then 5.",
    )
    sampler: Sampler = Field(
        Sampling.sampler,
        description="Draws the neighbours. pyg: the compiled kernel of pyg-lib or torch-sparse, "
        "where one is installed.",
    )
    negatives: Annotated[
        Negatives | MixtureConfig,
        OrWords(MixtureConfig, get_args(Negatives), example="{corrupt: 0.75, hard: 0.25}"),
    ] = Field(
        NEGATIVES,
        description="Non-links to learn from. uniform: any pair; degree: one end of a link is "
        "replaced by a node drawn by degree^0.75; hard: by a neighbour of a neighbour. Or shares "
        "of kinds: {uniform: 0.5, corrupt: 0.25, hard: 0.25}.",
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
        pattern=r"^(auc|average_precision|(link_)?mrr|((link_)?hits|recall|ndcg)@[1-9]\d*)$",
        description="What validation measures: auc, average_precision, mrr, hits@K; or recall@K, "
        "ndcg@K over all partners of nodes that have validation links, which embeds all nodes; or "
        "link_mrr, link_hits@K of links among non-links of their own (`split.negatives_link`).",
    )
    validate_every: Count = Field(
        Optimisation.validate_every,
        description="Epochs between validations, where `validate_links` is none.",
    )
    validate_links: Annotated[AutoCountOrNone, Later(None)] = Field(
        "auto",
        description="Training links between validations, also within an epoch. auto: a twentieth "
        "of `links`; none where that is none.",
    )
    validate_pairs: Annotated[AutoCount, Later(Optimisation.validate_pairs)] = Field(
        "auto",
        description="Validation pairs that are ranked, at most. auto: 2,000,000; with "
        "`validate_links` 100,000.",
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
    refit: Annotated[bool, LATER] = Field(
        False,
        description="Fit the best model again on all known links, held-out ones too, as long as "
        "was best on the validation links, for scores and recommendations with `graph: all`.",
    )
    compile: bool = Field(Optimisation.compile, description="Compile the model with torch.compile.")
    seeds: Count = Field(1, description="Models trained, each from its own seed.")
    seed: Seed = Field(0, description="The first seed.")
    checkpoint_every: Count = Field(1, description="Epochs between checkpoints.")
    checkpoint_steps: Count | None = Field(
        None, description="Steps between checkpoints within an epoch; none: no such ones."
    )

    def optimisation(self) -> Optimisation:
        """As a training takes it; what is still automatic is that of a small graph."""
        return Optimisation(**self._chosen(Optimisation))

    def sampling(self) -> Sampling:
        """As a training takes it."""
        chosen = self._chosen(Sampling)
        if isinstance(self.fan_outs, list):
            chosen["fan_outs"] = tuple(self.fan_outs)
        if isinstance(self.negatives, MixtureConfig):
            chosen["negatives"] = Mixture(**self.negatives.model_dump())
        return Sampling(**chosen)

    def _chosen(self, settings: type[Optimisation | Sampling]) -> dict[str, Any]:
        found = self.model_dump(include=_names(settings))
        # the word is a choice of its own there
        return {k: v for k, v in found.items() if v != "auto" or k == "batching"}


def _names(settings: type[Optimisation | Sampling]) -> set[str]:
    return {field.name for field in fields(settings)}
