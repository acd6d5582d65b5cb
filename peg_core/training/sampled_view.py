"""A graph of which every step sees a sample around its pairs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peg_core.layers.message_graph import MessageGraph, gate_inputs
from peg_core.random_streams import stream_seed
from peg_core.sampling.neighbour_sampler import NOTHING, NeighbourSampler, SampledNeighbours
from peg_core.splits.entry_chunk import find_entries
from peg_core.training.graph_view import GraphView
from peg_core.training.link_schedule import Supervision
from peg_core.training.training_step import TrainingStep


class SampledView(GraphView):
    """Reads rows of the memory-mapped graph, positions and features, never all of them."""

    @cached_property
    def degrees(self) -> npt.NDArray[np.float32]:
        """Weighted degrees in the whole graph, [num_nodes]."""
        return self.graph.weighted_degrees.astype(np.float32)

    def step(
        self, supervision: Supervision, sampler: NeighbourSampler, *, seed: int
    ) -> TrainingStep:
        """The neighbourhoods of a step's pairs, less the links that supervise.

        With a fold left out the graph has none of them. Without folds they are taken out
        of the messages here.
        """
        self.model.require_local()
        source, target = supervision.source, supervision.target
        partners = NOTHING if supervision.partners is None else supervision.partners
        wanted = np.concatenate([source, target, partners])
        seeds, inverse = np.unique(wanted, return_inverse=True)
        rows = torch.from_numpy(inverse.astype(np.int64))
        known = slice(0, supervision.num_known)
        excluded, context = self._supervising(source[known], target[known])
        sampled = sampler.sample(
            seeds,
            seed=stream_seed(seed=seed, purpose="neighbors", shard=supervision.number),
            excluded=excluded,
        )
        x, positions = self.node_inputs(sampled.nodes)
        geometry, structure = self.pair_inputs(supervision)
        return TrainingStep(
            supervision.number,
            x,
            positions,
            torch.from_numpy(sampled.nodes),
            self.layers(sampled, context),
            rows[: 2 * len(source)].reshape(2, -1),
            geometry,
            structure,
            supervision.num_links,
            None if supervision.partners is None else rows[2 * len(source) :],
            supervision.possible_partners,
        )

    def layers(
        self, sampled: SampledNeighbours, context: npt.NDArray[np.int64] = NOTHING
    ) -> list[MessageGraph]:
        """The sampled edges as each layer reads them, the widest first.

        Args:
            context: Entries that are there for other relations than the predicted one alone.
        """
        rule = self.model.rule
        weights, columns = self._entry_inputs(sampled.entries, np.isin(sampled.entries, context))
        expanded = sampled.nodes[: len(sampled.scale)]
        rows = np.repeat(np.arange(len(expanded), dtype=np.int32), np.diff(sampled.indptr))
        source, target = sampled.nodes[sampled.sources], sampled.nodes[rows]
        edge_weights = rule.edge_weights(
            weights,
            self.degrees[target],
            self.degrees[source],
        )
        measures = [rule.edge_measures(z, source, target) for z in self.positions]
        loops = [rule.loop_measures(z[expanded]) for z in self.positions]
        everything = MessageGraph(
            torch.from_numpy(sampled.indptr),
            torch.from_numpy(sampled.sources),
            torch.from_numpy(edge_weights * sampled.scale[rows]),
            gate_inputs(measures, columns),
            torch.from_numpy(rule.loop_weights(self.degrees[expanded])),
            gate_inputs(loops, None, padding=self.graph.num_columns),
            len(sampled.nodes),
        )
        counts = sampled.counts
        return [
            everything.first_targets(counts[hop], counts[hop + 1])
            for hop in reversed(range(len(counts) - 1))
        ]

    def _supervising(
        self, source: npt.NDArray[Any], target: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Links in both directions, as the sampler excludes them; entries that context keeps."""
        if not len(source):
            return NOTHING, NOTHING
        graph = self.graph
        rows, columns = np.concatenate([source, target]), np.concatenate([target, source])
        keys = rows * graph.num_nodes + columns
        if graph.codes is None or graph.relations is None:
            return np.sort(keys), NOTHING
        entries = find_entries(graph, rows, columns)
        kept = graph.codes[entries] & ~graph.relations.link_mask != 0
        return np.sort(keys[~kept]), entries[kept]

    def _entry_inputs(
        self, entries: npt.NDArray[np.int64], context: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
        """Weights and columns of entries, of some of them without the predicted relation."""
        graph = self.graph
        weights = None if graph.weights is None else graph.weights[entries]
        if not context.any() or graph.codes is None or graph.relations is None:
            return weights, graph.columns(entries)
        codes = graph.codes[entries]
        codes = np.where(context, codes & ~graph.relations.link_mask, codes)
        if weights is not None and graph.context_weights is not None:
            weights = np.where(context, graph.context_weights[entries], weights)
        return weights, graph.relations.columns(codes)
