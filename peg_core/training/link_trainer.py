"""Fits a model to the training links, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from peg_core.inference.pair_scoring import PairScorer
from peg_core.metrics.ranking import ranking_metrics
from peg_core.models.link_predictor import LinkPredictor
from peg_core.random_streams import stream_seed
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.training.objective import OBJECTIVES
from peg_core.training.settings import Optimisation
from peg_core.training.step_source import StepSource
from peg_core.training.training_step import TrainingStep
from peg_core.training.weight_average import WeightAverage


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


class LinkTrainer:
    """One model, one optimizer, and the steps they learn from.

    Args:
        network: A :class:`PairLogits`, or its distributed wrapper.
        optimizer: Of the network's parameters.
        source: Gives the steps.
        valid: Pairs to validate with.
        seed: Of dropout.
        device: Where the network is.
        optimisation: Objective, metric, accumulation and averaging.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        source: StepSource,
        valid: HeldOutPairs,
        *,
        seed: int,
        device: torch.device,
        optimisation: Optimisation,
    ) -> None:
        self.network, self.optimizer, self.source = network, optimizer, source
        self.valid, self.seed, self.device = valid, seed, device
        self.metric, self.accumulate = optimisation.metric, optimisation.accumulate
        self.objective = OBJECTIVES[optimisation.objective]
        self.average = WeightAverage(self.model, optimisation.average)

    @property
    def model(self) -> LinkPredictor:
        network: Any = self.network
        for wrapper in ("module", "_orig_mod"):  # distributed, compiled
            network = getattr(network, wrapper, network)
        model: LinkPredictor = network.model
        return model

    def run_epoch(
        self,
        epoch: int,
        *,
        start: int = 0,
        losses: list[float] | None = None,
        on_step: Callable[[int, list[float]], None] = lambda *_: None,
    ) -> float:
        """One pass over the training links; returns the mean loss.

        Args:
            epoch: Its number.
            start: Steps of it that are done already.
            losses: Their losses.
            on_step: Called whenever the weights moved, with the steps done and all losses.
        """
        self.network.train()
        losses = list(losses or [])
        waiting = 0
        for done, step in enumerate(self.source.steps(epoch, start=start), start=start + 1):
            losses.append(self._gradients(step))
            waiting += 1
            if waiting == self.accumulate:
                self._move()
                waiting = 0
                on_step(done, losses)
        if waiting:
            self._move()
        return sum(losses) / len(losses)

    def validate(self) -> dict[str, float]:
        """Metrics of the validation pairs, on the whole training graph."""
        with self.average.applied() as model:
            model.eval()
            view, embeddings = self.source.embed(model, self.device)
            scorer = PairScorer(
                model.cpu(), view.graph, embeddings, view.positions, view.components
            )
            scores = scorer.logits(self.valid.source, self.valid.target)
            model.to(self.device)
        hits = [int(self.metric.removeprefix("hits@"))] if "@" in self.metric else []
        return ranking_metrics(*self.valid.by_label(scores), hits=hits)

    def _gradients(self, step: TrainingStep) -> float:
        """Add a step's gradients; its random numbers come from its number alone."""
        torch.manual_seed(stream_seed(seed=self.seed, purpose="dropout", shard=step.number))
        on_gpu = self.device.type == "cuda"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=on_gpu):
            logits = self.network(step.to(self.device))
        loss = self.objective(logits.float(), step.num_links)
        (loss / self.accumulate).backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _move(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.average.update()
