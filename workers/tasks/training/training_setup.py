"""Brings together what a training worker needs: model, optimizer, views of the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from ray.train.torch import prepare_model

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from peg_core.models import MODELS
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.model_spec import ModelSpec
from peg_core.random_streams import stream_seed
from peg_core.sampling.neighbour_sampler import NeighbourSampler
from peg_core.sampling.pyg_sampler import PygNeighbourSampler
from peg_core.splits.fold_graph import open_fold_graph
from peg_core.splits.leak_check import require_no_leaks
from peg_core.splits.mixture.mixed_negatives import MixedNegatives
from peg_core.splits.mixture.negative_pools import NegativePools
from peg_core.splits.split_store import NO_FOLD, SplitStore
from peg_core.training.graph_view import FullView, GraphView
from peg_core.training.link_schedule import LinkSchedule, Share
from peg_core.training.link_trainer import LinkTrainer, PairLogits
from peg_core.training.partner_schedule import PartnerSchedule
from peg_core.training.preparation import preparation_threads
from peg_core.training.sampled_view import SampledView
from peg_core.training.settings import MOST_FULL_EDGES
from peg_core.training.step_source import (
    FullGraphSource,
    MaskedSource,
    SampledSource,
    StepSource,
)

if TYPE_CHECKING:
    from workers.tasks.train import TrainRequest

View = TypeVar("View", bound=GraphView)


def build_trainer(
    request: TrainRequest, share: Share, device: torch.device
) -> tuple[LinkTrainer, ModelSpec]:
    """Everything that the loop needs; the same in every worker but for its share."""
    optimisation = request.optimisation
    split, features = request.inputs.split.open(), request.inputs.features.open()
    spec = _spec(request, split, features)
    torch.manual_seed(stream_seed(seed=request.seed, purpose="initial weights"))
    model = MODELS[spec.kind](spec)
    network: torch.nn.Module = prepare_model(
        PairLogits(model, optimisation.temperature), move_to_device=device
    )
    if optimisation.compile:
        network = torch.compile(network)  # type: ignore[assignment]
    trainer = LinkTrainer(
        network,
        torch.optim.Adam(
            network.parameters(), lr=optimisation.lr, weight_decay=optimisation.weight_decay
        ),
        _source(request, split, features, model, share, device),
        split.held_out("valid", most=optimisation.validate_pairs),
        seed=request.seed,
        device=device,
        optimisation=optimisation,
    )
    return trainer, spec


def is_sampled(request: TrainRequest, graph: GraphStore) -> bool:
    """Whether steps see samples of the graph."""
    if request.sampling.batching == "auto":
        return graph.num_edges > MOST_FULL_EDGES
    return request.sampling.batching == "sampled"


def _source(
    request: TrainRequest,
    split: SplitStore,
    features: NodeFeatures,
    model: LinkPredictor,
    share: Share,
    device: torch.device,
) -> StepSource:
    sampled, sampling = is_sampled(request, split.train_graph()), request.sampling
    schedule = _schedule(request, split, share, sampled=sampled)

    def view(kind: type[View], graph: GraphStore, fold: int) -> View:
        require_no_leaks(graph, split.hidden_links(fold), found_in="the messages of training")
        return kind.of(graph, _positions(request, graph, fold), features, model)

    @cache
    def full_view_of(fold: int) -> FullView:
        return view(FullView, split.graph_without(fold), fold)

    @lru_cache(maxsize=3)  # the folds come one after the other
    def sampled_view_of(fold: int) -> SampledView:
        return view(SampledView, open_fold_graph(split, fold, request.out.open().scratch), fold)

    if sampling.batching == "masked":
        return MaskedSource(schedule, full_view_of)
    if not sampled:
        return FullGraphSource(schedule, full_view_of)
    by_pyg = sampling.sampler == "pyg"
    threads = preparation_threads(request.resources.cpus_per_worker, device)
    return SampledSource(
        schedule,
        sampled_view_of,
        sampler=PygNeighbourSampler if by_pyg else NeighbourSampler,
        fan_outs=sampling.hops(request.model.layers),
        seed=request.seed,
        threads=1 if by_pyg else threads,  # PyG's samples depend on what other threads draw
    )


def _schedule(
    request: TrainRequest, split: SplitStore, share: Share, *, sampled: bool
) -> LinkSchedule:
    """Links beside non-links, or against the partners that their nodes might have had."""
    objective, sampling = request.optimisation.objective, request.sampling
    kind: Callable[..., LinkSchedule] = LinkSchedule
    if objective == "softmax":
        # a sampled step embeds the neighbourhoods of the partners, too
        most = sampling.batch_size if sampled else None
        kind = partial(PartnerSchedule, most_partners=most)
    in_batches = sampled or sampling.batching == "masked"
    return kind(
        split,
        folds=request.inputs.folds,
        seed=request.seed,
        share=share,
        batch_size=sampling.batch_size if in_batches else None,
        negatives="partner" if objective == "bpr" else _negatives(request, split, share),
        negatives_per_link=sampling.negatives_per_link,
    )


def _negatives(request: TrainRequest, split: SplitStore, share: Share) -> str | MixedNegatives:
    """How non-links are drawn, and from which pools: every process makes its own, alike."""
    wanted = request.sampling.negatives
    if isinstance(wanted, str):
        return wanted
    graph = split.train_graph()
    if not wanted.hard:
        return MixedNegatives(graph, wanted)
    folder = request.out.open().scratch / f"pools-{share.rank}"
    pools = NegativePools.of(
        graph, request.inputs.features.open(), seed=request.seed, folder=folder
    )
    return MixedNegatives(graph, wanted, pools)


def _spec(request: TrainRequest, split: SplitStore, features: NodeFeatures) -> ModelSpec:
    graph = split.train_graph()
    positions = _positions(request, graph, NO_FOLD)
    model = request.model
    if request.optimisation.objective == "softmax":
        model = replace(model, head="cosine")  # what is learned with it
    return model.spec(
        in_channels=features.width(positions),
        num_encodings=len(positions),
        encoding_widths=[z.shape[1] for z in positions],
        learned_nodes=graph.num_nodes if features.kind == "learned" else 0,
        relation_columns=graph.num_columns,
        directed=graph.is_directed,
    )


def _positions(
    request: TrainRequest, graph: GraphStore, fold: int
) -> list[npt.NDArray[np.float32]]:
    return request.inputs.positions.open().arrays(num_nodes=graph.num_nodes, fold=fold)
