"""``peg score``: score candidates with a trained model, apart from a run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from peg_core.artifacts.integrity import DamagedArtifact
from peg_core.artifacts.manifest import Manifest, require_whole
from peg_core.errors import ConfigError, InputError
from peg_core.object_url import is_url
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import ScoreConfig
from pipeline.report.formats import format_time
from pipeline.run.plan import Action, Step
from pipeline.run.progress import RunDisplay
from pipeline.store.local_store import ArtifactStore, open_store
from workers.artifact_ref import ArtifactRef
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings

if TYPE_CHECKING:
    from peg_core.artifacts.trained_model import TrainedModel
    from pipeline.run.transfer import OtherGraph

# What `peg score` never starts by itself: training takes long and needs its own decisions.
TRAINED_BY_RUN = ("ingest", "features", "split", "encode", "train", "calibrate")
# What the scores are based on, made where a run has not done so.
SCORED_WITH = ("embed", "encode_all", "embed_all")


@click.command()
@click.option(
    "--run",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="CONFIG",
    help="The configuration of a finished run: its model and its graph score.",
)
@click.option(
    "--model",
    metavar="DIR",
    help="A trained model instead: STORE/current/train, or one of its seeds.",
)
@click.option(
    "--graph",
    "graph",
    metavar="LOCATION",
    help="With --model: another graph, Parquet edges or the folder of a graph store.",
)
@click.option(
    "--nodes", metavar="LOCATION", help="With --graph: a Parquet node table with features."
)
@click.option(
    "--candidates",
    required=True,
    metavar="LOCATION",
    help="Parquet pairs: a file, a folder, a glob or a URL.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the scores.",
)
@click.option("--source", metavar="COLUMN", help="One end of a pair.  [default: src]")
@click.option("--target", metavar="COLUMN", help="The other end.  [default: dst]")
@click.option(
    "--column",
    "columns",
    multiple=True,
    type=click.Choice(["score", "logit"]),
    help="What is written of a pair. May be repeated.  [default: score]",
)
@click.option(
    "--on-unknown",
    type=click.Choice(["null", "drop", "error"]),
    help="Pairs with an id that is null or not in the graph.  [default: null]",
)
@click.option("--shard-rows", type=click.IntRange(min=1), help="Rows of an output file.")
@click.option("--workers", type=click.IntRange(min=1), help="Tasks side by side.")
@click.option("--address", help="Ray address to join.  [default: a local Ray]")
def score(
    config_file: Path | None,
    model: str | None,
    graph: str | None,
    nodes: str | None,
    candidates: str,
    out: Path,
    workers: int | None,
    address: str | None,
    **options: Any,
) -> None:  # fmt: skip
    """Score candidate pairs with a trained model.

    Either with a finished run and its own graph, or with its model on another graph, which is
    then read, encoded and embedded with the settings that the model was trained with. A call
    that was interrupted goes on where it stopped: start it again.

    \b
    peg score --run configs/quickstart.yaml --candidates new.parquet --out scores/
    peg score --model runs/quickstart/current/train --graph other.parquet \\
        --candidates new.parquet --out scores/
    """
    from pipeline.run.transfer import OtherGraph

    if (config_file is None) == (model is None):
        raise ConfigError("give either --run CONFIG or --model DIR, one of them")
    if (model is None) != (graph is None):
        raise ConfigError("--model and --graph belong together; give both, or --run CONFIG")
    if model is not None and is_url(model):
        raise ConfigError(
            f"--model {model} is a URL, needed is a folder; score with --run CONFIG, which finds "
            "the model of a run in an object store"
        )
    given = {key: value for key, value in options.items() if value not in (None, ())}
    given = {key: list(value) if key == "columns" else value for key, value in given.items()}
    where = {"workers": workers, "address": address}
    where = {key: value for key, value in where.items() if value is not None}
    console = Console(highlight=False)
    with RunDisplay(console) as display:
        if config_file is not None:
            config = _with_candidates(load_config(config_file), candidates, given, where)
            manifest = _score_run(config, out, display)
        else:
            wanted = ScoreConfig(candidates=candidates, **given)
            assert model is not None
            assert graph is not None
            manifest = _score_other(
                Path(model), OtherGraph(graph, nodes), wanted, out, where, display
            )
    console.print(f"scores:     {out}/*.parquet  ({manifest.counts['pairs']:,} pairs)")


def _with_candidates(
    config: PipelineConfig, candidates: str, given: dict[str, Any], where: dict[str, Any]
) -> PipelineConfig:
    """The run's configuration with other candidates; its `score` section has the defaults."""
    before = config.score.model_dump() if config.score else {}
    score = ScoreConfig(**{**before, **given, "candidates": candidates})
    cluster = config.cluster.model_copy(update=where)
    return config.model_copy(update={"score": score, "cluster": cluster})


