"""The running mean of a model's weights, steadier than the weights of any one step."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from peg_core.models.link_predictor import LinkPredictor

Weights = dict[str, Tensor]


class WeightAverage:
    """An exponential mean over the moves of a model's weights.

    A fold supervises one step and moves the weights towards itself; the mean over some
    folds predicts unseen links better than the weights after the last of them. Early
    moves are forgotten faster, so that the first weights do not linger.

    Args:
        model: Whose weights are averaged.
        decay: Share of the mean that is kept at a move, below 1; 0: the weights themselves.
    """

    def __init__(self, model: LinkPredictor, decay: float) -> None:
        self.model, self.decay = model, decay
        self.moves = 0
        self.values: Weights = {}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a move."""
        if self.decay == 0:
            return
        self.moves += 1
        keep = min(self.decay, self.moves / (9 + self.moves))
        for name, value in self.model.state_dict().items():
            if name not in self.values or not value.is_floating_point():
                self.values[name] = value.clone()
            else:
                self.values[name].lerp_(value, 1 - keep)

    def weights(self) -> Weights:
        """A copy of the mean, on the CPU; of the weights themselves where there is none."""
        source = self.values or self.model.state_dict()
        return {name: value.detach().cpu().clone() for name, value in source.items()}

    def averaged_model(self) -> LinkPredictor:
        """A copy of the model with the mean as its weights, in evaluation mode.

        The weights that an optimizer and other processes hold stay where they are, whatever
        happens to the copy.
        """
        model = copy.deepcopy(self.model).requires_grad_(False)
        if self.values:
            model.load_state_dict(self.values)
        return model.eval()
