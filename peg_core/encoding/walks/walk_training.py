"""Training of skip-gram tables, pass by pass."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array, write_json
from peg_core.encoding.walks.alias_table import alias_table
from peg_core.encoding.walks.random_walks import WalkGraph, WalkRule, walk_key
from peg_core.encoding.walks.skip_gram import SigmoidTable, Tables, train_edges, train_walks
from peg_core.encoding.walks.table_replicas import ROUNDS, train_in_rounds
from peg_core.graph.graph_store import GraphStore, IntArray
from peg_core.kernels.row_updates import padded_columns
from peg_core.random_streams import random_stream, stream_seed
from peg_core.scramble import Scramble

Negatives = Literal["standard", "shared"]

# Negative samples are drawn by degree to this power, as in word2vec.
NOISE_POWER = 0.75
LOWEST_RATE = 1e-4
# Starts whose order is held at a time.
BLOCK_STARTS = 2**20
# Rows of the random start that are drawn from one stream.
START_ROWS = 2**16


@dataclass(frozen=True)
class SkipGram:
    """How tables are trained.

    Args:
        dimensions: Columns of a table.
        window: Largest distance of a pair on a walk.
        negatives: Noise pairs per true pair.
        shared: Whether noise is drawn once per window.
        learning_rate: At the beginning; it falls in proportion to what is done.
        passes: Of the whole training.
    """

    dimensions: int
    passes: int
    window: int = 10
    negatives: int = 5
    shared: bool = False
    learning_rate: float = 0.025

    def rate(self, done: float) -> float:
        """The learning rate after so many passes."""
        return self.learning_rate + (LOWEST_RATE - self.learning_rate) * done / self.passes

    @property
    def tile(self) -> tuple[int, ...]:
        """Only its length matters: the kernel is compiled for so many rows."""
        return (0,) * (1 + self.negatives)


@dataclass
class TrainingState:
    """Tables after some passes.

    Args:
        tables: What was trained so far.
        losses: Mean loss of a pair and its noise, by pass.
    """

    tables: Tables
    losses: list[float] = field(default_factory=list)

    @property
    def passes(self) -> int:
        return len(self.losses)

    def save(self, folder: Path) -> None:
        """Keep the state; the one before is removed when this one is there whole."""
        home = folder / f"pass-{self.passes}"
        write_array(home / "inputs.npy", self.tables.inputs)
        if self.tables.outputs is not self.tables.inputs:
            write_array(home / "outputs.npy", self.tables.outputs)
        write_json(folder / "state.json", {"losses": self.losses})
        for old in folder.glob("pass-*"):
            if old != home:
                shutil.rmtree(old)

    @classmethod
    def load(cls, folder: Path) -> TrainingState | None:
        """The state that was kept last, if there is one."""
        if not (folder / "state.json").exists():
            return None
        losses = json.loads((folder / "state.json").read_text())["losses"]
        home = folder / f"pass-{len(losses)}"
        inputs = np.load(home / "inputs.npy")
        other = home / "outputs.npy"
        return cls(Tables(inputs, np.load(other) if other.exists() else inputs), losses)


def start_tables(num_nodes: int, dimensions: int, *, seed: int, one_table: bool) -> Tables:
    """Small random inputs and zero outputs, as in gensim, or one random table for both."""
    inputs = np.zeros((num_nodes, padded_columns(dimensions)), dtype=np.float32)
    for shard, first in enumerate(range(0, num_nodes, START_ROWS)):
        rows = inputs[first : first + START_ROWS, :dimensions]
        stream = random_stream(seed=seed, purpose="skip-gram start", shard=shard)
        rows[:] = (2 * stream.random(rows.shape, dtype=np.float32) - 1) / dimensions
    return Tables(inputs, inputs if one_table else np.zeros_like(inputs))


class WalkTraining:
    """Passes of walks over a graph, one walk from every start in each.

    Args:
        graph: A graph with edges.
        settings: How tables are trained.
        rule: How walks go.
        seed: Of the run.
    """

    def __init__(self, graph: GraphStore, settings: SkipGram, rule: WalkRule, *, seed: int) -> None:
        self.graph = WalkGraph.of(graph)
        self.settings = settings
        self.rule = rule
        self.seed = seed
        self._noise = alias_table(graph.weighted_degrees**NOISE_POWER)
        self._sigmoids = SigmoidTable.build()

    def run_pass(self, tables: Tables, number: int, starts: slice | None = None) -> float:
        """Train on one walk from every node, or from the given indices in the order of starts.

        Args:
            tables: Changed in place.
            number: Of the pass.
            starts: Places, none: all.

        Returns:
            The mean loss.
        """
        num_nodes = self.graph.num_nodes
        order = Scramble.of(num_nodes, seed=self.seed, purpose=f"order of starts {number}")
        wanted = slice(0, num_nodes) if starts is None else starts
        totals = np.zeros(2)
        for first in range(wanted.start, wanted.stop, BLOCK_STARTS):
            indices = np.arange(first, min(first + BLOCK_STARTS, wanted.stop))
            nodes = order.apply(indices)
            totals += self._train(tables, number, nodes, first)
        return float(totals[0] / max(totals[1], 1))

    def _train(
        self, tables: Tables, number: int, nodes: IntArray, first: int
    ) -> npt.NDArray[np.float64]:
        """Train on walks from some nodes; the first is at index ``first`` of the pass."""
        settings, num_nodes = self.settings, self.graph.num_nodes
        change = (settings.rate(1) - settings.rate(0)) / num_nodes
        key = walk_key(seed=self.seed, number=number)

        def train(own: Tables, span: slice) -> tuple[float, int]:
            return train_walks(
                *self.graph,
                nodes[span],
                *self.rule.kernel_arguments,
                key,
                settings.window,
                settings.shared,
                self._noise,
                *self._sigmoids,
                *own,
                settings.rate(number + (first + span.start) / num_nodes),
                change,
                settings.tile,
            )

        return train_in_rounds(tables, train, len(nodes), num_nodes // ROUNDS)


class EdgeTraining:
    """Passes over a graph's edges, drawn by weight: LINE.

    Args:
        graph: A graph with edges.
        settings: How tables are trained.
        draws: Pairs of a pass.
        seed: Of the run.
    """

    def __init__(self, graph: GraphStore, settings: SkipGram, draws: int, *, seed: int) -> None:
        self.graph = WalkGraph.of(graph)
        self.settings = settings
        self.draws = draws
        self.seed = seed
        self._sources = alias_table(graph.weighted_degrees)
        self._noise = alias_table(graph.weighted_degrees**NOISE_POWER)
        self._sigmoids = SigmoidTable.build()

    def run_pass(self, tables: Tables, number: int) -> float:
        """Train on ``draws`` edges; returns the mean loss."""
        settings = self.settings
        change = (settings.rate(1) - settings.rate(0)) / self.draws
        key = np.uint64(stream_seed(seed=self.seed, purpose="edge draws", shard=number))

        def train(own: Tables, span: slice) -> tuple[float, int]:
            return train_edges(
                *self.graph,
                span.start,
                span.stop,
                key,
                self._sources,
                self._noise,
                *self._sigmoids,
                *own,
                settings.rate(number + span.start / self.draws),
                change,
                settings.tile,
            )

        totals = train_in_rounds(tables, train, self.draws, self.draws // ROUNDS)
        return float(totals[0] / totals[1])


def train_passes(
    run_pass: Callable[[Tables, int], float],
    state: TrainingState,
    passes: int,
    checkpoint: Path | None = None,
) -> TrainingState:
    """Run the passes that are missing; keep the state after each where a folder is given."""
    while state.passes < passes:
        state.losses.append(run_pass(state.tables, state.passes))
        if checkpoint is not None:
            state.save(checkpoint)
    return state
