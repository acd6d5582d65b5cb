"""A model as one function from a step to logits."""

from __future__ import annotations

from torch import Tensor, nn

from peg_core.models.link_predictor import LinkPredictor
from peg_core.training.objective import partner_surprise
from peg_core.training.training_step import TrainingStep


class PairLogits(nn.Module):
    """Embedding and head in one forward, so that distributed training sees every parameter.

    A step with partners gives no logits, but how surprising each link is among them.

    Args:
        model: What embeds and scores.
        temperature: What cosines are divided by, with partners.
    """

    def __init__(self, model: LinkPredictor, temperature: float = 0.15) -> None:
        super().__init__()
        self.model, self.temperature = model, temperature

    def forward(self, step: TrainingStep) -> Tensor:
        state = self.model.first_state(step.x, step.positions, step.nodes)
        embeddings = self.model(state, step.messages)
        if step.partners is not None:
            return partner_surprise(
                embeddings,
                step.pairs,
                step.partners,
                possible=step.possible_partners,
                temperature=self.temperature,
            )
        first, second = (embeddings.index_select(0, ends) for ends in step.pairs)
        return self.model.decode(first, second, step.geometry, step.structure)
