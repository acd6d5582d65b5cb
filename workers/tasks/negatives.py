"""Non-links to evaluate with, as Ray tasks; they do not depend on any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from peg_core.artifacts.ranking_negatives import RankingNegatives
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import load_features
from peg_core.random_streams import random_stream
from peg_core.splits.hard_negatives import NO_NODE, HardNegatives
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.reversed_links import reversed_links
from peg_core.splits.split_store import SplitStore
from workers.artifact_ref import ArtifactRef


class HardNegativesResult(TypedDict):
    """Anchors of the part, and non-links that could not be found for them."""

    anchors: int
    missing: int


class AnchorsResult(TypedDict):
    parts: int


class RandomNegativesResult(TypedDict):
    pairs: int


@dataclass(frozen=True)
class NegativesRequest:
    """Non-links for the test links of a split.

    Args:
        graph: The ingested graph, with all known edges and the features.
        per_link: Hard non-links of a link, half of them from either end.
    """

    graph: ArtifactRef[GraphStore]
    split: ArtifactRef[SplitStore]
    per_link: int
    seed: int
    out: ArtifactRef[RankingNegatives]


def anchors_task(request: NegativesRequest) -> AnchorsResult:
    """Write the nodes that have a test link; their non-links are found part by part."""
    anchors = np.unique(np.concatenate(request.split.open().held_out("test").links))
    return {"parts": request.out.open().write_anchors(anchors)}


def hard_negatives_task(request: NegativesRequest, part: int) -> HardNegativesResult:
    """The hardest non-links of some anchors, [num_anchors, per_link / 2]."""
    out = request.out.open()
    anchors = out.part_anchors(part)
    known = request.graph.open()
    sampler = HardNegatives(
        known=known,
        train=request.split.open().train_graph(),
        features=load_features(request.graph.folder),
        count=request.per_link // 2,
        seed=request.seed,
    )
    found = sampler.sample(anchors)
    out.write_part(part, found.astype(known.indices.dtype))
    return {"anchors": len(anchors), "missing": int((found == NO_NODE).sum())}


def random_negatives_task(request: NegativesRequest) -> RandomNegativesResult:
    """The test links with as many random non-links, for splits that have given ones."""
    source, target = request.split.open().held_out("test").links
    rng = random_stream(seed=request.seed, purpose="random test negatives")
    graph = request.graph.open()
    turned = reversed_links(graph, source, target, seed=request.seed)
    drawn = sample_non_edges(graph, len(source) - len(turned[0]), rng=rng)
    others = [np.concatenate(ends) for ends in zip(turned, drawn, strict=True)]
    pairs = HeldOutPairs(
        np.concatenate([source, others[0]]),
        np.concatenate([target, others[1]]),
        np.repeat(np.array([1, 0], dtype=np.uint8), len(source)),
    )
    pairs.write(request.out.open().random_file)
    return {"pairs": len(pairs.source)}
