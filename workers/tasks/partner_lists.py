"""Evaluation as a recommender, as Ray tasks: all partners of the nodes that have test links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from peg_core.artifacts.evaluation import MethodScores
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.conditions import pair_keys
from peg_core.inference.partner_ranking import PartnerRanking, popularity
from peg_core.metrics.bootstrap import Bootstrap
from peg_core.metrics.recommendation import Relevant, list_metrics, node_metrics
from peg_core.splits.partners import Partners
from peg_core.splits.split_store import SplitStore
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import ScorerRef
from workers.tasks.evaluate import RankResult

# Of one task; independent of the workers, so that a rerun finds its shards.
NODES_PER_PART = 2_048


class PartsResult(TypedDict):
    nodes: int
    parts: int


class ListsResult(TypedDict):
    nodes: int


@dataclass(frozen=True)
class PartnersRequest:
    """What recommends, and what is measured.

    Args:
        split: The training graph, and the links that were held out.
        out: Where the lists go.
        scorer: A model on the training graph; None: popularity in it.
        top_k: K of the metrics.
        bootstrap: Of the nodes.
        seed: Of the bootstrap, and of the sample of nodes where there are too many.
    """

    split: ArtifactRef[SplitStore]
    out: ArtifactRef[MethodScores]
    scorer: ScorerRef | None
    top_k: tuple[int, ...]
    bootstrap: Bootstrap
    seed: int

    def open(self) -> tuple[PartnerRanking, Relevant, GraphStore]:
        """What ranks, the nodes that are ranked with their test links, and the training graph.

        Neither training nor validation links are recommended: both are known by then.
        """
        split = self.split.open()
        graph = split.train_graph()
        partners, known = Partners.of(graph), [graph, _linked(split, graph)]
        if self.scorer is None:
            ranking = PartnerRanking.by_popularity(graph, known, partners)
        else:
            ranking = PartnerRanking.by_model(self.scorer.open(), known, partners)
        links = split.held_out("test").links
        relevant = Relevant.of(*partners.anchored(*links))
        chosen = ranking.sample(len(relevant.nodes), seed=self.seed)
        return ranking, relevant.some(chosen), graph


def _linked(split: SplitStore, graph: GraphStore) -> GraphStore:
    """The validation links as a graph, with their directions where they have any."""
    source, target = split.held_out("valid").links
    linked = GraphStore.from_edges(source, target, num_nodes=graph.num_nodes)
    if not graph.is_directed or graph.relations is None:
        return linked
    rows = np.repeat(np.arange(graph.num_nodes), linked.degrees)
    links = pair_keys(source, target, num_nodes=graph.num_nodes)
    codes = np.zeros(len(rows), dtype=np.uint16)
    ways = (rows, linked.indices), (linked.indices, rows)
    for bit, ends in zip(graph.relations.link_bits, ways, strict=True):
        codes[np.isin(pair_keys(*ends, num_nodes=graph.num_nodes), links)] |= bit
    return GraphStore(linked.indptr, linked.indices, codes=codes, relations=graph.relations)


def parts_task(request: PartnersRequest) -> PartsResult:
    """How many tasks rank the partners of how many nodes."""
    nodes = len(request.open()[1].nodes)
    return {"nodes": nodes, "parts": -(-nodes // NODES_PER_PART)}


def partner_lists_task(request: PartnersRequest, part: int) -> ListsResult:
    """Rank all partners of some nodes."""
    ranking, relevant, _ = request.open()
    nodes = relevant.nodes[part * NODES_PER_PART : (part + 1) * NODES_PER_PART]
    request.out.open().write_lists(part, ranking.lists(nodes, max(request.top_k)))
    return {"nodes": len(nodes)}


def rank_partners_task(request: PartnersRequest) -> RankResult:
    """Metrics of the lists of all nodes: means over nodes with intervals, and what they name."""
    ranking, relevant, graph = request.open()
    parts = -(-len(relevant.nodes) // NODES_PER_PART)
    lists = request.out.open().lists(parts)
    values = node_metrics(lists, relevant, top_k=request.top_k)
    means = request.bootstrap.per_node(values, seed=request.seed)
    count = ranking.partners.count
    named = list_metrics(lists, popularity(graph), partners=count, top_k=request.top_k)
    found: RankResult = {
        name: [item.value, *(None if np.isnan(end) else end for end in (item.low, item.high))]
        for name, item in means.items()
    }
    return found | {name: [value, None, None] for name, value in named.items()}
