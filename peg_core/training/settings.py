"""What a training is told: the model, how its weights move, and what a step sees.

The defaults stand here and nowhere else; the sections of a pipeline file take them over.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from peg_core.models.model_spec import ModelSpec
from peg_core.splits.mixture.mixed_negatives import Mixture

Preset = Literal["best", "faithful", "ranking"]
Head = Literal[
    "preset",
    "dot",
    "inner_product",
    "cosine",
    "mlp",
    "structural",
    "branches",
    "placed_branches",
]
Gate = Literal["preset", "distance", "squared", "inner"]
Schedule = Literal["constant", "linear"]
Objective = Literal["bce", "auc", "auc_squared", "bpr", "softmax"]
Batching = Literal["auto", "full", "sampled", "masked"]
Sampler = Literal["numba", "pyg"]
Negatives = Literal["uniform", "degree", "hard"]

NEGATIVES: Negatives = "uniform"
# `auto` embeds the whole graph in every step up to this many edges.
MOST_FULL_EDGES = 1_000_000


@dataclass(frozen=True)
class ModelSettings:
    """The model, as far as a user chooses it; see :class:`ModelSpec`."""

    kind: str = "peg"
    preset: Preset = "best"
    hidden: int = ModelSpec.hidden
    layers: int = ModelSpec.layers
    head: Head = "preset"
    gate: Gate = "preset"
    dropout: float | None = ModelSpec.dropout
    head_width: int = ModelSpec.head_width
    gated: bool = ModelSpec.gated
    initial_deviation: float | None = ModelSpec.initial_deviation

    def spec(self, **widths: Any) -> ModelSpec:
        """With what the graph adds: the widths of features and encodings."""
        return ModelSpec(**asdict(self), **widths)


@dataclass(frozen=True)
class Optimisation:
    """How the weights move, and which epoch is kept.

    Args:
        objective: A name of ``OBJECTIVES``.
        metric: What is validated: auc, average_precision, mrr, hits@K, recall@K or ndcg@K.
        lr: Learning rate of Adam; ``lr_schedule`` is a name of ``SCHEDULES``.
        weight_decay: L2 penalty of Adam.
        epochs: Passes over the training links, at most, where ``links`` is None.
        links: Training links seen, at most, each counted every time that it supervises.
        patience: Validations without a gain before stopping; epochs where ``validate_links`` is
            None.
        min_gain: How much better than at the last gain a metric must be to count as one.
        validate_every: Epochs between validations, where ``validate_links`` is None.
        validate_links: Training links between validations.
        validate_pairs: Validation pairs that are ranked, at most.
        accumulate: Steps whose gradients are added up before the weights move.
        average: Decay of the running mean of the weights, which is what validation and the
            finished model use; 0: the weights themselves.
        compile: Compile the model with torch.
        passes: Epochs after which the training ends, whatever is left of its budget; None: never.
        temperature: What cosines are divided by, with the objective softmax.
    """

    objective: Objective = "bce"
    metric: str = "auc"
    lr: float = 0.005
    lr_schedule: Schedule = "constant"
    weight_decay: float = 1e-4
    epochs: int = 50
    links: int | None = None
    patience: int = 20
    min_gain: float = 0.0
    validate_every: int = 1
    validate_links: int | None = None
    validate_pairs: int = 2_000_000
    accumulate: int = 1
    average: float = 0.98
    compile: bool = False
    temperature: float = 0.15
    passes: float | None = None


@dataclass(frozen=True)
class Sampling:
    """What a step sees.

    Args:
        batching: "full": the whole graph; "sampled": neighbourhoods of a batch of links;
            "masked": the whole graph less the links of a batch; "auto": by the size of the graph.
        batch_size: Links of a sampled or masked step, all workers.
        fan_outs: Neighbours per hop from a link, one number per layer; None: 15, then 10.
        sampler: "numba", or "pyg" for the compiled kernel of pyg-lib or torch-sparse.
        negatives: How non-links to learn from are drawn: uniform, degree, hard, or a mixture.
        negatives_per_link: How many of them there are beside every link.
    """

    batching: Batching = "auto"
    batch_size: int = 8192
    fan_outs: tuple[int, ...] | None = None
    sampler: Sampler = "numba"
    negatives: Negatives | Mixture = NEGATIVES
    negatives_per_link: int = 1

    def hops(self, layers: int) -> tuple[int, ...]:
        """Neighbours per hop for a model of so many layers."""
        return self.fan_outs or (15, *[10] * (layers - 1))
