"""What a report shows of the pairs and the nodes of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from peg_core.artifacts.evaluation import TEST_PAIRS
from peg_core.artifacts.scored_pairs import ScoredPairs
from peg_core.artifacts.trained_model import seed_part
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.node_table import read_labels
from peg_core.inference.top_links import TopLinks, top_links
from peg_core.metrics.ranking import roc_auc
from peg_core.random_streams import random_stream
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import ScoreConfig
from pipeline.report.data import DegreeClass, NodeMap, TopPair
from pipeline.run.stage_inputs import StageInputs

TOP_PAIRS = 10
# Files of scored candidates that the best are looked for in, a million rows each.
TOP_FILES = 64
MOST_POINTS = 2000
# The process that drives the run reads graph and positions for this; of larger graphs it does not.
MOST_NODES = 5_000_000
# Parts of the test pairs, a million rows each, that curves and classes are drawn from.
SHOWN_PARTS = 4
# Fewer links in a class say nothing.
FEWEST_LINKS = 10

Array = npt.NDArray[Any]


class Gathered(NamedTuple):
    """The best new pairs, the map, and the quality by degree."""

    top: list[TopPair]
    node_map: NodeMap | None
    by_degree: list[DegreeClass]


def gather(inputs: StageInputs, config: PipelineConfig, heuristic: str | None) -> Gathered:
    """All of it; nothing where the graph is too large to be read by one process on the way."""
    if inputs.ref("ingest").at(GraphOutline).open().num_nodes > MOST_NODES:
        return Gathered([], None, [])
    best = find_top(inputs, config.score)
    by_degree = degree_classes(inputs, config.graph.predicted.ends, heuristic)
    return Gathered(describe_top(inputs, best), draw_map(inputs, best), by_degree)


def find_top(inputs: StageInputs, score: ScoreConfig | None) -> TopLinks | None:
    """The best scored candidates that are no links yet; None where nothing was scored."""
    if score is None or "score" not in inputs:
        return None
    table = inputs.ref("score").at(ScoredPairs).open().table(most_files=TOP_FILES)
    graph, ids = inputs.graph.open(), inputs.node_ids.open()
    return top_links(table, graph, ids, count=TOP_PAIRS, score=score.columns[0])


def describe_top(inputs: StageInputs, best: TopLinks | None) -> list[TopPair]:
    """The best pairs in words and numbers."""
    if best is None:
        return []
    degrees = inputs.graph.open().degrees
    ends = zip(degrees[best.source].tolist(), degrees[best.target].tolist(), strict=True)
    return [
        TopPair(str(names[0]), str(names[1]), float(score), int(common), end)
        for names, score, common, end in zip(
            best.names, best.scores, best.common_neighbours, ends, strict=True
        )
    ]


def draw_map(inputs: StageInputs, best: TopLinks | None) -> NodeMap | None:
    """A sample of the nodes where the first two principal components put them."""
    if "encode_all" not in inputs:
        return None
    num_nodes = inputs.graph.open().num_nodes
    positions = inputs.all_positions.open().arrays(num_nodes=num_nodes)
    nodes = _sample(num_nodes, best)
    taken = np.concatenate([array[nodes] for array in positions], axis=1).astype(np.float64)
    taken -= taken.mean(axis=0)
    if taken.shape[1] < 2 or not np.isfinite(taken).all():
        return None
    _, _, axes = np.linalg.svd(taken, full_matrices=False)
    groups, what = _groups(inputs, nodes)
    ends = (np.empty(0, np.int64),) * 2 if best is None else (best.source, best.target)
    links = np.stack([np.searchsorted(nodes, end) for end in ends], axis=1)
    return NodeMap(taken @ axes[:2].T, groups, what, links, num_nodes)


def _sample(num_nodes: int, best: TopLinks | None) -> Array:
    """Nodes to show, in order; those of the best pairs always."""
    stream = random_stream(seed=0, purpose="nodes of the map")
    shown = np.arange(min(num_nodes, MOST_POINTS))
    if num_nodes > MOST_POINTS:
        shown = np.sort(stream.choice(num_nodes, MOST_POINTS, replace=False))
    return shown if best is None else np.unique(np.concatenate([shown, best.source, best.target]))


def _groups(inputs: StageInputs, nodes: Array) -> tuple[list[str], str]:
    """What each node is coloured by, and what that is called: kind, class or component."""
    names = inputs.node_ids.open().names(nodes)
    if names is not None:
        return names.to_pylist(), "kind"
    labels = read_labels(inputs.ref("ingest").folder, nodes)
    if labels is not None:
        return [label or "none" for label in labels], "class"
    if "embed_all" not in inputs:
        return ["all"] * len(nodes), ""
    components = inputs.all_embeddings.open().components()[nodes]
    return [f"component {component}" for component in components.tolist()], "component"


def degree_classes(
    inputs: StageInputs, columns: tuple[str, str], heuristic: str | None
) -> list[DegreeClass]:
    """How well links are told from non-links, by the smaller degree of their ends.

    Args:
        columns: Of the ids of both ends.
        heuristic: The best one; None: there is none to compare with.
    """
    evaluation = inputs.evaluation.open()
    method = evaluation.method(seed_part(inputs.best_seed))
    pairs = method.pairs(TEST_PAIRS, [*columns, "score", "label"], most_parts=SHOWN_PARTS)
    scores = [pairs["score"].to_numpy()]
    if heuristic is not None:
        rival = evaluation.method("heuristics")
        found = rival.pairs(TEST_PAIRS, [heuristic], most_parts=SHOWN_PARTS)[heuristic]
        scores.append(found.to_numpy())
    ends = zip(inputs.node_ids.open().ends, columns, strict=True)
    nodes = [kind.lookup(pairs[name].to_arrow()) for kind, name in ends]
    degrees = inputs.train_graph.open().degrees
    smaller = np.minimum(degrees[nodes[0]], degrees[nodes[1]])
    return classify(smaller, pairs["label"].to_numpy() > 0, scores)


def classify(degrees: Array, links: Array, scores: list[Array]) -> list[DegreeClass]:
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
            found.append(DegreeClass(span, count, aucs))
    return found
