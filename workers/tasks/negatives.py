"""Non-links to evaluate with, as Ray tasks; they do not depend on any model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import load_features
from peg_core.random_streams import random_stream
from peg_core.splits.hard_negatives import NO_NODE, HardNegatives
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.split_store import LabelledPairs, SplitStore
from workers.task_map import Result

# Of one task; independent of the workers, so that a rerun finds its shards.
ANCHORS_PER_PART = 2_048


@dataclass(frozen=True)
class NegativesRequest:
    """Non-links for the test links of a split.

    Args:
        graph: The ingested graph, with all known edges and the features.
        per_link: Hard non-links of a link, half of them from either end.
        out: Folder for ``anchors.npy``, ``part-<n>.npy`` and ``random.parquet``.
    """

    graph: Path
    split: Path
    per_link: int
    seed: int
    out: Path


def write_anchors(request: NegativesRequest) -> int:
    """Write the nodes that have a test link; returns how many parts their non-links have."""
    anchors = np.unique(np.concatenate(SplitStore(request.split).held_out("test").links))
    write_array(request.out / "anchors.npy", anchors)
    return -(-len(anchors) // ANCHORS_PER_PART)


def hard_negatives_task(request: NegativesRequest, part: int) -> Result:
    """The hardest non-links of some anchors, [num_anchors, per_link / 2]."""
    anchors, _ = open_part(request.out, part)
    known = GraphStore.open(request.graph)
    sampler = HardNegatives(
        known=known,
        train=SplitStore(request.split).train_graph(),
        features=load_features(request.graph),
        count=request.per_link // 2,
        seed=request.seed,
    )
    found = sampler.sample(anchors)
    write_array(part_file(request.out, part), found.astype(known.indices.dtype))
    return {"anchors": len(anchors), "missing": int((found == NO_NODE).sum())}


def random_negatives_task(request: NegativesRequest) -> Result:
    """The test links with as many random non-links, for splits that have given ones."""
    source, target = SplitStore(request.split).held_out("test").links
    rng = random_stream(seed=request.seed, purpose="random test negatives")
    others = sample_non_edges(GraphStore.open(request.graph), len(source), rng=rng)
    pairs = LabelledPairs(
        np.concatenate([source, others[0]]),
        np.concatenate([target, others[1]]),
        np.repeat(np.array([1, 0], dtype=np.uint8), len(source)),
    )
    SplitStore(request.out).write_held_out("random", pairs)
    return {"pairs": len(pairs.source)}


def part_file(folder: Path, part: int) -> Path:
    return folder / f"part-{part:06}.npy"


def open_part(folder: Path, part: int) -> tuple[npt.NDArray[np.int64], Path]:
    """The anchors of a part, and the file with their non-links."""
    anchors = np.load(folder / "anchors.npy", mmap_mode="r")
    rows = slice(part * ANCHORS_PER_PART, (part + 1) * ANCHORS_PER_PART)
    return np.array(anchors[rows]), part_file(folder, part)


def count_parts(folder: Path) -> int:
    return len(list(folder.glob("part-*.npy")))
