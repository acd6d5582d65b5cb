"""The nodes and the pairs that a report shows, looked up where the arrays are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.artifacts.embedded_graph import Embeddings
from peg_core.artifacts.evaluation import TEST_PAIRS, MethodScores
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.scored_pairs import ScoredPairs
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.node_table import read_labels
from peg_core.inference.top_links import TopLinks, top_links
from peg_core.metrics.ranking import roc_auc
from peg_core.random_streams import random_stream
from workers.artifact_ref import ArtifactRef

TOP_PAIRS = 10
# Files of scored candidates that the best are looked for in, a million rows each.
TOP_FILES = 64
MOST_POINTS = 2000
# Reading the classes of more nodes takes too much memory for a picture.
MOST_LABELLED = 5_000_000
# Parts of the test pairs, a million rows each, that curves and classes are drawn from.
SHOWN_PARTS = 4
# Fewer links in a class say nothing.
FEWEST_LINKS = 10

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ReportRequest:
    """What is looked at.

    Args:
        graph, ids: All known edges, and what users call the nodes.
        train_graph: What the test pairs were told from.
        positions, embeddings: In the graph of all known edges; None: it was not encoded.
        scored: Scored candidates; None: there are none.
        score: Their column that ranks them.
        model, heuristics: Scores of the test pairs.
        heuristic: The best one; None: there is none to compare with.
        columns: Of the ids of both ends of a test pair.
    """

    graph: ArtifactRef[GraphStore]
    ids: ArtifactRef[GraphIds]
    train_graph: ArtifactRef[GraphStore]
    positions: ArtifactRef[Positions] | None
    embeddings: ArtifactRef[Embeddings] | None
    scored: ArtifactRef[ScoredPairs] | None
    score: str
    model: ArtifactRef[MethodScores]
    heuristics: ArtifactRef[MethodScores]
    heuristic: str | None
    columns: tuple[str, str]


class TopRow(TypedDict):
    """One of the best new pairs."""

    source: str
    target: str
    score: float
    common_neighbours: int
    degrees: list[int]


class MapResult(TypedDict):
    """A sample of the nodes in the plane."""

    points: list[list[float]]
    groups: list[str]
    grouped_by: str
    links: list[list[int]]
    num_nodes: int


class DegreeRow(TypedDict):
    """Test links of similar degree."""

    degrees: str
    links: int
    aucs: list[float]


class ReportResult(TypedDict):
    """All that was looked up, JSON-ready."""

    top: list[TopRow]
    node_map: MapResult | None
    by_degree: list[DegreeRow]


def report_task(request: ReportRequest) -> ReportResult:
    """The best new pairs, the map, and the quality by degree."""
    best = _find_top(request)
    return ReportResult(
        top=_describe_top(request, best),
        node_map=_draw_map(request, best),
        by_degree=_degree_classes(request),
    )


def _find_top(request: ReportRequest) -> TopLinks | None:
    """The best scored candidates that are no links yet; None where nothing was scored."""
    if request.scored is None:
        return None
    table = request.scored.open().table(most_files=TOP_FILES)
    graph, ids = request.graph.open(), request.ids.open()
    return top_links(table, graph, ids, count=TOP_PAIRS, score=request.score)


def _describe_top(request: ReportRequest, best: TopLinks | None) -> list[TopRow]:
    """The best pairs in words and numbers."""
    if best is None:
        return []
    degrees = request.graph.open().degrees
    return [
        TopRow(
            source=str(names[0]),
            target=str(names[1]),
            score=float(best.scores[place]),
            common_neighbours=int(best.common_neighbours[place]),
            degrees=[int(degrees[best.source[place]]), int(degrees[best.target[place]])],
        )
        for place, names in enumerate(best.names)
    ]


def _draw_map(request: ReportRequest, best: TopLinks | None) -> MapResult | None:
    """A sample of the nodes where the first two principal components put them."""
    if request.positions is None:
        return None
    num_nodes = request.graph.open().num_nodes
    positions = request.positions.open().arrays(num_nodes=num_nodes)
    nodes = _sample(num_nodes, best)
    taken = np.concatenate([array[nodes] for array in positions], axis=1).astype(np.float64)
    taken -= taken.mean(axis=0)
    if taken.shape[1] < 2 or not np.isfinite(taken).all():
        return None
    _, _, axes = np.linalg.svd(taken, full_matrices=False)
    groups, what = _groups(request, nodes, num_nodes)
    ends = (np.empty(0, np.int64),) * 2 if best is None else (best.source, best.target)
    links = np.stack([np.searchsorted(nodes, end) for end in ends], axis=1)
    return MapResult(
        points=(taken @ axes[:2].T).tolist(),
        groups=groups,
        grouped_by=what,
        links=links.tolist(),
        num_nodes=num_nodes,
    )


def _sample(num_nodes: int, best: TopLinks | None) -> Array:
    """Nodes to show, in order; those of the best pairs always."""
    stream = random_stream(seed=0, purpose="nodes of the map")
    shown = np.arange(min(num_nodes, MOST_POINTS))
    if num_nodes > MOST_POINTS:
        shown = np.sort(stream.choice(num_nodes, MOST_POINTS, replace=False))
    return shown if best is None else np.unique(np.concatenate([shown, best.source, best.target]))


def _groups(request: ReportRequest, nodes: Array, num_nodes: int) -> tuple[list[str], str]:
    """What each node is coloured by, and what that is called: kind, class or component."""
    names = request.ids.open().names(nodes)
    if names is not None:
        return names.to_pylist(), "kind"
    if num_nodes <= MOST_LABELLED:
        labels = read_labels(request.graph.folder, nodes)
        if labels is not None:
            return [label or "none" for label in labels], "class"
    if request.embeddings is None:
        return ["all"] * len(nodes), ""
    components = request.embeddings.open().components()[nodes]
    return [f"component {component}" for component in components.tolist()], "component"


def _degree_classes(request: ReportRequest) -> list[DegreeRow]:
    """How well links are told from non-links, by the smaller degree of their ends."""
    columns = [*request.columns, "score", "label"]
    pairs = request.model.open().pairs(TEST_PAIRS, columns, most_parts=SHOWN_PARTS)
    scores = [pairs["score"].to_numpy()]
    if request.heuristic is not None:
        rival = request.heuristics.open()
        found = rival.pairs(TEST_PAIRS, [request.heuristic], most_parts=SHOWN_PARTS)
        scores.append(found[request.heuristic].to_numpy())
    ends = zip(request.ids.open().ends, request.columns, strict=True)
    nodes = [kind.lookup(pairs[name].to_arrow()) for kind, name in ends]
    degrees = request.train_graph.open().degrees
    smaller = np.minimum(degrees[nodes[0]], degrees[nodes[1]])
    return classify(smaller, pairs["label"].to_numpy() > 0, scores)


def classify(degrees: Array, links: Array, scores: list[Array]) -> list[DegreeRow]:
    """AUC of the links of each class of degrees among all non-links; small classes are left out.

    Args:
        degrees, links: Of every pair, [num_pairs].
        scores: Of the model, and of a heuristic, [num_pairs] each.
    """
    place = np.ceil(np.log2(np.maximum(degrees, 0.5))).astype(np.int64)  # 0, 1, 2, 3-4, 5-8
    found = []
    for number in np.unique(place[links]):
        chosen = links & (place == number)
        count = int(chosen.sum())
        if count >= FEWEST_LINKS:
            last = 2 ** max(number, 0) if number >= 0 else 0
            first = last // 2 + 1 if number > 0 else last
            span = f"{first}" if first == last else f"{first}–{last}"
            aucs = [roc_auc(each[chosen], each[~links]) for each in scores]
            found.append(DegreeRow(degrees=span, links=count, aucs=aucs))
    return found
