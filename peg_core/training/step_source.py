"""Where the steps of an epoch come from: whole graphs, or samples prepared ahead."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch

from peg_core.models.link_predictor import LinkPredictor
from peg_core.sampling.neighbor_sampler import NeighborSampler
from peg_core.splits.split_store import NO_FOLD
from peg_core.training.graph_view import FullView, GraphView
from peg_core.training.layerwise import embed_in_layers
from peg_core.training.link_schedule import LinkSchedule, Supervision
from peg_core.training.sampled_view import SampledView
from peg_core.training.training_step import TrainingStep

Embeddings = npt.NDArray[np.float32]


class StepSource(ABC):
    """Gives the steps of an epoch, and embeddings to validate with."""

    schedule: LinkSchedule

    @abstractmethod
    def view_of(self, fold: int) -> GraphView:
        """The training graph without a fold, or all of it."""

    @abstractmethod
    def steps(self, epoch: int, *, start: int = 0) -> Iterator[TrainingStep]:
        """The steps of an epoch, from number ``start`` of it on."""

    @abstractmethod
    def embed(self, model: LinkPredictor, device: torch.device) -> tuple[GraphView, Embeddings]:
        """The whole training graph and the embeddings of its nodes, [num_nodes, hidden]."""


class FullGraphSource(StepSource):
    """Every step embeds the whole graph less its fold.

    Args:
        schedule: The pairs of each step.
        view_of: The training graph without a fold, or all of it.
    """

    def __init__(self, schedule: LinkSchedule, view_of: Callable[[int], FullView]) -> None:
        self.schedule, self._views = schedule, view_of

    def view_of(self, fold: int) -> FullView:
        return self._views(fold)

    def steps(self, epoch: int, *, start: int = 0) -> Iterator[TrainingStep]:
        for supervision in self.schedule.epoch(epoch, start=start):
            yield self.view_of(supervision.fold).step(supervision)

    @torch.no_grad()
    def embed(self, model: LinkPredictor, device: torch.device) -> tuple[GraphView, Embeddings]:
        view = self.view_of(NO_FOLD)
        x, positions, messages = view.whole
        state = model.first_state(x.to(device), [z.to(device) for z in positions])
        return view, model(state, messages.to(device)).cpu().numpy()


class SampledSource(StepSource):
    """Every step embeds a sample around its pairs; samples are drawn ahead, in threads.

    Args:
        schedule: The pairs of each step.
        view_of: The training graph without a fold, or all of it.
        fan_outs: Neighbours per hop from the pairs; -1 for all.
        seed: Of the samples.
        sampler: Draws them.
        threads: Steps prepared side by side; the result does not depend on it.
    """

    def __init__(
        self,
        schedule: LinkSchedule,
        view_of: Callable[[int], SampledView],
        *,
        fan_outs: Sequence[int],
        seed: int,
        sampler: type[NeighborSampler] = NeighborSampler,
        threads: int = 1,
    ) -> None:
        self.schedule, self._views = schedule, view_of
        self.fan_outs, self.seed, self.threads = fan_outs, seed, threads
        self._sampler = sampler
        self._local = threading.local()

    def view_of(self, fold: int) -> SampledView:
        return self._views(fold)

    def steps(self, epoch: int, *, start: int = 0) -> Iterator[TrainingStep]:
        waiting: deque[Future[TrainingStep]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for supervision in self.schedule.epoch(epoch, start=start):
                    view = self.view_of(supervision.fold)
                    waiting.append(pool.submit(self._step, view, supervision))
                    if len(waiting) > self.threads + 1:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for step in waiting:
                    step.cancel()

    def _step(self, view: SampledView, supervision: Supervision) -> TrainingStep:
        sampler: NeighborSampler | None = getattr(self._local, "sampler", None)
        if sampler is None or sampler.graph is not view.graph:
            sampler = self._local.sampler = self._sampler(view.graph, self.fan_outs)
        step = view.step(supervision, sampler, seed=self.seed)
        for number, layer in enumerate(step.messages):  # type: ignore[arg-type]
            if number or view.model.table is not None:
                _ = layer.reverse  # needed for gradients: ordered here, beside the computation
        return step

    def embed(self, model: LinkPredictor, device: torch.device) -> tuple[GraphView, Embeddings]:
        view = self.view_of(NO_FOLD)
        embeddings = embed_in_layers(model.cpu(), view)
        model.to(device)
        return view, embeddings