def _score_run(config: PipelineConfig, out: Path, display: RunDisplay) -> Manifest:
    from pipeline.run.runner import open_cluster, plan_run, run_pipeline
    from pipeline.run.score_folder import ScoreFolder
    from pipeline.run.stage_inputs import StageInputs
    from pipeline.run.stage_runner import StageRunner

    steps = {step.stage.name: step for step in plan_run(config)}
    _require_trained(steps, config)
    assert config.score is not None
    needed = steps["score"].identity.inputs
    folder = ScoreFolder(out, needed, config.score)
    found = folder.finished()
    if found is not None:
        display.reused("score", f"done on {format_time(found.finished)}")
        return found
    needless = "embed" if config.score.graph == "all" else ""
    made = [name for name in SCORED_WITH if name in steps and name != needless]
    if any(steps[name].action is Action.RUN for name in made):
        run_pipeline(config, display, only=made)
    store = open_store(config.store)
    for name, fingerprint in needed.items():
        contents = config.integrity.verify == "full"
        damage = store.damage(name, fingerprint, contents=contents) if name != needless else None
        if damage is not None:
            remedy = "run `peg run` with this configuration, which makes it again"
            raise DamagedArtifact.of(store.location(name, fingerprint), damage, remedy)
    cluster = open_cluster(config)

    def read() -> StageInputs:
        return StageInputs(
            {name: store.fetch(name, made) for name, made in needed.items() if name != needless}
        )

    try:
        return folder.fill(StageRunner(config, cluster, display), read)
    finally:
        cluster.close()
        store.close()


def _require_trained(steps: dict[str, Step], config: PipelineConfig) -> None:
    for name in TRAINED_BY_RUN:
        if steps[name].action is Action.RUN:
            raise InputError(
                f"the store {config.store} has no trained model for this configuration: "
                f"{name} is missing ({steps[name].reason}); run `peg run` with it first"
            )


def _score_other(
    model_folder: Path,
    other: OtherGraph,
    score: ScoreConfig,
    out: Path,
    where: dict[str, Any],
    display: RunDisplay,
) -> Manifest:
    from peg_core.artifacts.trained_model import TrainedModel
    from pipeline.run.score_folder import ScoreFolder
    from pipeline.run.stage_runner import StageRunner
    from pipeline.run.transfer import embed_other_graph, transfer_config

    model = _trained_model(model_folder)
    if other.is_store:
        require_whole(Path(other.location).resolve(), contents=True)
    inputs = {"model": _digest(model.weights_file), "graph": str(other.files())}
    folder = ScoreFolder(out, inputs, score)
    found = folder.finished()
    if found is not None:
        display.reused("score", f"done on {format_time(found.finished)}")
        return found
    cluster = Cluster(ClusterSettings(**where))
    runner = StageRunner(transfer_config(model, other, score, folder.work), cluster, display)
    taken = ArtifactRef.of_folder(model.folder, TrainedModel)
    store = ArtifactStore(folder.work)
    try:
        return folder.fill(runner, lambda: embed_other_graph(runner, taken, other, store))
    finally:
        cluster.close()


def _trained_model(folder: Path) -> TrainedModel:
    """The model itself, or the best one of a training."""
    from peg_core.artifacts.trained_model import TrainedModel, Training

    require_whole(folder.resolve(), contents=True)
    model = TrainedModel(folder.resolve())
    if not model.exists and Manifest.read(model.folder) is not None:
        model = Training(model.folder).model()
    if not model.exists:
        raise InputError(
            f"{model.folder} holds no trained model: model.json is missing; name "
            "STORE/current/train, or run `peg run` first"
        )
    return model


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]
