"""Fits a model to the training links, fold by fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from peg_core.inference.pair_scoring import PairScorer
from peg_core.metrics.ranking import roc_auc
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.message_graph import MessageGraph
from peg_core.random_streams import random_stream, stream_seed
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.split_store import NO_FOLD, LabelledPairs, SplitStore
from peg_core.training.graph_view import GraphView

# Without folds, an epoch still takes this many steps.
STEPS_WITHOUT_FOLDS = 10


class PairLogits(nn.Module):
    """Embedding and head in one forward, so that distributed training sees every parameter."""

    def __init__(self, model: LinkPredictor) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        state: Tensor,
        messages: MessageGraph,
        pairs: Tensor,
        geometry: Tensor,
        structure: Tensor,
    ) -> Tensor:
        embeddings = self.model(state, messages)
        return self.model.decode(embeddings[pairs[0]], embeddings[pairs[1]], geometry, structure)


@dataclass(frozen=True)
class Share:
    """Which part of every step this process supervises."""

    rank: int = 0
    world_size: int = 1


class LinkTrainer:
    """One model, one optimizer, and the views of the graph they learn from.

    With several folds (PEG+) the links of a fold supervise while encoding,
    messages, degrees and structural features come from the graph without that
    fold. With one fold (plain PEG) all come from the whole training graph.

    Args:
        network: A :class:`PairLogits`, or its distributed wrapper.
        view_of: The view of the training graph without a fold, or of all of it.
        split: Links and held-out pairs.
        folds: Number of folds.
        seed: Of dropout and negatives.
        device: Where the network is.
        share: Of the supervision, for distributed training.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        view_of: Callable[[int], GraphView],
        split: SplitStore,
        *,
        folds: int,
        seed: int,
        device: torch.device,
        share: Share,
    ) -> None:
        self.network, self.optimizer, self.view_of = network, optimizer, view_of
        self.train_graph = split.train_graph()
        self.source, self.target, self.fold = split.train_links()
        self.valid: LabelledPairs = split.held_out("valid")
        self.folds, self.seed, self.device, self.share = folds, seed, device, share

    @property
    def model(self) -> LinkPredictor:
        network: Any = getattr(self.network, "module", self.network)
        model: LinkPredictor = network.model
        return model

    def run_epoch(self, epoch: int) -> float:
        """One pass over the training links; returns the mean loss."""
        self.network.train()
        steps = self._steps(epoch)
        losses = [self._step(epoch * len(steps) + i, *step) for i, step in enumerate(steps)]
        return float(np.mean(losses))

    def validation_auc(self) -> float:
        """ROC AUC of the validation pairs, on the whole training graph."""
        model = self.model.eval()
        view = self.view_of(NO_FOLD)
        with torch.no_grad():
            embeddings = model(*_to(self.device, view.features, view.messages)).cpu().numpy()
        scorer = PairScorer(
            model.cpu(),
            view.graph,
            embeddings,
            [z.numpy() for z in view.positions],
            view.components,
        )
        scores = scorer.logits(self.valid.source, self.valid.target)
        model.to(self.device)
        return roc_auc(*self.valid.by_label(scores))

    def _steps(self, epoch: int) -> list[tuple[int, npt.NDArray[np.int64]]]:
        """(fold that is left out, links that supervise), in the order of this epoch."""
        rng = random_stream(seed=self.seed, purpose="epoch order", shard=epoch)
        if self.folds > 1:
            order = rng.permutation(self.folds)
            return [(int(fold), np.flatnonzero(self.fold == fold)) for fold in order]
        shuffled = rng.permutation(len(self.source))
        return [(NO_FOLD, part) for part in np.array_split(shuffled, STEPS_WITHOUT_FOLDS)]

    def _step(self, number: int, fold: int, links: npt.NDArray[np.int64]) -> float:
        """The streams depend on the step's number alone, so a resumed run repeats them."""
        view = self.view_of(fold)
        rng = random_stream(seed=self.seed, purpose="training negatives", shard=number)
        negatives = sample_non_edges(self.train_graph, len(links), rng=rng)
        mine = slice(self.share.rank, None, self.share.world_size)
        source = np.concatenate([self.source[links][mine], negatives[0][mine]]).astype(np.int64)
        target = np.concatenate([self.target[links][mine], negatives[1][mine]]).astype(np.int64)
        geometry, structure = view.pair_inputs(source, target)
        positives = len(self.source[links][mine])
        labels = (torch.arange(len(source)) < positives).float()
        torch.manual_seed(stream_seed(seed=self.seed, purpose="dropout", shard=number))
        pairs = torch.from_numpy(np.stack([source, target]))
        inputs = _to(self.device, view.features, view.messages, pairs, geometry, structure)
        self.optimizer.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(
            self.network(*inputs), labels.to(self.device)
        )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return float(loss.detach())


def _to(device: torch.device, *values: Any) -> list[Any]:
    """Tensors and message graphs on the device."""
    moved = []
    for value in values:
        if isinstance(value, MessageGraph):
            value = MessageGraph(
                value.edge_index.to(device),
                value.normalisation.to(device),
                value.distances.to(device),
            )
        else:
            value = value.to(device)
        moved.append(value)
    return moved
