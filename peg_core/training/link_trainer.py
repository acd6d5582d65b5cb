"""Fits a model to the training links, step by step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from peg_core.errors import PegError
from peg_core.inference.pair_scoring import PairScorer
from peg_core.inference.partner_ranking import PartnerRanking
from peg_core.metrics.per_link_ranking import LinkRanks, rank_values
from peg_core.metrics.ranking import ranking_metrics
from peg_core.metrics.recommendation import Relevant, node_metrics
from peg_core.models.link_predictor import LinkPredictor
from peg_core.random_streams import stream_seed
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.partners import Partners
from peg_core.training.objective import OBJECTIVES
from peg_core.training.pair_logits import PairLogits
from peg_core.training.settings import Optimisation
from peg_core.training.step_source import StepSource
from peg_core.training.training_step import TrainingStep
from peg_core.training.validation_share import (
    all_scores,
    mean_over_processes,
    rows_of,
    with_common_statistics,
)
from peg_core.training.weight_average import WeightAverage

__all__ = ["LinkTrainer", "PairLogits"]

# Validations of a training that together may score as many pairs as one ranking of test links.
VALIDATIONS = 16
# Begins the names of metrics of links among non-links of their own.
PER_LINK = "link_"


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

    def run_epoch(self, epoch: int) -> float:
        """One pass over the training links; returns the mean loss."""
        losses = [loss for _, some in self.moves(epoch) for loss in some]
        return sum(losses) / len(losses)

    def moves(self, epoch: int, *, start: int = 0) -> Generator[tuple[int, list[float]]]:
        """Take the steps of an epoch; whoever stops asking ends it there.

        Args:
            epoch: Its number.
            start: Steps of it that are done already.

        Yields:
            Whenever the weights moved: the steps done, and the losses of those since the last move.
        """
        self.network.train()
        losses: list[float] = []
        last = len(self.source.schedule.batches(epoch))
        with closing(self.source.steps(epoch, start=start, device=self.device)) as steps:
            for done, step in enumerate(steps, start=start + 1):
                moves = len(losses) + 1 == self.accumulate or done == last
                losses.append(self._gradients(step, exchange=moves))
                if moves:
                    self._move()
                    yield done, losses
                    losses = []

    def validate(self) -> dict[str, float]:
        """Metrics of the validation pairs, on the whole training graph.

        Every process scores its share of them and comes to the same metrics: all must ask.
        """
        share = self.source.schedule.share
        model = with_common_statistics(self.average.averaged_model(), share)
        rows = rows_of(len(self.valid.label), share)
        found: dict[str, float] = {}
        if self.metric.startswith(("recall@", "ndcg@")):
            scorer = self.source.scorer(model, self.device)
            mine = scorer.logits(*(end[rows] for end in (self.valid.source, self.valid.target)))
            found[self.metric] = self._partner_metric(scorer)
        else:
            mine = self.source.logits(model, self.valid, share, self.device)
        scores = all_scores(mine, len(self.valid.label), share)
        if self.metric.startswith(PER_LINK):
            found |= self._link_metric(scores)
        of_all = self.metric.startswith("hits@")
        hits = [int(self.metric.removeprefix("hits@"))] if of_all else []
        return ranking_metrics(*self.valid.by_label(scores), hits=hits) | found

    def _link_metric(self, scores: npt.NDArray[np.float32]) -> dict[str, float]:
        """Of links among the non-links of their own, ties at the mean rank."""
        links, others = self.valid.label == 1, self.valid.label == 0
        if self.valid.link is None:
            raise PegError(
                f"`train.metric: {self.metric}` ranks links among non-links of their own, the "
                "validation pairs have none; set `split.negatives_link` and "
                "`split.valid_negatives`, or another metric"
            )
        ranks = LinkRanks.of_lists(scores[links], [(scores[others], self.valid.link[others])])
        name = self.metric.removeprefix(PER_LINK)
        hits = [int(name.removeprefix("hits@"))] if name.startswith("hits@") else []
        return {self.metric: float(rank_values(ranks.mean, hits=hits)[name].mean())}

    def _partner_metric(self, scorer: PairScorer) -> float:
        """Recall or NDCG among all partners but known ones, of nodes with validation links."""
        share, graph = self.source.schedule.share, scorer.graph
        partners = Partners.of(graph)
        relevant = Relevant.of(*partners.anchored(*self.valid.links))
        ranking = PartnerRanking.by_model(scorer, [graph], partners)
        # the same nodes in every epoch
        chosen = ranking.sample(
            len(relevant.nodes), seed=0, most_pairs=ranking.most_pairs // VALIDATIONS
        )
        mine = relevant.some(chosen[share.rank :: share.world_size])
        top_k = int(self.metric.partition("@")[2])
        values = node_metrics(ranking.lists(mine.nodes, top_k), mine, top_k=[top_k])
        return mean_over_processes(values[self.metric], share)

    def _gradients(self, step: TrainingStep, *, exchange: bool = True) -> float:
        """Add a step's gradients; its random numbers come from its number alone.

        Args:
            exchange: Whether processes add up what they have so far; the weights move next.
        """
        torch.manual_seed(stream_seed(seed=self.seed, purpose="dropout", shard=step.number))
        on_gpu = self.device.type == "cuda"
        with nullcontext() if exchange else self._no_exchange():
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=on_gpu):
                logits = self.network(step.to(self.device))
            loss = self.objective(logits.float(), step.num_links)
            penalty = self.model.take_penalty()
            if penalty is not None:
                loss = loss + penalty.float()
            (loss / self.accumulate).backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _no_exchange(self) -> AbstractContextManager[None]:
        """Gradients stay in this process until the next step that exchanges them."""
        network: Any = self.network
        quiet: AbstractContextManager[None] = (
            network.no_sync() if hasattr(network, "no_sync") else nullcontext()
        )
        return quiet

    def _move(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.average.update()
