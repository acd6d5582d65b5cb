"""How much a run has to do: sizes, from the configuration and the ends of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from peg_core.training.settings import MOST_FULL_EDGES
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.input_check import CheckedTable
from pipeline.run.sizing.automatic import GraphExtent, dimensions_of, sampled_nodes, training_links
from pipeline.stages.features import kind_of

DEGREE_WIDTH = 2


@dataclass(frozen=True)
class Workload:
    """Sizes that the cost of stages goes by.

    Args:
        train_links: Edges of the training graph.
        dimensions: Columns of all encodings.
        input_width: Columns of features that a model reads.
        links: Links that supervise, at most, all models.
        step_nodes: Nodes that a step holds.
        step_edges: Edges along which a step passes messages.
        steps: At most, all models.
        candidates, candidate_bytes: Rows to score, and their size as they are stored.
    """

    nodes: int
    edges: int
    train_links: int
    folds: int
    dimensions: int
    input_width: int
    hidden: int
    layers: int
    seeds: int
    links: int
    step_nodes: int
    step_edges: int
    steps: int
    heuristics: int
    hard_pairs: int
    candidates: int
    candidate_bytes: int
    task_memory: int
    lanes: int

    @property
    def graphs(self) -> int:
        """That are encoded for training: the whole one, and without each fold."""
        return 1 + (self.folds if self.folds > 1 else 0)

    @property
    def held_out(self) -> int:
        """Links to validate and test with."""
        return self.edges - self.train_links

    @classmethod
    def of(
        cls, config: PipelineConfig, extent: GraphExtent, tables: Iterable[CheckedTable] = ()
    ) -> Workload:
        """Of a configuration without ``auto``; see :mod:`pipeline.run.sizing.automatic`."""
        train, model = config.train, config.model
        links = training_links(config, extent.edges)
        asked = train.optimisation()
        budget = asked.links if asked.links is not None else asked.epochs * links
        folds = config.split.num_folds
        scored = [table for table in tables if table.table.added]
        sampling = train.sampling()
        step_nodes, step_edges, steps = extent.nodes, 2 * links * model.layers, 0
        if sampling.batching == "sampled" or (
            sampling.batching == "auto" and links > MOST_FULL_EDGES
        ):
            hops = sampling.hops(model.layers)
            step_nodes = sampled_nodes(sampling.batch_size, hops, extent.nodes)
            step_edges = min(step_edges, _sampled_edges(sampling.batch_size, hops, extent.nodes))
            steps = -(-budget // sampling.batch_size)
        elif sampling.batching == "masked":
            steps = -(-budget // sampling.batch_size)
        else:
            steps = -(-budget // max(1, links)) * max(folds, 1)
        heart = "heart" in (config.evaluate.protocol or ())
        return cls(
            nodes=extent.nodes,
            edges=extent.edges,
            train_links=links,
            folds=folds,
            dimensions=sum(dimensions_of(item) for item in config.encodings),
            input_width=_input_width(config),
            hidden=model.hidden,
            layers=model.layers,
            seeds=train.seeds,
            links=budget * train.seeds,
            step_nodes=step_nodes,
            step_edges=step_edges,
            steps=steps * train.seeds,
            heuristics=len(config.evaluate.chosen_heuristics),
            hard_pairs=config.evaluate.negatives_per_positive if heart else 0,
            candidates=sum(table.rows for table in scored),
            candidate_bytes=sum(table.bytes for table in scored),
            task_memory=config.cluster.task_memory,
            lanes=config.cluster.workers * config.cluster.cpus_per_worker,
        )


def _sampled_edges(batch_size: int, hops: Sequence[int], nodes: int) -> int:
    """Edges of a sample at most: every node that was reached draws its neighbours."""
    reached, edges = min(nodes, 4 * batch_size), 0
    for hop in hops:
        drawn = nodes if hop < 0 else hop
        edges += reached * drawn
        reached = min(nodes, reached * (1 + drawn))
    return edges


def _input_width(config: PipelineConfig) -> int:
    kind = kind_of(config)
    if kind == "degree":
        return DEGREE_WIDTH
    return config.features.dimensions
