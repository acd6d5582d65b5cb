"""``peg inspect``: look at what the pipeline made; nothing is started or changed."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from peg_core.encoding.compare.movement import Movement, measure_movement
from peg_core.encoding.row_chunks import chunks
from peg_core.errors import ArtifactMismatch, PegError
from peg_core.graph.graph_store import FloatArray
from peg_core.graph.graph_summary import plain_ids, summarise_graph
from peg_core.graph.ids.graph_ids import GraphIds
from pipeline.cli.display.inspect_display import print_graph, print_movement
from pipeline.cli.lazy_group import SuggestingGroup
from pipeline.config.loading import load_config
from pipeline.run.plan import Action
from pipeline.store.local_store import AnyStore, open_store

MOVED_MOST = 5
STORES_HINT = "name a configuration file, or the folder of a graph store: STORE/current/ingest"

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@click.group(cls=SuggestingGroup)
def inspect() -> None:
    """Look into a graph, or compare two encodings; nothing is started or changed.

    \b
    peg inspect graph configs/quickstart.yaml
    peg inspect encoding before.npy after.npy
    """


@inspect.command()
@click.argument("target", type=click.Path(path_type=Path))
@json_option
def graph(target: Path, as_json: bool) -> None:
    """Show size, degrees, components and hubs of a graph.

    TARGET is a configuration file, for the graph that `peg run` made from it, or a folder that
    holds a graph store (indptr.npy, indices.npy).

    \b
    The graph of a pipeline:
      peg inspect graph configs/quickstart.yaml
    The training graph, without the links held out:
      peg inspect graph runs/quickstart/current/split/train_graph
    One number for a script:
      peg inspect graph configs/quickstart.yaml --json | jq .isolated_nodes

    \b
    What to look for:
      components  with many of them, see `components` in docs/encodings.md
      isolated    nodes without an edge all have the same position; nothing but
                  their features tells them apart
      hubs        an id such as 0, -1 or "unknown" here is often a missing value
      mapped      needed for the whole graph to stay in memory; less works, slower
    """
    folder = find_graph(target)
    summary = summarise_graph(folder)
    if as_json:
        click.echo(json.dumps({"folder": str(folder), **dataclasses.asdict(summary)}, indent=2))
    else:
        print_graph(Console(highlight=False), folder, summary)


@inspect.command()
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@json_option
def encoding(first: Path, second: Path, as_json: bool) -> None:
    """Show how far the nodes moved from encoding A to encoding B.

    A and B are .npy files of positions, a row for each node, or configuration files, for the
    first encoding of each: of all edges where scoring uses it, else of the training edges.

    Encodings are defined up to a rotation, so B is first rotated onto A as closely as possible.
    eta(A, B) is the distance that remains: the root of the summed squares of all moves.
    B may have more rows than A: new nodes come last and are not compared.

    \b
    Does another seed or tolerance give the same positions?
      peg inspect encoding seed-0.yaml seed-1.yaml
    What did new edges change?
      peg inspect encoding before.npy runs/quickstart/current/encode_all/encoding-0/all.npy
    For a script that wants to know whether to train again:
      peg inspect encoding before.npy after.npy --json | jq .relative_eta
    """
    before, after = open_positions(first), open_positions(second)
    facts = movement_facts(before, after, compare_positions(before, after))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        print_movement(Console(highlight=False), facts)


@dataclass(frozen=True)
class FinishedStages:
    """What exists of a pipeline, by its configuration file as it is now.

    Args:
        config_file: The configuration.
        store: Where its artifacts are.
        fingerprints: Of the finished stages.
        reasons: Why each of the others would run.
    """

    config_file: Path
    store: AnyStore
    fingerprints: dict[str, str]
    reasons: dict[str, str]

    @classmethod
    def of(cls, config_file: Path) -> FinishedStages:
        from pipeline.run.runner import plan_run

        config = load_config(config_file)
        steps = plan_run(config)
        return cls(
            config_file,
            open_store(config.store),
            {s.stage.name: s.fingerprint for s in steps if s.action is Action.REUSE},
            {s.stage.name: s.reason for s in steps if s.action is Action.RUN},
        )

    def folder(self, stage: str) -> Path:
        """The artifact of a finished stage, on this machine."""
        return self.store.fetch(stage, self.fingerprints[stage]).folder

    def first_of(self, *stages: str) -> str:
        """The first of ``stages`` that is finished."""
        for stage in stages:
            if stage in self.fingerprints:
                return stage
        wanted = [f"{stage} ({self.reasons[stage]})" for stage in stages if stage in self.reasons]
        raise PegError(
            f"{self.config_file} has no up-to-date result of {' or '.join(wanted)}; "
            f"start `peg run {self.config_file}`, or name an older result by its path"
        )


def find_graph(target: Path) -> Path:
    """The folder of the graph store that the user means."""
    if not target.is_dir():
        stages = FinishedStages.of(target)
        return stages.folder(stages.first_of("ingest"))
    if not (target / "indptr.npy").exists():
        raise PegError(f"{target} is not a graph store: it has no indptr.npy; {STORES_HINT}")
    return target


@dataclass(frozen=True)
class Positions:
    """An encoding to compare.

    Args:
        file: Where it is kept.
        stage: What made it; None for a file that the user named.
        array: [num_nodes, p], memory-mapped.
        node_ids: What the user calls the nodes, where that is known.
    """

    file: Path
    stage: str | None
    array: FloatArray
    node_ids: GraphIds | None

    def facts(self) -> dict[str, Any]:
        return {"file": str(self.file), "stage": self.stage, "shape": list(self.array.shape)}


def open_positions(target: Path) -> Positions:
    """The encoding that the user means."""
    if target.suffix == ".npy":
        return Positions(target, None, _load_array(target), None)
    if target.is_dir():
        raise PegError(
            f"{target} is a folder, not a .npy file or a configuration file; in an artifact "
            "of encode or encode_all the positions are encoding-0/all.npy"
        )
    from peg_core.artifacts import positions

    stages = FinishedStages.of(target)
    stage = stages.first_of("encode_all", "encode")
    file = positions.Positions(stages.folder(stage)).file(0)
    ids = GraphIds.open(stages.folder("ingest")) if "ingest" in stages.fingerprints else None
    return Positions(file, stage, _load_array(file), ids)


def _load_array(file: Path) -> FloatArray:
    """A table of finite numbers, memory-mapped."""
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise PegError(
            f"{file} cannot be read ({error}); give a .npy file as numpy.save writes it"
        ) from error
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.size:
        raise PegError(
            f"{file} holds {array.dtype} of shape {array.shape}; give a table of numbers, a row "
            "for each node and a column for each dimension"
        )
    for rows in chunks(slice(0, len(array))):
        good = np.isfinite(array[rows]).all(axis=1)
        if not good.all():
            raise PegError(
                f"{file} holds NaN or infinity in row {rows.start + int(good.argmin()):,}; "
                "positions must be finite: encode again"
            )
    # sums over many nodes need more digits than half precision has
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def compare_positions(before: Positions, after: Positions) -> Movement:
    """How the nodes moved; refuses encodings whose rows are known to be other nodes."""
    movement = measure_movement(before.array, after.array)
    if before.node_ids is None or after.node_ids is None:
        return movement
    for rows in chunks(slice(0, len(before.array))):
        index = np.arange(rows.start, rows.stop)
        if not before.node_ids.take(index).equals(after.node_ids.take(index)):
            raise ArtifactMismatch(
                f"{before.file} and {after.file} are not encodings of the same nodes: ids differ "
                f"in rows {rows.start:,} .. {rows.stop - 1:,}; B must have the nodes of A in "
                "the same order, new ones last"
            )
    return movement


def movement_facts(before: Positions, after: Positions, movement: Movement) -> dict[str, Any]:
    """What is printed of a movement, JSON-ready."""
    most = movement.moved_most(MOVED_MOST)
    node_ids = before.node_ids or after.node_ids
    names = [None] * len(most) if node_ids is None else plain_ids(node_ids, most)
    return {
        "a": before.facts(),
        "b": after.facts(),
        "compared_nodes": len(movement.distances),
        "new_nodes": movement.new_nodes,
        "eta": movement.eta,
        "relative_eta": movement.relative_eta,
        "mean_distance": float(movement.distances.mean()),
        "max_distance": float(movement.distances.max()),
        "moved_most": [
            {"id": name, "index": index, "distance": float(movement.distances[index])}
            for name, index in zip(names, most.tolist(), strict=True)
        ],
    }
