"""Where the steps of an epoch come from: whole graphs, or samples prepared ahead."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from peg_core.inference.pair_scoring import PairScorer
from peg_core.kernels.compiled_loops import compiled_loops_apply
from peg_core.models.link_predictor import LinkPredictor
from peg_core.random_streams import stream_seed
from peg_core.sampling.neighbour_sampler import NeighbourSampler
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.split_store import NO_FOLD
from peg_core.training.graph_view import FullView, GraphView
from peg_core.training.layerwise import embed_in_layers
from peg_core.training.link_schedule import LinkSchedule, Share, Supervision, Turn
from peg_core.training.pair_logits import PairLogits
from peg_core.training.preparation import prepare_ahead
from peg_core.training.resident_graphs import ResidentGraphs
from peg_core.training.sampled_view import SampledView
from peg_core.training.training_step import TrainingStep
from peg_core.training.validation_share import chunks_of, rows_of

FloatArray = npt.NDArray[np.float32]
CPU = torch.device("cpu")

# A sampled training embeds all nodes to validate up to this many: about 1.5 GB.
MOST_EMBEDDED_NODES = 1_000_000


class StepSource(ABC):
    """Gives the steps of an epoch, and scores to validate with."""

    schedule: LinkSchedule

    @abstractmethod
    def view_of(self, fold: int) -> GraphView:
        """The training graph without a fold, or all of it."""

    @abstractmethod
    def steps(
        self, epoch: int, *, start: int = 0, device: torch.device = CPU
    ) -> Generator[TrainingStep]:
        """The steps of an epoch on a device, from number ``start`` of it on."""

    @abstractmethod
    def logits(
        self, model: LinkPredictor, pairs: HeldOutPairs, share: Share, device: torch.device
    ) -> FloatArray:
        """Logits of a process's share of pairs on the whole training graph.

        Args:
            model: In evaluation mode, on the device; it may be moved.
            pairs: Of all processes; :mod:`peg_core.training.validation_share` deals them.
        """

    @abstractmethod
    def scorer(self, model: LinkPredictor, device: torch.device) -> PairScorer:
        """Scores any pair on the whole training graph; holds the embeddings of all nodes."""


class FullGraphSource(StepSource):
    """Every step embeds the whole graph less its fold.

    Args:
        schedule: The pairs of each step.
        view_of: The training graph without a fold, or all of it.
    """

    def __init__(self, schedule: LinkSchedule, view_of: Callable[[int], FullView]) -> None:
        self.schedule, self._views = schedule, view_of
        self._resident = ResidentGraphs()

    def view_of(self, fold: int) -> FullView:
        return self._views(fold)

    def steps(
        self, epoch: int, *, start: int = 0, device: torch.device = CPU
    ) -> Generator[TrainingStep]:
        def prepare(turn: Turn) -> TrainingStep:
            view = self.view_of(turn.fold)
            whole = self._resident.whole(turn.fold, view, device)
            return view.step(self.schedule.pairs(turn), whole)

        threads = 0 if device.type == "cpu" else 1
        turns = self.schedule.turns(epoch, start=start)
        yield from prepare_ahead(prepare, turns, threads=threads, device=device)

    @torch.no_grad()
    def logits(
        self, model: LinkPredictor, pairs: HeldOutPairs, share: Share, device: torch.device
    ) -> FloatArray:
        return _scores(self.scorer(model, device), pairs, share)

    @torch.no_grad()
    def scorer(self, model: LinkPredictor, device: torch.device) -> PairScorer:
        view = self.view_of(NO_FOLD)
        x, positions, messages = self._resident.whole(NO_FOLD, view, device)
        embeddings = model(model.first_state(x, positions), messages).cpu().numpy()
        return _scorer(model, view, embeddings)


class MaskedSource(FullGraphSource):
    """Every step embeds the whole graph less its own batch of links, all workers' shares of it.

    The links are missing in messages, degrees, counts and components: what the head learns from a
    known link looks like a link that is not yet known. With folds, the graph lacks the whole fold
    and so the batch. Without, the encoding is that of the graph with its links.
    """

    def steps(
        self, epoch: int, *, start: int = 0, device: torch.device = CPU
    ) -> Generator[TrainingStep]:
        def prepare(turn: Turn) -> TrainingStep:
            view = self.view_of(turn.fold)
            if turn.fold == NO_FOLD:
                links = self.schedule.links(turn.epoch, turn.batch)
                view = view.without(self.schedule.source[links], self.schedule.target[links])
            return view.step(self.schedule.pairs(turn))

        threads = 0 if device.type == "cpu" else 1
        turns = self.schedule.turns(epoch, start=start)
        yield from prepare_ahead(prepare, turns, threads=threads, device=device)


class SampledSource(StepSource):
    """Every step embeds a sample around its pairs; samples are drawn ahead, in threads.

    Args:
        schedule: The pairs of each step.
        view_of: The training graph without a fold, or all of it.
        fan_outs: Neighbours per hop from the pairs; -1 for all.
        seed: Of the samples.
        sampler: Draws them.
        threads: Steps prepared side by side; the result does not depend on it.
        most_embedded: Nodes up to which validation embeds all of them, each with all its
            neighbours; above, it samples around the pairs, and memory does not grow.
    """

    def __init__(
        self,
        schedule: LinkSchedule,
        view_of: Callable[[int], SampledView],
        *,
        fan_outs: Sequence[int],
        seed: int,
        sampler: type[NeighbourSampler] = NeighbourSampler,
        threads: int = 1,
        most_embedded: int = MOST_EMBEDDED_NODES,
    ) -> None:
        self.schedule, self._views = schedule, view_of
        self.fan_outs, self.seed, self.threads = fan_outs, seed, threads
        self.most_embedded = most_embedded
        self._sampler = sampler
        self._local = threading.local()

    def view_of(self, fold: int) -> SampledView:
        return self._views(fold)

    def steps(
        self, epoch: int, *, start: int = 0, device: torch.device = CPU
    ) -> Generator[TrainingStep]:
        def prepare(asked: tuple[SampledView, Turn]) -> TrainingStep:
            view, turn = asked
            step = view.step(self.schedule.pairs(turn), self._sampler_of(view), seed=self.seed)
            _order_for_gradients(step, view.model, device)
            return step

        turns = self.schedule.turns(epoch, start=start)
        asked = ((self.view_of(turn.fold), turn) for turn in turns)
        yield from prepare_ahead(prepare, asked, threads=self.threads, device=device)

    def logits(
        self, model: LinkPredictor, pairs: HeldOutPairs, share: Share, device: torch.device
    ) -> FloatArray:
        view = self.view_of(NO_FOLD)
        if view.graph.num_nodes > self.most_embedded:
            return self._sampled_logits(model, view, pairs, share, device)
        return _scores(self.scorer(model, device), pairs, share)

    def scorer(self, model: LinkPredictor, device: torch.device) -> PairScorer:
        del device
        view = self.view_of(NO_FOLD)
        return _scorer(model, view, embed_in_layers(model.cpu(), view))

    @torch.no_grad()
    def _sampled_logits(
        self,
        model: LinkPredictor,
        view: SampledView,
        pairs: HeldOutPairs,
        share: Share,
        device: torch.device,
    ) -> FloatArray:
        """From the same samples in every epoch, whatever process draws them."""
        seed = stream_seed(seed=self.seed, purpose="validation samples")

        def prepare(asked: tuple[int, slice]) -> TrainingStep:
            number, chunk = asked
            ends = pairs.source[chunk], pairs.target[chunk]
            supervision = Supervision(number, NO_FOLD, *ends, num_links=0)
            return view.step(supervision, self._sampler_of(view), seed=seed)

        chunks = chunks_of(len(pairs.label), share)
        steps = prepare_ahead(prepare, chunks, threads=self.threads, device=device)
        network = PairLogits(model)
        found = [network(step).float().cpu().numpy() for step in steps]
        return np.concatenate([np.zeros(0, dtype=np.float32), *found])

    def _sampler_of(self, view: SampledView) -> NeighbourSampler:
        """A sampler of this thread's own."""
        sampler: NeighbourSampler | None = getattr(self._local, "sampler", None)
        if sampler is None or sampler.graph is not view.graph:
            sampler = self._local.sampler = self._sampler(view.graph, self.fan_outs)
        return sampler


def _order_for_gradients(step: TrainingStep, model: LinkPredictor, device: torch.device) -> None:
    """Order edges by their source beside the computation, where compiled gradients read them so."""
    if not compiled_loops_apply(device):
        return
    for number, (edges, layer) in enumerate(zip(step.messages, model.layers, strict=True)):  # type: ignore[arg-type]
        if layer.reads_reverse and (number or model.table is not None):
            _ = edges.reverse


def _scorer(model: LinkPredictor, view: GraphView, embeddings: FloatArray) -> PairScorer:
    """From the embeddings of all nodes, on the CPU."""
    return PairScorer(model.cpu(), view.graph, embeddings, view.positions, view.components)


def _scores(scorer: PairScorer, pairs: HeldOutPairs, share: Share) -> FloatArray:
    """Of a share of the pairs."""
    rows = rows_of(len(pairs.label), share)
    return scorer.logits(pairs.source[rows], pairs.target[rows])
