"""The artifacts of a run that is finished, by its configuration as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peg_core.errors import InputError
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.plan import Action
from pipeline.run.runner import plan_run
from pipeline.run.stage_inputs import StageInputs
from pipeline.store.local_store import open_store

# What it takes to score, over all known edges or over those trained on.
OVER_ALL = ("ingest", "features", "train", "calibrate", "encode_all", "refit", "embed_all")
OVER_TRAIN = ("ingest", "features", "split", "encode", "train", "embed", "calibrate")


@dataclass(frozen=True)
class FinishedRun:
    """A trained model over a graph.

    Args:
        inputs: The artifacts.
        graph: ``all`` known edges, or those of the ``train`` part.
    """

    config: PipelineConfig
    inputs: StageInputs
    graph: str

    @classmethod
    def of(cls, config: PipelineConfig) -> FinishedRun:
        """The graph that the scores of the run rest on; else, where no run scored, of training.

        Raises:
            InputError: What it takes is not finished.
        """
        steps = {step.stage.name: step for step in plan_run(config)}
        asked = config.score.graph if config.score is not None else "all"
        graph = asked if asked == "train" or "embed_all" in steps else "train"
        needed = [name for name in (OVER_ALL if graph == "all" else OVER_TRAIN) if name in steps]
        missing = [name for name in needed if steps[name].action is Action.RUN]
        if missing:
            raise InputError(
                f"the store {config.store} has no finished {missing[0]} for this configuration "
                f"({steps[missing[0]].reason}); run `peg run` with it first"
            )
        store = open_store(config.store)
        refs = {name: store.fetch(name, steps[name].fingerprint) for name in needed}
        return cls(config, StageInputs(refs), graph)

    @property
    def encodings(self) -> Sequence[str]:
        """The kinds of the encodings, in their order."""
        return [item.kind for item in self.config.encodings]
