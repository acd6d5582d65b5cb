"""A model as one function from a step to logits."""

from __future__ import annotations

from torch import Tensor, nn

from peg_core.models.link_predictor import LinkPredictor
from peg_core.training.training_step import TrainingStep


class PairLogits(nn.Module):
    """Embedding and head in one forward, so that distributed training sees every parameter."""

    def __init__(self, model: LinkPredictor) -> None:
        super().__init__()
        self.model = model

    def forward(self, step: TrainingStep) -> Tensor:
        state = self.model.first_state(step.x, step.positions, step.nodes)
        embeddings = self.model(state, step.messages)
        first, second = (embeddings.index_select(0, ends) for ends in step.pairs)
        return self.model.decode(first, second, step.geometry, step.structure)
